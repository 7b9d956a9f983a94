package pickcmd

import (
	"context"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
)

// runLogic answers with the kernel of a library logic, and with the model's pick beside it.
func (o *SelectOptions) runLogic(ctx context.Context) error {
	if o.Query.Problems != "" || o.Measure != "" || o.Executor != "" {
		return diag.Inputf("--logic answers for one problem, without measuring").
			Do("leave --problems, --measure and --executor out")
	}
	l, err := session.ReadLogic(ctx, o.Logic)
	if err != nil {
		return err
	}
	p, err := o.Query.One(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	a, err := o.Factory.Searched(ctx, &o.Query.Search)
	if err != nil {
		return err
	}
	if err := o.checkLogic(l, a.Describe(), &p); err != nil {
		return err
	}
	kernel, layer := l.Lookup(logic.SizeOf(&p))
	pick := &ask.LogicPick{File: o.Logic, Layer: layer}
	if kernel >= 0 {
		pick.Kernel = l.Kernels[kernel].Name
		if l.Kernels[kernel].Config.BlockM == 0 {
			return o.writeForeign(l, kernel, pick, p)
		}
	}
	if kernel < 0 && l.Parts == nil { // the library has these kernels, and no others
		list := make([]gemm.Config, len(l.Kernels))
		for i := range l.Kernels {
			list[i] = l.Kernels[i].Config
		}
		a = arch.WithCandidates(a, list)
	}
	answers, err := ask.Rankings(ctx, a, ask.Question{Problems: []gemm.Problem{p}, Kernel: o.family(l), Top: 2,
		Terms: true, Regret: o.Regret})
	if err != nil {
		return err
	}
	answer := &answers[0]
	if answer.Err != nil {
		return answer.Err
	}
	answer.Logic = pick
	if kernel >= 0 {
		e, err := entryOf(ctx, a, p, l.Kernels[kernel].Config)
		if err != nil {
			return diag.Within(o.Logic, err)
		}
		answer.Entries, answer.Regret = []ask.Entry{e, answer.Entries[0]}, nil
	}
	w := newSelectWriter(o.Factory.Streams, o.Factory.Format(), false, session.Single(p), 1)
	w.regret = o.Regret && kernel < 0
	return w.write(answer)
}

// family is the kernel family to ask about: the logic's, unless its kernels are Tensile's.
func (o *SelectOptions) family(l *tensile.Logic) string {
	if o.Factory.Settings.Kernel == "" && l.Parts == nil {
		return l.Family
	}
	return o.Factory.Settings.Kernel
}

// checkLogic refuses a logic that is for something else.
func (o *SelectOptions) checkLogic(l *tensile.Logic, d *arch.Description, p *gemm.Problem) error {
	place := "--logic " + o.Logic
	switch named := o.Factory.Settings.Kernel; {
	case l.Arch != d.Arch || l.Parts == nil && l.Device != d.Device:
		on := l.Arch
		if l.Device != "" {
			on += "@" + l.Device
		}
		return diag.Inputf("the logic is for %s, and the problem for %s", on, d.ID()).At("%s", place).
			Do("use a logic for the device, or --arch %s", on)
	case l.Parts == nil && named != "" && named != l.Family:
		return diag.Inputf("the logic has %s kernels, and --kernel is %s", l.Family, named).At("%s", place).
			Do("leave --kernel out")
	}
	return diag.Within(place, l.Type.Answers(p))
}

// entryOf asks the model about the logic's kernel.
func entryOf(ctx context.Context, a arch.Architecture, p gemm.Problem, c gemm.Config) (ask.Entry, error) {
	e, err := ask.EntryOf(ctx, a, p, c)
	if err == nil && e.Estimate.Reject != "" {
		return e, diag.Inputf("the model rejects the logic's kernel %s: %s", c, e.Estimate.Reject).Do("build the logic again")
	}
	if c.GroupM != 0 {
		e.Mapping.GroupM = c.GroupM
	}
	return e, err
}

// foreignJSON is the answer with a kernel that no model here knows.
type foreignJSON struct {
	Arch       string         `json:"arch"`
	MadeFor    string         `json:"made_for,omitempty"`
	Problem    gemm.Record    `json:"problem"`
	Logic      ask.LogicPick  `json:"logic"`
	Speed      ask.Number     `json:"speed"`
	Unit       string         `json:"unit"`
	Parameters map[string]any `json:"parameters"`
}

// writeForeign writes the answer with a kernel of Tensile: its name, and what the file says of its speed.
func (o *SelectOptions) writeForeign(l *tensile.Logic, kernel int, pick *ask.LogicPick, p gemm.Problem) error {
	speed := 0.0
	if pick.Layer == logic.LayerExact {
		speed = l.Speed(logic.SizeOf(&p))
	}
	s, k := o.Factory.Streams, &l.Kernels[kernel]
	switch format := o.Factory.Format(); format {
	case table.JSON:
		return table.JSONLine(s, foreignJSON{Arch: l.Arch, MadeFor: l.Device, Problem: p.Record(),
			Logic: *pick,
			Speed: ask.Number(speed), Unit: l.Unit, Parameters: k.Parameters})
	case table.Table:
	default:
		return diag.Inputf("a row of %s has no place for kernels of Tensile", format).At("--format %s", format).
			Do("use json or table")
	}
	table.Line(s, "problem", "%s", p)
	table.LogicLine(s, pick)
	if l.Device != "" {
		table.Line(s, "", "made for %s with %s", l.Arch, l.Device)
	}
	table.Line(s, "kernel", "%s", s.Bold(pick.Kernel))
	if speed != 0 {
		unit := l.Unit
		if unit == "" {
			unit = "(the file does not say the unit)"
		}
		table.Line(s, "speed", "%s %s", digits.SixDigits(speed), unit)
	}
	table.Line(s, "predicted", "nothing: no model here knows the kernels of this file")
	return nil
}
