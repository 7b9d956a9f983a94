package score

import (
	"context"
	"math"
	"slices"

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
	Problem gemm.Problem
	Class   Class
	// Pick is the model's choice, and Best the fastest measured configuration.
	Pick, Best Row
	// PickRank is the place of the pick among the measured times, BestRank the place of the best among the predicted
	// times. 1 is the fastest, 0 means that it is not among them.
	PickRank, BestRank int
	// Tau is Kendall's tau-b of predicted against measured times, NaN if undefined.
	Tau float64
	// Rows are the configurations that have both a predicted and a measured time.
	Rows []Row
	// Failed: the pick was tried and has no time, as it did not build or gave no right result.
	Failed bool
	// Top are the efficiencies of the fastest of the first TopCounts candidates. Those without a time are passed over.
	Top [len(TopCounts)]float64
	// Measured counts the configurations with a measured time, Rejected how many of these the model rejects.
	Measured, Rejected int
	// Leading are the predicted times of the model's first candidates, best first, and LeadingMeasured their measured
	// times, 0 for a candidate without one.
	Leading, LeadingMeasured []unit.Seconds
	// Error is the median of |predicted ÷ measured − 1| over the rows.
	Error float64
}

// ratio returns a ÷ b, 0 if one of the times is missing.
func ratio(a, b unit.Seconds) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return float64(a / b)
}

// Regret returns the measured time of the pick ÷ the best measured time − 1, and false if the pick has no measured
// time.
func (e *Evaluation) Regret() (regret float64, ok bool) {
	if e.Pick.Measured == 0 {
		return 0, false
	}
	return float64(e.Pick.Measured/e.Best.Measured) - 1, true
}

// Efficiency returns the best measured time ÷ the measured time of the pick: 0 if the pick failed, NaN if it was never
// tried.
func (e *Evaluation) Efficiency() float64 { return e.efficiency(e.Pick.Measured) }

// EfficiencyOfFirst returns the efficiency of the fastest of the model's first n candidates. Without a time of any of
// them it is 0 if the pick failed, and NaN otherwise.
func (e *Evaluation) EfficiencyOfFirst(n int) float64 {
	fastest := unit.Seconds(0)
	for _, t := range e.LeadingMeasured[:min(n, len(e.LeadingMeasured))] {
		if t > 0 && (fastest == 0 || t < fastest) {
			fastest = t
		}
	}
	return e.efficiency(fastest)
}

func (e *Evaluation) efficiency(t unit.Seconds) float64 {
	if t == 0 && !e.Failed {
		return math.NaN()
	}
	return ratio(e.Best.Measured, t)
}

// Evaluate holds a model's picks against the measurements of some problems, in their order. An error about one problem
// stands in bad beside its evaluation. The last error is about all problems.
func Evaluate(ctx context.Context, a arch.Architecture, s *Subset, problems []gemm.Problem) (
	evaluations []Evaluation, bad []error, err error,
) {
	request := selector.Request{Problems: problems, Space: spaceOf(s.Kernel, s.Split), Top: measure.RegretCandidates}
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
			evaluations[i], bad[i] = s.evaluate(ctx, a, p, results[i].Entries, stopwatch.Added(&p, of))
		}
		if bad[i] != nil && diag.KindOf(bad[i]) != diag.Input {
			return nil, nil, bad[i]
		}
	}
	return evaluations, bad, nil
}

// evaluate holds the model's leading candidates and its predictions against the measurements of one problem.
func (s *Subset) evaluate(
	ctx context.Context, a arch.Architecture, p gemm.Problem, leading []selector.Entry, added unit.Seconds,
) (e Evaluation, err error) {
	if len(s.measurements[p]) == 0 {
		return e, diag.Inputf("there are no recorded times of %s", p).At("%s", s.Name).
			Do("choose from the sizes that it holds")
	}
	all, err := s.Rows(ctx, a, p)
	if err != nil {
		return e, err
	}
	predicted, measured := make([]float64, len(all)), make([]float64, len(all))
	for i := range all {
		all[i].Added = added
		predicted[i], measured[i] = float64(all[i].Predicted), float64(all[i].Measured)
		if all[i].Reject != "" {
			predicted[i] = math.Inf(1)
		}
	}
	best := slices.Index(measured, slices.Min(measured))
	e = Evaluation{Problem: p, Class: ClassOf(p), Measured: len(all), Best: all[best]}
	e.Rows = slices.DeleteFunc(all, func(r Row) bool { return r.Reject != "" })
	e.Rejected, e.Error = e.Measured-len(e.Rows), medianError(ratiosOf(e.Rows))
	e.addLeading(s, leading, a.Describe().Clock, added)
	if e.Pick.Measured > 0 {
		e.PickRank = 1 + countBelow(measured, float64(e.Pick.Measured))
	}
	if e.Best.Reject == "" {
		e.BestRank = 1 + countBelow(predicted, predicted[best])
	}
	e.Tau, err = stats.TauB(predicted, measured)
	return e, err
}

// addLeading enters the pick and the other leading candidates.
func (e *Evaluation) addLeading(s *Subset, leading []selector.Entry, clock unit.Hertz, added unit.Seconds) {
	for i := range leading {
		row := Row{Problem: e.Problem, Config: leading[i].Config, Added: added}
		row.predict(&leading[i].Estimate, clock)
		m, tried := s.Candidate(e.Problem, row.Config)
		if tried && m.Status == dataset.OK {
			row.measure(&m)
		}
		if i == 0 {
			e.Pick, e.Failed = row, tried && m.Status != dataset.OK
		}
		e.Leading, e.LeadingMeasured = append(e.Leading, row.Predicted), append(e.LeadingMeasured, row.Measured)
	}
	for i, n := range TopCounts {
		e.Top[i] = e.EfficiencyOfFirst(n)
	}
}

// countBelow counts the values below a limit.
func countBelow(values []float64, limit float64) int {
	n := 0
	for _, v := range values {
		if v < limit {
			n++
		}
	}
	return n
}
