package ask

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/unit"
)

// Ladder is the kernels of a ladder side by side, and verdicts on what is publicly claimed of them.
type Ladder struct {
	// as in `select`
	Arch       string          `json:"arch"`
	Device     string          `json:"device"`
	Model      string          `json:"model"`
	ModelClass arch.ModelClass `json:"model_class,omitempty"`
	Kernel     string          `json:"kernel"`
	Problem    gemm.Record     `json:"problem"`
	// the kernels, from the bottom of the ladder
	Rungs []Rung `json:"rungs"`
	// the claims
	Claims []Verdict `json:"claims"`
}

// Rung is a kernel of a ladder. An unknown number is `null`.
type Rung struct {
	// its name
	Name string `json:"rung"`
	// `end to end` or `compute only`, if two rungs are of one kernel
	Label string `json:"label,omitempty"`
	// what the kernel does
	Doc string `json:"doc"`
	// its configuration
	Config *gemm.Config `json:"config"`
	// why it does not fit, the reason in numbers, and the rung that takes over
	Rejected string `json:"rejected,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Instead  string `json:"instead,omitempty"`
	// operations by byte: requested, from the L2, from DRAM
	Requested Number `json:"flop_per_requested_byte" unit:"ratio"`
	AtL2      Number `json:"flop_per_l2_byte" unit:"ratio"`
	AtDRAM    Number `json:"flop_per_dram_byte" unit:"ratio"`
	// the degree of bank conflicts, 0 without shared memory
	Conflicts Number `json:"conflict_degree" unit:"ratio"`
	// for how long the busiest SM needs each resource
	Costs Fields `json:"cost_seconds,omitempty"`
	// the predicted time, and the resource that most of it goes to
	Predicted Number `json:"predicted_seconds" unit:"s"`
	Limit     string `json:"limited_by,omitempty"`
	// the measured time
	Measured Number `json:"measured_seconds" unit:"s"`
	// the quotient of both
	Ratio Number `json:"predicted_over_measured" unit:"ratio"`
	// where the measured time is from
	Source string `json:"source,omitempty"`
}

// Verdict is what numbers say of a claim about a rung.
type Verdict struct {
	// the rung, and what is claimed of it
	Rung  string `json:"rung"`
	Claim string `json:"claim"`
	// what the numbers say
	Verdict string `json:"verdict"`
	// which numbers
	Evidence string `json:"evidence"`
}

// climb is a ladder that is asked about.
type climb struct {
	*ladder.Ladder
	model   arch.Architecture
	problem gemm.Problem
	data    *dataset.Dataset // nil without measurements
}

// LadderOf puts the rungs of a ladder together: those that are published for the device and the size, and the family's
// others. data are measurements of the family on the device, nil if there are none.
func LadderOf(ctx context.Context, a arch.Architecture, l *ladder.Ladder, p gemm.Problem, data *dataset.Dataset) (
	*Ladder, error,
) {
	q := &climb{l, a, p, data}
	entries := q.published()
	for _, r := range l.Rungs {
		if !slices.ContainsFunc(entries, func(e ladder.Entry) bool { return e.Rung.Name == r.Name }) {
			entries = append(entries, ladder.Entry{Rung: r})
		}
	}
	if e, ok := q.recordedLibrary(); ok &&
		!slices.ContainsFunc(entries, func(e ladder.Entry) bool { return e.Rung.Name == ladder.Library }) {
		entries = append(entries, e)
	}
	rungs := len(entries)
	for _, r := range l.Others {
		entries = append(entries, ladder.Entry{Rung: r})
	}
	for i := range entries {
		if err := q.fill(ctx, &entries[i]); err != nil {
			return nil, err
		}
	}
	d := a.Describe()
	out := &Ladder{Arch: d.Arch, Device: d.Device, Model: d.Model, ModelClass: d.ModelClass, Kernel: l.Family,
		Problem: p.Record()}
	for i := range entries[:rungs] {
		out.Rungs = append(out.Rungs, q.rung(&entries[i]))
	}
	for _, j := range l.Judge(entries, d) {
		out.Claims = append(out.Claims, Verdict{j.Rung, j.Text, string(j.Verdict), j.Evidence})
	}
	return out, nil
}

// published are the rungs with a published time of the device and the problem.
func (q *climb) published() (entries []ladder.Entry) {
	p := &q.problem
	for _, t := range q.Published {
		if t.Device != q.model.Describe().ID() || p.M != t.Size || p.N != t.Size || p.K != t.Size {
			continue
		}
		e := ladder.Entry{
			Rung: ladder.Rung{Name: t.Rung, Doc: t.Stage}, Source: t.Source,
			Measured: unit.Seconds(p.Flops() / float64(t.Rate)),
		}
		for _, r := range q.Rungs {
			if r.Name == t.Rung {
				e.Rung = r
			}
		}
		e.Rung.Config = t.Config
		if e.Rung.Label != "" {
			e.Source += fmt.Sprintf(", which does not say whether its %s is %s", t.Rung, e.Rung.Label)
		}
		entries = append(entries, e)
	}
	return entries
}

// fill predicts an entry, and looks for its time in the records.
func (q *climb) fill(ctx context.Context, e *ladder.Entry) error {
	if e.Rung.Name == ladder.Library {
		if err := q.library(ctx, e); err != nil {
			return err
		}
	}
	if e.Rung.Config == (gemm.Config{}) {
		return nil
	}
	d, problem := q.model.Describe(), e.Rung.Problem(q.problem)
	one, err := EntryOf(ctx, q.model, problem, e.Rung.Config)
	if err != nil {
		return err
	}
	if one.Estimate.Reject != "" {
		e.Rejected = string(one.Estimate.Reject)
		e.Detail = WhyRejected(ctx, q.model, problem, e.Rung.Config)
		return nil
	}
	e.Values = ladder.Values{}
	for _, parameter := range d.Params {
		e.Values[parameter.Name] = parameter.Value
	}
	for i := range d.Terms {
		e.Values[d.Terms[i].Name] = one.Terms[i]
	}
	e.Predicted = one.Estimate.Cycles.At(d.Clock)
	if q.data == nil || e.Rung.Name == ladder.Library {
		return nil
	}
	if m, ok := q.data.Candidate(problem, e.Rung.Config); ok && m.Status == dataset.OK {
		e.Measured, e.Source = m.Median, q.data.Name
	}
	return nil
}

// recordedLibrary returns the rung of the library with its fastest recorded time.
func (q *climb) recordedLibrary() (e ladder.Entry, ok bool) {
	if q.data == nil {
		return e, false
	}
	for _, name := range q.data.Libraries() {
		m, there := q.data.FindLibrary(q.problem, name)
		if there && m.Status == dataset.OK && (!ok || m.Median < e.Measured) {
			e, ok = ladder.Entry{Rung: ladder.Rung{Name: ladder.Library}, Measured: m.Median, Source: q.data.Name}, true
		}
	}
	return e, ok
}

// library takes the fastest kernel of the family for the library's, which nobody knows.
func (q *climb) library(ctx context.Context, e *ladder.Entry) error {
	answers, err := Rankings(ctx, q.model, Question{Problems: []gemm.Problem{q.problem}, Kernel: q.Family, Top: 1})
	if err != nil {
		return err
	}
	if answers[0].Err != nil || len(answers[0].Entries) == 0 {
		return answers[0].Err
	}
	e.Rung.Config = answers[0].Entries[0].Config
	e.Rung.Doc = "the vendor's library, predicted as the fastest of the family"
	return nil
}

// rung returns an entry as a plain value.
func (q *climb) rung(e *ladder.Entry) Rung {
	unknown := Number(math.NaN())
	r := Rung{Name: e.Rung.Name, Label: e.Rung.Label, Doc: e.Rung.Doc, Rejected: e.Rejected, Detail: e.Detail,
		Requested: unknown, AtL2: unknown, AtDRAM: unknown, Conflicts: unknown, Predicted: unknown, Measured: unknown,
		Ratio: unknown, Source: e.Source}
	if e.Rung.Config != (gemm.Config{}) {
		r.Config = &e.Rung.Config
	}
	if e.Rejected != "" {
		r.Instead = e.Rung.Instead
	}
	if e.Measured > 0 {
		r.Measured = Number(e.Measured)
	}
	if v := e.Values; v != nil {
		r.Requested, r.AtL2 = Number(v["intensity_requested"]), Number(v["intensity_l2"])
		r.AtDRAM, r.Conflicts = Number(v["intensity_dram"]), Number(v["conflict_degree"])
		for _, c := range q.Costs {
			r.Costs = append(r.Costs, Field{c.Column(), c.Seconds(v, q.model.Describe().Clock)})
		}
		most, _ := ladder.Dominant(q.Costs, v)
		r.Limit, r.Predicted = most.Column(), Number(e.Predicted)
		r.Ratio = r.Predicted / r.Measured
	}
	return r
}

// CostShare is the part of the predicted time that the busiest SM needs a resource for.
func (r *Rung) CostShare(name string) (share float64, ok bool) {
	i := slices.IndexFunc(r.Costs, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return 0, false
	}
	return r.Costs[i].Value.(float64) / float64(r.Predicted), true
}
