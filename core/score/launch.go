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

// AxisChoice scores the choice of one axis that the sweep holds constant, on the configurations that were recorded with
// several of its values.
type AxisChoice struct {
	// Chosen is the best recorded time over the axis ÷ the time at the model's value, Constant the same at the value that the
	// sweep holds constant.
	Chosen, Constant stats.Quantiles
}

// GroupChoice scores the launch-order group: the one that phase two of the selection gives each configuration that was
// recorded with several. Of the recorded groups the one whose ratio to it is the smallest counts.
func GroupChoice(ctx context.Context, a arch.Architecture, r *Subset, problems []gemm.Problem) (AxisChoice, error) {
	return r.choice(ctx, problems, r.Group, func(c *gemm.Config) *int { return &c.GroupM },
		func(ctx context.Context, p gemm.Problem, variants []dataset.Measurement) (int, error) {
			c := variants[0].Config
			c.GroupM = 0
			m, err := a.Mapping(ctx, p, c)
			if err != nil {
				return 0, err
			}
			nearest, least := 0, math.Inf(1)
			for i := range variants {
				if d := math.Abs(math.Log(float64(variants[i].Config.GroupM) / float64(max(m.GroupM, 1)))); d < least {
					nearest, least = i, d
				}
			}
			return nearest, nil
		})
}

// SplitChoice scores the split of K: the recorded one that the model predicts to be the fastest.
func SplitChoice(ctx context.Context, a arch.Architecture, r *Subset, problems []gemm.Problem) (AxisChoice, error) {
	return r.choice(ctx, problems, r.Split, func(c *gemm.Config) *int { return &c.SplitK },
		func(ctx context.Context, p gemm.Problem, variants []dataset.Measurement) (int, error) {
			configs, estimates := make([]gemm.Config, len(variants)), make([]arch.Estimate, len(variants))
			for i := range variants {
				configs[i] = variants[i].Config
			}
			if err := a.Estimate(ctx, estimates, p, configs); err != nil {
				return 0, err
			}
			best := 0
			for i := range estimates {
				if estimates[i].Reject == "" && (estimates[best].Reject != "" || estimates[i].Cycles < estimates[best].Cycles) {
					best = i
				}
			}
			return best, nil
		})
}

// choice scores an axis. choose returns which of the variants of a configuration the model takes.
func (r *Subset) choice(ctx context.Context, problems []gemm.Problem, constant int, axis func(*gemm.Config) *int,
	choose func(context.Context, gemm.Problem, []dataset.Measurement) (int, error),
) (AxisChoice, error) {
	var chosen, held []float64
	for _, p := range problems {
		variants := map[gemm.Config][]dataset.Measurement{}
		var order []gemm.Config
		for _, m := range r.Sweep(p) {
			rest := m.Config
			*axis(&rest) = 0
			if m.Status != dataset.OK {
				continue
			}
			if variants[rest] == nil {
				order = append(order, rest)
			}
			variants[rest] = append(variants[rest], m)
		}
		for _, rest := range order {
			own := variants[rest]
			if len(own) < 2 {
				continue
			}
			i, err := choose(ctx, p, own)
			if diag.KindOf(err) == diag.Input && err != nil {
				continue // the problem's row says so
			}
			if err != nil {
				return AxisChoice{}, err
			}
			best := own[0].Median
			for _, m := range own {
				best = min(best, m.Median)
			}
			chosen = append(chosen, ratio(best, own[i].Median))
			for _, m := range own {
				if *axis(&m.Config) == constant {
					held = append(held, ratio(best, m.Median))
				}
			}
		}
	}
	return AxisChoice{Chosen: stats.QuantilesOf(chosen), Constant: stats.QuantilesOf(held)}, nil
}
