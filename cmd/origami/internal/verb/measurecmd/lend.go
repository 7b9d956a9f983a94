package measurecmd

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/measure"
)

// NewLend returns the command at whose other end is `tune --lent`.
func NewLend(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "lend NAME",
		Short: "Lend the GPU of this machine",
		Long: "Measure with the GPU of this machine what `origami tune` on another one asks for, over standard input and\n" +
			"output. NAME is the GPU's name in the records. origami_gemm.ray calls this command.",
		Hidden: true,
		Args:   session.OneArgument("NAME", "the GPU's name in the records"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var x exec.Executor
			err := measure.Lend(cmd.Context(), struct {
				io.Reader
				io.WriteCloser
			}{os.Stdin, os.Stdout}, args[0],
				func(ctx context.Context, w measure.Wanted) (*measure.Sweep, measure.Lending, error) {
					s, lending, err := f.Lend(ctx, w)
					if err == nil {
						x = s.Executor
					}
					return s, lending, err
				})
			if x != nil {
				_ = x.Close() // what matters was sent
			}
			return err
		},
	}
}
