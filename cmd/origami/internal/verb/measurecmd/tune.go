package measurecmd

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/tune"
	"github.com/origami-gemm/origami/formats/tensile"
)

// TuneOptions are what the command line says.
type TuneOptions struct {
	Factory                            *session.Factory
	Executor, Records, Logic, Strategy string
	Regret                             string
	Budget                             time.Duration
	Most                               int
	WarmL2, RetryFailed, DryRun        bool
	Share                              session.ShareFlags
	file                               string
	regret                             float64
}

// The strategies.
const (
	byModel = "model"
	inSteps = "steps"
	all     = "all"
)

// NewTune returns the command.
func NewTune(f *session.Factory) *cobra.Command {
	o := &TuneOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "tune FILE --arch ARCH",
		Short: "Find the fastest kernels of many sizes with few measurements",
		Long: "Find the fastest kernel of each size of a list (CSV, TSV or JSON Lines with m, n and k) or of a\n" +
			"tuning file (YAML: problem types, sets of candidates, and their sizes), measuring only candidates\n" +
			"whose chance is worth it. A size is finished when its expected regret, time of the pick ÷ time of\n" +
			"the fastest candidate − 1, is below --regret. With --executor a GPU is measured: every result is\n" +
			"checked, and its times are written to the folder of --records at once, so that the same command\n" +
			"continues a run that ended early. Otherwise the times are a data set's; if it has all candidates,\n" +
			"the regret is known and shown. --shard tunes a part of the sizes; `records merge` puts the parts\n" +
			"together. docs/tuning.md has the file and the method.",
		Example: `  origami tune sizes.yaml --arch sm90@h200 --dry-run
  origami tune shapes.csv --arch sm90@h200 --executor triton --records ./tuned --budget 10m --output h200.yaml
  origami tune sizes.yaml --arch sm90@h200 --records ./my-sweep --json
  origami tune sizes.yaml --arch sm90@h200 --executor cuda --records ./tuned --shard auto/16
  origami tune sizes.yaml --arch sm90@h200 --executor cuda --records ./tuned --remote 'ssh node1 origami lend cuda'
  origami select --arch sm90@h200 --logic h200.yaml -m 4096 -n 4096 -k 4096`,
		Args: session.OneArgument("FILE", "a list of problems or a tuning file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			return Tune(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.String("kernel", "", "kernel `FAMILY`; the file's, or the architecture's first otherwise")
	flags.StringVar(&o.Executor, "executor", "", "measure with the executor plugin `NAME`, as in cuda or triton")
	flags.StringVar(&o.Records, "records", "",
		"`FOLDER` of a data set, the shipped one otherwise; with --executor, where to write and continue it")
	flags.StringVar(&o.Strategy, "strategy", byModel,
		"what is measured: what the model finds worth it (model), what the steps of the file say (steps), or all")
	flags.StringVar(&o.Regret, "regret", "1%", "finish a size when its expected regret is below this `SHARE`")
	flags.DurationVar(&o.Budget, "budget", 0, "stop after this `TIME` of measuring, as in 10m")
	flags.IntVar(&o.Most, "max-measurements", 0, "make at most `N` measurements, earlier runs included")
	flags.StringVarP(&o.Logic, "output", "o", "", "write the picks as a library logic to this `FILE`")
	flags.BoolVar(&o.DryRun, "dry-run", false, "print what would be measured, and measure nothing")
	o.Share.Register(flags)
	flags.BoolVar(&o.RetryFailed, "retry-failed", false,
		"with --executor, measure again what has failed")
	return cmd
}

// Tune answers.
func Tune(ctx context.Context, o *TuneOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := session.Writable(o.Logic); err != nil {
		return err
	}
	file, err := o.read(ctx)
	if err != nil {
		return err
	}
	o.WarmL2 = warm(o.Factory)
	a, err := beside(o.Factory, func() (arch.Architecture, error) { return o.Factory.Architecture(ctx) })
	if err != nil {
		return err
	}
	s, err := o.open(ctx, a, file)
	if err != nil {
		return err
	}
	t, err := s.tune(ctx)
	if err == nil && !o.DryRun {
		if err = s.report(ctx, t); err == nil {
			err = s.finishShare(t)
		}
	}
	if closed := s.close(); err == nil {
		err = closed
	}
	return err
}

// check reports flags that contradict each other.
func (o *TuneOptions) check() error {
	var err error
	text, percent := strings.CutSuffix(strings.TrimSpace(o.Regret), "%")
	if o.regret, err = strconv.ParseFloat(strings.TrimSpace(text), 64); percent {
		o.regret /= 100
	}
	switch {
	case err != nil || !(o.regret > 0) || o.regret > 1:
		return diag.Inputf("%q is no share between 0 and 1", o.Regret).At("--regret").Do("write it as in 1%% or 0.01")
	case o.Strategy != byModel && o.Strategy != inSteps && o.Strategy != all:
		return diag.Inputf("there is no strategy %q", o.Strategy).At("--strategy").
			Do("use %s, %s or %s", byModel, inSteps, all)
	case o.Most < 0 || o.Budget < 0:
		return diag.Inputf("--max-measurements and --budget are not negative").Do("leave them out for no limit")
	case o.Executor == "" && (o.Budget > 0 || o.RetryFailed):
		return diag.Inputf("--budget and --retry-failed are about measuring").Do("add --executor")
	case o.Share.Shard != "" && o.Strategy == inSteps:
		return diag.Inputf("its steps at one size decide what is measured at the others").At("--strategy %s", inSteps).
			Do("leave --shard out, or use --strategy %s or %s", byModel, all)
	}
	return o.Share.Check(o.Executor != "" || o.DryRun)
}

// read reads the tuning file, and takes the kernel family from it, or a list of problems.
func (o *TuneOptions) read(ctx context.Context) (*tune.File, error) {
	if slices.Contains([]string{".csv", ".tsv", ".jsonl"}, strings.ToLower(filepath.Ext(o.file))) {
		return o.readList(ctx)
	}
	text, err := session.ReadText(ctx, o.file, limit.Text, "give a tuning file, as docs/tuning.md describes it")
	if err != nil {
		return nil, err
	}
	file, err := tune.Read(o.file, text, tensile.Layout)
	if err != nil {
		return nil, err
	}
	switch kernel := &o.Factory.Settings.Kernel; {
	case *kernel == "":
		*kernel = file.Kernel
	case file.Kernel != "" && file.Kernel != *kernel:
		return nil, diag.Inputf("the file is for the kernel family %s", file.Kernel).At("--kernel %s", *kernel).
			Do("leave --kernel out")
	}
	return file, nil
}

// readList reads a list of problems, as --problems of other commands takes it.
func (o *TuneOptions) readList(ctx context.Context) (*tune.File, error) {
	flags := session.ProblemFlags{Problems: o.file}
	err := flags.Batch.Set("1") // of a row without one
	if err != nil {
		return nil, err
	}
	list, err := flags.List(ctx, o.Factory)
	if err == nil {
		err = list.Failures.Err()
	}
	if err != nil {
		return nil, err
	}
	sizes := problems.Shapes(list.Problems)
	for i, p := range sizes {
		if p.BeyondProduct() || p.Groups != (gemm.Groups{}) {
			return nil, diag.Inputf("A·B of matrices is tuned, and the problem is %s", p).At("%s", list.Problems[i].Where).
				Do("leave the row out")
		}
	}
	if len(sizes) == 0 {
		return nil, diag.Inputf("there are no problems").At("%s", o.file).Do("give a row with m, n and k for each")
	}
	return tune.Of(sizes, o.file), nil
}

// unchecked reports whether the model states no error for the kernels.
func unchecked(d *arch.Description, kernel string) bool {
	return !slices.ContainsFunc(d.Uncertainty, func(u arch.Uncertainty) bool {
		return u.Kernel == kernel && u.Evidence == "" && u.Sigma > 0
	})
}

// writeLogics writes a logic for each problem type.
func (s *tuning) writeLogics(t *tune.Tuner) error {
	if s.o.Logic == "" {
		return nil
	}
	d := s.arch.Describe()
	for kind := range s.plan.File.Types {
		built, err := t.Library(kind)
		if err != nil {
			return err
		}
		l, p := &tensile.Logic{Logic: built}, s.plan.File.Types[kind].Problem
		p.M, p.N, p.K, p.Batch = 1, 1, 1, 1
		if l.Type, err = tensile.TypeOf(&p); err != nil {
			return err
		}
		l.Arch, l.Device, l.Family, l.Source = d.Arch, d.Device, s.kernel, "origami tune "+filepath.Base(s.o.file)
		text, err := l.Map()
		if err != nil {
			return err
		}
		name := s.o.Logic
		if len(s.plan.File.Types) > 1 {
			ext := filepath.Ext(name)
			name = strings.TrimSuffix(name, ext) + "." + l.Type.String() + ext
		}
		if err := session.Replace(name, text); err != nil {
			return err
		}
		s.o.Factory.Streams.Note(l.Type.String() + ": " + digits.Plural(len(l.Exact), "size", "sizes") + ", " +
			digits.Plural(len(l.Kernels), "kernel", "kernels") + " in " + name)
	}
	return nil
}

// geomean is the geometric mean of 1 + v, less 1. It is NaN of nothing.
func geomean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += math.Log1p(x)
	}
	return math.Expm1(sum / float64(len(v)))
}
