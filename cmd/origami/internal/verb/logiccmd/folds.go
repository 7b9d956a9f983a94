package logiccmd

import (
	"context"
	"math"
	"strconv"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
)

func (o *evalOptions) runFolds(ctx context.Context) error {
	for _, n := range o.most {
		if n < 0 {
			return diag.Inputf("--most has %d", n).Do("give numbers of kernels, and 0 for all")
		}
	}
	if !(o.loss >= 0) {
		return diag.Inputf("--loss is negative").Do("leave it out for its default")
	}
	base, takes, err := o.like()
	if err != nil {
		return err
	}
	x, err := o.sample(ctx, takes)
	if err != nil {
		return err
	}
	trials, err := o.leaveOut(ctx, x, base, o.folds, o.most, &logic.Options{Loss: o.loss})
	if err != nil {
		return err
	}
	f, d := o.factory, x.model.Describe()
	if f.Format() == table.Table {
		table.Line(f.Streams, "times", "%s: %d sizes, %d kernels of family %s on %s", x.name, len(x.sizes),
			len(x.kernels), x.kernel, d.ID())
		table.Line(f.Streams, "model", "%s, rung %s", d.Model, d.Rung)
		table.Line(f.Streams, "left out", "each of %d parts of the sizes", o.folds)
		f.Streams.Printf("\n")
	}
	return show.Write(f.Streams, f.Format(), trials, trialColumns()...)
}

// leaveOut holds the ways of answering against each other on sizes left out. It sets the options' model.
func (m *measured) leaveOut(
	ctx context.Context, x *sample, base gemm.Problem, folds int, most []int, options *logic.Options,
) (trials []logic.Trial, err error) {
	times := x.table()
	model := &logic.Predictions{Sizes: logic.Between(times.Sizes)}
	libraries := len(most) * min(folds, len(times.Sizes))
	done, stop := table.Work(m.factory.Streams, "leaving sizes out", len(times.Sizes)+len(model.Sizes)+libraries)
	defer stop()
	if model.Times, err = x.predicted(ctx, base, times.Sizes, done); err != nil {
		return nil, err
	}
	if model.Elsewhere, err = x.predicted(ctx, base, model.Sizes, done); err != nil {
		return nil, err
	}
	options.Model = model
	return session.UntilCancelled(ctx, func() ([]logic.Trial, error) {
		return logic.Trials(times, most, *options, folds, done)
	})
}

// predicted returns the model's times of the measured kernels at sizes, and tells done of each size. A kernel that it
// rejects takes forever.
func (x *sample) predicted(ctx context.Context, base gemm.Problem, sizes []logic.Size, done func(int)) (
	[][]float64, error,
) {
	out, estimates := make([][]float64, len(sizes)), make([]arch.Estimate, len(x.kernels))
	for i, s := range sizes {
		p := base
		p.M, p.N, p.Batch, p.K = s[logic.J], s[logic.I], s[logic.B], s[logic.L]
		if err := x.model.Estimate(ctx, estimates, p, x.kernels); err != nil {
			return nil, err
		}
		out[i] = make([]float64, len(x.kernels))
		for k := range estimates {
			if out[i][k] = float64(estimates[k].Cycles); estimates[k].Reject != "" {
				out[i][k] = math.Inf(1)
			}
		}
		done(1)
	}
	return out, nil
}

// trialColumns are what people see.
func trialColumns() []show.Column[logic.Trial] {
	return []show.Column[logic.Trial]{
		show.Text("most", func(t *logic.Trial) string {
			if t.Most == 0 {
				return "all"
			}
			return strconv.Itoa(t.Most)
		}),
		show.Text("kernels", func(t *logic.Trial) string { return strconv.FormatFloat(t.Kernels, 'f', 1, 64) }),
		show.Key[logic.Trial]("way", "answered by"), show.Key[logic.Trial]("sizes"), show.Key[logic.Trial]("unanswered"),
		show.Key[logic.Trial]("mean", "mean regret"), show.Key[logic.Trial]("worst", "worst regret"),
	}
}
