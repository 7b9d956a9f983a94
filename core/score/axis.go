package score

import (
	"context"
	"math"

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
	choose := func(ctx context.Context, p gemm.Problem, variants []dataset.Measurement) (int, error) {
		c := variants[0].Config
		c.GroupM = 0
		m, err := a.Mapping(ctx, p, c)
		if err != nil {
			return 0, err
		}
		nearest, least := 0, math.Inf(1)
		for i := range variants {
			d := math.Abs(math.Log(float64(variants[i].Config.GroupM) / float64(max(m.GroupM, 1))))
			if d < least {
				nearest, least = i, d
			}
		}
		return nearest, nil
	}
	return s.axisChoice(ctx, problems, group, s.Group, choose)
}

// SplitChoice scores the split-K that the model predicts to be the fastest of the measured ones.
func SplitChoice(ctx context.Context, a arch.Architecture, s *Subset, problems []gemm.Problem) (AxisChoice, error) {
	split := func(c *gemm.Config) *int { return &c.SplitK }
	choose := func(ctx context.Context, p gemm.Problem, variants []dataset.Measurement) (int, error) {
		configs, estimates := make([]gemm.Config, len(variants)), make([]arch.Estimate, len(variants))
		for i := range variants {
			configs[i] = variants[i].Config
		}
		if err := a.Estimate(ctx, estimates, p, configs); err != nil {
			return 0, err
		}
		best := 0
		for i := range estimates {
			e, b := &estimates[i], &estimates[best]
			if e.Reject == "" && (b.Reject != "" || e.Cycles < b.Cycles) {
				best = i
			}
		}
		return best, nil
	}
	return s.axisChoice(ctx, problems, split, s.Split, choose)
}

// axisChoice scores the choice on an axis of a configuration. choose returns which of the measured variants of a
// configuration the model would take.
func (s *Subset) axisChoice(ctx context.Context, problems []gemm.Problem, axis func(*gemm.Config) *int, constant int,
	choose func(context.Context, gemm.Problem, []dataset.Measurement) (int, error),
) (AxisChoice, error) {
	var chosen, fixed []float64
	for _, p := range problems {
		for _, variants := range s.variants(p, axis) {
			i, err := choose(ctx, p, variants)
			if diag.KindOf(err) == diag.Input && err != nil {
				continue // the problem's evaluation has the error
			}
			if err != nil {
				return AxisChoice{}, err
			}
			best := variants[0].Median
			for _, m := range variants {
				best = min(best, m.Median)
			}
			chosen = append(chosen, ratio(best, variants[i].Median))
			for _, m := range variants {
				if *axis(&m.Config) == constant {
					fixed = append(fixed, ratio(best, m.Median))
				}
			}
		}
	}
	return AxisChoice{Chosen: stats.QuantilesOf(chosen), Constant: stats.QuantilesOf(fixed)}, nil
}

// variants lists the configurations of a problem that have measured times at several values of an axis.
func (s *Subset) variants(p gemm.Problem, axis func(*gemm.Config) *int) [][]dataset.Measurement {
	byRest := map[gemm.Config][]dataset.Measurement{}
	var order []gemm.Config
	for _, m := range s.Sweep(p) {
		if m.Status != dataset.OK {
			continue
		}
		rest := m.Config
		*axis(&rest) = 0
		if byRest[rest] == nil {
			order = append(order, rest)
		}
		byRest[rest] = append(byRest[rest], m)
	}
	var several [][]dataset.Measurement
	for _, rest := range order {
		if len(byRest[rest]) > 1 {
			several = append(several, byRest[rest])
		}
	}
	return several
}
