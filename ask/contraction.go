package ask

import (
	"cmp"
	"context"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// copyLaunch is what a copy costs besides its bytes. Source: torch.einsum on an H200 took at least as much longer than
// its GEMM and its bytes, per copy, for eleven contractions (docs/adr/0053-nested-indices.md).
const copyLaunch unit.Seconds = 2.4e-6

// Contract returns what an answer for the GEMM of a plan means for the contraction.
func (a *Ranking) Contract(c *Plans, plan *contract.Plan) (*Contracted, error) {
	seconds := a.Seconds(&a.Entries[0])
	if !plan.Direct() {
		switch {
		case a.Arch.RanksOnly:
			return nil, diag.Inputf("the contraction is no single GEMM, and the model %s gives no times to add up",
				a.Arch.Model).Do("use a model that predicts times")
		case plan.Moved > 0 && a.DRAMPeak <= 0:
			return nil, diag.Inputf("the contraction is no single GEMM, and %s has no bandwidth of DRAM", a.Arch.ID()).
				Do("use another device")
		}
		seconds *= unit.Seconds(plan.Calls)
		if plan.Moved > 0 {
			seconds += unit.Seconds(plan.Moved / a.DRAMPeak)
		}
		seconds += copyLaunch * unit.Seconds(len(plan.Copied))
	}
	return &Contracted{Plans: c, Plan: plan, Seconds: seconds, Kernel: a.Kernel}, nil
}

// Contractions returns the way to compute a contraction that has the shortest predicted time, with the other ways in
// Contracted.Instead, the fastest first. The kernel for nested indices is of the family that has such, and left out if
// none has.
func Contractions(ctx context.Context, a arch.Architecture, c *Plans, q Question) (*Ranking, error) {
	var all []*Ranking
	for i := range c.List {
		plan, one := &c.List[i], q
		if plan.Problem.Nest != (gemm.Nest{}) {
			if one.Kernel = a.Describe().NestFamily(); one.Kernel == "" && len(c.List) > 1 {
				continue
			}
		}
		one.Problems = []gemm.Problem{plan.Problem}
		answers, err := Rankings(ctx, a, one)
		if err == nil {
			err = answers[0].Err
		}
		if err == nil {
			answers[0].Contraction, err = answers[0].Contract(c, plan)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, &answers[0])
	}
	slices.SortStableFunc(all, func(x, y *Ranking) int {
		return cmp.Compare(x.Contraction.Seconds, y.Contraction.Seconds)
	})
	for _, other := range all[1:] {
		all[0].Contraction.Instead = append(all[0].Contraction.Instead, other.Contraction)
	}
	return all[0], nil
}
