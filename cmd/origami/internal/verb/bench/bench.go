// Package benchverb is `origami bench`: a model's picks against measurements, beside the best of every candidate and the
// vendor's library.
package benchverb

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/answer"
	"github.com/origami-gemm/origami/cmd/origami/internal/app"
	"github.com/origami-gemm/origami/cmd/origami/internal/builtins"
	"github.com/origami-gemm/origami/cmd/origami/internal/query"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/bench"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/exec/replay"
	"github.com/origami-gemm/origami/core/record"
)

// Options are what the command line says.
type Options struct {
	App     *app.App
	Query   query.Flags
	Options []string
	Records string
	Report  string
}

// New returns the command. run is Run, or what a test wants to see called.
func New(a *app.App, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "bench --arch ARCH",
		Short: "Hold a model's picks against measurements, three ways",
		Long: "For each problem, set the model's pick beside the best of all its candidates and beside the vendor's library, with\n" +
			"Kendall's tau-b of predicted against measured times and the place of the pick among the measured ones. Times come\n" +
			"from recorded measurements, so that no GPU is needed: the shipped ones of the architecture and device, or those\n" +
			"of --records. Every candidate counts at the launch-order group that the records hold constant.\n" +
			"Without --problems it uses the 23 sizes that tritonBLAS's NVIDIA port was evaluated on.",
		Example: `  origami bench --arch sm90@h200
  origami bench --arch sm90@h200 --problems shapes.csv --json
  origami bench --arch sm90@h200 --report ./report
  origami bench --arch sm90@h200 --records ./my-sweep --format csv > three-ways.csv`,
		Args: app.NoMore,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Options = app.Options(cmd)
			return run(cmd.Context(), o)
		},
	}
	o.Query.RegisterFile(cmd.Flags())
	cmd.Flags().StringVar(&o.Report, "report", "", "also write the outcome as Markdown, CSV, JSON and plots into `FOLDER`")
	cmd.Flags().StringVar(&o.Records, "records", "", "`FOLDER` of recorded measurements; the shipped ones otherwise")
	return cmd
}

// Run answers.
func Run(ctx context.Context, o *Options) error {
	problems, bad, err := o.problems()
	if err != nil {
		return err
	}
	a, err := o.App.OpenOne(ctx, o.Options)
	if err != nil {
		return err
	}
	d := a.Describe()
	kernel, err := answer.Kernel(d, o.App.Settings.Kernel)
	if err != nil {
		return err
	}
	data, err := o.data(d, kernel)
	if err != nil {
		return err
	}
	x := replay.New(data)
	options := bench.Options{
		Space: arch.Space{Kernel: kernel}, GroupM: data.GroupM, Library: data.Library, Measure: exec.MeasureOptions{WarmL2: data.WarmL2},
	}
	failures := o.App.Failures(bad)
	w := newWriter(o.App.Streams, o.App.Format(), d, data)
	for _, p := range problems {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := bench.Problem(ctx, a, x, p.Problem, options)
		if err != nil {
			if diag.KindOf(err) != diag.Input {
				return err
			}
			failures.Add(p.Where, err)
			continue
		}
		if err := w.write(&row); err != nil {
			return err
		}
	}
	if err := w.close(); err != nil {
		return err
	}
	if o.Report != "" {
		if err := w.report(o.Report); err != nil {
			return err
		}
	}
	return failures.Err()
}

// problems returns the rows of --problems, or the built-in sizes.
func (o *Options) problems() (good []query.Problem, bad []error, err error) {
	if o.Query.Problems != "" {
		return o.Query.Read(o.App.Settings.DType, o.App.Streams.In)
	}
	for _, p := range bench.Sizes() {
		good = append(good, query.Problem{Problem: p})
	}
	return good, nil, nil
}

// data reads the records for an architecture and a kernel family.
func (o *Options) data(d *arch.Description, kernel string) (*record.Dataset, error) {
	if o.Records != "" {
		data, err := record.Read(o.Records, os.DirFS(o.Records))
		if err != nil {
			return nil, err
		}
		if data.Arch != d.Arch || data.Device != d.Device || data.Kernel != kernel {
			return nil, diag.Inputf("the records are of %s on %s@%s, and the model predicts %s on %s", data.Kernel, data.Arch, data.Device, kernel, d.ID()).
				At("--records %s", o.Records).Do("use --arch %s@%s", data.Arch, data.Device)
		}
		return data, nil
	}
	shipped, err := builtins.Datasets()
	if err != nil {
		return nil, err
	}
	var have []string
	for _, s := range shipped {
		data, err := record.Describe(s.Name, s.Files)
		if err != nil {
			return nil, err
		}
		if data.Arch == d.Arch && data.Device == d.Device && data.Kernel == kernel {
			return record.Read(s.Name, s.Files)
		}
		have = append(have, fmt.Sprintf("%s on %s@%s", data.Kernel, data.Arch, data.Device))
	}
	return nil, diag.Inputf("no measurements of %s on %s are shipped", kernel, d.ID()).
		Do("name a folder of them with --records, or use what is shipped: %s", strings.Join(have, ", "))
}
