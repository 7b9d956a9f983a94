// Package evalcmd is `origami eval`: a model scored against a data set.
package evalcmd

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/score"
)

// Options are what the command line says.
type Options struct {
	Factory   *session.Factory
	Query     session.ProblemFlags
	Times     string `json:"times" file:"yes" arg:"FILE" help:"FILE of measured times (.csv or .jsonl, also .gz), or the folder of a data set; the shipped one otherwise"`
	Intervals bool   `json:"intervals" help:"instead of scoring the model's intervals, compute new ones from the measurements, with their coverage of sizes left out"`
	Published bool   `json:"published" help:"score predicted times of tuned libraries against published times of many devices"`
	Schemes   []string
	Pairs     bool `json:"pairs" help:"with --published, also list how well each pair of devices is compared, by type and class of shape"`
	Each      bool `json:"each" help:"with --published, list each time instead, with its prediction, source and licence"`

	model arch.Architecture
	data  *score.Subset
	list  *session.ProblemList
}

// New returns the command.
func New(f *session.Factory) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "eval (--arch ARCH | --published)",
		Short: "Score a model against measurements",
		Long: "For each measured problem, print the efficiency of the model's pick (best measured time ÷ time of\n" +
			"the pick) and of the fastest of its first 4, 8 and 16 candidates, Kendall's tau-b, the error of\n" +
			"its times, and whether its intervals hold. No GPU is needed: without --times it uses the shipped\n" +
			"data set of the device and kernel family. Measurements that vary the launch-order group or the\n" +
			"split of K are scored separately; a data set with one configuration per problem gives predicted ÷\n" +
			"measured times. A sweep of few configurations needs --candidates. With --published it scores the\n" +
			"predicted times of tuned libraries against published times of every device, or of --arch: per\n" +
			"device, type and class of shape, and per pair of devices. docs/evaluating.md defines every number.",
		Example: `  origami eval --arch sm90 --device h200 --kernel triton
  origami eval --arch sm90@h200 --rung calibrated --json
  origami eval --arch sm90@h200 --kernel triton --times times.csv.gz --compiled kernels.csv --trans-b --json
  origami eval --arch sm90@h200 --json | origami report - --output eval.html
  origami eval --published --dtype bf16 --pairs
  origami eval --published --arch sm90@h100 --arch gfx942@mi300x --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := session.Exclude(cmd.Flags(), "published", "times", "problems", "candidates", "space", "trans-a",
				"trans-b", "out-dtype"); err != nil {
				return err
			}
			return Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	o.Query.RegisterRecords(flags)
	session.Register(flags, o)
	flags.StringSliceVar(&o.Schemes, "scheme", nil,
		"of the published times, those with these `SCHEMES` of scales only: none, tensor, row, block128+quant, …")
	return cmd
}

// Served is the question to a server.
var Served = server.Endpoint{Name: "eval", Command: New, List: []string{"each", "intervals"}}

// Run answers.
func Run(ctx context.Context, o *Options) error {
	a, err := o.answer(ctx)
	if err == nil {
		err = a.write(o.Factory.Streams, o.Factory.Format())
	}
	if err != nil || o.list == nil {
		return err
	}
	return o.list.Failures.Err()
}

// answer answers the question of the flags.
func (o *Options) answer(ctx context.Context) (*answer, error) {
	if o.Published {
		return o.published(ctx)
	}
	if o.Pairs || o.Each || len(o.Schemes) > 0 {
		return nil, diag.Inputf("--pairs, --each and --scheme are about published times").Do("add --published")
	}
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	if o.data.OnePerProblem() {
		return o.singles(ctx)
	}
	done, stop := show.Work(o.Factory.Streams, "evaluating", len(o.list.Problems))
	scored, err := ask.Score(ctx, o.model, o.data, o.list.Problems, done, o.list.Failures.Add)
	stop()
	if err != nil {
		return nil, err
	}
	scored.Labels = o.list.Labels
	out := &outcome{scored}
	if o.Intervals {
		return o.intervals(ctx, out.Rows)
	}
	if err := out.Choose(ctx, o.model, o.list.Problems); err != nil {
		return nil, err
	}
	if n := len(o.data.Partial); n > 0 && o.Query.Problems == "" {
		o.Factory.Streams.Note(digits.Plural(n, "problem is", "problems are") +
			" left out, of which fewer than half of the configurations were recorded: " + shapesOf(o.data.Partial))
	}
	return out.answer(), nil
}

// intervals finds new intervals from the scores.
func (o *Options) intervals(ctx context.Context, rows []score.Evaluation) (*answer, error) {
	done, stop := show.Work(o.Factory.Streams, "finding intervals", len(rows))
	defer stop()
	return session.UntilCancelled(ctx, func() (*answer, error) {
		return intervalsOf(o.model.Describe(), o.data, rows, done)
	})
}

// open opens the model and reads the measurements and the problems to score it at.
func (o *Options) open(ctx context.Context) (err error) {
	open := func() (arch.Architecture, error) { return o.Factory.Searched(ctx, &o.Query) }
	if o.model, err = open(); err != nil {
		return err
	}
	nearby := residual.WithoutSame // no time predicts itself
	if o.Intervals {
		nearby = residual.None // times that are near narrow them
	}
	if o.model, err = o.Factory.Nearby(nearby, o.model, open); err != nil {
		return err
	}
	if o.data, err = o.records(ctx, o.model.Describe()); err != nil {
		return err
	}
	if o.model, err = o.Factory.Beside(o.data.Timing(), o.model, open); err != nil {
		return err
	}
	o.list, err = o.problems(ctx, o.data)
	return err
}

func shapesOf(problems []gemm.Problem) string {
	words := make([]string, len(problems))
	for i, p := range problems {
		words[i] = p.String()
	}
	return strings.Join(words, ", ")
}

// records reads the measurements to score against.
func (o *Options) records(ctx context.Context, d *arch.Description) (*score.Subset, error) {
	kernel := o.Factory.Settings.Kernel
	base, err := o.Query.Base(o.Factory.Settings.DType)
	if err != nil {
		return nil, err
	}
	subset, err := session.Subset(ctx, func() (*dataset.Dataset, error) {
		info, missing := os.Stat(o.Times)
		switch {
		case o.Times == "", missing == nil && info.IsDir():
			return datastore.Folder(ctx, d, kernel, "--times", o.Times)
		default:
			return datastore.File(ctx, d, kernel, "--times", o.Times, base)
		}
	})
	if err != nil {
		return nil, err
	}
	ofType := func(p gemm.Problem) bool { return p.DType == base.DType }
	if base.DType != gemm.FP16 && len(subset.Problems) > 0 && !slices.ContainsFunc(subset.Problems, ofType) {
		return nil, diag.Inputf("%s holds %s", subset.Name, subset.Problems[0]).At("--dtype").
			Do("leave it out, or name measurements of %s with --times", base.DType)
	}
	if o.Query.TransA || o.Query.TransB {
		for _, p := range subset.Problems {
			if p.TransA() != o.Query.TransA || p.TransB() != o.Query.TransB {
				return nil, diag.Inputf("%s holds %s", subset.Name, p).At("--trans-a, --trans-b").
					Do("leave them out: the measurements say how A and B are stored")
			}
		}
	}
	return subset, nil
}

// problems returns the rows of --problems, or all that are recorded whole.
func (o *Options) problems(ctx context.Context, data *score.Subset) (*session.ProblemList, error) {
	if o.Query.Problems != "" {
		return o.Query.List(ctx, o.Factory)
	}
	var list []problems.Problem
	for _, p := range data.Problems {
		list = append(list, problems.Problem{Problem: p})
	}
	return &session.ProblemList{Problems: list, Failures: o.Factory.Failures(ctx)}, nil
}

// answer is what eval answers.
type answer struct {
	value func() any // of JSON, nil for a line for each row
	rows  func(*iostreams.Streams, show.Format) error
	page  func(*iostreams.Streams) // what people read
}

func (a *answer) write(s *iostreams.Streams, f show.Format) error {
	switch {
	case f == show.JSON && a.value != nil:
		return show.JSONLine(s, a.value())
	case f != show.Table:
		return a.rows(s, f)
	}
	a.page(s)
	return nil
}

const none = "–"

// percent writes a share, and ratio a number.
func percent(v float64) string {
	if math.IsNaN(v) {
		return none
	}
	return digits.Percent(v)
}

func ratio(v float64) string {
	if math.IsNaN(v) {
		return none
	}
	return digits.ThreeDigits(v)
}
