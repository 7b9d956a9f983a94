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

// ranking is what package ask makes an answer of.
func (m *model) ranking(p *gemm.Problem, regret *ask.Regret) *ask.Ranking {
	return &ask.Ranking{Arch: m.description, Kernel: m.kernel, Problem: *p, Regret: regret}
}

// expectedRegret returns the expected regret of a problem's pick. It is nil if the model has no uncertainty.
func (m *model) expectedRegret(p gemm.Problem) (regret *ask.Regret, err error) {
	err = m.rank(p, measure.RegretCandidates, func(entries []selector.Entry) {
		times := make([]unit.Seconds, len(entries))
		for i := range entries {
			times[i] = m.description.Own(m.seconds(&entries[i]), p)
		}
		regret = ask.RegretOf(m.scope(&p, &entries[0]).Uncertainty, times)
	})
	if err == nil && regret != nil && (math.IsNaN(regret.Expected) || math.IsInf(regret.Expected, 0)) {
		err = m.nonsense(fmt.Sprintf("the expected regret is %v", regret.Expected))
	}
	return regret, err
}
