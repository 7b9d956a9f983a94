package ask

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Ranking is what a model says about one problem: its candidates in order. An Answer is made of one of its entries.
type Ranking struct {
	Arch    *arch.Description
	Kernel  string
	Problem gemm.Problem
	// Labels are the further cells of the problem's row in a file, by column.
	Labels Fields
	// DRAMPeak is the bandwidth of the device's DRAM in bytes per second, 0 if it is unknown.
	DRAMPeak float64
	// Entries are the ranked candidates, best first.
	Entries []Entry
	// Feasible counts the usable candidates, Rejected the others by reason.
	Feasible int
	Rejected []selector.ReasonCount
	// Err says why there is no answer.
	Err error
	// Requested is the kernel family that was asked for, if Kernel is another.
	Requested string
	// Regret is what the model's uncertainty means for the pick. It is nil unless asked for, and nil for a model that
	// states no uncertainty.
	Regret *Regret
	// Contraction is what the answer means for the contraction that was asked about, nil if a GEMM was.
	Contraction *Contracted
	// Ways are the other kernel families' rankings for the problem, with their picks. They are empty unless asked for.
	Ways []*Ranking
	// Advice is what would be faster. It is empty unless asked for.
	Advice []Advice
	// Price is how much slower the first entry is than the pick of all configurations, as a fraction. It is nil if none
	// was left out because the order of its sums depends on M.
	Price *float64
	// Logic says which part of a library logic chose the first entry, nil if none was asked.
	Logic *LogicPick
}

// Plans are a contraction and the ways to compute it: with GEMMs, and with one kernel that walks nested indices.
// The latter is the last one, unless a single GEMM does.
type Plans struct {
	*contract.Shape
	List []contract.Plan
}

// Contracted is what an answer for a GEMM means for the contraction that it is a part of.
type Contracted struct {
	*Plans
	Plan *contract.Plan
	// Seconds is the predicted time of all GEMMs in turn, plus the copies at the bandwidth of DRAM and their launches.
	Seconds unit.Seconds
	// Kernel is the kernel family.
	Kernel string
	// Instead are the other ways to compute it, the fastest first.
	Instead []*Contracted
}

// Regret is what the uncertainty of predicted times means for a pick that was not measured.
type Regret struct {
	// Expected is the expected regret: the time of the pick ÷ the time of the fastest candidate − 1, on average.
	Expected float64
	// WorthMeasuring is how many candidates are worth measuring before one takes the fastest of them. It counts the
	// pick.
	WorthMeasuring int
}

// RegretOf returns what the uncertainty of predicted times means for the first of them, nil without an uncertainty. The
// times are in the model's own timing, as the uncertainty is.
func RegretOf(u *arch.Uncertainty, times []unit.Seconds) *Regret {
	if u == nil || u.Sigma <= 0 {
		return nil
	}
	return &Regret{
		Expected:       measure.ExpectedRegret(times, u.Sigma, 1),
		WorthMeasuring: measure.WorthMeasuring(times, u.PlanSigma, measure.AssumedNoise),
	}
}

// RejectedTotal returns how many candidates were rejected.
func (a *Ranking) RejectedTotal() int {
	r := selector.Result{Rejected: a.Rejected}
	return r.RejectedTotal()
}

// Entry is one configuration and what the model predicts for it.
type Entry struct {
	// Rank is 1 for the best, 0 for a configuration that cannot be used.
	Rank int
	// Position is the entry's place in the candidate list; with Question.Rejected in the whole enumeration.
	Position int
	// Config has GroupM from the mapping where phase two has run.
	Config   gemm.Config
	Estimate arch.Estimate
	Mapping  arch.Mapping
	// Detail says in numbers why the configuration was rejected, where the model does.
	Detail string
	// Terms is the row of the model's terms, nil unless asked for. It belongs to Candidate: the configuration as the
	// model ranked it, before phase two chose its launch order.
	Terms     []float64
	Candidate gemm.Config
}

// Seconds returns the predicted time.
func (a *Ranking) Seconds(e *Entry) unit.Seconds { return e.Estimate.Cycles.At(a.Arch.Clock) }

// Scope says what the model knows of the error of an entry's predicted time.
func (a *Ranking) Scope(e *Entry) arch.Scope {
	return a.Arch.Scope(a.Kernel, &a.Problem, e.Config.SplitK)
}

// Nearest returns the uncertainty that was found on the problems most similar to an entry's, nil if there is none.
func (a *Ranking) Nearest(e *Entry) *arch.Uncertainty {
	return a.Arch.Nearest(a.Kernel, &a.Problem, e.Config.SplitK)
}

// Outside lists how an entry lies outside of what the model was checked on. It is empty inside.
func (a *Ranking) Outside(e *Entry) []string {
	return a.Arch.Outside(a.Kernel, &a.Problem, e.Config.SplitK)
}

// Distribution returns what is known of an entry's time, and false where the model states no error.
func (a *Ranking) Distribution(e *Entry) (arch.Distribution, bool) {
	if e.Estimate.Reject != "" {
		return arch.Distribution{}, false
	}
	return a.Scope(e).Distribution(e.Estimate, a.Seconds(e))
}

// Interval returns the ends of an entry's Distribution.
func (a *Ranking) Interval(e *Entry) (low, high unit.Seconds, ok bool) {
	d, ok := a.Distribution(e)
	return d.Low, d.High, ok
}

// Widened returns the width of an entry's interval relative to a validated problem's. It returns false if the entry
// lies inside of what the model was checked on, or has no interval.
func (a *Ranking) Widened(e *Entry) (float64, bool) {
	scope := a.Scope(e)
	return a.widened(e, &scope)
}

func (a *Ranking) widened(e *Entry, scope *arch.Scope) (float64, bool) {
	if !scope.Wide || e.Estimate.Reject != "" {
		return 0, false
	}
	low, high, ok := scope.Interval(e.Estimate, a.Seconds(e))
	if !ok {
		return 0, false
	}
	inside := *scope
	inside.Wide = false
	insideLow, insideHigh, ok := inside.Interval(e.Estimate, a.Seconds(e))
	return float64((high - low) / (insideHigh - insideLow)), ok && insideHigh > insideLow
}

// Rate returns the predicted arithmetic rate, 2·m·n·k·batch over the predicted time.
func (a *Ranking) Rate(e *Entry) unit.FlopsPerSecond {
	return unit.FlopsPerSecond(a.Problem.Flops() / float64(a.Seconds(e)))
}

// PeakShare returns Rate over the data sheet's peak, and false where no peak is known.
func (a *Ranking) PeakShare(e *Entry) (float64, bool) {
	peak := a.Arch.PeakFor(a.Problem.DType)
	if peak <= 0 {
		return 0, false
	}
	return float64(a.Rate(e) / peak), true
}

// Share returns the i-th term as a part of the total, and false for a term that is not a part of it.
func (a *Ranking) Share(e *Entry, i int) (float64, bool) {
	if e.Terms == nil || a.Arch.Terms[i].Kind != arch.KindShare {
		return 0, false
	}
	total, ok := a.Total(e)
	return e.Terms[i] / total, ok
}

// Total returns the total that the shares of an entry add up to, and false if it has none.
func (a *Ranking) Total(e *Entry) (float64, bool) {
	if e.Estimate.Reject == "" && e.Estimate.Cycles > 0 {
		return float64(e.Estimate.Cycles), true
	}
	for i, t := range a.Arch.Terms {
		if e.Terms != nil && t.Kind == arch.KindTotal && e.Terms[i] > 0 && e.Terms[i] < arch.RejectedTotal {
			return e.Terms[i], true
		}
	}
	return 0, false
}

// Entering reports which terms of an entry enter its total, nil if the model does not say so.
func (a *Ranking) Entering(e *Entry) []bool {
	if e.Terms == nil {
		return nil
	}
	return formula.Entering(a.Arch, formula.Values(a.Arch, a.Problem, e.Candidate, e.Terms))
}

// IsRejectedTotal reports whether a term's value stands for "the model rejects this".
func IsRejectedTotal(t arch.Term, v float64) bool {
	return t.Kind == arch.KindTotal && v == arch.RejectedTotal
}
