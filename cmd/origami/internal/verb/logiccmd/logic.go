// Package logiccmd is `origami logic`: library logic, which maps sizes to kernels. It is built from measured times,
// shown, held against measured times, and read and written in the forms of libraries.
package logiccmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
)

// New returns the command with its subcommands.
func New(f *session.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logic",
		Short: "Map sizes to kernels, as libraries do",
		Long: "A library logic maps the sizes of GEMMs to kernels: exact sizes first, then ranges, then the nearest\n" +
			"size or a model. It is built from measured times, or read from a file of Tensile or hipBLASLt.",
		Example: "  origami logic build --arch sm90@h200 --most 8 --output h200.yaml\n" +
			"  origami select --arch sm90@h200 --logic h200.yaml -m 4096 -n 4096 -k 4096",
	}
	cmd.AddCommand(newBuild(f), newShow(f), newEval(f), newExport(f))
	return cmd
}

var oneFile = session.OneArgument("FILE", "a library logic")

func newExport(f *session.Factory) *cobra.Command {
	var output, form, name string
	cmd := &cobra.Command{
		Use:   "export FILE --to FORM",
		Short: "Write a library logic as source, or in Tensile's forms",
		Long: "Write a library logic as a package in Go, as a header in C, as Tensile's list (classic), or as\n" +
			"hipBLASLt's mapping (map). Source needs nothing besides itself.",
		Example: "  origami logic export h200.yaml --to c --name h200_logic --output h200_logic.h\n" +
			"  origami logic export h200.yaml --to classic",
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := session.ReadLogic(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			text, err := export(l, form, name)
			if err != nil {
				return err
			}
			return write(f, output, text)
		},
	}
	cmd.Flags().StringVar(&form, "to", "", "the `FORM`: go, c, classic or map")
	cmd.Flags().StringVar(&name, "name", "logic", "`NAME` of the Go package, or prefix of the names in C")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this `FILE`, not to stdout")
	return cmd
}

func export(l *tensile.Logic, form, name string) ([]byte, error) {
	switch form {
	case "go":
		return l.Go(name, l.Type.String())
	case "c":
		return l.C(name, l.Type.String())
	case "classic":
		return l.Classic()
	case "map":
		return l.Map()
	case "":
		return nil, diag.Inputf("--to is missing").Do("use one of go, c, classic, map")
	}
	return nil, diag.Inputf("there is no form %q", form).At("--to").Do("use one of go, c, classic, map")
}

func write(f *session.Factory, output string, text []byte) error {
	if output == "" {
		_, err := f.Streams.Writer().Write(text)
		return err
	}
	return session.Replace(output, text)
}

func newShow(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "show FILE",
		Short:   "Show a library logic",
		Long:    "Show what a library logic is for, how it answers, and its kernels, the most used first.",
		Example: "  origami logic show h200.json",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := session.ReadLogic(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showLogic(f, l)
		},
	}
}

func showLogic(f *session.Factory, l *tensile.Logic) error {
	order, counts := l.Wins()
	rows := make([]used, len(order))
	for i, k := range order {
		rows[i] = used{k, l.Kernels[k].Name, counts[k]}
	}
	key := show.Key[used]
	s := summary(l)
	return show.Answer(f.Streams, f.Format(), s, func() { heading(f, s) }, rows, key("number"), key("kernel"),
		key("used"))
}

// used is a kernel of a logic.
type used struct {
	Number int    `json:"number"` // its place in the logic, and its name
	Kernel string `json:"kernel"`
	Used   int    `json:"used"` // the sizes and leaves that have it
}

// summaryJSON says what a logic is.
type summaryJSON struct {
	Arch     string `json:"arch"` // what the logic is for
	Device   string `json:"device"`
	Kernel   string `json:"kernel"`  // the kernel family
	Type     string `json:"type"`    // Tensile's name
	Source   string `json:"source"`  // what it was built from
	Unit     string `json:"unit"`    // the unit of the speeds
	Kernels  int    `json:"kernels"` // how many kernels, exact sizes and leaves there are
	Exact    int    `json:"exact"`
	Leaves   int    `json:"leaves"`
	Fallback string `json:"fallback"`               // what answers elsewhere: `nearest` or `model`
	Library  string `json:"library_type,omitempty"` // of a file of Tensile
	Metric   string `json:"metric,omitempty"`

	// of `build`: what such libraries lose on sizes left out, as of `logic eval --folds`
	Regret []logic.Trial `json:"regret,omitempty"`
}

func summary(l *tensile.Logic) *summaryJSON {
	s := &summaryJSON{Arch: l.Arch, Device: l.Device, Kernel: l.Family, Type: l.Type.String(), Source: l.Source,
		Unit: l.Unit, Kernels: len(l.Kernels), Exact: len(l.Exact), Leaves: l.Leaves(), Fallback: string(l.Fallback)}
	if t := l.Parts; t != nil {
		s.Library, s.Metric = t.Library, t.Metric
	}
	return s
}

func heading(f *session.Factory, l *summaryJSON) {
	key := show.Key[summaryJSON]
	show.Facts(f.Streams, l, key("type", "logic"), key("arch"), key("device"), key("kernel", "family"), key("source"),
		key("exact", "exact sizes"), key("leaves"), key("fallback", "elsewhere"), key("kernels"),
		key("unit", "speeds").Or("unit unknown: the file does not say it"), key("library_type", "library"), key("metric"))
}

// report shows a logic that was written, with what libraries like it lose.
func report(f *session.Factory, l *tensile.Logic, trials []logic.Trial) error {
	s := summary(l)
	s.Regret = trials
	return show.Answer(f.Streams, f.Format(), s, func() {
		heading(f, s)
		f.Streams.Printf("\n")
	}, s.Regret, trialColumns()...)
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
			"each of its sizes. The logic is hipBLASLt's mapping. With --output, what it loses on sizes left out\n" +
			"is printed.",
		Example: "  origami logic build --arch sm90@h200 --most 8 --output h200.yaml\n" +
			"  origami logic build --arch sm90@h200 --records ./my-sweep --fallback nearest > mine.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.register(cmd)
	cmd.Flags().IntVar(&o.Most, "most", 0, "take at most `N` kernels; otherwise all that win somewhere or help the model")
	cmd.Flags().Float64Var(&o.Loss, "loss", 0.02, "tolerated loss of a range at each of its sizes, as a share")
	cmd.Flags().BoolVar(&o.Ranges, "ranges", false, "make ranges, also where they lose")
	cmd.Flags().StringVar(&o.fallback, "fallback", "", "what answers elsewhere: the `model` or the nearest size")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "write the logic to this `FILE` and print its regret")
	return cmd
}

func (o *buildOptions) run(ctx context.Context) error {
	switch o.Fallback = logic.Fallback(o.fallback); {
	case o.fallback != "" && o.Fallback != logic.Nearest && o.Fallback != logic.Model:
		return diag.Inputf("there is no fallback %q", o.fallback).At("--fallback").Do("use nearest or model")
	case o.Most < 0 || !(o.Loss >= 0):
		return diag.Inputf("--most and --loss are not negative").Do("leave them out for their defaults")
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
