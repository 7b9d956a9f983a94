// Package ladder puts the rungs of a ladder of kernels side by side: each kernel does one thing more than the one
// below. It says what limits each rung, and judges claims about the ladder by numbers. It knows no kernel: a rung is a
// configuration, its costs are terms of a model, and its time is measured, published or predicted.
package ladder

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Rung is a kernel of a ladder.
type Rung struct {
	Name, Doc string
	Config    gemm.Config
	// Label says what its time is of, where another rung is the same kernel without a part of it.
	Label string
	// Operands is the type of its operands, if the ladder's problems have another.
	Operands gemm.DType
	// Instead is the name of the rung that computes what this one cannot. It is empty if there is none.
	Instead string
}

// Problem is a problem of the ladder with the operands of the rung, as records have it.
func (r *Rung) Problem(p gemm.Problem) gemm.Problem {
	if r.Operands != 0 {
		p.DType, p.Out = r.Operands, p.Output()
	}
	return p.Canonical()
}

// Library is the rung of a vendor's library. Its kernel is unknown: the prediction is of the fastest kernel of the
// family.
const Library = "library"

// Time is a published time of a rung.
type Time struct {
	// Device is "arch@device". Size is M, N and K.
	Device string
	Size   int
	// Rung is the name of the rung, Stage its name in the source.
	Rung, Stage string
	// Config is the configuration that does what the published kernel does. It may differ from the rung's in its
	// blocks. It is zero for the kernels of a library, and for kernels that the family cannot express.
	Config gemm.Config
	// Rate is in FLOP/s.
	Rate unit.FlopsPerSecond
	// Source names repository, file and commit.
	Source string
}

// Provider is a plugin (arch.Provider) that knows a ladder of kernels. arch.Manifest.Ladder says so.
type Provider interface {
	Ladder(ctx context.Context) (*Ladder, error)
}

// Ladder is the rungs of a kernel family, and what is published of them.
type Ladder struct {
	// Family is the kernel family, Types are the types of its problems.
	Family string
	Types  gemm.Types
	// Device is the device that the claims are about, as "arch@device".
	Device string
	// Rungs start at the bottom. Claims are public statements about them, and Others are the kernels that claims compare
	// them with and that are no rungs.
	Rungs     []Rung
	Others    []Rung
	Claims    []Claim
	Costs     []Cost
	Published []Time
}

// Cost is a resource, or a wait, that can limit a rung.
type Cost struct {
	Name string
	// Term is the term of a model that says for how many cycles one CTA needs it in a K step, or in all if Whole is set.
	Term  string
	Whole bool
}

// Values are the terms of a model for one kernel and problem, by name.
type Values map[string]float64

// cycles returns for how long the busiest SM needs a resource.
func (c Cost) cycles(v Values) float64 {
	if c.Whole {
		return v[c.Term]
	}
	return v[c.Term] * v[stepsTerm] * v[ctasTerm]
}

// The terms that make a whole of a K step of one CTA.
const (
	stepsTerm = "steps"
	ctasTerm  = "ctas_of_sm"
	totalTerm = "total"
)

// Dominant returns the cost that takes longest, and its share of the predicted time. Without a total there is none, and
// the share is 0.
func Dominant(costs []Cost, v Values) (most Cost, share float64) {
	total := v[totalTerm]
	if !(total > 0) { // it may be NaN
		return most, 0
	}
	for _, c := range costs {
		if s := c.cycles(v) / total; s > share {
			most, share = c, s
		}
	}
	return most, share
}

// Entry is a rung on a device for one problem.
type Entry struct {
	Rung Rung
	// Values are the model's terms and the device's parameters. They are nil if no configuration of the family does what
	// the kernel does.
	Values Values
	// Predicted and Measured are times. 0 is unknown.
	Predicted, Measured unit.Seconds
	// Source says where Measured is from.
	Source string
	// Rejected is why the device cannot run the configuration, or the configuration not compute the problem, and Detail
	// the same in numbers.
	Rejected, Detail string
}

// Time is the measured time, or the predicted time if none is known.
func (e *Entry) Time() (seconds unit.Seconds, measured bool) {
	if e.Measured > 0 {
		return e.Measured, true
	}
	return e.Predicted, false
}

// Seconds is how long the busiest SM needs the resource, on a device with a clock.
func (c Cost) Seconds(v Values, clock unit.Hertz) float64 { return c.cycles(v) / float64(clock) }

// Column is the name in JSON and CSV.
func (c Cost) Column() string { return strings.ReplaceAll(strings.ToLower(c.Name), " ", "_") }

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
