// Package comparecmd is `origami compare`: what each of several architectures makes of the same problems.
package comparecmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
)

// Short says what the command answers.
const Short = "Put several architectures side by side for one problem or many"

// Options are what the command line says.
type Options struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	// search says which configurations to consider, nil for what Query says.
	search *question.Search
	// SameModel asks for one model that all sides have.
	SameModel bool
	// Terms asks for every term.
	Terms  bool
	Report string
	// Price is in dollars per hour, Watts in watts.
	Price, Watts perSide
}

// New returns the command.
func New(f *session.Factory) *cobra.Command {
	o := &Options{Factory: f, Watts: perSide{word: fromDevice}}
	cmd := &cobra.Command{
		Use:   "compare --arch ARCH,ARCH… -m SIZE -n SIZE -k SIZE",
		Short: Short,
		Long: "Ask each architecture for its best kernel for the same problem and put the predictions side by side.\n" +
			"Each answers as select does, with its default kernel family, so that its column does not depend on\n" +
			"the others; the times of its other families stand below. --kernel takes one family for all, as in\n" +
			"--kernel library. The row checked says what the prediction was checked on. --same-model takes the\n" +
			"best model that all of them have. A model that ranks kernels and does not time them shows cycles.\n\n" +
			"An architecture may have options and hardware numbers of its own, as in --arch mi300x:release=early,h200\n" +
			"and --arch h200,h200:clock=1.5GHz,num_sms=66.\n" +
			"With --problems there is a row per problem, and then who wins how often and by how much; further\n" +
			"columns of the file are passed through. If one architecture fails, the others still answer.",
		Example: `  origami compare --arch h200,mi300x -m 4096 -n 4096 -k 4096 --dtype bf16
  origami compare --arch h200,h200:clock=1.2GHz -m 8192 -n 8192 -k 8192
  origami compare --arch h100,mi300x --problems shapes.csv --price h100=2.5,mi300x=2 --report ./report
  origami compare --arch sm90@h200,gfx942 -m 8192 -n 8192 -k 8192 --trans-b --json`,
		Args: session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), o) },
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *Options) register(flags *pflag.FlagSet) {
	o.Query.Register(flags, true)
	flags.BoolVar(&o.SameModel, "same-model", false, "answer with the best model that all architectures have")
	flags.BoolVar(&o.Terms, "terms", false, "show every term of the models")
	flags.Var(&o.Price, "price", "dollars per hour, as `ARCH=NUMBER,…`: adds the work per dollar")
	flags.Var(&o.Watts, "watts",
		"watts, as `ARCH=NUMBER,…`, or tdp for those of the device files: adds the work per joule")
	flags.StringVar(&o.Report, "report", "", "write figures, tables and a page into a `FOLDER`")
	session.Files(flags, "report")
}

// Ask adds the flags of a question about one problem, and returns what answers it. A side that failed says so itself,
// in the words of the factory's streams.
func Ask(f *session.Factory, flags *pflag.FlagSet) func(context.Context) (any, error) {
	o := &Options{Factory: f, Watts: perSide{word: fromDevice}}
	o.register(flags)
	return func(ctx context.Context) (any, error) {
		p, err := o.Query.One(f.Settings.DType)
		if err != nil {
			return nil, err
		}
		sides, _, err := open(ctx, o)
		if err != nil {
			return nil, err
		}
		rows, err := ask.Compare(ctx, sides, []problems.Problem{{Problem: p}}, true, func(int) {})
		if err != nil {
			return nil, err
		}
		rows[0].Named = named
		return rows[0].Comparison(nil, f.Streams.Hinted), nil
	}
}

// Run answers. When sides fail, the exit code is 3 if a plugin is to blame and the first failure's otherwise.
func Run(ctx context.Context, o *Options) error {
	asked, err := o.Query.Read(ctx, o.Factory)
	if err != nil {
		return err
	}
	defer asked.Close()
	sides, common, err := open(ctx, o)
	if err != nil {
		return err
	}
	list, err := asked.List()
	if err != nil {
		return err
	}
	many, format := o.Query.Problems != "", o.Factory.Format()
	ways := format == table.JSON || format == table.Table && !many
	done, stop := table.Work(o.Factory.Streams, "predicting", len(sides)*len(list))
	rows, err := ask.Compare(ctx, sides, list, ways, done)
	stop()
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Named = named
	}
	c := &comparison{sides: sides, rows: rows, common: common, labels: asked.Labels(), dollars: o.Price.given(),
		joules: o.Watts.given(), many: many, terms: o.Terms}
	failure := c.reportFailures(o.Factory.Streams, asked.Failures)
	if err := c.write(o.Factory.Streams, format); err != nil {
		return err
	}
	if len(rows) > 0 {
		if err := report.Write(ctx, o.Factory, o.Report, c.contents()); err != nil {
			return err
		}
	}
	return failure
}

// comparison is what several architectures make of the same problems.
type comparison struct {
	sides  []ask.Contender
	rows   []ask.Contest
	labels []string // the names of the problems' labels
	// common is the best model that all sides have, empty if they have none in common.
	common string
	// dollars and joules say that the user gave prices and watts, many that the problems come from a file, and terms that
	// all terms are asked for.
	dollars, joules, many, terms bool
}
