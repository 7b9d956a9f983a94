package pickcmd

import (
	"context"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
)

// runLogic answers with the kernels of a library logic, and with the model's picks beside them.
func (o *SelectOptions) runLogic(ctx context.Context) error {
	if o.Measure != "" || o.Executor != "" {
		return diag.Inputf("--logic answers without measuring").Do("leave --measure and --executor out")
	}
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
	foreign := &foreignWriter{s: o.Factory.Streams, format: o.Factory.Format(), many: o.Query.Problems != "",
		labels: list.Labels(), l: l}
	err = o.each(ctx, library.rankings, list, ask.Question{Kernel: o.family(l), Regret: o.Regret},
		func(one *ask.Ranking, write func(*ask.Ranking) error) error {
			if len(one.Entries) == 0 || l.Parts != nil && foreign.rowwise() {
				return foreign.write(one)
			}
			return write(one)
		})
	foreign.table()
	return err
}

// library answers as a program does that has the kernels of a logic.
type library struct {
	*tensile.Logic
	file string
	// model has all candidates. own has only the kernels of the library, unless they are Tensile's.
	model, own arch.Architecture
}

func newLibrary(l *tensile.Logic, file string, model arch.Architecture) *library {
	b := &library{l, file, model, model}
	if l.Parts == nil {
		list := make([]gemm.Config, len(l.Kernels))
		for i := range l.Kernels {
			list[i] = l.Kernels[i].Config
		}
		b.own = arch.WithCandidates(model, list)
	}
	return b
}

// rankings are session.Rankings. The first entry has the logic's kernel, and the second the model's pick. Where the
// logic leaves the answer to the model, it ranks the kernels of the library. A kernel of Tensile has no entry.
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
	if o.Factory.Settings.Kernel == "" && l.Parts == nil {
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

// foreignWriter writes answers of a logic with kernels that no model here knows: their names, and what the file says of
// their speeds.
type foreignWriter struct {
	s      *iostreams.Streams
	format table.Format
	many   bool
	labels []string
	l      *tensile.Logic
	stream func(*foreign) error // of CSV and TSV; nil before the first row
	rows   []foreign            // of the table of many problems
}

// foreign is an answer as a row. Without a kernel of the logic, the model's pick is in its place.
type foreign struct {
	*ask.Ranking
	speed float64 // 0 if the file does not say it
}

// rowwise reports whether the answers are rows, whose columns differ from those of kernels with a prediction.
func (w *foreignWriter) rowwise() bool {
	return w.format == table.CSV || w.format == table.TSV || w.format == table.Table && w.many
}

func (w *foreignWriter) write(a *ask.Ranking) error {
	row := foreign{Ranking: a}
	if a.Logic.Layer == logic.LayerExact {
		row.speed = w.l.Speed(logic.SizeOf(&a.Problem))
	}
	switch {
	case w.format == table.JSON:
		return table.JSONLine(w.s, foreignJSON{Arch: w.l.Arch, MadeFor: w.l.Device, Problem: a.Problem.Record(),
			Logic: *a.Logic, Speed: ask.Number(row.speed), Unit: w.l.Unit, Parameters: w.parameters(a)})
	case w.format.Pasted():
		return diag.Inputf("a kernel of Tensile cannot be written as code").At("--format %s", w.format).
			Do("use json, csv, tsv or table")
	case w.format == table.Table && w.many:
		if w.rows = append(w.rows, row); len(w.rows) == mostRows {
			w.table()
			w.s.Printf("\n")
		}
	case w.format == table.Table:
		w.card(&row)
	default:
		if w.stream == nil {
			w.stream = w.columns().Stream(w.s, w.format)
		}
		return w.stream(&row)
	}
	return nil
}

// parameters are those of the kernel that answers.
func (w *foreignWriter) parameters(a *ask.Ranking) map[string]any {
	kernel, _ := w.l.Lookup(logic.SizeOf(&a.Problem))
	return w.l.Kernels[kernel].Parameters
}

func (w *foreignWriter) columns() table.Columns[foreign] {
	ofProblem := func(r *foreign) gemm.Problem { return r.Problem }
	known := func(v float64) string {
		if v == 0 {
			return ""
		}
		return digits.SixDigits(v)
	}
	return slices.Concat(table.Problem(ofProblem), table.Columns[foreign]{
		table.Text("problem", func(r *foreign) string { return r.Problem.String() }),
		table.Group(w.labels, func(r *foreign) []string { return r.Labels.Texts() }),
		table.Const[foreign]("-|arch|-", w.l.Arch),
		table.Col("-|layer|answered by", func(r *foreign) logic.Layer { return r.Logic.Layer }),
		table.Col("-|kernel|kernel", func(r *foreign) string {
			if len(r.Entries) > 0 {
				return r.Entries[0].Config.String()
			}
			return r.Logic.Kernel
		}),
		table.Col("-|speed|speed", func(r *foreign) float64 { return r.speed }, known).CSV(
			func(r *foreign) string { return known(r.speed) }),
		table.Const[foreign]("-|unit|unit", w.l.Unit),
	})
}

// table writes the rows of the table of many problems that are not written yet.
func (w *foreignWriter) table() {
	if len(w.rows) > 0 {
		_ = w.columns().Write(w.s, table.Table, w.rows) // an error of the screen shows when it is flushed
		w.rows = w.rows[:0]
	}
}

// card writes the answer for one problem.
func (w *foreignWriter) card(r *foreign) {
	s := w.s
	table.Line(s, "problem", "%s", r.Problem)
	table.LogicLine(s, r.Logic)
	if w.l.Device != "" {
		table.Line(s, "", "made for %s with %s", w.l.Arch, w.l.Device)
	}
	table.Line(s, "kernel", "%s", s.Bold(r.Logic.Kernel))
	if r.speed != 0 {
		unit := w.l.Unit
		if unit == "" {
			unit = "(the file does not say the unit)"
		}
		table.Line(s, "speed", "%s %s", digits.SixDigits(r.speed), unit)
	}
	table.Line(s, "predicted", "nothing: no model here knows the kernels of this file")
}
