package main

import (
	"fmt"
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// uncertaintyFor is arch.Description.UncertaintyFor.
func (m *model) uncertaintyFor(p *gemm.Problem) *arch.Uncertainty {
	if p.Output() != p.DType.Output() {
		return nil
	}
	return m.uncertainty
}

// interval returns the ends of the interval of an entry's time, or zeros without an interval.
func (m *model) interval(p *gemm.Problem, e *selector.Entry) (low, high unit.Seconds) {
	if u := m.uncertaintyFor(p); u != nil {
		low, high, _ = u.Interval(e.Estimate.Bound, m.seconds(e))
	}
	return low, high
}

// expectedRegret returns the expected regret of a problem's pick, and how many leading candidates are worth
// measuring. known is false if the model has no uncertainty.
func (m *model) expectedRegret(p gemm.Problem) (regret float64, worth int, known bool, err error) {
	u := m.uncertaintyFor(&p)
	err = m.rank(p, measure.RegretCandidates, func(entries []selector.Entry) {
		if u == nil {
			return
		}
		times := make([]unit.Seconds, len(entries))
		for i := range entries {
			times[i] = m.seconds(&entries[i])
		}
		regret = measure.ExpectedRegret(times, u.Sigma, 1)
		worth = measure.WorthMeasuring(times, u.PlanSigma, measure.AssumedNoise)
	})
	if err == nil && (math.IsNaN(regret) || math.IsInf(regret, 0)) {
		err = m.nonsense(fmt.Sprintf("the expected regret is %v", regret))
	}
	return regret, worth, u != nil, err
}
