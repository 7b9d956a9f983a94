package picturecmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/roofline"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
)

// RooflineOptions are what the command line says.
type RooflineOptions struct {
	Factory  *session.Factory
	Query    session.ProblemFlags
	Configs  []string `json:"config" arg:"CONFIG" help:"place this CONFIG too, as it is printed (128x256x64 w8 s3 g8 k1) or with commas; may be repeated"`
	Measured bool     `json:"measured" help:"place measured times of the shipped data set"`
	Records  string   `json:"records" file:"yes" arg:"FOLDER" help:"place measured times of the data set in FOLDER"`
}

// NewRoofline returns the command.
func NewRoofline(f *session.Factory) *cobra.Command {
	o := &RooflineOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "roofline --arch ARCH[,ARCH…] [-m SIZE -n SIZE -k SIZE]",
		Short: "Place kernels under the roofs of a device: instructions, shared memory, L2, DRAM",
		Long: "List the ceilings of each device for a type of operands: matrix instructions, FMA, shared memory\n" +
			"(LDS), L2, MALL and DRAM, by the data sheet and, with a --device-file, as a microbenchmark reached\n" +
			"them. Under them stand the pick for each problem and the configurations of --config, with their\n" +
			"operations per byte of each memory; the lowest roof bounds the rate. With --measured, times are\n" +
			"measured ones, of the pick, the fastest kernel and the vendor's libraries, in the shipped data set\n" +
			"or --records; bytes are always the model's. A kernel above a roof is marked. docs/roofline.md\n" +
			"defines every number.",
		Example: `  origami roofline --arch h200
  origami roofline --arch h200 -m 4096 -n 4096 -k 4096 --config 64x64x32,warps=4,stages=2
  origami roofline --arch h200,mi300x,rtx4090 -m 4096 -n 4096 -k 4096 --json | origami report -
  origami roofline --device-file my-gpu.yaml --problems shapes.csv --format csv
  origami roofline --arch h200 --measured`,
		RunE: func(cmd *cobra.Command, _ []string) error { return Roofline(cmd.Context(), o) },
	}
	o.Query.Register(cmd.Flags(), true)
	session.Register(cmd.Flags(), o)
	return cmd
}

// RooflineServed is the question to a server.
var RooflineServed = server.Endpoint{Name: "roofline", Command: NewRoofline}

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
	return p.failures.Err()
}

// picture is an answer to be shown.
type picture struct {
	*ask.Rooflines
	failures *session.Failures
	labels   []string
}

// draw places the kernels.
func (o *RooflineOptions) draw(ctx context.Context) (*picture, error) {
	list := &session.ProblemList{Failures: o.Factory.Failures(ctx)}
	var err error
	if o.Query.Asks() {
		list, err = o.Query.List(ctx, o.Factory)
	} else if len(o.Configs) > 0 {
		err = diag.Inputf("a configuration is placed for a problem").At("--config").Do("add -m, -n and -k, or --problems")
	}
	if err != nil {
		return nil, err
	}
	base, err := o.Query.Base(o.Factory.Settings.DType)
	if err != nil {
		return nil, err
	}
	q := &ask.Placing{DType: base.DType, Problems: list.Problems, Labels: list.Labels, Configs: o.Configs,
		Failed: list.Failures.Add}
	if o.Measured || o.Records != "" {
		q.Records = func(d *arch.Description) (*dataset.Dataset, error) {
			return datastore.Folder(ctx, d, o.Factory.Settings.Kernel, "--records", o.Records)
		}
	}
	sides, err := o.open(ctx, q.Records != nil)
	if err != nil {
		return nil, err
	}
	answer, err := ask.RooflinesOf(ctx, sides, q)
	return &picture{answer, list.Failures, list.Labels}, err
}

func (o *RooflineOptions) open(ctx context.Context, measured bool) ([]ask.Contender, error) {
	f := o.Factory
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return nil, err
	}
	if len(targets) > 1 && o.Records != "" {
		return nil, diag.Inputf("a folder has the times of one device, and %d are given", len(targets)).At("--records").
			Do("name one with --arch, or use --measured for the shipped ones")
	}
	if measured {
		for i := range targets {
			targets[i].Timing = timing.Events
		}
	}
	return f.Sides(ctx, targets, &o.Query.Search, o.Query.Invariant)
}

// warn says which kernels are above a roof. That is never left unsaid: either a number or the count of bytes is wrong.
func (p *picture) warn(s *iostreams.Streams) {
	for _, n := range p.Notes {
		s.Note(n)
	}
	above := map[roofline.Above][]string{}
	for i := range p.Kernels {
		k := &p.Kernels[i]
		name := k.Name + " " + configText(k)
		above[k.Above] = append(above[k.Above], fmt.Sprintf("%s of %s above the instructions", name, k.Size))
		for _, l := range k.Levels {
			above[l.Above] = append(above[l.Above], fmt.Sprintf("%s of %s above %s", name, k.Size, l.Level))
		}
	}
	if limits := above[roofline.AboveLimit]; len(limits) > 0 {
		s.Warn(digits.Plural(len(limits), "kernel is", "kernels are") + " above a limit of the hardware, so a number of " +
			"the device or the model's count of bytes is wrong; the first: " + limits[0])
	}
	if reached := above[roofline.AboveReached]; len(reached) > 0 {
		s.Warn(digits.Plural(len(reached), "kernel is", "kernels are") + " above what a microbenchmark reached: " +
			"the microbenchmark is not the fastest kernel, or the model counts too many bytes; the first: " + reached[0])
	}
}

// write writes the ceilings and the kernels. CSV has the kernels, or the ceilings if there are none.
func (p *picture) write(s *iostreams.Streams, format show.Format) error {
	if format == show.JSON {
		return show.JSONLine(s, p.Rooflines)
	}
	if format == show.Table || len(p.Kernels) == 0 {
		if err := ceilings(s, format).All(p.ceilings()); err != nil || len(p.Kernels) == 0 {
			return err
		}
		show.Lines(s, "")
	}
	return p.rows(s, format).All(p.kernels())
}

// ceiling is a ceiling of a device as a row.
type ceiling struct {
	Device string `json:"device"`
	DType  string `json:"dtype"`
	ask.Ceiling
}

func (p *picture) ceilings() (rows []ceiling) {
	for i := range p.Devices {
		d := &p.Devices[i]
		for _, c := range d.Ceilings {
			rows = append(rows, ceiling{d.ID, d.DType, c})
		}
	}
	return rows
}

func ceilings(s *iostreams.Streams, f show.Format) *show.Rows[ceiling] {
	quantity := func(header string, of func(*ceiling) ask.Number) show.Column[ceiling] {
		return show.Text(header, func(c *ceiling) string {
			if v := float64(of(c)); digits.Finite(v) {
				return unit.SI(v, c.Unit)
			}
			return "–"
		})
	}
	return show.NewRows(s, f, show.Key[ceiling]("device"), show.Key[ceiling]("dtype", "type"),
		show.Key[ceiling]("name", "ceiling"), quantity("limit", func(c *ceiling) ask.Number { return c.Limit }),
		quantity("reached", func(c *ceiling) ask.Number { return c.Reached }),
		show.Key[ceiling]("ridge_flop_per_byte", "ridge FLOP/B"))
}

// placed is a kernel as a row: its memories by name.
type placed struct {
	ask.RooflineKernel
	Levels ask.Fields `json:"levels"`
}

func (p *picture) kernels() []placed {
	rows := make([]placed, len(p.Kernels))
	for i, k := range p.Kernels {
		rows[i].RooflineKernel = k
		for _, l := range k.Levels {
			rows[i].Levels = append(rows[i].Levels, ask.Field{Name: strings.ReplaceAll(l.Level.String(), " ", "_"), Value: l})
		}
	}
	return rows
}

func (p *picture) rows(s *iostreams.Streams, f show.Format) *show.Rows[placed] {
	columns := []show.Column[placed]{
		show.Key[placed]("device"), show.Text("problem", func(k *placed) string { return k.Size.String() }),
		show.Text("kernel", func(k *placed) string {
			if k.Measured {
				return k.Name + ", measured"
			}
			return k.Name
		}),
		show.Text("configuration", func(k *placed) string { return configText(&k.RooflineKernel) }),
		show.Key[placed]("seconds", "time"), show.Key[placed]("flop_per_second", "rate"),
		show.Key[placed]("of_attainable", "of roof"), show.Key[placed]("bound", "roof"),
	}
	for _, l := range []struct {
		level  roofline.Level
		people string
	}{
		{roofline.Shared, "FLOP/B shared"}, {roofline.Requested, "requested"}, {roofline.L2, "L2"}, {roofline.DRAM, "DRAM"},
	} {
		columns = append(columns, show.Text(l.people, func(k *placed) string {
			for _, point := range k.RooflineKernel.Levels {
				if point.Level == l.level && point.Above != "" {
					return digits.ThreeDigits(point.Intensity) + " (above)"
				} else if point.Level == l.level {
					return digits.ThreeDigits(point.Intensity)
				}
			}
			return "–"
		}))
	}
	for _, name := range p.labels {
		columns = append(columns, show.Key[placed]("labels."+name, name))
	}
	return show.NewRows(s, f, columns...)
}

func configText(k *ask.RooflineKernel) string {
	if k.Config == nil {
		return ""
	}
	return k.Config.String()
}
