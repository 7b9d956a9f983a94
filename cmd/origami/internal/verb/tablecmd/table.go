// Package tablecmd is `origami table`: tables of kernels in the forms that inference servers read.
package tablecmd

import (
	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

// New returns the command with its subcommands.
func New(f *session.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table",
		Short: "Write the tables of kernels that inference servers read",
		Long: "Write the tables of kernels that inference servers read, for the linear layers of a model: a kernel for\n" +
			"each layer and number of rows, predicted. No GPU is needed.",
		Example: "  origami table invariant config.json --arch sm90@h100 --output vllm-table",
		Args:    session.OnlySubcommands,
		RunE:    session.MissingSubcommand,
	}
	cmd.AddCommand(newInvariant(f))
	return cmd
}
