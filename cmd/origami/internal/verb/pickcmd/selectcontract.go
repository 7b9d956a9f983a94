package pickcmd

import (
	"cmp"
	"context"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// runContract answers for a contraction. The answer is the way to compute it that has the shortest predicted time.
func runContract(ctx context.Context, o *SelectOptions) error {
	c, err := o.Query.Contraction(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	a, err := o.Factory.Searched(ctx, &o.Query.Search)
	if err != nil {
		return err
	}
	answers, err := o.askPlans(ctx, a, c)
	if err != nil {
		return err
	}
	best := answers[0]
	for _, other := range answers[1:] {
		best.Contraction.Instead = append(best.Contraction.Instead, other.Contraction)
	}
	format := o.Factory.Format()
	if (format == table.CSV || format == table.TSV) && !best.Contraction.Plan.Direct() {
		return diag.Inputf("the contraction is no single GEMM: %s", best.Contraction.Plan.Text()).At("--format %s", format).
			Do("ask for json or table: a row has one GEMM")
	}
	w := newSelectWriter(o.Factory.Streams, format, false, session.Single(best.Problem), 1)
	w.regret = o.Regret
	return w.write(best)
}

// askPlans returns an answer for each way to compute a contraction, the fastest first. The kernel for nested indices is
// of the family that has such, and left out if none has.
func (o *SelectOptions) askPlans(
	ctx context.Context, a arch.Architecture, c *ask.Plans,
) ([]*ask.Ranking, error) {
	var all []*ask.Ranking
	for i := range c.List {
		plan, kernel := &c.List[i], o.Factory.Settings.Kernel
		if plan.Problem.Nest != (gemm.Nest{}) {
			if kernel = a.Describe().NestFamily(); kernel == "" && len(c.List) > 1 {
				continue
			}
		}
		answers, err := ask.Rankings(ctx, a, ask.Question{Problems: []gemm.Problem{plan.Problem}, Kernel: kernel, Top: 2,
			Terms: true, Regret: o.Regret})
		if err != nil {
			return nil, err
		}
		one := &answers[0]
		if one.Err != nil {
			return nil, one.Err
		}
		if one.Contraction, err = one.Contract(c, plan); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(x, y *ask.Ranking) int {
		return cmp.Compare(x.Contraction.Seconds, y.Contraction.Seconds)
	})
	return all, nil
}
