package score

import (
	"context"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
)

// AxisChoice scores a model's choice on one axis that the sweep holds constant. It looks at the configurations that
// were measured at several values of the axis.
type AxisChoice struct {
	// Chosen is the best measured time over the axis ÷ the time at the model's value. Constant is the same at the value
	// that the sweep holds constant.
	Chosen, Constant stats.Quantiles
}

// GroupChoice scores the launch-order group that phase two of the selection chooses. Of the measured groups the one
// with the smallest ratio to it counts as chosen.
func GroupChoice(ctx context.Context, a arch.Architecture, s *Subset, problems []gemm.Problem) (AxisChoice, error) {
	group := func(c *gemm.Config) *int { return &c.GroupM }
	return s.axisChoice(problems, group, s.Group, func(p gemm.Problem, variants []gemm.Config) (int, error) {
		c := variants[0]
		c.GroupM = 0
		m, err := a.Mapping(ctx, p, c)
		if err != nil {
			return 0, err
		}
		return least(len(variants), func(i int) float64 {
			return math.Abs(math.Log(float64(variants[i].GroupM) / float64(max(m.GroupM, 1))))
		}), nil
	})
}

// SplitChoice scores the split-K that the model predicts to be the fastest of the measured ones.
func SplitChoice(ctx context.Context, a arch.Architecture, s *Subset, problems []gemm.Problem) (AxisChoice, error) {
	split := func(c *gemm.Config) *int { return &c.SplitK }
	return s.axisChoice(problems, split, s.Split, func(p gemm.Problem, variants []gemm.Config) (int, error) {
		estimates := make([]arch.Estimate, len(variants))
		if err := a.Estimate(ctx, estimates, p, variants); err != nil {
			return 0, err
		}
		return least(len(variants), func(i int) float64 {
			if estimates[i].Reject != "" {
				return math.Inf(1)
			}
			return float64(estimates[i].Cycles)
		}), nil
	})
}

// least returns the first index of the least value.
func least(n int, value func(int) float64) int {
	at := 0
	for i := range n {
		if value(i) < value(at) {
			at = i
		}
	}
	return at
}

// axisChoice scores the choice on an axis of a configuration. choose returns which of the measured variants of a
// configuration the model would take.
func (s *Subset) axisChoice(problems []gemm.Problem, axis func(*gemm.Config) *int, constant int,
	choose func(gemm.Problem, []gemm.Config) (int, error),
) (AxisChoice, error) {
	var chosen, fixed []float64
	for _, p := range problems {
		timed := slices.DeleteFunc(s.Sweep(p), func(m dataset.Measurement) bool { return m.Status != dataset.OK })
		for _, variants := range GroupBy(timed, func(m *dataset.Measurement) gemm.Config {
			rest := m.Config
			*axis(&rest) = 0
			return rest
		}) {
			if len(variants) < 2 {
				continue
			}
			configs, best := make([]gemm.Config, len(variants)), variants[0].Median
			for i := range variants {
				configs[i], best = variants[i].Config, min(best, variants[i].Median)
			}
			i, err := choose(p, configs)
			if err != nil && diag.KindOf(err) == diag.Input {
				continue // the problem's evaluation has the error
			}
			if err != nil {
				return AxisChoice{}, err
			}
			chosen = append(chosen, ratio(best, variants[i].Median))
			for j := range variants {
				if *axis(&configs[j]) == constant {
					fixed = append(fixed, ratio(best, variants[j].Median))
				}
			}
		}
	}
	return AxisChoice{Chosen: stats.QuantilesOf(chosen), Constant: stats.QuantilesOf(fixed)}, nil
}
