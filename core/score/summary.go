package score

import (
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/stats"
)

// EvaluationSummary is what a list of rows comes to.
type EvaluationSummary struct {
	Problems int
	// Unrecorded counts the picks without a recorded time, which score 0.
	Unrecorded int
	// Efficiency is of the pick, Top of the best of the first TopCounts.
	Efficiency        stats.Quantiles
	Top               [len(TopCounts)]stats.Quantiles
	TauMean, TauWorst float64
	// Error is the median of |predicted ÷ recorded − 1| over all points of all problems.
	Error float64
	// Coverage is the share of the points whose interval holds the recorded time, PickCoverage that of the picks; NaN without
	// intervals.
	Coverage, PickCoverage float64
	// Auto is of the best of as many candidates as are worth measuring, and Measured the mean of how many these are; nothing
	// without intervals.
	Auto     stats.Quantiles
	Measured float64
	// Loss and Lost are the means of the expected loss of not measuring and of the recorded one, over the picks that have a
	// recorded time.
	Loss, Lost float64
}

// SummariseEvaluations sums up rows; u, which may be nil, has the intervals of their predictions. Without rows, or without any tau, the numbers of these are NaN.
func SummariseEvaluations(rows []Evaluation, u *arch.Uncertainty) EvaluationSummary {
	s := EvaluationSummary{Problems: len(rows), TauMean: math.NaN(), TauWorst: math.NaN()}
	var efficiency, taus, errors []float64
	var top [len(TopCounts)][]float64
	held, of, picksHeld, picks, losses := 0, 0, 0, 0, 0
	var auto []float64
	for i := range rows {
		r := &rows[i]
		h, n := r.Covered(u)
		held, of = held+h, of+n
		if u != nil {
			n := measure.WorthMeasuring(r.Leading, u.PlanSpread, measure.AssumedNoise)
			auto = append(auto, r.first(n))
			s.Measured += float64(n) / float64(len(rows))
		}
		if lost, ok := r.lost(); ok && u != nil {
			losses++
			s.Lost += lost
			s.Loss += measure.ExpectedRegret(r.Leading, u.Spread, 1)
		}
		if h, ok := r.Held(u); ok {
			picks++
			if h {
				picksHeld++
			}
		}
		if r.Measured == 0 {
			s.Unrecorded++
		}
		efficiency = append(efficiency, r.Efficiency())
		for t := range TopCounts {
			top[t] = append(top[t], r.Top[t])
		}
		if !math.IsNaN(r.Tau) {
			taus = append(taus, r.Tau)
		}
		for _, p := range r.Points {
			errors = append(errors, math.Abs(float64(p.Predicted/p.Measured)-1))
		}
	}
	s.Efficiency = stats.QuantilesOf(efficiency)
	for t := range TopCounts {
		s.Top[t] = stats.QuantilesOf(top[t])
	}
	if len(taus) > 0 {
		s.TauMean, s.TauWorst = 0, taus[0]
		for _, tau := range taus {
			s.TauMean += tau / float64(len(taus))
			s.TauWorst = min(s.TauWorst, tau)
		}
	}
	s.Error = stats.Median(errors)
	s.Auto = stats.QuantilesOf(auto)
	if losses > 0 {
		s.Loss, s.Lost = s.Loss/float64(losses), s.Lost/float64(losses)
	}
	// 0 of 0 is NaN
	s.Coverage, s.PickCoverage = float64(held)/float64(of), float64(picksHeld)/float64(picks)
	return s
}

// ByClass sums up the rows of each class that has any, in the order of Classes.
func ByClass(rows []Evaluation, u *arch.Uncertainty) (classes []Class, summaries []EvaluationSummary) {
	for _, c := range Classes() {
		var own []Evaluation
		for i := range rows {
			if rows[i].Class == c {
				own = append(own, rows[i])
			}
		}
		if len(own) > 0 {
			classes, summaries = append(classes, c), append(summaries, SummariseEvaluations(own, u))
		}
	}
	return classes, summaries
}
