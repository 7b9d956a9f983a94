package picturecmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/timing"
)

// RooflineShort says what the command answers.
const RooflineShort = "Place kernels under the roofs of a device: instructions, shared memory, L2, DRAM"

// RooflineOptions are what the command line says.
type RooflineOptions struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	// Configs are configurations to place beside the pick.
	Configs []string
	// Measured asks for measured times: of the data set in the folder Records, or of the shipped one.
	Measured bool
	Records  string
	Report   string
}

// NewRoofline returns the command.
func NewRoofline(f *session.Factory) *cobra.Command {
	o := &RooflineOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "roofline --arch ARCH[,ARCH…] [-m SIZE -n SIZE -k SIZE]",
		Short: RooflineShort,
		Long: "List the ceilings of each device for a type of operands: its matrix instructions, FMA, shared memory\n" +
			"(LDS), L2, MALL and DRAM. A limit is what nothing exceeds, by the data sheet or by the width of the\n" +
			"unit. What a microbenchmark reached is beside it where one was run: with --device-file, that of\n" +
			"origami calibrate. Kernels are placed under them: the model's pick for the problem or for each of\n" +
			"--problems, and the configurations of --config. A kernel has an intensity per memory: operations by\n" +
			"byte that matrix instructions read of shared memory, that SMs ask global memory for, that passes the\n" +
			"L2, and that passes DRAM. The lowest of the roofs at these intensities bounds its rate.\n" +
			"With --measured, the times are measured ones: of the pick, of the fastest kernel and of the vendor's\n" +
			"libraries, in the shipped data set or in --records, for the problems given or for all of it. Bytes\n" +
			"are always the model's. A kernel above a roof is marked, with a warning if the roof is a limit.\n" +
			"--report writes a page, and the figure as SVG and PNG. docs/roofline.md defines every number.",
		Example: `  origami roofline --arch h200
  origami roofline --arch h200 -m 4096 -n 4096 -k 4096 --config 64x64x32,warps=4,stages=2
  origami roofline --arch h200,mi300x,rtx4090 -m 4096 -n 4096 -k 4096 --dtype bf16 --report ./roofs
  origami roofline --device-file my-gpu.yaml --problems shapes.csv --format csv
  origami roofline --arch h200 --measured --report ./roofs`,
		Args: session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return Roofline(cmd.Context(), o) },
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *RooflineOptions) register(flags *pflag.FlagSet) {
	o.Query.Register(flags, true)
	flags.StringArrayVar(&o.Configs, "config", nil,
		"place this `CONFIG` too, as it is printed (128x256x64 w8 s3 g8 k1) or with commas; may be repeated")
	flags.BoolVar(&o.Measured, "measured", false, "place measured times of the shipped data set")
	flags.StringVar(&o.Records, "records", "", "place measured times of the data set in `FOLDER`")
	flags.StringVar(&o.Report, "report", "", "write a page, the figure and the numbers into a `FOLDER`")
	session.Files(flags, "records", "report")
}

// RooflineAsk adds the flags of a question, and returns what answers it.
func RooflineAsk(f *session.Factory, flags *pflag.FlagSet) func(context.Context) (any, error) {
	o := &RooflineOptions{Factory: f}
	o.register(flags)
	return func(ctx context.Context) (any, error) {
		p, err := o.draw(ctx)
		if err == nil {
			err = p.failures.First()
		}
		if err != nil {
			return nil, err
		}
		return p.object(), nil
	}
}

// Roofline answers.
func Roofline(ctx context.Context, o *RooflineOptions) error {
	p, err := o.draw(ctx)
	if err != nil {
		return err
	}
	if err := p.write(o.Factory.Streams, o.Factory.Format()); err != nil {
		return err
	}
	p.warn(o.Factory.Streams)
	if err := report.Write(ctx, o.Factory, o.Report, p.contents()); err != nil {
		return err
	}
	return p.failures.Err()
}

// draw places the kernels.
func (o *RooflineOptions) draw(ctx context.Context) (*picture, error) {
	list, err := o.problems(ctx)
	if err != nil {
		return nil, err
	}
	p := &picture{failures: list.Failures, labels: list.Labels}
	base, err := o.Query.Base(o.Factory.Settings.DType)
	if err != nil {
		return nil, err
	}
	p.dtype = base.DType
	sides, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	for i := range sides {
		if err := p.add(ctx, o, &sides[i], list.Problems); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// measured reports whether the times are measured ones.
func (o *RooflineOptions) measured() bool { return o.Measured || o.Records != "" }

// problems are those of the command line or of its file. There are none if the ceilings alone are asked for, or all
// problems of a data set.
func (o *RooflineOptions) problems(ctx context.Context) (*session.ProblemList, error) {
	if !o.Query.Asks() {
		if len(o.Configs) > 0 {
			return nil, diag.Inputf("a configuration is placed for a problem").At("--config").
				Do("add -m, -n and -k, or --problems")
		}
		return &session.ProblemList{Failures: o.Factory.Failures(ctx)}, nil
	}
	return o.Query.List(ctx, o.Factory)
}

func (o *RooflineOptions) open(ctx context.Context) ([]ask.Contender, error) {
	f := o.Factory
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return nil, err
	}
	if len(targets) > 1 && o.Records != "" {
		return nil, diag.Inputf("a folder has the times of one device, and %d are given", len(targets)).At("--records").
			Do("name one with --arch, or use --measured for the shipped ones")
	}
	if o.measured() {
		for i := range targets {
			targets[i].Timing = timing.Events
		}
	}
	return f.Sides(ctx, targets, &o.Query.Search, o.Query.Invariant)
}
