// Package reportcmd is `origami report`: a page with what the models say of some problems, to look into and to send on.
package reportcmd

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/durable"
)

// Options are what the command line says.
type Options struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	// Records is the folder of a data set, Output the file to write.
	Records, Output string
	// Ask is the address of a server that answers for one problem, empty for a file.
	Ask string
	// Measured says that a page of a server holds the models against measurements, which takes longer than the rest.
	Measured bool
	// Memory keeps what several pages need, nil for a single one.
	Memory *Memory
}

// New returns the command.
func New(f *session.Factory) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "report --arch ARCH[,ARCH…] [-m SIZE -n SIZE -k SIZE | --problems FILE]",
		Short: "Write a page with figures of what the models say",
		Long: "Write one HTML file that needs no network: for each problem the pick beside the other candidates,\n" +
			"where the time goes, the rooflines, and what other numbers of the device would change; a map of\n" +
			"the rates over M and N; several architectures side by side; and how well each model did against\n" +
			"measurements. Without a problem it is about the shipped measurements, or --records.\n" +
			"Details are of the first 8 problems. A problem without an answer is named on the page and on\n" +
			"stderr, and the exit status is 2.",
		Example: `  origami report --arch h200 -m 4096 -n 4096 -k 4096 --dtype bf16
  origami report --arch h200,mi300x --problems shapes.csv --output h200-mi300x.html
  origami report --arch sm90@h200 --output records.html
  origami report --arch sm90@h200 --records ./my-sweep`,
		Args: session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), o) },
	}
	o.Register(cmd.Flags())
	return cmd
}

// Register adds the flags.
func (o *Options) Register(flags *pflag.FlagSet) {
	session.Register(flags, &o.Query.Product, "m", "n", "k", "batch", "groups", "trans_a", "trans_b", "dtype", "kernel")
	o.Query.RegisterProblems(flags)
	flags.StringVar(&o.Records, "records", "",
		"`FOLDER` of a data set to hold the models against; the shipped one otherwise")
	flags.StringVarP(&o.Output, "output", "o", "report.html", "`FILE` to write")
	session.Files(flags, "records", "output")
}

// Page returns what adds the flags of a problem, and then makes the page of a server about it. All pages share a
// memory.
func Page() func(*session.Factory, *pflag.FlagSet) func(context.Context) (*report.Page, error) {
	memory := &Memory{}
	return func(f *session.Factory, flags *pflag.FlagSet) func(context.Context) (*report.Page, error) {
		o := &Options{Factory: f, Ask: "api/v1/select", Memory: memory}
		o.Register(flags)
		flags.BoolVar(&o.Measured, "measured", false, "hold the models against the shipped measurements")
		return func(ctx context.Context) (*report.Page, error) {
			p, _, err := Build(ctx, o, func(int, int) {}) // the page says what failed
			if err != nil {
				return nil, err
			}
			return p, nil
		}
	}
}

// Run writes the page.
func Run(ctx context.Context, o *Options) error {
	// What cannot be written should not be computed first.
	if info, err := os.Stat(filepath.Dir(o.Output)); err != nil || !info.IsDir() {
		return diag.Inputf("there is no folder %s", filepath.Dir(o.Output)).At("--output %s", o.Output).
			Do("make it, or name another file")
	}
	bar := table.NewLateBar(o.Factory.Streams, "asking the models")
	p, failures, err := Build(ctx, o, func(done, all int) { bar.Set(int64(done), int64(all)) })
	bar.Stop()
	if err != nil {
		return err
	}
	if err := durable.Replace(o.Output, 0o644, p.File); err != nil {
		return diag.Inputf("the page cannot be written: %v", err).At("--output %s", o.Output).Do("name another file")
	}
	o.Factory.Streams.Note("the page is " + o.Output)
	return failures.Err()
}
