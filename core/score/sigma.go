package score

import (
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
)

// Sigma finds arch.Uncertainty.Sigma from evaluations: the sigma at which the expected regret of the picks,
// averaged over the sizes, equals their measured regret.
func Sigma(evaluations []Evaluation) float64 {
	regret := 0.0
	var leading [][]unit.Seconds
	for i := range evaluations {
		if r, ok := evaluations[i].Regret(); ok {
			regret += r
			leading = append(leading, evaluations[i].Leading)
		}
	}
	low, high := 0.0, 1.0
	for range 14 { // to 10⁻⁴
		sigma := (low + high) / 2
		expected := 0.0
		for _, times := range leading {
			expected += measure.ExpectedRegret(times, sigma, 1)
		}
		if expected < regret {
			low = sigma
		} else {
			high = sigma
		}
	}
	return high
}

// PlanSigma finds arch.Uncertainty.PlanSigma from evaluations: the least value, not below sigma, such that measuring as
// many candidates as are worth it leaves a mean regret of at most the noise of a measurement.
func PlanSigma(evaluations []Evaluation, sigma float64) float64 {
	regretLeft := func(s float64) float64 {
		sum, n := 0.0, 0
		for i := range evaluations {
			worth := measure.WorthMeasuring(evaluations[i].Leading, s, measure.AssumedNoise)
			if e := evaluations[i].EfficiencyOfFirst(worth); e > 0 {
				sum += 1/e - 1
				n++
			}
		}
		return sum / float64(max(n, 1))
	}
	low, high := sigma, max(1, sigma)
	if regretLeft(low) <= measure.AssumedNoise {
		return low
	}
	for range 10 { // to 10⁻³
		if s := (low + high) / 2; regretLeft(s) > measure.AssumedNoise {
			low = s
		} else {
			high = s
		}
	}
	return high
}
