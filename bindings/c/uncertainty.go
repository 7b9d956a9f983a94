package main

import (
	"fmt"
	"math"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// scope is arch.Description.Scope.
func (m *model) scope(p *gemm.Problem, e *selector.Entry) arch.Scope {
	return m.description.Scope(m.kernel, p, e.Config.SplitK)
}

// interval returns the ends of the interval of an entry's time, or zeros without an interval.
func (m *model) interval(p *gemm.Problem, e *selector.Entry) (low, high unit.Seconds) {
	low, high, _ = m.scope(p, e).Interval(e.Estimate.Bound, m.seconds(e))
	return low, high
}

// expectedRegret returns the expected regret of a problem's pick, and how many leading candidates are worth
// measuring. known is false if the model has no uncertainty.
func (m *model) expectedRegret(p gemm.Problem) (regret float64, worth int, known bool, err error) {
	err = m.rank(p, measure.RegretCandidates, func(entries []selector.Entry) {
		times := make([]unit.Seconds, len(entries))
		for i := range entries {
			times[i] = m.seconds(&entries[i])
		}
		if r := ask.RegretOf(m.scope(&p, &entries[0]).Uncertainty, times); r != nil {
			regret, worth, known = r.Expected, r.WorthMeasuring, true
		}
	})
	if err == nil && (math.IsNaN(regret) || math.IsInf(regret, 0)) {
		err = m.nonsense(fmt.Sprintf("the expected regret is %v", regret))
	}
	return regret, worth, known, err
}
