package logiccmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
)

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
			"each of its sizes. The logic is hipBLASLt's mapping. With --output, what it loses on sizes left out\n" +
			"is printed.",
		Example: "  origami logic build --arch sm90@h200 --most 8 --output h200.yaml\n" +
			"  origami logic build --arch sm90@h200 --records ./my-sweep --fallback nearest > mine.yaml",
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
	base, takes, err := o.like()
	if err != nil {
		return err
	}
	x, err := o.sample(ctx, takes)
	if err != nil {
		return err
	}
	trials, err := o.leaveOut(ctx, x, base, logic.Folds, []int{o.Most}, &o.Options)
	if err != nil {
		return err
	}
	if o.choose(trials); o.Fallback == logic.Nearest {
		o.Model = nil // nobody asks it
	}
	built, err := logic.Build(x.table(), o.Options)
	if err != nil {
		return err
	}
	d := x.model.Describe()
	l := &tensile.Logic{Logic: built}
	l.Arch, l.Device, l.Family, l.Source = d.Arch, d.Device, x.kernel, x.name
	base.M, base.N, base.K = 1, 1, 1
	if l.Type, err = tensile.TypeOf(&base); err != nil {
		return err
	}
	text, err := l.Map()
	if err != nil {
		return err
	}
	if err := write(o.factory, o.output, text); err != nil || o.output == "" {
		return err
	}
	return report(o.factory, l, trials)
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
