package score

import (
	"context"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
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

// EvaluationSummary sums up the evaluations of several problems.
type EvaluationSummary struct {
	Problems int
	// Unmeasured counts the picks without a measured time. Failed counts the unmeasured picks that were tried.
	Unmeasured, Failed int
	// Efficiency is the efficiency of the pick, Top of the fastest of the first TopCounts candidates. They are of the
	// problems at which it is known, and NaN without any.
	Efficiency        stats.Quantiles
	Top               [len(TopCounts)]stats.Quantiles
	TauMean, TauWorst float64
	// Error is the median of |predicted ÷ measured − 1| over all rows of all problems.
	Error float64
	// Coverage is the share of the rows whose interval contains the measured time, PickCoverage the same for the
	// picks. Both are NaN without intervals.
	Coverage, PickCoverage float64
	// AutoEfficiency is the efficiency of the fastest candidate that is worth measuring, and CandidatesMeasured the mean
	// number of these candidates, 0 without intervals.
	AutoEfficiency     stats.Quantiles
	CandidatesMeasured float64
	// ExpectedRegret and Regret are means over the picks that have a measured time, 0 without intervals.
	ExpectedRegret, Regret float64
}

// SummariseEvaluations sums up evaluations. scope gives the intervals of their predictions. Numbers that are undefined
// are NaN: the taus if no problem has one, all of them without evaluations.
func SummariseEvaluations(evaluations []Evaluation, scope ScopeOf) EvaluationSummary {
	s := EvaluationSummary{Problems: len(evaluations)}
	var efficiency, taus, ratios []float64
	var top [len(TopCounts)][]float64
	for i := range evaluations {
		e := &evaluations[i]
		if e.Pick.Measured == 0 {
			s.Unmeasured++
		}
		if e.Failed {
			s.Failed++
		}
		efficiency, taus = append(efficiency, e.Efficiency()), append(taus, e.Tau)
		ratios = append(ratios, ratiosOf(e.Rows)...)
		for t := range TopCounts {
			top[t] = append(top[t], e.Top[t])
		}
	}
	s.Efficiency = quantilesOf(efficiency)
	for t := range TopCounts {
		s.Top[t] = quantilesOf(top[t])
	}
	s.TauMean, s.TauWorst = meanAndWorst(taus)
	s.Error = medianError(ratios)
	s.addUncertainty(evaluations, scope)
	return s
}

// quantilesOf summarises the efficiencies that are known.
func quantilesOf(efficiencies []float64) stats.Quantiles {
	known := slices.DeleteFunc(efficiencies, math.IsNaN)
	if len(known) == 0 {
		return stats.Quantiles{Median: math.NaN(), Geomean: math.NaN(), P10: math.NaN(), Worst: math.NaN()}
	}
	return stats.QuantilesOf(known)
}

// meanAndWorst returns the mean and the least of the values that are defined, NaN without any.
func meanAndWorst(values []float64) (mean, worst float64) {
	values = slices.DeleteFunc(values, math.IsNaN)
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean, slices.Min(values)
}

// addUncertainty enters what the intervals and the sigma of the predictions come to.
func (s *EvaluationSummary) addUncertainty(evaluations []Evaluation, scope ScopeOf) {
	held, of, picksHeld, picks, regrets := 0, 0, 0, 0, 0
	var auto []float64
	for i := range evaluations {
		e := &evaluations[i]
		h, n := Held(e.Rows, scope)
		held, of = held+h, of+n
		h, n = Held([]Row{e.Pick}, scope)
		picksHeld, picks = picksHeld+h, picks+n
		u := scope.of(&e.Pick).Uncertainty
		if u == nil || u.Sigma == 0 {
			continue
		}
		worth := measure.WorthMeasuring(e.Leading, u.PlanSigma, measure.AssumedNoise)
		auto = append(auto, e.EfficiencyOfFirst(worth))
		s.CandidatesMeasured += float64(worth)
		if regret, ok := e.Regret(); ok {
			regrets++
			s.Regret += regret
			s.ExpectedRegret += measure.ExpectedRegret(e.Leading, u.Sigma, 1)
		}
	}
	s.CandidatesMeasured /= float64(max(len(auto), 1))
	s.AutoEfficiency = quantilesOf(auto)
	s.ExpectedRegret, s.Regret = s.ExpectedRegret/float64(max(regrets, 1)), s.Regret/float64(max(regrets, 1))
	// 0 of 0 is NaN
	s.Coverage, s.PickCoverage = float64(held)/float64(of), float64(picksHeld)/float64(picks)
}

// ClassSummary sums up the evaluations of one class of shapes.
type ClassSummary struct {
	Class string `json:"class"`
	EvaluationSummary
}

// SummariseByClass sums up the evaluations of each class that has any, in the order of Classes.
func SummariseByClass(evaluations []Evaluation, scope ScopeOf) (summaries []ClassSummary) {
	for _, class := range Classes() {
		if members := ofClass(evaluations, class, true); len(members) > 0 {
			summaries = append(summaries, ClassSummary{class.String(), SummariseEvaluations(members, scope)})
		}
	}
	return summaries
}

// ofClass lists the evaluations of a class, or of all other classes.
func ofClass(evaluations []Evaluation, class Class, is bool) []Evaluation {
	return slices.DeleteFunc(slices.Clone(evaluations), func(e Evaluation) bool { return (e.Class == class) != is })
}

// ComparisonSummary is what came out over all problems.
type ComparisonSummary struct {
	Kernel     string          `json:"kernel"`         // the kernel family
	Problems   int             `json:"problems"`       // how many there are
	PassedOver int             `json:"passed_over"`    // problems with any
	Efficiency stats.Quantiles `json:"efficiency"`     // over the problems
	Versus     stats.Quantiles `json:"versus_library"` // of the default library
	TauMean    digits.Number   `json:"tau_mean"`       // the mean and the worst
	TauWorst   digits.Number   `json:"tau_worst"`
	// `versus_library` by name
	Libraries  map[string]stats.Quantiles `json:"libraries"`
	Noise      digits.Number              `json:"noise_floor"` // the median
	Measured   int                        `json:"measured"`    // sums over the problems
	Wrong      int                        `json:"wrong"`
	NotBuilt   int                        `json:"not_built"`
	Failed     int                        `json:"failed"`
	Missing    int                        `json:"missing"`
	Unfinished int                        `json:"unfinished"`  // problems with any `missing`
	ClockMoved int                        `json:"clock_moved"` // a sum
	Finals     int                        `json:"finals"`      // problems with phase `final`
}

// SummariseComparisons sums up the comparisons with one data set.
func SummariseComparisons(data *dataset.Dataset, comparisons []Comparison) ComparisonSummary {
	s := ComparisonSummary{Kernel: data.Kernel, Problems: len(comparisons), Libraries: map[string]stats.Quantiles{}}
	var efficiency, noise, taus []float64
	libraries := make([][]float64, len(data.Libraries()))
	for i := range comparisons {
		c := &comparisons[i]
		s.count(c)
		efficiency, taus = append(efficiency, c.Efficiency()), append(taus, c.Tau)
		for l, t := range c.Libraries {
			if t > 0 {
				libraries[l] = append(libraries[l], c.VersusLibrary(l))
			}
		}
		if !math.IsNaN(c.Noise) {
			noise = append(noise, c.Noise)
		}
	}
	mean, worst := meanAndWorst(taus)
	s.TauMean, s.TauWorst = digits.Number(mean), digits.Number(worst)
	s.Efficiency, s.Noise = stats.QuantilesOf(efficiency), digits.Number(stats.Median(noise))
	for i, name := range data.Libraries() {
		if s.Libraries[name] = stats.QuantilesOf(libraries[i]); i == 0 {
			s.Versus = s.Libraries[name]
		}
	}
	return s
}

// count adds the counts of one comparison.
func (s *ComparisonSummary) count(c *Comparison) {
	if c.PassedOver > 0 {
		s.PassedOver++
	}
	if c.Missing > 0 {
		s.Unfinished++
	}
	if c.Phase == dataset.Final {
		s.Finals++
	}
	s.Measured += c.Measured
	s.Wrong += c.Wrong
	s.NotBuilt += c.NotBuilt
	s.Failed += c.Failed
	s.Missing += c.Missing
	s.ClockMoved += c.ClockMoved
}
