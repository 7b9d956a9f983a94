// Package selectcmd is `origami select`: the configuration to run a problem with, and why.
package selectcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb"
	"github.com/origami-gemm/origami/core/diag"
)

// Options are what the command line says.
type Options struct {
	Factory  *session.Factory
	Query    session.ProblemFlags
	Options  []string
	Measure  string
	Executor string
}

// New returns the command. run is Run, or what a test wants to see called.
func New(f *session.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "select --arch ARCH -m SIZE -n SIZE -k SIZE",
		Short: "Pick the kernel configuration for a problem, and say why",
		Long: "Pick the kernel configuration that the model predicts to be the fastest, with the predicted time, what it waits\n" +
			"for, and the runner-up. With --problems there is a row per problem.\n" +
			"Where the model knows how far its times are from measured ones, the answer has the interval of the predicted time, and\n" +
			"how much is expected to be lost by not measuring. --measure auto measures as many of the leading candidates on an executor\n" +
			"as that says are worth it, --measure N the first N, and the answer is then the fastest of them.",
		Example: `  origami --arch sm89 select -m 4096 -n 4096 -k 4096
  origami select --arch gfx942 -m 8192 -n 1024 -k 4096 --trans-b --json
  origami select --arch sm90@h200 --problems shapes.csv --format csv
  origami select --arch sm90@auto -m 4096 -n 4096 -k 4096 --measure auto --executor cuda`,
		Args: verb.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Options = session.Options(cmd)
			return run(cmd.Context(), o)
		},
	}
	o.Query.Register(cmd.Flags(), true)
	cmd.Flags().StringVar(&o.Measure, "measure", "", "measure the first `N` candidates and take the fastest, or with auto as many as are worth it")
	cmd.Flags().StringVar(&o.Executor, "executor", "", "executor plugin to measure with, by `NAME`, as in cuda; the first that there is otherwise")
	return cmd
}

// Run answers.
func Run(ctx context.Context, o *Options) error {
	problems, bad, err := o.Query.Read(o.Factory.Settings.DType, o.Factory.Streams.In)
	if err != nil {
		return err
	}
	a, err := o.Factory.Architecture(ctx, o.Options)
	if err != nil {
		return err
	}
	ask := session.Question{Kernel: o.Factory.Settings.Kernel, Top: 1, Regret: true}
	many := o.Query.Problems != ""
	w := newWriter(o.Factory.Streams, render.FormatOf(o.Factory), many)
	if w.format == render.Table && !many {
		ask.Top, ask.Terms = 2, true // the card shows the terms and the runner-up
	}
	write, unmeasured := w.write, o.Factory.Failures(nil)
	if o.Measure != "" || o.Executor != "" {
		m, err := o.measurer(ctx, a)
		if err != nil {
			return err
		}
		defer m.close()
		ask.Top = max(ask.Top, m.count)
		ask.Kernel = m.sweep.Space.Kernel
		write = func(one *session.Answer) error {
			err := m.measure(ctx, one)
			switch {
			case err == nil:
				return w.write(one)
			case many && diag.KindOf(err) == diag.Input:
				unmeasured.Add("", err)
				return nil
			default:
				return err
			}
		}
	}
	if err := o.Factory.AskEach(ctx, a, problems, bad, ask, write); err != nil {
		w.close()
		return err
	}
	if err := w.close(); err != nil {
		return err
	}
	return unmeasured.Err()
}
