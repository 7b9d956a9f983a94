package selectcmd

import (
	"context"

	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// runContract answers for a contraction. The answer is the way to compute it that has the shortest predicted time.
func runContract(ctx context.Context, o *Options) error {
	c, err := o.Query.Contraction(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	a, err := o.Factory.Searched(ctx, &o.Query.Search)
	if err != nil {
		return err
	}
	problems := make([]gemm.Problem, len(c.Plans))
	for i := range c.Plans {
		problems[i] = c.Plans[i].Problem
	}
	answers, err := session.Ask(ctx, a, problems,
		session.Question{Kernel: o.Factory.Settings.Kernel, Top: 2, Terms: true, Regret: o.Regret})
	if err != nil {
		return err
	}
	var best *session.Answer
	for i := range answers {
		one := &answers[i]
		if one.Err != nil {
			return one.Err
		}
		if one.Contraction, err = one.Contract(c, &c.Plans[i]); err != nil {
			return err
		}
		switch {
		case best == nil:
			best = one
		case one.Contraction.Seconds < best.Contraction.Seconds:
			one.Contraction.Instead = best.Contraction
			best = one
		default:
			best.Contraction.Instead = one.Contraction
		}
	}
	format := render.FormatOf(o.Factory)
	if (format == render.CSV || format == render.TSV) && !best.Contraction.Plan.Direct() {
		return diag.Inputf("the contraction is no single GEMM: %s", best.Contraction.Plan.Text()).At("--format %s", format).
			Do("ask for json or table: a row has one GEMM")
	}
	w := newWriter(o.Factory.Streams, format, false, session.Single(best.Problem),
		render.AxesOf(a.Describe(), best.Kernel))
	w.regret = o.Regret
	if err := w.write(best); err != nil {
		return err
	}
	return w.close()
}
