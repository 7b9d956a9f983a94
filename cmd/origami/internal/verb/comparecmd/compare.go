// Package compare is `origami compare`: one problem on several architectures, side by side, term by term.
package compare

import (
	"context"
	"sync"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/answer"
	"github.com/origami-gemm/origami/cmd/origami/internal/app"
	"github.com/origami-gemm/origami/cmd/origami/internal/exitcode"
	"github.com/origami-gemm/origami/cmd/origami/internal/query"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Options are what the command line says.
type Options struct {
	App     *app.App
	Query   query.Flags
	Options []string
}

// New returns the command. run is Run, or what a test wants to see called.
func New(a *app.App, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "compare --arch ARCH --arch ARCH… -m SIZE -n SIZE -k SIZE",
		Short: "Put several architectures side by side for one problem, term by term",
		Long: "Ask each architecture for its pick for the same problem and put the predictions side by side, with every term, its\n" +
			"unit and its share of the total. What models call differently stands in one line under its common name; – stands for\n" +
			"what an architecture does not have.\n" +
			"Without --model it uses the best model that all of them have, or the best of each where they have none in common.\n" +
			"An architecture that fails leaves the others' answers intact; its column then holds the error.",
		Example: `  origami compare --arch sm89 --arch gfx942 --arch sm90@h200 -m 4096 -n 4096 -k 4096
  origami compare --arch sm90@h200 --arch gfx942 -m 8192 -n 8192 -k 8192 --trans-b --json`,
		Args: app.NoMore,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Options = app.Options(cmd)
			return run(cmd.Context(), o)
		},
	}
	o.Query.Register(cmd.Flags(), false)
	return cmd
}

// Comparison is one problem on several architectures.
type Comparison struct {
	Problem gemm.Problem
	// Model is the model of all sides, empty if they have none in common and each answers with its best.
	Model string
	Sides []Side
}

// Side is one architecture's part: an answer or an error.
type Side struct {
	Target arch.Match
	*answer.Answer
	Err error
}

// Best returns the side's pick, nil if it has none.
func (s *Side) Best() *answer.Entry {
	if s.Err != nil {
		return nil
	}
	return &s.Entries[0]
}

// Ratio returns the i-th side's predicted time over the first one's, and false where either has none.
func (c *Comparison) Ratio(i int) (float64, bool) {
	first, own := &c.Sides[0], &c.Sides[i]
	if first.Err != nil || own.Err != nil {
		return 0, false
	}
	return float64(own.Seconds(own.Best()) / first.Seconds(first.Best())), true
}

// Run answers. When sides fail, the exit code is 3 if a plugin is to blame and the first failure's otherwise.
func Run(ctx context.Context, o *Options) error {
	problems, _, err := o.Query.Read(o.App.Settings.DType, o.App.Streams.In)
	if err != nil {
		return err
	}
	sel, err := o.App.Select(ctx, o.App.Settings.Arch, o.App.Settings.Device, o.Options)
	if err != nil {
		return err
	}
	if len(sel.Targets) < 2 {
		return diag.Inputf("compare needs at least two architectures, and one is given").At("--arch").Do("add another, as in --arch %s --arch sm90@h200", sel.Targets[0].ID())
	}
	c, err := Compare(ctx, sel, problems[0].Problem, o.App.Settings.Kernel)
	if err != nil {
		return err
	}
	failure := c.report(o.App)
	if err := write(o.App.Streams, o.App.Format(), c); err != nil {
		return err
	}
	return failure
}

// Compare asks all targets at once.
func Compare(ctx context.Context, sel *app.Selection, p gemm.Problem, kernel string) (*Comparison, error) {
	c := &Comparison{Problem: p, Model: sel.Open.Model, Sides: make([]Side, len(sel.Targets))}
	if c.Model == "" {
		c.Model = session.CommonModel(sel.Targets)
	}
	open := sel.Open
	open.Model = c.Model
	var wg sync.WaitGroup
	for i, t := range sel.Targets {
		wg.Go(func() {
			c.Sides[i] = ask(ctx, sel.Session, t, open, p, kernel)
		})
	}
	wg.Wait()
	return c, ctx.Err()
}

func ask(ctx context.Context, s *session.Session, t arch.Match, open session.OpenOptions, p gemm.Problem, kernel string) Side {
	a, err := s.Open(ctx, t, open)
	if err != nil {
		return Side{Target: t, Err: err}
	}
	answers, err := answer.Ask(ctx, a, []gemm.Problem{p}, answer.Options{Kernel: kernel, Top: 1, Terms: true})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return Side{Target: t, Err: err}
	}
	return Side{Target: t, Answer: &answers[0]}
}

// report tells the user which sides failed.
func (c *Comparison) report(a *app.App) error {
	var failure error
	for i := range c.Sides {
		s := &c.Sides[i]
		if s.Err == nil {
			continue
		}
		err := diag.Within(s.Target.ID(), s.Err)
		a.Streams.Report(err)
		if failure == nil || diag.KindOf(err) == diag.Plugin && diag.KindOf(failure) != diag.Plugin {
			failure = err
		}
	}
	if failure == nil {
		return nil
	}
	return &exitcode.Reported{Err: failure}
}
