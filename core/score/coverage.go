package score

import (
	"slices"

	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/stats"
)

// Coverage is the out-of-bag score of a calibration: how intervals and sigmas do on sizes that they were not found on.
type Coverage struct {
	Points float64 `json:"interval_coverage"`       // of the times, each size with the same weight
	Picks  float64 `json:"interval_coverage_picks"` // of the picks' times
	Worst  float64 `json:"interval_coverage_worst"` // of the times of the worst size
	Width  float64 `json:"high_over_low_median"`    // the median width of the intervals
	// the mean regrets of the picks: expected, recorded, and after measuring what is worth it
	ExpectedRegret     float64 `json:"expected_regret_mean"`
	Regret             float64 `json:"recorded_regret_mean"`
	RegretLeft         float64 `json:"auto_regret_mean"`
	CandidatesMeasured float64 `json:"auto_measured_mean"` // how many these are
}

// LeaveOneOut calibrates without each size in turn and scores the calibration on that size. done is told of each.
func LeaveOneOut(evaluations []Evaluation, done func(sizes int)) Coverage {
	c := Coverage{Worst: 1}
	var widths []float64
	picks, regrets, measured := 0, 0, 0
	for i := range evaluations {
		e := &evaluations[i]
		u, _ := Calibrate("", slices.Delete(slices.Clone(evaluations), i, i+1))
		worth := measure.WorthMeasuring(e.Leading, u.PlanSigma, measure.AssumedNoise)
		c.CandidatesMeasured += float64(worth) / float64(len(evaluations))
		if efficiency := e.EfficiencyOfFirst(worth); efficiency > 0 {
			measured++
			c.RegretLeft += 1/efficiency - 1
		}
		covered, of := e.PointsCovered(Everywhere(&u))
		share := float64(covered) / float64(max(of, 1))
		for _, p := range e.Points {
			if low, high, ok := u.Interval(p.Bound, p.Predicted-e.Added); ok {
				widths = append(widths, float64(high/low))
			}
		}
		c.Points += share / float64(len(evaluations))
		c.Worst = min(c.Worst, share)
		if covered, ok := e.PickCovered(Everywhere(&u)); ok {
			picks++
			if covered {
				c.Picks++
			}
		}
		if regret, ok := e.Regret(); ok {
			regrets++
			c.Regret += regret
			c.ExpectedRegret += measure.ExpectedRegret(e.Leading, u.Sigma, 1)
		}
		done(1)
	}
	c.Picks /= float64(max(picks, 1))
	c.RegretLeft /= float64(max(measured, 1))
	c.ExpectedRegret, c.Regret = c.ExpectedRegret/float64(max(regrets, 1)), c.Regret/float64(max(regrets, 1))
	c.Width = stats.Median(widths)
	return c
}
