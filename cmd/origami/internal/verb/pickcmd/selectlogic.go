package pickcmd

import (
	"context"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
)

// runLogic answers with the kernels of a library logic, and with the model's picks beside them.
func (o *SelectOptions) runLogic(ctx context.Context) error {
	l, err := session.ReadLogic(ctx, o.Logic)
	if err != nil {
		return err
	}
	list, side, err := o.Query.Open(ctx, o.Factory)
	if err != nil {
		return err
	}
	defer list.Close()
	if err := o.checkLogic(l, side.Describe()); err != nil {
		return err
	}
	library := newLibrary(l, o.Logic, side.Model)
	format := o.Factory.Format()
	others, some := foreignRows(o.Factory.Streams, format, list.Labels()), false
	err = o.each(ctx, library.rankings, list, ask.Question{Kernel: o.family(l), Regret: o.Regret},
		func(one *ask.Ranking, write func(*ask.Ranking) error) error {
			switch {
			case len(one.Entries) > 0 && (known(l) || format == show.JSON):
				return write(one)
			case format.Pasted():
				return diag.Inputf("a kernel of Tensile cannot be written as code").At("--format %s", format).
					Do("use json, csv or table")
			}
			some = true
			return others.Add(foreignRow(l, one))
		})
	if some && format == show.Table {
		_ = others.Close() // an error of the screen shows when it is flushed
	}
	return err
}

// library answers as a program does that has the kernels of a logic.
type library struct {
	*tensile.Logic
	file string
	// model has all candidates. own has only the kernels of the library, unless no model here knows them.
	model, own arch.Architecture
	names      map[gemm.Config]string // of Tensile's kernels that a model knows
}

func newLibrary(l *tensile.Logic, file string, model arch.Architecture) *library {
	b := &library{l, file, model, model, map[gemm.Config]string{}}
	var list []gemm.Config
	for i := range l.Kernels {
		k := &l.Kernels[i]
		if k.Config.BlockM == 0 {
			continue
		}
		list = append(list, k.Config)
		if _, there := b.names[k.Config]; !there && l.Parts != nil {
			b.names[k.Config] = k.Name
		}
	}
	if list != nil {
		b.own = arch.WithCandidates(model, list)
	}
	return b
}

// known reports whether a model here may know kernels of a logic.
func known(l *tensile.Logic) bool {
	return slices.ContainsFunc(l.Kernels, func(k logic.Kernel) bool { return k.Config.BlockM > 0 })
}

// rankings are session.Rankings. The first entry has the logic's kernel, and the second the model's pick. Where the
// logic leaves the answer to the model, it ranks the kernels of the library. A kernel that no model knows has no entry.
func (b *library) rankings(ctx context.Context, q ask.Question) ([]ask.Ranking, error) {
	answers := make([]ask.Ranking, len(q.Problems))
	var named, left []int
	configs := make([]gemm.Config, len(answers))
	for i := range answers {
		p := &q.Problems[i]
		answers[i] = ask.Ranking{Arch: b.model.Describe(), Problem: *p}
		if answers[i].Err = diag.Within("--logic "+b.file, b.Type.Answers(p)); answers[i].Err != nil {
			continue
		}
		kernel, layer := b.Lookup(logic.SizeOf(p))
		pick := &ask.LogicPick{File: b.file, Layer: layer}
		answers[i].Logic = pick
		if kernel < 0 {
			left = append(left, i)
			continue
		}
		pick.Kernel, configs[i] = b.Kernels[kernel].Name, b.Kernels[kernel].Config
		if configs[i].BlockM > 0 {
			named = append(named, i)
		}
	}
	if err := some(ctx, b.own, q, answers, left); err != nil {
		return nil, err
	}
	for _, i := range left {
		if e := answers[i].Entries; len(e) > 0 {
			c := e[0].Config
			if _, listed := b.names[c]; !listed {
				c.GroupM = 0 // the file leaves the launch order open
			}
			answers[i].Logic.Kernel = b.names[c]
		}
	}
	q.Regret = false // it is of the model's pick
	if err := some(ctx, b.model, q, answers, named); err != nil {
		return nil, err
	}
	for _, i := range named {
		a := &answers[i]
		if a.Err != nil {
			continue
		}
		e, err := entryOf(ctx, b.model, a.Problem, configs[i])
		if a.Err = diag.Within(b.file, err); err == nil {
			e.Rank = 1
			a.Entries = []ask.Entry{e, a.Entries[0]}
		}
	}
	return answers, nil
}

// some asks a model about some of the problems.
func some(ctx context.Context, a arch.Architecture, q ask.Question, answers []ask.Ranking, places []int) error {
	if len(places) == 0 {
		return nil
	}
	q.Problems = nil
	for _, i := range places {
		q.Problems = append(q.Problems, answers[i].Problem)
	}
	got, err := ask.Rankings(ctx, a, q)
	for j := range got {
		got[j].Logic = answers[places[j]].Logic
		answers[places[j]] = got[j]
	}
	return err
}

// family is the kernel family to ask about: the logic's, unless its kernels are Tensile's.
func (o *SelectOptions) family(l *tensile.Logic) string {
	if o.Factory.Settings.Kernel == "" && known(l) {
		return l.Family
	}
	return o.Factory.Settings.Kernel
}

// checkLogic refuses a logic of another device or kernel family.
func (o *SelectOptions) checkLogic(l *tensile.Logic, d *arch.Description) error {
	place := "--logic " + o.Logic
	switch named := o.Factory.Settings.Kernel; {
	case l.Arch != d.Arch || l.Parts == nil && l.Device != d.Device:
		on := l.Arch
		if l.Device != "" {
			on += "@" + l.Device
		}
		return diag.Inputf("the logic is for %s, and the problem for %s", on, d.ID()).At("%s", place).
			Do("use a logic for the device, or --arch %s", on)
	case l.Parts != nil && l.Parts.Library == tensile.Prediction && !known(l):
		return diag.Inputf("its kernels are for a model to choose among, and none says its tile").At("%s", place).
			Do("give a file with MacroTile0, MacroTile1, DepthU and WorkGroup")
	case l.Parts == nil && named != "" && named != l.Family:
		return diag.Inputf("the logic has %s kernels, and --kernel is %s", l.Family, named).At("%s", place).
			Do("leave --kernel out")
	}
	return nil
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

// foreign is an answer with a kernel that no model here knows. Without a kernel of the logic, the configuration of the
// model's pick is in its place.
type foreign struct {
	Arch       string         `json:"arch"`
	MadeFor    string         `json:"made_for,omitempty"`
	Problem    gemm.Record    `json:"problem"`
	Labels     ask.Fields     `json:"labels,omitempty"`
	Logic      ask.LogicPick  `json:"logic"`
	Speed      ask.Number     `json:"speed"`
	Unit       string         `json:"unit"`
	Parameters map[string]any `json:"parameters"`
}

// foreignRows write answers of a logic with kernels that no model here knows: their names, and what the file says of
// their speeds.
func foreignRows(s *iostreams.Streams, f show.Format, labels []string) *show.Rows[foreign] {
	key := show.Key[foreign]
	columns := []show.Column[foreign]{key("problem")}
	for _, name := range labels {
		columns = append(columns, key("labels."+name))
	}
	return show.NewRows(s, f, append(columns, key("logic.layer", "answered by"), key("logic.kernel"),
		show.Number("speed", func(r *foreign) float64 { return float64(r.Speed) }, digits.SixDigits), key("unit"))...)
}

// foreignRow is the answer for a problem.
func foreignRow(l *tensile.Logic, a *ask.Ranking) *foreign {
	row := &foreign{Arch: l.Arch, MadeFor: l.Device, Problem: a.Problem.Record(), Labels: a.Labels, Logic: *a.Logic,
		Unit: l.Unit}
	if a.Logic.Layer == logic.LayerExact {
		row.Speed = ask.Number(l.Speed(logic.SizeOf(&a.Problem)))
	}
	if len(a.Entries) > 0 {
		row.Logic.Kernel = a.Entries[0].Config.String()
	} else {
		kernel, _ := l.Lookup(logic.SizeOf(&a.Problem))
		row.Parameters = l.Kernels[kernel].Parameters
	}
	return row
}
