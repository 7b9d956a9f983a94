package pickcmd

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/diag"
)

// RankShort says what the command answers.
const RankShort = "Rank the candidate configurations, with the terms of each prediction"

// RankOptions are what the command line says.
type RankOptions struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	Top     int
	// All asks for every candidate, Rejected for those that cannot be used as well.
	All, Rejected bool
}

// NewRank returns the command.
func NewRank(f *session.Factory) *cobra.Command {
	o := &RankOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "rank --arch ARCH -m SIZE -n SIZE -k SIZE",
		Short: RankShort,
		Long: "Rank the candidate configurations by predicted time, with every term of the prediction. A table\n" +
			"and JSON list them best first; CSV and TSV with --all, and every format with --include-rejected,\n" +
			"keep the order of the candidate list and give each its rank.",
		Example: `  origami --arch sm90 --device h200 rank -m 4096 -n 4096 -k 4096 --top 10
  origami rank --arch sm89 -m 2048 -n 2048 -k 2048 --all --format csv > ranking.csv
  origami rank --arch h200 -m 4096 -n 4096 -k 4096 --top 5 --format triton
  origami rank --arch gfx942 -m 512 -n 512 -k 512 --all --include-rejected`,
		Args:        session.NoArguments,
		Annotations: map[string]string{config.PastesKey: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return Rank(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

// register adds the flags.
func (o *RankOptions) register(flags *pflag.FlagSet) {
	o.Query.Register(flags, true)
	session.Register(flags, &o.Query.Contraction)
	session.Register(flags, &o.Query.Orders)
	flags.IntVar(&o.Top, "top", 10, "how many configurations to list")
	flags.BoolVar(&o.All, "all", false, "list every candidate")
	flags.BoolVar(&o.Rejected, "include-rejected", false,
		"list those that cannot be used too, with the reason; implies --all")
}

// check refuses flags that contradict each other.
func (o *RankOptions) check(flags *pflag.FlagSet) error {
	switch {
	case o.All && flags.Changed("top"):
		return diag.Inputf("--all and --top contradict each other").Do("leave one of them out")
	case o.Top < 1:
		return diag.Inputf("--top %d is not positive", o.Top).Do("give a whole number of at least 1, or --all")
	}
	o.All = o.All || o.Rejected
	return nil
}

// RankAsk adds the flags of the question, and returns what answers it.
func RankAsk(f *session.Factory, flags *pflag.FlagSet) func(context.Context) (any, error) {
	q := &question.Rank{}
	session.Register(flags, q)
	return func(ctx context.Context) (any, error) {
		side, err := f.Side(ctx, &q.Search, q.Invariant)
		if err != nil {
			return nil, err
		}
		q.Kernel = f.Settings.Kernel
		return q.Answer(ctx, &side, f.Settings.DType)
	}
}

// Rank answers.
func Rank(ctx context.Context, o *RankOptions) error {
	problems, side, err := o.Query.Open(ctx, o.Factory)
	if err != nil {
		return err
	}
	defer problems.Close()
	question := ask.Question{Kernel: o.Factory.Settings.Kernel, Top: o.Top, Terms: true, Rejected: o.Rejected}
	if o.All {
		question.Top = 0
	}
	w := newRankWriter(o, o.Factory.Format(), problems)
	listOrder := o.Rejected || o.All && (w.format == table.CSV || w.format == table.TSV)
	bar := table.NewListBar(o.Factory.Streams, "ranking", o.Query.Problems)
	defer bar.Stop()
	return o.Factory.AskEach(ctx, side.Rankings, problems, question, func(ranking *ask.Ranking) error {
		bar.SetShare(problems.Share())
		if listOrder {
			slices.SortFunc(ranking.Entries, func(a, b ask.Entry) int { return a.Position - b.Position })
		}
		return w.write(ranking)
	})
}
