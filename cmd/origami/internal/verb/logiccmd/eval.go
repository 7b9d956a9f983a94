package logiccmd

import (
	"context"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
)

type evalOptions struct {
	measured
	folds int
	most  []int
	loss  float64
}

func newEval(f *session.Factory) *cobra.Command {
	o := &evalOptions{measured: measured{factory: f}}
	cmd := &cobra.Command{
		Use:   "eval (FILE | --folds N) --arch ARCH",
		Short: "Hold a library logic against measured times",
		Long: "Print how much slower the kernels of a library logic are than the fastest measured ones: as it is\n" +
			"used, by its ranges alone, and by the nearest other size. With --folds instead of a file, print\n" +
			"what libraries of few and of many kernels are worth on sizes left out when they were built,\n" +
			"answered by the library, the nearest size, ranges, and the model.",
		Example: "  origami logic eval h200.json --arch sm90@h200\n" +
			"  origami logic eval h200.json --arch sm90@h200 --records ./my-sweep --json\n" +
			"  origami logic eval --folds 5 --most 1,4,8,16,32,0 --arch sm90@h200 --records ./my-sweep",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.folds == 0 && !cmd.Flags().Changed("folds"):
				return oneFile(cmd, args)
			case o.folds < 2 || o.folds > mostFolds:
				return diag.Inputf("--folds is %d", o.folds).Do("give a number from 2 to %d", mostFolds)
			case len(args) > 0:
				return diag.Inputf("--folds builds libraries of its own").Do("leave the file out")
			}
			return session.NoArguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.folds > 0 {
				return o.runFolds(cmd.Context())
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.register(cmd)
	cmd.Flags().IntVar(&o.folds, "folds", 0, "build libraries that leave each of `N` parts of the sizes out")
	cmd.Flags().IntSliceVar(&o.most, "most", []int{1, 4, 8, 16, 32, 0},
		"with --folds, the `KERNELS` of the libraries; 0 is for no limit")
	cmd.Flags().Float64Var(&o.loss, "loss", 0.02, "with --folds, the tolerated loss of a range at each of its sizes")
	return cmd
}

// mostFolds bounds --folds.
const mostFolds = 100

func (o *evalOptions) run(ctx context.Context, args []string) error {
	l, err := session.ReadLogic(ctx, args[0])
	if err != nil {
		return err
	}
	x, err := o.sample(ctx)
	if err != nil {
		return err
	}
	if err := belongs(l, args[0], x.model.Describe(), x.data.Kernel); err != nil {
		return err
	}
	x.base.M, x.base.N, x.base.K = 1, 1, 1
	if err := l.Type.Answers(&x.base); err != nil {
		return diag.Within(args[0], err)
	}
	return report(o.factory, l, regrets(l, x.times))
}

// belongs refuses times of other kernels than a logic's.
func belongs(l *tensile.Logic, file string, d *arch.Description, kernel string) error {
	if l.Arch == d.Arch && l.Device == d.Device && l.Family == kernel {
		return nil
	}
	return diag.Inputf("the logic is for %s on %s@%s, and the times are of %s on %s", l.Family, l.Arch, l.Device, kernel,
		d.ID()).At("%s", file).Do("use measurements of its kernels")
}

func (o *evalOptions) runFolds(ctx context.Context) error {
	for _, n := range o.most {
		if n < 0 {
			return diag.Inputf("--most has %d", n).Do("give numbers of kernels, and 0 for all")
		}
	}
	if !(o.loss >= 0) {
		return diag.Inputf("--loss is negative").Do("leave it out for its default")
	}
	x, err := o.sample(ctx)
	if err != nil {
		return err
	}
	trials, err := o.leaveOut(ctx, x, o.folds, o.most, &logic.Options{Loss: o.loss})
	if err != nil {
		return err
	}
	return o.writeTrials(x, trials)
}

// leaveOut holds the ways of answering against each other on sizes left out. It sets the options' model.
func (m *measured) leaveOut(ctx context.Context, x *sample, folds int, most []int, options *logic.Options) (
	trials []logic.Trial, err error,
) {
	times := x.times
	model := &logic.Predictions{Sizes: logic.Between(times.Sizes)}
	libraries := len(most) * min(folds, len(times.Sizes))
	done, stop := table.Work(m.factory.Streams, "leaving sizes out", len(times.Sizes)+len(model.Sizes)+libraries)
	defer stop()
	if model.Times, err = x.predicted(ctx, times.Sizes, done); err != nil {
		return nil, err
	}
	if model.Elsewhere, err = x.predicted(ctx, model.Sizes, done); err != nil {
		return nil, err
	}
	options.Model = model
	return session.UntilCancelled(ctx, func() ([]logic.Trial, error) {
		return logic.Trials(times, most, *options, folds, done)
	})
}

// predicted returns the model's times of the measured kernels at sizes, and tells done of each size. A kernel that it
// rejects takes forever.
func (x *sample) predicted(ctx context.Context, sizes []logic.Size, done func(int)) ([][]float64, error) {
	configs := make([]gemm.Config, len(x.times.Kernels))
	for i := range configs {
		configs[i] = x.times.Kernels[i].Config
	}
	out := make([][]float64, len(sizes))
	estimates := make([]arch.Estimate, len(configs))
	for i, s := range sizes {
		p := x.base
		p.M, p.N, p.Batch, p.K = s[logic.J], s[logic.I], s[logic.B], s[logic.L]
		if err := x.model.Estimate(ctx, estimates, p, configs); err != nil {
			return nil, err
		}
		out[i] = make([]float64, len(configs))
		for k := range estimates {
			if out[i][k] = float64(estimates[k].Cycles); estimates[k].Reject != "" {
				out[i][k] = math.Inf(1)
			}
		}
		done(1)
	}
	return out, nil
}

func (o *evalOptions) writeTrials(x *sample, trials []logic.Trial) error {
	f, d := o.factory, x.model.Describe()
	format := f.Format()
	if format == table.Table {
		table.Line(f.Streams, "times", "%s: %d sizes, %d kernels of family %s on %s", x.data.Name,
			len(x.times.Sizes), len(x.times.Kernels), x.data.Kernel, d.ID())
		table.Line(f.Streams, "model", "%s, rung %s", d.Model, d.Rung)
		table.Line(f.Streams, "left out", "each of %d parts of the sizes", o.folds)
		f.Streams.Printf("\n")
	}
	rows := make([]trial, len(trials))
	for i, t := range trials {
		rows[i] = trial{t.Most, t.Kernels, t.Way, slowerOf(t.Regret)}
	}
	return show.Write(f.Streams, format, rows, slowerColumns(show.Text("most", func(t *trial) string {
		if t.Most == 0 {
			return "all"
		}
		return strconv.Itoa(t.Most)
	}), show.Text("kernels", func(t *trial) string { return strconv.FormatFloat(t.Kernels, 'f', 1, 64) }),
		show.Key[trial]("way", "answered by"))...)
}

// trial is what libraries are worth on sizes that were left out when they were built.
type trial struct {
	Most    int       `json:"most"` // kernels allowed (0: all), and their mean number
	Kernels float64   `json:"kernels"`
	Way     logic.Way `json:"way"` // what answered
	slower
}
