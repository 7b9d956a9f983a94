package pickcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

// ExplainOptions are what the command line says.
type ExplainOptions struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	question.Explained
	Diff  string `json:"diff" arg:"CONFIG" help:"set this CONFIG beside the explained one"`
	Terms bool   `json:"terms" help:"show every number in a page, with formula, unit and source"`
}

// NewExplain returns the command.
func NewExplain(f *session.Factory) *cobra.Command {
	o := &ExplainOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "explain --arch ARCH -m SIZE -n SIZE -k SIZE",
		Short: "Show every number behind a prediction, with formula, unit and source",
		Long: "Show where the predicted time of one configuration goes. With --terms, and in JSON and CSV,\n" +
			"there is every number behind it: the hardware parameters and the model's constants with their\n" +
			"sources, then each intermediate with its formula, the formula with the numbers put in, its value,\n" +
			"unit and source, and the launch order. Without --config it explains the pick. --diff sets another\n" +
			"configuration beside it.",
		Example: `  origami --arch sm89 explain -m 2048 -n 2048 -k 2048
  origami explain --arch sm89 -m 2048 -n 2048 -k 2048 --diff 64x64x64,w4,s3
  origami explain --arch sm89 -m 2048 -n 2048 -k 2048 --terms
  origami explain --arch sm89 -m 4096 -n 4096 -k 4096 --config 128x256x64,w8,s3,g8
  origami explain --arch gfx942 -m 4096 -n 4096 -k 4096 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return Explain(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	o.Query.Register(flags, false)
	records(f, flags)
	session.Register(flags, &o.Query.Contraction)
	session.Register(flags, o)
	return cmd
}

// ExplainServed is the question to a server.
var ExplainServed = server.Endpoint{Name: "explain", Command: NewExplain}

// Explain answers.
func Explain(ctx context.Context, o *ExplainOptions) error {
	problem, side, err := o.Factory.Asked(ctx, &o.Query)
	if err != nil {
		return err
	}
	e, err := o.Of(ctx, &side, problem, o.Factory.Settings.Kernel, o.Config)
	if err != nil {
		return err
	}
	if o.Diff == "" {
		return write(o.Factory.Streams, o.Factory.Format(), e, o.Terms)
	}
	other, err := o.Of(ctx, &side, problem, o.Factory.Settings.Kernel, o.Diff)
	if err != nil {
		return err
	}
	return writeDiff(o.Factory.Streams, o.Factory.Format(), e, other, o.Terms)
}
