// Package pickcmd is what a model answers about a problem: `origami select` is the configuration to run, `rank` the
// candidates in the order of their predicted time, `explain` every number behind one prediction, and `export` the
// kernel itself, to be used without origami.
package pickcmd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
)

// SelectOptions are what the command line says.
type SelectOptions struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	question.Pick
	Logic string `json:"logic" file:"yes" arg:"FILE" help:"take the kernels that a library logic has for the problems: a FILE of origami, Tensile or hipBLASLt"`
}

// NewSelect returns the command.
func NewSelect(f *session.Factory) *cobra.Command {
	o := &SelectOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "select --arch ARCH -m SIZE -n SIZE -k SIZE",
		Short: "Pick the kernel configuration for a problem, and say why",
		Long: "Pick the kernel configuration with the shortest predicted time. The answer has that time, its\n" +
			"interval, the reasons, and the runner-up; with --problems a row per problem. --regret adds the\n" +
			"expected regret, and how many candidates are worth measuring; `origami tune` measures them.\n\n" +
			"A range of M, as in -m 1:16384, is divided into bands with one kernel each: as many kernels as are\n" +
			"worth compiling. The answer has their regret against the pick for each M, and says where the\n" +
			"vendor's library is taken. With a list, as in -m 1,16,64, each M has a pick. --same gives the\n" +
			"kernels for all M one value of an axis, the cheapest, and says its price. With --invariant they\n" +
			"add up in one order.",
		Example: `  origami --arch sm89 select -m 4096 -n 4096 -k 4096
  origami select --arch gfx942 -m 8192 -n 1024 -k 4096 --trans-b --json
  origami select --arch sm90@h200 --problems shapes.csv --format csv
  origami select --arch sm90@h200 --problems shapes.csv --logic h200.json
  origami select --arch sm90@h200 -m 5000 -n 5000 -k 5000 --advice
  origami select --arch sm90@h200 --contract 'bsxy,xyn->bsn' --size b=8,s=512,n=4096,x=32,y=128
  origami select --arch sm90@h200 --kernel wgmma --dtype bf16 --trans-b -m 1:16384 -n 4096 -k 4096
  origami select --arch sm90@h200 --dtype bf16 --trans-b -m 1:8192 -n 4096 -k 4096 --space split_k=1 --same block_k`,
		Annotations: map[string]string{config.PastesKey: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(question.CheckTop(o.Top), session.Exclude(cmd.Flags(), "top", "logic", "contract"),
				session.Exclude(cmd.Flags(), "advice", "logic", "contract")); err != nil {
				return err
			}
			if _, several := o.Query.M.Several(); several {
				err := session.Exclude(cmd.Flags(), "m", "top", "regret", "advice", "logic", "contract", "problems")
				if err != nil {
					return err
				}
			}
			return o.answer(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.Query.Register(flags, true)
	records(f, flags)
	session.Register(flags, &o.Query.Contraction)
	session.Register(flags, &o.Query.Orders)
	session.Register(flags, o)
	return cmd
}

// SelectServed is the question to a server.
var SelectServed = server.Endpoint{Name: "select", Command: NewSelect, Many: true, List: []string{"top"}}

// answer takes the road that the flags ask for. Select is the road of most questions.
func (o *SelectOptions) answer(ctx context.Context) error {
	if r, several := o.Query.M.Several(); several {
		return o.runBands(ctx, r)
	}
	if err := o.CheckOne(); err != nil {
		return err
	}
	switch {
	case o.Logic != "":
		return o.runLogic(ctx)
	case o.Query.Contract != "":
		return o.runContract(ctx)
	default:
		return Select(ctx, o)
	}
}

// Select answers with the model's pick.
func Select(ctx context.Context, o *SelectOptions) error {
	list, side, err := o.Query.Open(ctx, o.Factory)
	if err != nil {
		return err
	}
	defer list.Close()
	return o.each(ctx, side.Rankings, list, ask.Question{Kernel: o.Factory.Settings.Kernel, Top: o.Top, Regret: o.Regret,
		Advice: o.Advice}, nil)
}

// each asks about each problem and writes the answers. choose, which may be nil, changes a ranking before write has it.
func (o *SelectOptions) each(ctx context.Context, rankings session.Rankings, list *session.Problems, q ask.Question,
	choose func(one *ask.Ranking, write func(*ask.Ranking) error) error,
) error {
	s, many := o.Factory.Streams, o.Query.Problems != ""
	w := newSelectWriter(o, many)
	w.regret, w.labels = q.Regret, list.Labels()
	q.Ways = q.Advice || !o.Brief && choose == nil && !many && (w.format == show.JSON || w.format == show.Table)
	if q.Top = max(1, q.Top); !many {
		q.Top, q.Terms = max(2, q.Top), !o.Brief || w.format == show.Table // for the runner-up, and why it is the pick
	}
	bar := show.NewListBar(s, "selecting", o.Query.Problems)
	defer bar.Stop()
	write := func(one *ask.Ranking) error {
		bar.SetShare(list.Share())
		if one.Requested != "" {
			s.Note(fmt.Sprintf("there is no %s kernel for %s: the answer is one of the family %s", one.Requested, one.Problem,
				one.Kernel))
		}
		return w.write(one)
	}
	err := o.Factory.AskEach(ctx, rankings, list, q, func(one *ask.Ranking) error {
		if choose != nil {
			return choose(one, write)
		}
		return write(one)
	})
	w.table()
	return err
}

// runContract answers for a contraction. The answer is the way to compute it that has the shortest predicted time.
func (o *SelectOptions) runContract(ctx context.Context) error {
	c, err := o.Query.Plans(&o.Query.Product, o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	a, err := o.Factory.Searched(ctx, &o.Query)
	if err != nil {
		return err
	}
	best, err := ask.RankPlans(ctx, a, c, ask.Question{Kernel: o.Factory.Settings.Kernel, Top: 2, Terms: true,
		Regret: o.Regret})
	if err != nil {
		return err
	}
	format, plan := o.Factory.Format(), best.Contraction.Plan
	if format == show.CSV && !plan.Direct() {
		return diag.Inputf("the contraction is no single GEMM: %s", plan.Text()).At("--format %s", format).
			Do("ask for json or table: a row has one GEMM")
	}
	return newSelectWriter(o, false).write(best)
}
