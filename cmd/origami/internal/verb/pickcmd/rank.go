package pickcmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
)

// RankOptions are what the command line says.
type RankOptions struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	question.Ranking
}

// NewRank returns the command.
func NewRank(f *session.Factory) *cobra.Command {
	o := &RankOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "rank --arch ARCH -m SIZE -n SIZE -k SIZE",
		Short: "Rank the candidate configurations, with the terms of each prediction",
		Long: "Rank the candidate configurations by predicted time, with every term of the prediction. A table\n" +
			"and JSON list them best first; CSV with --all, and every format with --include-rejected,\n" +
			"keep the order of the candidate list and give each its rank.",
		Example: `  origami --arch sm90 --device h200 rank -m 4096 -n 4096 -k 4096 --top 10
  origami rank --arch sm89 -m 2048 -n 2048 -k 2048 --all --format csv > ranking.csv
  origami rank --arch h200 -m 4096 -n 4096 -k 4096 --top 5 --format triton
  origami rank --arch gfx942 -m 512 -n 512 -k 512 --all --include-rejected`,
		Annotations: map[string]string{config.PastesKey: "yes"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return Rank(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	o.Query.Register(flags, true)
	records(f, flags)
	session.Register(flags, &o.Query.Contraction)
	session.Register(flags, &o.Query.Orders)
	session.Register(flags, &o.Ranking, "top", "all", "include_rejected")
	return cmd
}

// RankServed is the question to a server.
var RankServed = server.Endpoint{Name: "rank", Command: NewRank, List: []string{""}}

// Rank answers.
func Rank(ctx context.Context, o *RankOptions) error {
	of, err := o.Question(o.Factory.Settings.Kernel)
	if err != nil {
		return err
	}
	problems, side, err := o.Query.Open(ctx, o.Factory)
	if err != nil {
		return err
	}
	defer problems.Close()
	s, format := o.Factory.Streams, o.Factory.Format()
	if format == show.JSON && o.Query.Problems == "" {
		q := question.Rank{Asked: o.Query.Asked, Ranking: o.Ranking}
		q.Kernel = o.Factory.Settings.Kernel
		if err := q.CheckLength(ctx, &side, o.Factory.Settings.DType, of); err != nil {
			return err
		}
	}
	listOrder := o.Rejected || of.Top == 0 && format == show.CSV
	rows, first := show.NewRows[ask.Ranked](s, format), true
	bar := show.NewListBar(s, "ranking", o.Query.Problems)
	defer bar.Stop()
	return o.Factory.AskEach(ctx, side.Rankings, problems, of, func(a *ask.Ranking) error {
		bar.SetShare(problems.Share())
		if listOrder {
			slices.SortFunc(a.Entries, func(a, b ask.Entry) int { return a.Position - b.Position })
		}
		if format.Pasted() {
			return show.Paste(s, format, a, len(a.Entries))
		}
		if format == show.Table {
			o.table(a, first)
			first = false
			return nil
		}
		ranked := func(e *ask.Entry) *ask.Ranked {
			one := a.Ranked(e, o.Rejected)
			if format != show.JSON {
				one.Terms = ask.TermColumns(one.Terms)
			}
			return &one
		}
		if i := slices.IndexFunc(a.Entries, func(e ask.Entry) bool { return e.Estimate.Reject == "" }); i >= 0 {
			rows.Like([]ask.Ranked{*ranked(&a.Entries[i])})
		}
		for i := range a.Entries {
			if err := rows.Add(ranked(&a.Entries[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// table shows what a terminal has room for: the steps and the shares of the total. `explain` shows everything.
func (o *RankOptions) table(a *ask.Ranking, first bool) {
	s := o.Factory.Streams
	if !first {
		s.Printf("\n")
	}
	show.Lines(s, show.Heading(a, &a.Entries[0])...)
	show.Line(s, "problem", "%s", strings.Join(append([]string{a.Problem.String()}, a.Labels.Texts()...), "  "))
	invariantLine(s, a)
	show.Line(s, "candidates", "%s", show.CandidateCounts(a.Feasible, a.Rejected))
	columns := []show.Column[row]{placeColumn, configColumn, timeColumn(a.Arch), rateColumn, boundColumn,
		show.Text("reason", func(r *row) string {
			if r.Detail != "" {
				return string(r.Estimate.Reject) + ": " + r.Detail
			}
			return string(r.Estimate.Reject)
		}).If(o.Rejected)}
	terms := false
	for _, kind := range []arch.TermKind{arch.KindStep, arch.KindShare} {
		for i, t := range a.Arch.Terms {
			zero := func(e ask.Entry) bool { return e.Terms == nil || e.Terms[i] == 0 }
			if t.Kind != kind || !slices.ContainsFunc(a.Entries, func(e ask.Entry) bool { return !zero(e) }) {
				continue
			}
			terms = true
			columns = append(columns, show.Text(t.Name, func(r *row) string {
				if share, ok := r.Share(r.Entry, i); ok {
					return digits.Percent(share)
				}
				return cell(t, r.Terms[i], digits.SixDigits)
			}))
		}
	}
	_ = show.Write(s, show.Table, best(a, len(a.Entries)), columns...) // its error shows when the screen is flushed
	if first && terms {
		show.Lines(s, "terms in their unit, shares of the total in percent; `origami explain --terms` shows all of "+
			"them with their formulas")
	}
}

// cell writes a term's value; the total of a candidate that the model rejects is a word, not a number.
func cell(t arch.Term, v float64, number func(float64) string) string {
	if ask.IsRejectedTotal(t, v) {
		return ask.StatusRejected
	}
	return number(v)
}
