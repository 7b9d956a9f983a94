package measurecmd

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

// NewLend returns the command at the other end of --remote.
func NewLend(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "lend EXECUTOR",
		Short: "Lend the GPU of this machine to another one",
		Long: "Run an executor plugin of this machine for `origami tune --remote` or `bench --remote` on another\n" +
			"one, over standard input and output. The plugin must be trusted here. It ends with the connection.",
		Example: "  origami tune sizes.yaml --arch sm90@h200 --executor cuda --remote 'ssh node1 origami lend cuda'",
		Args:    session.OneArgument("EXECUTOR", "an executor plugin, as in cuda"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.Lend(cmd.Context(), args[0], os.Stdin, os.Stdout)
		},
	}
}
