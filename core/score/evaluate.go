package score

import (
	"context"
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
)

// TopCounts are the numbers of leading candidates that are scored together. Their score says what measuring that many
// candidates and keeping the fastest is worth.
var TopCounts = [...]int{4, 8, 16}

// Evaluation holds a model's pick for one problem against everything that was measured.
//
// The pick is the model's first candidate. A measured configuration that the model rejects counts for Tau as predicted
// to be the slowest.
type Evaluation struct {
	Outcome
	Class Class
	// Bound is what the model says limits the pick.
	Bound arch.Bound
	// Failed: the pick was tried and has no time, as it did not build or gave no right result.
	Failed bool
	// Top are the efficiencies of the fastest of the first TopCounts candidates. Those without a time are passed over.
	Top [len(TopCounts)]float64
	// Measured counts the configurations with a measured time, Rejected how many of these the model rejects.
	Measured, Rejected int
	// Leading are the predicted times of the model's first candidates, best first, and LeadingMeasured their measured
	// times, 0 for a candidate without one.
	Leading, LeadingMeasured []unit.Seconds
	// Error is the median of |predicted ÷ measured − 1| over the points.
	Error float64
	// Added is what the stopwatch counts besides the kernel. Intervals are of the times without it.
	Added unit.Seconds
}

// ScopeOf says which intervals hold for the kernels of a problem with a split of K. The nil ScopeOf has none.
type ScopeOf func(p *gemm.Problem, split int) arch.Scope

func (s ScopeOf) at(p *gemm.Problem, c *gemm.Config) arch.Scope {
	if s == nil {
		return arch.Scope{}
	}
	return s(p, c.SplitK)
}

// Everywhere applies an uncertainty to every problem.
func Everywhere(u *arch.Uncertainty) ScopeOf {
	return func(*gemm.Problem, int) arch.Scope { return arch.Scope{Uncertainty: u} }
}

// Efficiency returns the best measured time ÷ the measured time of the pick: 0 if the pick failed, NaN if it was never
// tried.
func (e *Evaluation) Efficiency() float64 { return e.EfficiencyOfFirst(1) }

// EfficiencyOfFirst returns the efficiency of the fastest of the model's first n candidates. Without a time of any of
// them it is 0 if the pick failed, and NaN otherwise.
func (e *Evaluation) EfficiencyOfFirst(n int) float64 {
	fastest := unit.Seconds(0)
	for _, t := range e.LeadingMeasured[:min(n, len(e.LeadingMeasured))] {
		if t > 0 && (fastest == 0 || t < fastest) {
			fastest = t
		}
	}
	if fastest == 0 && !e.Failed {
		return math.NaN()
	}
	return ratio(e.Best.Time, fastest)
}

// PickInterval returns the interval of the pick's predicted time, and false if there is none.
func (e *Evaluation) PickInterval(scope ScopeOf) (low, high unit.Seconds, ok bool) {
	low, high, ok = scope.at(&e.Problem, &e.Pick.Config).Interval(e.Bound, e.Predicted-e.Added)
	return low + e.Added, high + e.Added, ok
}

// PickCovered reports whether the interval of the pick's predicted time contains its measured time. ok is false if
// there is no interval or no measured time.
func (e *Evaluation) PickCovered(scope ScopeOf) (covered, ok bool) {
	low, high, ok := e.PickInterval(scope)
	return low <= e.Pick.Time && e.Pick.Time <= high, ok && e.Pick.Time > 0
}

// PointsCovered counts the points whose interval contains the measured time, and the points that have an interval.
func (e *Evaluation) PointsCovered(scope ScopeOf) (covered, of int) {
	for i := range e.Points {
		p := &e.Points[i]
		low, high, ok := scope.at(&e.Problem, &p.Config).Interval(p.Bound, p.Predicted-e.Added)
		if !ok {
			continue
		}
		if of++; low <= p.Measured-e.Added && p.Measured-e.Added <= high {
			covered++
		}
	}
	return covered, of
}

// Evaluate holds a model's picks against the measurements of some problems, in their order. An error about one problem
// stands in bad beside its evaluation. The last error is about all problems.
func Evaluate(ctx context.Context, a arch.Architecture, s *Subset, problems []gemm.Problem) (
	evaluations []Evaluation, bad []error, err error,
) {
	request := selector.Request{Problems: problems, Space: s.space(), Top: measure.RegretCandidates}
	chooser := a
	if s.Group > 0 {
		chooser = ofSweep{a, s}
	}
	results, err := selector.Rank(ctx, chooser, request)
	if err != nil {
		return nil, nil, err
	}
	evaluations, bad = make([]Evaluation, len(problems)), make([]error, len(problems))
	stopwatch, of := timing.New(a), timing.Timing(a.Describe().Timing)
	for i, p := range problems {
		if bad[i] = results[i].Err; bad[i] == nil {
			evaluations[i], bad[i] = s.evaluate(ctx, a, p, results[i].Entries)
			evaluations[i].Added = stopwatch.Added(&p, of)
		}
		if bad[i] != nil && diag.KindOf(bad[i]) != diag.Input {
			return nil, nil, bad[i]
		}
	}
	return evaluations, bad, nil
}

// evaluate holds the model's leading candidates and its predictions against the measurements of one problem.
func (s *Subset) evaluate(ctx context.Context, a arch.Architecture, p gemm.Problem, leading []selector.Entry) (
	Evaluation, error,
) {
	measured := s.measurements[p]
	e := Evaluation{
		Outcome: Outcome{Problem: p, Tau: math.NaN()},
		Class:   ClassOf(p), Measured: len(measured), Error: math.NaN(),
	}
	if len(measured) == 0 {
		return e, diag.Inputf("there are no recorded times of %s", p).At("%s", s.Name).
			Do("choose from the sizes that it holds")
	}
	for _, m := range measured {
		if e.Best.Time == 0 || m.Median < e.Best.Time {
			e.Best = Timed{m.Config, m.Median, m.Resources}
		}
	}
	clock := a.Describe().Clock
	e.addLeading(s, leading, clock)
	return e, e.addPoints(ctx, a, measured, clock)
}

// addLeading enters the pick and the other leading candidates.
func (e *Evaluation) addLeading(s *Subset, leading []selector.Entry, clock unit.Hertz) {
	first := &leading[0]
	e.Pick.Config, e.Bound, e.Predicted = first.Config, first.Estimate.Bound, first.Estimate.Cycles.At(clock)
	for i, entry := range leading {
		time := unit.Seconds(0)
		switch m, ok := s.Candidate(e.Problem, entry.Config); {
		case ok && m.Status == dataset.OK:
			time = m.Median
			if i == 0 {
				e.Pick = Timed{m.Config, m.Median, m.Resources}
			}
		case ok && i == 0:
			e.Failed = true
		}
		e.Leading = append(e.Leading, entry.Estimate.Cycles.At(clock))
		e.LeadingMeasured = append(e.LeadingMeasured, time)
	}
	for i, n := range TopCounts {
		e.Top[i] = e.EfficiencyOfFirst(n)
	}
}

// addPoints asks the model for the times of the measured configurations and enters what follows from them.
func (e *Evaluation) addPoints(ctx context.Context, a arch.Architecture, measurements []dataset.Measurement,
	clock unit.Hertz,
) error {
	configs := make([]gemm.Config, len(measurements))
	for i := range measurements {
		configs[i] = measurements[i].Config
	}
	estimates := make([]arch.Estimate, len(configs))
	if err := a.Estimate(ctx, estimates, e.Problem, configs); err != nil {
		return err
	}
	predicted, measured := make([]float64, len(configs)), make([]float64, len(configs))
	relative := make([]float64, 0, len(configs))
	best := math.Inf(1)
	for i := range measurements {
		time := measurements[i].Median
		measured[i] = float64(time)
		if estimate := &estimates[i]; estimate.Reject != "" {
			predicted[i] = math.Inf(1)
			e.Rejected++
		} else {
			t := estimate.Cycles.At(clock)
			predicted[i] = float64(t)
			e.Points = append(e.Points, Point{Config: configs[i], Bound: estimate.Bound, Predicted: t, Measured: time})
			relative = append(relative, math.Abs(predicted[i]/measured[i]-1))
		}
		if configs[i] == e.Best.Config {
			best = predicted[i]
		}
	}
	e.Error = stats.Median(relative)
	if e.Pick.Time > 0 {
		e.PickRank = 1 + countBelow(measured, float64(e.Pick.Time))
	}
	if !math.IsInf(best, 1) {
		e.BestRank = 1 + countBelow(predicted, best)
	}
	var err error
	e.Tau, err = stats.TauB(predicted, measured)
	return err
}
