package score

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/stats"
)

// EvaluationSummary sums up the evaluations of several problems.
type EvaluationSummary struct {
	Problems int
	// Unmeasured counts the picks without a measured time, Failed those of them that were tried.
	Unmeasured, Failed int
	// Efficiency is the efficiency of the pick, Top of the fastest of the first TopCounts candidates. They are of the
	// problems at which it is known, and NaN without any.
	Efficiency        stats.Quantiles
	Top               [len(TopCounts)]stats.Quantiles
	TauMean, TauWorst float64
	// Error is the median of |predicted ÷ measured − 1| over all points of all problems.
	Error float64
	// Coverage is the share of the points whose interval contains the measured time, PickCoverage the same for the
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
	s := EvaluationSummary{Problems: len(evaluations), TauMean: math.NaN(), TauWorst: math.NaN()}
	var efficiency, taus, relative []float64
	var top [len(TopCounts)][]float64
	for i := range evaluations {
		e := &evaluations[i]
		if e.Pick.Time == 0 {
			s.Unmeasured++
		}
		if e.Failed {
			s.Failed++
		}
		efficiency = append(efficiency, e.Efficiency())
		for t := range TopCounts {
			top[t] = append(top[t], e.Top[t])
		}
		if !math.IsNaN(e.Tau) {
			taus = append(taus, e.Tau)
		}
		for _, p := range e.Points {
			relative = append(relative, math.Abs(float64(p.Predicted/p.Measured)-1))
		}
	}
	s.Efficiency = quantilesOf(efficiency)
	for t := range TopCounts {
		s.Top[t] = quantilesOf(top[t])
	}
	if len(taus) > 0 {
		s.TauMean, s.TauWorst = 0, taus[0]
		for _, tau := range taus {
			s.TauMean += tau / float64(len(taus))
			s.TauWorst = min(s.TauWorst, tau)
		}
	}
	s.Error = stats.Median(relative)
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

// addUncertainty enters what the intervals and the sigma of the predictions come to.
func (s *EvaluationSummary) addUncertainty(evaluations []Evaluation, scope ScopeOf) {
	covered, of, picksCovered, picks, regrets := 0, 0, 0, 0, 0
	var auto []float64
	for i := range evaluations {
		e := &evaluations[i]
		c, n := e.PointsCovered(scope)
		covered, of = covered+c, of+n
		if c, ok := e.PickCovered(scope); ok {
			picks++
			if c {
				picksCovered++
			}
		}
		u := scope.at(&e.Problem, &e.Pick.Config).Uncertainty
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
	if regrets > 0 {
		s.ExpectedRegret, s.Regret = s.ExpectedRegret/float64(regrets), s.Regret/float64(regrets)
	}
	// 0 of 0 is NaN
	s.Coverage, s.PickCoverage = float64(covered)/float64(of), float64(picksCovered)/float64(picks)
}

// SummariseByClass sums up the evaluations of each class that has any, in the order of Classes.
func SummariseByClass(evaluations []Evaluation, scope ScopeOf) (classes []Class, summaries []EvaluationSummary) {
	for _, class := range Classes() {
		var members []Evaluation
		for i := range evaluations {
			if evaluations[i].Class == class {
				members = append(members, evaluations[i])
			}
		}
		if len(members) > 0 {
			classes, summaries = append(classes, class), append(summaries, SummariseEvaluations(members, scope))
		}
	}
	return classes, summaries
}
