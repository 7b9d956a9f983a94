// Package selectverb is `origami select`: the configuration to run a problem with, and why.
package selectverb

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/answer"
	"github.com/origami-gemm/origami/cmd/origami/internal/app"
	"github.com/origami-gemm/origami/cmd/origami/internal/query"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
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
		Use:   "select --arch ARCH -m SIZE -n SIZE -k SIZE",
		Short: "Pick the kernel configuration for a problem, and say why",
		Long: "Pick the kernel configuration that the model predicts to be the fastest, with the predicted time, what it waits\n" +
			"for, and the runner-up. With --problems there is a row per problem.",
		Example: `  origami --arch sm89 select -m 4096 -n 4096 -k 4096
  origami select --arch gfx942 -m 8192 -n 1024 -k 4096 --trans-b --json
  origami select --arch sm90@h200 --problems shapes.csv --format csv`,
		Args: app.NoMore,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Options = app.Options(cmd)
			return run(cmd.Context(), o)
		},
	}
	o.Query.Register(cmd.Flags(), true)
	return cmd
}

// Run answers.
func Run(ctx context.Context, o *Options) error {
	problems, bad, err := o.Query.Read(o.App.Settings.DType, o.App.Streams.In)
	if err != nil {
		return err
	}
	a, err := o.App.OpenOne(ctx, o.Options)
	if err != nil {
		return err
	}
	ask := answer.Options{Kernel: o.App.Settings.Kernel, Top: 1}
	many := o.Query.Problems != ""
	w := newWriter(o.App.Streams, o.App.Format(), many)
	if w.format == render.Table && !many {
		ask.Top, ask.Terms = 2, true // the card shows the terms and the runner-up
	}
	if err := o.App.Each(ctx, a, problems, bad, ask, w.write); err != nil {
		w.close()
		return err
	}
	return w.close()
}
