// Package comparecmd is `origami compare`: one problem on several architectures, side by side, term by term.
package comparecmd

import (
	"context"
	"sync"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/exitcode"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Options are what the command line says.
type Options struct {
	Factory *session.Factory
	Query   session.ProblemFlags
}

// New returns the command. run is Run, or what a test wants to see called.
func New(f *session.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "compare --arch ARCH --arch ARCH… -m SIZE -n SIZE -k SIZE",
		Short: "Put several architectures side by side for one problem, term by term",
		Long: "Ask each architecture for its pick for the same problem and put the predictions side by side, with\n" +
			"every term, its unit and its share of the total. Terms that models name differently share a line\n" +
			"under their common name. A dash marks a term that an architecture does not have. Without --model\n" +
			"it uses the best model that all architectures have. If they have none in common, each answers with\n" +
			"its best model. If one architecture fails, the others still answer, and its column holds the\n" +
			"error.",
		Example: `  origami compare --arch sm89 --arch gfx942 --arch sm90@h200 -m 4096 -n 4096 -k 4096
  origami compare --arch sm90@h200 --arch gfx942 -m 8192 -n 8192 -k 8192 --trans-b --json`,
		Args: verb.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
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
	*session.Answer
	Err error
}

// Best returns the side's pick, nil if it has none.
func (s *Side) Best() *session.Entry {
	if s.Err != nil {
		return nil
	}
	return &s.Entries[0]
}

// Ratio returns the i-th side's predicted time over the first one's, and false where either has none.
func (c *Comparison) Ratio(i int) (float64, bool) {
	first, side := &c.Sides[0], &c.Sides[i]
	if first.Err != nil || side.Err != nil {
		return 0, false
	}
	return float64(side.Seconds(side.Best()) / first.Seconds(first.Best())), true
}

// Run answers. When sides fail, the exit code is 3 if a plugin is to blame and the first failure's otherwise.
func Run(ctx context.Context, o *Options) error {
	problem, err := o.Query.One(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	targets, err := o.Factory.Targets(ctx, o.Factory.Settings.Arch, o.Factory.Settings.Device)
	if err != nil {
		return err
	}
	if len(targets) < 2 {
		return diag.Inputf("compare needs at least two architectures, and one is given").At("--arch").
			Do("add another, as in --arch %s --arch sm90@h200", targets[0].ID())
	}
	c, err := compare(ctx, o.Factory, &o.Query.Search, targets, problem)
	if err != nil {
		return err
	}
	failure := c.reportFailures(o.Factory.Streams)
	if err := write(o.Factory.Streams, render.FormatOf(o.Factory), c); err != nil {
		return err
	}
	return failure
}

// compare asks all targets at once.
func compare(
	ctx context.Context, f *session.Factory, s *session.SearchFlags, targets []session.Target, p gemm.Problem,
) (*Comparison, error) {
	c := &Comparison{Problem: p, Model: f.Settings.Model, Sides: make([]Side, len(targets))}
	if c.Model == "" {
		c.Model = session.CommonModel(targets)
	}
	q := session.Question{Kernel: f.Settings.Kernel, Top: 1, Terms: true}
	var wg sync.WaitGroup
	for i := range targets {
		targets[i].OpenRequest.Model = c.Model
		wg.Go(func() { c.Sides[i] = ask(ctx, f, s, &targets[i], p, q) })
	}
	wg.Wait()
	for i := range c.Sides {
		if side := &c.Sides[i]; side.Err == nil {
			f.WarnUnused(&targets[i], side.Arch)
		}
	}
	return c, ctx.Err()
}

func ask(
	ctx context.Context, f *session.Factory, s *session.SearchFlags, t *session.Target, p gemm.Problem,
	q session.Question,
) Side {
	a, err := f.Open(ctx, t)
	if err == nil {
		a, err = s.Restrict(ctx, a, q.Kernel, f.Streams.In)
	}
	if err != nil {
		return Side{Target: t.Match, Err: err}
	}
	answers, err := session.Ask(ctx, a, []gemm.Problem{p}, q)
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return Side{Target: t.Match, Err: err}
	}
	return Side{Target: t.Match, Answer: &answers[0]}
}

// reportFailures tells the user which sides failed. The error that it returns carries the exit code.
func (c *Comparison) reportFailures(s *iostreams.Streams) error {
	var failure error
	for i := range c.Sides {
		side := &c.Sides[i]
		if side.Err == nil {
			continue
		}
		err := diag.Within(side.Target.ID(), side.Err)
		s.Report(err)
		if failure == nil || diag.KindOf(err) == diag.Plugin && diag.KindOf(failure) != diag.Plugin {
			failure = err
		}
	}
	if failure == nil {
		return nil
	}
	return &exitcode.Reported{Err: failure}
}
