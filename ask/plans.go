package ask

import (
	"cmp"
	"context"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// RankPlans returns the fastest way to compute a contraction, with the others in its Contraction.Instead. q has no
// problems. The kernel for nested indices is of the family that has such, and left out if none has.
func RankPlans(ctx context.Context, a arch.Architecture, plans *Plans, q Question) (*Ranking, error) {
	var all []*Ranking
	for i := range plans.List {
		plan, one := &plans.List[i], q
		if plan.Problem.Nest != (gemm.Nest{}) {
			if one.Kernel = a.Describe().NestFamily(); one.Kernel == "" && len(plans.List) > 1 {
				continue
			}
		}
		one.Problems = []gemm.Problem{plan.Problem}
		answers, err := Rankings(ctx, a, one)
		if err != nil {
			return nil, err
		}
		r := &answers[0]
		if r.Err != nil {
			return nil, r.Err
		}
		if r.Contraction, err = r.Contract(plans, plan); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(x, y *Ranking) int {
		return cmp.Compare(x.Contraction.Seconds, y.Contraction.Seconds)
	})
	best := all[0]
	for _, other := range all[1:] {
		best.Contraction.Instead = append(best.Contraction.Instead, other.Contraction)
	}
	return best, nil
}
