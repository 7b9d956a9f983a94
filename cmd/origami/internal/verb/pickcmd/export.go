package pickcmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/sdk/durable"
)

// File is one of the files of an exported kernel.
type File struct {
	Name string
	Text []byte
}

// Generate returns the files of a configuration for a problem on a device. adds asks for a kernel that may add to C.
type Generate func(d *arch.Description, p gemm.Problem, c gemm.Config, adds bool) ([]File, error)

// ExportOptions are what the command line says.
type ExportOptions struct {
	Factory  *session.Factory
	Query    session.ProblemFlags
	Config   string `json:"config" arg:"CONFIG" help:"export this CONFIG, as it is printed (128x256x64 w8 s3 g8 k1) or with commas; what is left out is the first candidate's of that tile"`
	Adds     bool   `json:"add" help:"a kernel that can add to C: beta may be other than zero"`
	Out      string `json:"output" short:"o" arg:"FOLDER" default:"." help:"write the files into this FOLDER"`
	Generate Generate
}

// NewExport returns the command.
func NewExport(f *session.Factory, generate Generate) *cobra.Command {
	o := &ExportOptions{Factory: f, Generate: generate}
	cmd := &cobra.Command{
		Use:   "export --arch ARCH -m SIZE -n SIZE -k SIZE --kernel FAMILY",
		Short: "Write a kernel's PTX, with launchers in C and Python",
		Long: "Write the kernel of one configuration, or of the pick, to be used without origami: its PTX, and\n" +
			"launchers for the problem in C and in Python, which need the NVIDIA driver and cuda.h only. It is\n" +
			"for the families that origami generates itself: mma and wgmma. Sizes, leading dimensions and\n" +
			"launch are fixed; addresses, alpha and beta are not.",
		Example: `  origami export --arch sm90@h200 -m 4096 -n 4096 -k 4096 --kernel wgmma --output gemm
  origami export --arch sm89 -m 512 -n 512 -k 512 --kernel mma --config 64x64x64,w4,s3 --add
  origami export --arch sm90@h200 -m 4096 -n 4096 -k 4096 --kernel wgmma --epilogue bias+gelu`,
		RunE: func(cmd *cobra.Command, _ []string) error { return Export(cmd.Context(), o) },
	}
	o.Query.Register(cmd.Flags(), false)
	session.Register(cmd.Flags(), o)
	return cmd
}

// Export answers.
func Export(ctx context.Context, o *ExportOptions) error {
	problem, err := o.Query.One(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	a, err := o.Factory.Searched(ctx, &o.Query)
	if err != nil {
		return err
	}
	e, err := ask.Explain(ctx, a, problem, o.Factory.Settings.Kernel, o.Config)
	if err != nil {
		return err
	}
	if e.Estimate.Reject != "" {
		return diag.Inputf("%s cannot be used for %s: %s", e.Config, problem, e.Estimate.Reject).
			Do("`origami explain --config %s` says why", e.Config)
	}
	files, err := o.Generate(a.Describe(), problem, e.Config, o.Adds)
	if err != nil {
		return err
	}
	return o.write(files)
}

// write writes the files and names them.
func (o *ExportOptions) write(files []File) error {
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return diag.Inputf("%v", err).At("--output %s", o.Out).Do("name a folder that can be written")
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = filepath.Join(o.Out, f.Name)
		err := durable.Write(paths[i], 0o644, f.Text)
		if err != nil {
			return diag.Inputf("%v", err).At("--output %s", o.Out).Do("name a folder that can be written")
		}
	}
	if o.Factory.Format() == show.JSON {
		return show.JSONLine(o.Factory.Streams, map[string][]string{"files": paths})
	}
	_, err := fmt.Fprintln(o.Factory.Streams.Writer(), strings.Join(paths, "\n"))
	return err
}
