package measurecmd

import (
	"cmp"
	"context"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/ask/question"
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
	measuring
	Query    session.ProblemFlags
	Logic    string `json:"output" short:"o" arg:"FILE" help:"write the picks as a library logic to this FILE"`
	Strategy string `json:"strategy" arg:"WHAT" default:"model" help:"what is measured: what the model finds worth it (model), what the steps of the file say (steps), or all"`
	Regret   string `json:"regret" arg:"SHARE" default:"1%" help:"finish a size when its expected regret is below this SHARE"`
	Budget   time.Duration
	Most     int  `json:"max_measurements" arg:"N" help:"make at most N measurements, earlier runs included"`
	DryRun   bool `json:"dry_run" help:"print what would be measured, and measure nothing"`
	file     string
	stated   string // a flag that says what is tuned
	regret   float64
}

// The strategies.
const (
	byModel = "model"
	inSteps = "steps"
	all     = "all"
)

// NewTune returns the command.
func NewTune(f *session.Factory) *cobra.Command {
	o := &TuneOptions{measuring: measuring{Factory: f}}
	cmd := &cobra.Command{
		Use:   "tune [FILE] --arch ARCH",
		Short: "Find the fastest kernels of many sizes with few measurements",
		Long: "Find the fastest kernel of each problem, asked for as in `select`: by -m, -n and -k, or --problems.\n" +
			"FILE is a list of problems too, or a tuning file (YAML: problem types, sets of candidates, and\n" +
			"their sizes). Only candidates whose expected improvement is worth it are measured. A size is\n" +
			"finished when its expected regret, time of the pick ÷ time of the fastest candidate − 1, is below\n" +
			"--regret. With --executor a GPU is measured: every result is checked, and its times are written to\n" +
			"the folder of --records at once, so that the same command continues a run that ended early.\n" +
			"Otherwise the times are a data set's; if it has all candidates, the regret is known and shown.\n" +
			"--shard tunes a part of the sizes; `records merge` puts the parts together. docs/tuning.md has the\n" +
			"file and the method.",
		Example: `  origami tune sizes.yaml --arch sm90@h200 --dry-run
  origami tune --arch sm90@h200 --dtype bf16 --trans-b --problems m=16:16:16:5632,n=4096,k=4096 --dry-run
  origami tune shapes.csv --arch sm90@h200 --executor triton --records ./tuned --budget 10m --output h200.yaml
  origami tune sizes.yaml --arch sm90@h200 --records ./my-sweep --json
  origami tune sizes.yaml --arch sm90@h200 --executor cuda --records ./tuned --shard auto/16
  origami tune sizes.yaml --arch sm90@h200 --executor cuda --records ./tuned --remote 'ssh node1 origami lend cuda'
  origami select --arch sm90@h200 --logic h200.yaml -m 4096 -n 4096 -k 4096`,
		Args: func(cmd *cobra.Command, args []string) error {
			return session.NoArguments(cmd, args[min(1, len(args)):])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = strings.Join(args, "")
			for _, f := range question.Fields(&o.Query.Asked) {
				if f.Key != "kernel" && cmd.Flags().Changed(f.Flag()) {
					o.stated = f.Flag()
				}
			}
			if o.file == "" && !o.Query.Asks() {
				return diag.Inputf("it is not said what to tune").Do("give a FILE, --problems, or -m, -n and -k")
			}
			return Tune(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	session.Register(flags, &o.Query.Product, "m", "n", "k", "batch", "trans_a", "trans_b", "dtype", "out_dtype", "kernel")
	session.Register(flags, &o.Query.Search)
	o.Query.RegisterProblems(flags)
	session.Register(flags, o)
	flags.DurationVar(&o.Budget, "budget", 0, "stop after this `TIME` of measuring, as in 10m")
	o.Share.Register(flags)
	return cmd
}

// Tune answers.
func Tune(ctx context.Context, o *TuneOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if err := session.Writable(o.Logic); err != nil {
		return err
	}
	if o.shard, err = o.Share.Part(o.Factory.Getenv); err != nil {
		return err
	}
	s := &tuning{o: o}
	if err := s.open(ctx); err != nil {
		return err
	}
	defer func() {
		if closed := s.close(); err == nil {
			err = closed
		}
	}()
	d := s.arch.Describe()
	t := &tune.Tuner{Sizes: s.plan.Sizes, Prior: tune.PriorOf(d), Regret: o.regret, Most: o.Most,
		Unchecked: !slices.ContainsFunc(d.Uncertainty, func(u arch.Uncertainty) bool {
			return u.Kernel == s.kernel && u.Evidence == "" && u.Sigma > 0
		})}
	if o.DryRun {
		return s.dryRun(ctx, t)
	}
	if err := s.tune(ctx, t); err != nil {
		return err
	}
	if err := s.report(ctx, t); err != nil || s.recording == nil ||
		slices.ContainsFunc(t.Picks, func(p tune.Pick) bool { return p.Why == tune.Budget }) {
		return err
	}
	return s.recording.finish()
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

// read reads what is tuned: a tuning file, which may name the kernel family, or problems as `select` takes them.
func (o *TuneOptions) read(ctx context.Context) (*tune.File, error) {
	switch ext := strings.ToLower(filepath.Ext(o.file)); {
	case o.file == "":
		return o.readProblems(ctx)
	case slices.Contains([]string{".csv", ".tsv", ".json", ".jsonl"}, ext):
		if o.Query.Problems != "" {
			return nil, diag.Inputf("%s and --problems contradict each other", o.file).Do("leave one of them out")
		}
		o.Query.Problems = o.file
		return o.readProblems(ctx)
	}
	if o.stated != "" {
		return nil, diag.Inputf("a tuning file says what --%s does", o.stated).At("%s", o.file).Do("leave one of them out")
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

// readProblems reads the problem or the list that the flags name. A type or layout that nothing states is said.
func (o *TuneOptions) readProblems(ctx context.Context) (*tune.File, error) {
	list, err := o.Query.Read(ctx, o.Factory)
	if err != nil {
		return nil, err
	}
	defer list.Close()
	rows, err := list.List()
	if err == nil {
		err = list.Failures.Err()
	}
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if p := &rows[i]; p.BeyondProduct() || p.Groups != (gemm.Groups{}) {
			return nil, diag.Inputf("A·B of matrices is tuned, and the problem is %s", p.Problem).At("%s", p.Where).
				Do("leave the row out")
		}
	}
	q := &o.Query.Types
	var assumed []string
	if q.DType == "" && o.Factory.Settings.Source("dtype") == "default" && !list.Has("dtype") {
		assumed = append(assumed, "fp16, for want of --dtype or a column dtype")
	}
	if !q.TransA && !q.TransB && !list.Has("trans_a") && !list.Has("trans_b") {
		assumed = append(assumed, "row-major, for want of --trans-a, --trans-b or columns of these names")
	}
	if assumed != nil {
		o.Factory.Streams.Note("what is tuned is " + strings.Join(assumed, ", and "))
	}
	return tune.Of(problems.Shapes(rows), cmp.Or(o.Query.Problems, "-m -n -k")), nil
}

// writeLogics writes a logic for each problem type.
func (s *tuning) writeLogics(t *tune.Tuner) error {
	if s.o.Logic == "" {
		return nil
	}
	d := s.arch.Describe()
	for kind := range s.plan.File.Types {
		built, err := t.Logic(kind)
		if err != nil {
			return err
		}
		l, p := &tensile.Logic{Logic: built}, s.plan.File.Types[kind].Problem
		p.M, p.N, p.K, p.Batch = 1, 1, 1, 1
		if l.Type, err = tensile.TypeOf(&p); err != nil {
			return err
		}
		l.Arch, l.Device, l.Family, l.Source = d.Arch, d.Device, s.kernel, "origami tune "+s.o.name()
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

// name is a short name of what is tuned.
func (o *TuneOptions) name() string {
	return filepath.Base(cmp.Or(o.file, o.Query.Problems, "problem"))
}

// geomean is the geometric mean of 1 + v, less 1. It is NaN of nothing.
func geomean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += math.Log1p(x)
	}
	return math.Expm1(sum / float64(len(v)))
}
