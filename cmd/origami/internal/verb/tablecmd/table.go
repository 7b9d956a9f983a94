// Package tablecmd is `origami table`: tables of kernels in the forms that inference servers read.
package tablecmd

import (
	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

// options are what the commands that write tables have in common.
type options struct {
	factory *session.Factory
	tp      int
	output  string
}

// register adds the flags: each part of a model is divided among GPUs, and what is written.
func (o *options) register(cmd *cobra.Command, part, what string) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.tp, "tp", 1, "`N` GPUs divide each "+part+" among them (tensor parallel)")
	flags.StringVarP(&o.output, "output", "o", "", "write the "+what+" to this `FOLDER`")
}

// New returns the command with its subcommands.
func New(f *session.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table",
		Short: "Write and check the tables of kernels that inference servers read",
		Long: "Write the tables of kernels that inference servers read, for the layers of a model: a kernel for each\n" +
			"layer and number of rows, predicted. Or check a table that somebody tuned. No GPU is needed.",
		Example: "  origami table invariant config.json --arch sm90@h100 --output vllm-table\n" +
			"  origami table fused-moe config.json --arch sm90@h100 --output tables\n" +
			"  origami table check 'E=8,N=7168,device_name=NVIDIA_H200.json' config.json --arch sm90@h200",
	}
	cmd.AddCommand(newInvariant(f), newMoE(f), newBlocks(f), newCheck(f))
	return cmd
}
