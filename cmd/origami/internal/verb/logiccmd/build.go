package logiccmd

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
)

// measured are the flags that name measured times.
type measured struct {
	factory *session.Factory
	query   session.ProblemFlags
	records string
}

func (m *measured) register(cmd *cobra.Command) {
	session.Register(cmd.Flags(), &m.query.Types)
	cmd.Flags().StringVar(&m.records, "records", "", "`FOLDER` of a data set; the shipped one otherwise")
}

// sample is the measured times of one type and layout, and where they come from.
type sample struct {
	times *logic.Table
	model arch.Architecture
	data  *dataset.Dataset
	base  gemm.Problem // without sizes
}

// sample reads the times.
func (m *measured) sample(ctx context.Context) (*sample, error) {
	open := func() (arch.Architecture, error) { return m.factory.Architecture(ctx) }
	a, err := open()
	if err != nil {
		return nil, err
	}
	d, kernel := a.Describe(), m.factory.Settings.Kernel
	var data *dataset.Dataset
	if m.records == "" {
		data, err = datastore.Shipped(d, kernel, "--records")
	} else {
		data, err = datastore.Folder(ctx, d, kernel, "--records", m.records)
	}
	if err != nil {
		return nil, err
	}
	if a, err = m.factory.Beside(data.Timing(), a, open); err != nil {
		return nil, err
	}
	base, err := m.query.Base(m.factory.Settings.DType)
	if err != nil {
		return nil, err
	}
	t := tableOf(data, base)
	if len(t.Sizes) == 0 {
		return nil, diag.Inputf("%s has no measured problems like %s", data.Name, like(base)).
			Do("use --dtype, --trans-a and --trans-b as its problems have them")
	}
	return &sample{t, a, data, base}, nil
}

func like(p gemm.Problem) string {
	p.M, p.N, p.K, p.Batch = 64, 64, 64, 1
	return p.String()[len("64x64x64 "):]
}

// tableOf returns the times of all configurations at the plain problems of a type and layout.
func tableOf(data *dataset.Dataset, base gemm.Problem) *logic.Table {
	t, places := &logic.Table{}, map[gemm.Config]int{}
	var rows []map[int]float64
	for _, p := range data.Problems() {
		if !p.Plain() || p.DType != base.DType || p.TransA() != base.TransA() || p.TransB() != base.TransB() {
			continue
		}
		row := map[int]float64{}
		list, times := data.Times(p)
		for _, c := range list {
			k, ok := places[c]
			if !ok {
				k = len(t.Kernels)
				places[c] = k
				t.Kernels = append(t.Kernels, logic.Kernel{Name: c.String(), Config: c})
			}
			row[k] = times[c]
		}
		if len(row) > 0 {
			t.Sizes, rows = append(t.Sizes, logic.SizeOf(&p)), append(rows, row)
		}
	}
	for _, row := range rows {
		times := make([]float64, len(t.Kernels))
		for k := range times {
			times[k] = math.Inf(1)
			if v, ok := row[k]; ok {
				times[k] = v
			}
		}
		t.Times = append(t.Times, times)
	}
	return t
}

type buildOptions struct {
	measured
	logic.Options
	fallback, output string
}

func newBuild(f *session.Factory) *cobra.Command {
	o := &buildOptions{measured: measured{factory: f}}
	cmd := &cobra.Command{
		Use:   "build --arch ARCH",
		Short: "Build a library logic from measured times",
		Long: "Build a library logic from the measured times of a data set: the fastest kernel of each size, and\n" +
			"what answers at other sizes: the model, the nearest size, or ranges found by recursive splitting;\n" +
			"without --fallback and --ranges what loses least on sizes left out. --most limits the kernels to\n" +
			"a set that loses least together. --loss lets a range have a kernel that is slower by that share at\n" +
			"each of its sizes. With --output, the regret against the fastest kernels is printed, also on sizes\n" +
			"left out.",
		Example: "  origami logic build --arch sm90@h200 --most 8 --output h200.json\n" +
			"  origami logic build --arch sm90@h200 --records ./my-sweep --fallback nearest > mine.json",
		Args: session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.register(cmd)
	cmd.Flags().IntVar(&o.Most, "most", 0, "take at most `N` kernels; otherwise all that win somewhere or help the model")
	cmd.Flags().Float64Var(&o.Loss, "loss", 0.02, "tolerated loss of a range at each of its sizes, as a share")
	cmd.Flags().Float64Var(&o.Importance, "importance", 0,
		"leave out kernels that save less than this share of the time that all save; Tensile has 0.01")
	cmd.Flags().BoolVar(&o.Ranges, "ranges", false, "make ranges, also where they lose")
	cmd.Flags().StringVar(&o.fallback, "fallback", "", "what answers elsewhere: the `model` or the nearest size")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "write the logic to this `FILE` and print its regret")
	return cmd
}

func (o *buildOptions) run(ctx context.Context) error {
	switch o.Fallback = logic.Fallback(o.fallback); {
	case o.fallback != "" && o.Fallback != logic.Nearest && o.Fallback != logic.Model:
		return diag.Inputf("there is no fallback %q", o.fallback).At("--fallback").Do("use nearest or model")
	case o.Most < 0 || !(o.Loss >= 0) || !(o.Importance >= 0):
		return diag.Inputf("--most, --loss and --importance are not negative").Do("leave them out for their defaults")
	}
	if err := session.Writable(o.output); err != nil {
		return err
	}
	x, err := o.sample(ctx)
	if err != nil {
		return err
	}
	trials, err := o.leaveOut(ctx, x, logic.Folds, []int{o.Most}, &o.Options)
	if err != nil {
		return err
	}
	if o.choose(trials); o.Fallback == logic.Nearest {
		o.Model = nil // nobody asks it
	}
	d := x.model.Describe()
	built, err := logic.Build(x.times, o.Options)
	if err != nil {
		return err
	}
	l := &tensile.Logic{Logic: built}
	l.Arch, l.Device, l.Family, l.Source = d.Arch, d.Device, x.data.Kernel, x.data.Name
	x.base.M, x.base.N, x.base.K = 1, 1, 1
	if l.Type, err = tensile.TypeOf(&x.base); err != nil {
		return err
	}
	text, err := l.JSON()
	if err != nil {
		return err
	}
	if err := write(o.factory, o.output, text); err != nil || o.output == "" {
		return err
	}
	rows := regrets(l, x.times)
	for i := range trials {
		if t := &trials[i]; t.Way != logic.BySize {
			rows = append(rows, regret{"sizes left out, by " + string(t.Way), slowerOf(t.Regret)})
		}
	}
	return report(o.factory, l, rows)
}

// choose takes what loses least on sizes left out, unless the flags say what answers.
func (o *buildOptions) choose(trials []logic.Trial) {
	best, ok := logic.Best(trials)
	switch {
	case o.Fallback != "":
	case o.Ranges, ok && best.Way == logic.ByNearest:
		o.Fallback = logic.Nearest
	case ok && best.Way == logic.ByRanges:
		o.Fallback, o.Ranges = logic.Nearest, true
	default:
		o.Fallback = logic.Model
	}
}
