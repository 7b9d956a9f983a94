package pickcmd

import (
	"context"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/diag"
)

// runContract answers for a contraction. The answer is the way to compute it that has the shortest predicted time.
func runContract(ctx context.Context, o *SelectOptions) error {
	c, err := o.Query.Plans(&o.Query.Product, o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	a, err := o.Factory.Searched(ctx, &o.Query)
	if err != nil {
		return err
	}
	best, err := ask.RankPlans(ctx, a, c, ask.Question{Kernel: o.Factory.Settings.Kernel, Top: 2, Terms: true,
		Regret: o.Regret})
	if err != nil {
		return err
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
