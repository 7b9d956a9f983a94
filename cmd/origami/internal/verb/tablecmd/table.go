// Package tablecmd is `origami table`: tables of kernels in the forms that inference servers read.
package tablecmd

import (
	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

// options are what the commands that write tables have in common.
type options struct {
	factory *session.Factory
	TP      int    `json:"tp" arg:"N" default:"1" help:"N GPUs divide each layer among them (tensor parallel)"`
	Output  string `json:"output" short:"o" arg:"FOLDER" help:"write the files into this FOLDER"`
}

// New returns the command with its subcommands.
func New(f *session.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table",
		Short: "Write and check the tables of kernels that inference servers read",
		Long: "Write the tables of kernels that inference servers read, for the layers of a model: a kernel for each\n" +
			"layer and number of rows, predicted. Or say which layers read one, or check a table that somebody tuned.\n" +
			"No GPU is needed.",
		Example: "  origami table layers config.json --arch sm90@h100 --tp 8\n" +
			"  origami table invariant config.json --arch sm90@h100 --output vllm-table\n" +
			"  origami table fused-moe config.json --arch sm90@h100 --output tables\n" +
			"  origami table check 'E=8,N=7168,device_name=NVIDIA_H200.json' config.json --arch sm90@h200",
	}
	cmd.AddCommand(newLayers(f), newInvariant(f), newMoE(f), newBlocks(f), newCheck(f))
	return cmd
}
