package score

import (
	"context"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Prediction is the fastest configuration that a model has for a problem.
type Prediction struct {
	Config gemm.Config
	Bound  arch.Bound
	Time   unit.Seconds
	// Err says why the model has no time for the problem.
	Err error
}

// predictedAtOnce bounds the problems of a round trip to a plugin.
const predictedAtOnce = 1024

// Fastest predicts the time of the fastest configuration of a kernel family for each problem. The error is about all of
// them.
func Fastest(
	ctx context.Context, a arch.Architecture, kernel string, problems []gemm.Problem,
) ([]Prediction, error) {
	out := make([]Prediction, 0, len(problems))
	clock := a.Describe().Clock
	for from := 0; from < len(problems); from += predictedAtOnce {
		part := problems[from:min(from+predictedAtOnce, len(problems))]
		results, err := selector.Rank(ctx, a, selector.Request{Problems: part, Space: arch.Space{Kernel: kernel}, Top: 1})
		if err != nil {
			return nil, err
		}
		for i := range results {
			r := &results[i]
			switch {
			case r.Err != nil && diag.KindOf(r.Err) != diag.Input:
				return nil, r.Err
			case r.Err != nil:
				out = append(out, Prediction{Err: r.Err})
			default:
				e := &r.Entries[0]
				out = append(out, Prediction{Config: e.Config, Bound: e.Estimate.Bound, Time: e.Estimate.Cycles.At(clock)})
			}
		}
	}
	return out, nil
}
