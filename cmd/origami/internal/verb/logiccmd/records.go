package logiccmd

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
)

// measured are the flags that name measured times.
type measured struct {
	factory *session.Factory
	query   session.ProblemFlags
	records []string
}

func (m *measured) register(cmd *cobra.Command) {
	session.Register(cmd.Flags(), &m.query.Types)
	cmd.Flags().StringArrayVar(&m.records, "records", nil, "`FOLDER` of a data set, the shipped one otherwise; may be "+
		"repeated")
}

// sample is the measured times of a kernel family on a device, and the model of its kernels.
type sample struct {
	name, kernel string
	model        arch.Architecture
	library      string // the vendor's, empty if it was not measured
	kernels      []gemm.Config
	sizes        []timedSize
}

// timedSize is a problem with its times in seconds: of kernels, the least of all data sets, and of the vendor's
// library, NaN without one.
type timedSize struct {
	problem gemm.Problem
	times   map[gemm.Config]float64
	vendor  float64
}

// like takes the plain problems of the flags' type and layout.
func (m *measured) like() (base gemm.Problem, takes func(*gemm.Problem) error, err error) {
	base, err = m.query.Base(m.factory.Settings.DType)
	text := base
	text.M, text.N, text.K, text.Batch = 64, 64, 64, 1
	return base, func(p *gemm.Problem) error {
		if p.Plain() && p.DType == base.DType && p.TransA() == base.TransA() && p.TransB() == base.TransB() {
			return nil
		}
		return diag.Inputf("there are no measured problems like %s", text.String()[len("64x64x64 "):]).At("--records").
			Do("use --dtype, --trans-a and --trans-b as the problems have them")
	}, err
}

// sample reads the times of the problems that are taken. If none is, the error says why one of them was not.
func (m *measured) sample(ctx context.Context, takes func(*gemm.Problem) error) (*sample, error) {
	open := func() (arch.Architecture, error) { return m.factory.Architecture(ctx) }
	a, err := open()
	if err != nil {
		return nil, err
	}
	sets, err := datastore.Folders(ctx, a.Describe(), m.factory.Settings.Kernel, "--records", m.records)
	if err != nil {
		return nil, err
	}
	x, seen, places := &sample{model: a, kernel: sets[0].Kernel}, map[gemm.Config]bool{}, map[gemm.Problem]int{}
	names := make([]string, len(sets))
	var refused error
	for i, data := range sets {
		if x.model, err = m.factory.Beside(data.Timing(), x.model, open); err != nil {
			return nil, err
		}
		names[i] = data.Name
		if libraries := data.Libraries(); len(libraries) > 0 {
			x.library = libraries[0]
		}
		for _, p := range data.Problems() {
			list, times := data.Times(p)
			if err := takes(&p); err != nil {
				refused = cmp.Or(refused, err)
				continue
			}
			if len(list) == 0 {
				continue
			}
			at, there := places[p]
			if !there {
				at = len(x.sizes)
				places[p] = at
				x.sizes = append(x.sizes, timedSize{p, map[gemm.Config]float64{}, math.NaN()})
			}
			for _, c := range list {
				if !seen[c] {
					seen[c], x.kernels = true, append(x.kernels, c)
				}
				if have, ok := x.sizes[at].times[c]; !ok || times[c] < have {
					x.sizes[at].times[c] = times[c]
				}
			}
			if r, ok := data.FindLibrary(p, x.library); ok && r.Median > 0 {
				x.sizes[at].vendor = float64(r.Median)
			}
		}
	}
	if x.name = strings.Join(names, ", "); len(x.sizes) == 0 {
		return nil, cmp.Or(refused, error(diag.Inputf("no size has a time").At("--records").Do("measure some first")))
	}
	return x, nil
}

// table returns the times of all kernels at all sizes.
func (x *sample) table() *logic.Table {
	t := &logic.Table{}
	for _, c := range x.kernels {
		t.Kernels = append(t.Kernels, logic.Kernel{Name: c.String(), Config: c})
	}
	for i := range x.sizes {
		row := make([]float64, len(x.kernels))
		for k, c := range x.kernels {
			row[k] = math.Inf(1)
			if seconds, ok := x.sizes[i].times[c]; ok {
				row[k] = seconds
			}
		}
		t.Sizes, t.Times = append(t.Sizes, logic.SizeOf(&x.sizes[i].problem)), append(t.Times, row)
	}
	return t
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
	if f.Format() == show.Table {
		show.Line(f.Streams, "times", "%s: %d sizes, %d kernels of family %s on %s", x.name, len(x.sizes),
			len(x.kernels), x.kernel, d.ID())
		show.Line(f.Streams, "model", "%s, rung %s", d.Model, d.Rung)
		show.Line(f.Streams, "left out", "each of %d parts of the sizes", o.folds)
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
	done, stop := show.Work(m.factory.Streams, "leaving sizes out", len(times.Sizes)+len(model.Sizes)+libraries)
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
