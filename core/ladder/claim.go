package ladder

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/unit"
)

// Claim is a public statement about a rung: it is faster than another rung, a resource limits it, or a number of it has
// a value.
type Claim struct {
	Rung, Text string
	// Over is the rung that it is said to gain on, by at least the factor Least.
	Over  string
	Least float64
	// Cost is the name of the cost that is said to limit it.
	Cost string
	// Lost explains a gain that is none, where the formula LostIf is not 0. It is over the terms of the rung, and of the
	// rung Over with "over_" before their names.
	LostIf, Lost string
	// Value is a formula over the terms of the rung and the parameters of the device, which is said to be Is, in Unit.
	Value string
	Is    float64
	Unit  string
}

// Verdict is what numbers say of a claim.
type Verdict string

// The verdicts. Unknown: a rung has no time, or the model no numbers.
const (
	Unknown Verdict = "unknown"
	False   Verdict = "false"
	Nearly  Verdict = "nearly"
	True    Verdict = "true"
)

// verdict is True, or else Nearly, or else False.
func verdict(holds, nearly bool) Verdict {
	switch {
	case holds:
		return True
	case nearly:
		return Nearly
	default:
		return False
	}
}

// A resource limits a kernel that keeps it busy for limits of the time. Below partly it does not. A gain below least is
// still one, but not that which is claimed.
const (
	limits = 0.8
	partly = 0.4
)

// A value is the claimed one to within about, and nearly to within near.
const (
	about = 1.1
	near  = 1.5
)

// Judged is a claim with its verdict and the evidence.
type Judged struct {
	Claim
	Verdict  Verdict
	Evidence string
}

// Judge returns the verdict on each claim, by measured times where there are any. The predictions are of the model d,
// which states by how much the predicted ratio of the times of two rungs may be off: the constant ladder_ratio. What a
// prediction within it says of a gain is unknown.
func (l *Ladder) Judge(entries []Entry, d *arch.Description) []Judged {
	clock, off := float64(d.Clock), max(1, d.Constant("ladder_ratio", 1))
	out := make([]Judged, len(l.Claims))
	for i, c := range l.Claims {
		out[i] = Judged{Claim: c, Verdict: Unknown}
		e := find(entries, c.Rung)
		if e == nil {
			out[i].Evidence = "no time of " + c.Rung
			continue
		}
		switch {
		case c.Over != "":
			out[i].gain(e, find(entries, c.Over), off)
			continue
		case c.Value != "":
			out[i].value(e)
			continue
		}
		at := slices.IndexFunc(l.Costs, func(cost Cost) bool { return cost.Name == c.Cost })
		if at < 0 {
			out[i].Evidence = c.Cost + " is no cost of the model"
			continue
		}
		out[i].limited(e, l.Costs[at], l.Costs, clock)
	}
	return out
}

// find returns the entry of a rung that has a time.
func find(entries []Entry, rung string) *Entry {
	for i := range entries {
		if t, _ := entries[i].Time(); entries[i].Rung.Name == rung && known(t) {
			return &entries[i]
		}
	}
	return nil
}

// known reports whether a time is one: positive and finite.
func known(t unit.Seconds) bool { return t > 0 && !math.IsInf(float64(t), 0) }

// gain judges a claim of a gain over another rung. off is by how much a predicted ratio may be off.
func (j *Judged) gain(e, over *Entry, off float64) {
	if over == nil {
		j.Evidence = "no time of " + j.Over
		return
	}
	// Times of different kinds are not compared: a model's error would count as a gain.
	t, measured := e.Time()
	t0, measured0 := over.Time()
	kind := "measured"
	if !measured || !measured0 {
		t, t0, kind = e.Predicted, over.Predicted, "predicted"
	}
	if !known(t) || !known(t0) {
		j.Evidence = "no prediction of both"
		return
	}
	ratio, margin := float64(t0/t), 1.0
	if kind == "predicted" {
		margin = off
	}
	switch {
	case ratio >= j.Least*margin:
		j.Verdict = True
	case ratio <= 1/margin:
		j.Verdict = False
	case margin > 1:
		j.Verdict = Unknown
	default:
		j.Verdict = Nearly
	}
	j.Evidence = fmt.Sprintf("%.2f times as fast as %s, %s", ratio, j.Over, kind)
	if j.Verdict == Unknown {
		j.Evidence += fmt.Sprintf(": within the model's error, a factor of %.2f", margin)
	}
	if j.Verdict != False || j.LostIf == "" {
		return
	}
	values := map[string]float64{}
	maps.Copy(values, e.Values)
	for name, v := range over.Values {
		values["over_"+name] = v
	}
	if lost, err := formula.Eval(j.LostIf, values); err == nil && lost != 0 {
		j.Evidence += "; " + j.Lost
	}
}

// value judges a claim of a number.
func (j *Judged) value(e *Entry) {
	v, err := formula.Eval(j.Value, e.Values)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		j.Evidence = "the model has no number for it"
		return
	}
	off := max(v/j.Is, j.Is/v)
	j.Verdict = verdict(off <= about, off <= near)
	j.Evidence = fmt.Sprintf("it is %.3g %s", v, j.Unit)
}

// limited judges a claim that a resource limits a rung: whether it is busy for most of the time.
func (j *Judged) limited(e *Entry, claimed Cost, costs []Cost, clock float64) {
	if e.Values == nil {
		j.Evidence = "no configuration of the family does what the kernel does"
		return
	}
	t, measured := e.Time()
	kind := "predicted"
	if measured {
		kind = "measured"
	}
	share := claimed.cycles(e.Values) / (float64(t) * clock)
	most, mostShare := Dominant(costs, e.Values)
	if !(share >= 0) || math.IsInf(share, 0) || mostShare == 0 { // share may be NaN
		j.Evidence = "the model has no numbers for it"
		return
	}
	j.Verdict = verdict(share >= limits || most.Name == claimed.Name, share >= partly)
	j.Evidence = fmt.Sprintf("%s is busy for %.0f %% of the %s time", claimed.Name, 100*math.Min(share, 1), kind)
	if most.Name != claimed.Name {
		j.Evidence += fmt.Sprintf("; the model's largest cost is %s, %.0f %%", most.Name, 100*math.Min(mostShare, 1))
	}
}
