// Package picturecmd is `origami map` and `origami roofline`: maps of the fastest kernels over sizes, and kernels under
// the roofs of devices.
package picturecmd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
)

// MapOptions are what the command line says.
type MapOptions struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	Grid    question.Grid
	From    string `json:"from" file:"yes" arg:"FILE" help:"map this CSV FILE with the columns m,n,k and some of gflops,winner,config,tile,split,flop_per_byte,regret"`
	Records string `json:"records" file:"yes" arg:"FOLDER" help:"FOLDER of a data set: map what was measured, at its sizes"`
}

// NewMap returns the command.
func NewMap(f *session.Factory) *cobra.Command {
	o := &MapOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "map (--arch ARCH (-m SIZES -n SIZES -k SIZES | --problems FILE | --records FOLDER) | --from FILE)",
		Short: "Map rates, winners and regret over a grid of sizes",
		Long: "For each size of a grid, print the fastest kernel, its rate, the FLOP per byte of its tile, its\n" +
			"split of K, its bound, and how many of its CTAs run at once on an SM or CU. Two of m, n and k\n" +
			"vary; --problems has scattered sizes. With --records the fastest kernel is a measured one, beside\n" +
			"the model's pick and its regret. --from maps a table that others made, or that this command wrote\n" +
			"as CSV. A table lists the kernels, CSV and JSON the sizes. `origami report`\n" +
			"draws the maps from JSON.",
		Example: `  origami map --arch sm90@h200 -m 16:16:16:5632 -n 16:16:16:5632 -k 3104 --json | origami report -
  origami map --arch gfx900 --dtype fp32 -m 64:64:1024 -n 64:64:1024 -k 3104
  origami map --arch sm90@h200 --problems shapes.csv
  origami map --arch sm90@h200 --records ./my-sweep --json | origami report - --output map.html
  origami map --from winners.csv --dtype fp32`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := cmd.Flags()
			if err := cmp.Or(session.Exclude(flags, "from", "records", "problems"),
				session.Exclude(flags, "problems", "records", "m", "n", "k")); err != nil {
				return err
			}
			return Map(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	session.Register(flags, &o.Grid)
	session.Register(flags, &o.Query.Types)
	session.Register(flags, &o.Query.Search)
	session.Register(flags, o)
	flags.StringVar(&o.Query.Problems, "problems", "",
		"map the problems of a `FILE` (CSV, TSV, JSON or JSON Lines with m,n,k[,batch,…]; - is stdin)")
	session.Files(flags, "problems")
	return cmd
}

// outcome is what was found.
type outcome struct {
	*ask.Grid
	// heading are labelled lines: what was mapped.
	heading [][2]string
	// subject is the title of the maps.
	subject string
	// laid are the cells in their places, nil where there is none.
	laid    []*ask.Cell
	cells   []ask.Cell
	kernels []ask.Winner
	ours    bool // it has problems of ours, with a type and a layout
}

// MapServed is the question to a server.
var MapServed = server.Endpoint{Name: "map", Command: NewMap, List: []string{""}}

// Map answers.
func Map(ctx context.Context, o *MapOptions) error {
	out, err := o.find(ctx)
	if err != nil {
		return err
	}
	return out.write(o.Factory.Streams, o.Factory.Format())
}

// find fills the map.
func (o *MapOptions) find(ctx context.Context) (*outcome, error) {
	out := &outcome{}
	var err error
	if o.From != "" {
		err = o.fromFile(ctx, out)
	} else {
		err = o.fromModel(ctx, out)
	}
	if err != nil {
		return nil, err
	}
	out.laid = out.Lay(out.cells)
	out.kernels = ask.Winners(out.cells)
	out.summarise()
	return out, nil
}

func (o *MapOptions) fromFile(ctx context.Context, out *outcome) error {
	base, err := o.Query.Base(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	if out.cells, err = readFile(ctx, o.From, base); err != nil {
		return err
	}
	out.cells = slices.DeleteFunc(out.cells, func(c ask.Cell) bool { return !ask.Holds(o.Grid.Sizes(), &c.Size) })
	if len(out.cells) == 0 {
		return diag.Inputf("it has none of these sizes").At("%s", o.From).Do("leave -m, -n and -k out")
	}
	out.subject = base.DType.String()
	out.heading = [][2]string{{"file", o.From}}
	out.Grid, err = ask.GridAmong(out.cells)
	return err
}

func (o *MapOptions) fromModel(ctx context.Context, out *outcome) error {
	base, err := o.Query.Base(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	if o.Records != "" {
		if o.Query.Search.Asked() {
			return diag.Inputf("--records has the configurations").Do("leave --space and --candidates out")
		}
	} else if o.Query.Problems == "" {
		if out.Grid, err = ask.WholeGrid(o.Grid.Sizes()); err != nil {
			return err
		}
	}
	a, err := o.Factory.Searched(ctx, &o.Query)
	if err != nil {
		return err
	}
	d := a.Describe()
	out.ours = true
	if o.Records == "" {
		return o.predict(ctx, a, base, out)
	}
	data, err := datastore.Folder(ctx, d, o.Factory.Settings.Kernel, "--records", o.Records)
	if err != nil {
		return err
	}
	if out.cells, err = ask.MeasuredCells(ctx, a, data, base, o.Grid.Sizes()); err != nil {
		return err
	}
	out.named(d, data.Kernel, base.DType.String(), "measured")
	times := data.Name
	if data.Software != "" {
		times += ": " + data.Software
	}
	out.heading = append(out.heading, [2]string{"times", times})
	out.Grid, err = ask.GridAmong(out.cells)
	return err
}

func (o *MapOptions) predict(ctx context.Context, a arch.Architecture, base gemm.Problem, out *outcome) error {
	d := a.Describe()
	family, err := ask.KernelFamily(d, o.Factory.Settings.Kernel)
	if err != nil {
		return err
	}
	problems, err := o.problems(ctx, base, out)
	if err != nil {
		return err
	}
	done, stop := show.Work(o.Factory.Streams, "predicting", len(problems))
	cells, bad, err := ask.PredictedCells(ctx, a, family, problems, done)
	stop()
	if err != nil {
		return err
	}
	if len(cells) == 0 {
		return bad[0]
	}
	if n := len(bad); n > 0 {
		o.Factory.Streams.Warn(fmt.Sprintf("%s no kernel, for instance: %v",
			digits.Plural(n, "size has", "sizes have"), bad[0]))
	}
	out.cells = cells
	types := base.DType.String()
	if out.Grid == nil {
		if out.Grid, err = ask.GridAmong(cells); err != nil {
			return err
		}
		if i := slices.IndexFunc(cells, func(c ask.Cell) bool { return c.Size.DType != cells[0].Size.DType }); i > 0 {
			types = "several types"
		} else {
			types = cells[0].Size.DType.String()
		}
	}
	out.named(d, family, types, "predicted")
	if d.RanksOnly {
		o.Factory.Streams.Note("the model puts kernels in order, and its times are none: rates are left out")
	}
	return nil
}

// problems are the sizes of the grid, or the problems of a file.
func (o *MapOptions) problems(ctx context.Context, base gemm.Problem, out *outcome) ([]gemm.Problem, error) {
	if out.Grid != nil {
		return out.Problems(base)
	}
	list, err := o.Query.List(ctx, o.Factory)
	if err != nil {
		return nil, err
	}
	var problems []gemm.Problem
	for i := range list.Problems {
		problems = append(problems, list.Problems[i].Problem)
	}
	return problems, list.Failures.First()
}

// named says what the map is of.
func (out *outcome) named(d *arch.Description, family, dtype, how string) {
	out.subject = fmt.Sprintf("%s, %s kernels, %s, %s", d.DeviceName, family, dtype, how)
	out.heading = [][2]string{
		{"device", fmt.Sprintf("%s (%s)", d.DeviceName, d.ID())},
		{"model", fmt.Sprintf("%s, kernel family %s, rung %s", d.Model, family, d.Rung)},
	}
}

// summarise adds what the cells have in common.
func (out *outcome) summarise() {
	out.heading = append(out.heading, [2]string{"sizes", out.String()})
	var rates, slowdowns []float64
	validated, worst := 0, 0.0
	for i := range out.cells {
		c := &out.cells[i]
		if rate := float64(c.GFLOPS); !math.IsNaN(rate) {
			rates = append(rates, rate)
		}
		if c.Pick != nil {
			slowdowns = append(slowdowns, 1+float64(c.Pick.Regret))
			worst = max(worst, float64(c.Pick.Regret))
		}
		if c.Validated {
			validated++
		}
	}
	if len(rates) > 0 {
		out.heading = append(out.heading, [2]string{"rate", fmt.Sprintf("%s to %s, median %s",
			rate(slices.Min(rates)), rate(slices.Max(rates)), rate(stats.Median(rates)))})
	}
	if len(slowdowns) > 0 {
		out.heading = append(out.heading, [2]string{"regret", fmt.Sprintf("of the model's pick: mean %s, worst %s, %s",
			digits.Percent(stats.Geomean(slowdowns)-1), digits.Percent(worst), digits.Plural(len(slowdowns), "size", "sizes"))})
	}
	if out.ours {
		out.heading = append(out.heading, [2]string{"validated",
			fmt.Sprintf("%d of %d sizes are like those that the model was checked on", validated, len(out.cells))})
	}
}

func rate(gflops float64) string { return digits.Quantity(gflops*1e9, "FLOP/s") }

// write writes the kernels as a table, or the sizes as CSV or JSON.
func (out *outcome) write(s *iostreams.Streams, format show.Format) error {
	if format != show.Table {
		return show.Write(s, format, out.cells)
	}
	for _, line := range out.heading {
		show.Line(s, line[0], "%s", line[1])
	}
	s.Printf("\n")
	return out.winners(s).All(out.kernels)
}

func (out *outcome) winners(s *iostreams.Streams) *show.Rows[ask.Winner] {
	type winner = ask.Winner
	return show.NewRows(s, show.Table,
		show.Text("kernel", func(w *winner) string { return strconv.Itoa(w.Number) }),
		show.Text("configuration", func(w *winner) string { return cmp.Or(w.Config, w.Tile) }),
		show.Text("sizes", func(w *winner) string { return strconv.Itoa(w.Sizes) }),
		show.Text("share", func(w *winner) string { return digits.Percent(float64(w.Sizes) / float64(len(out.cells))) }),
		show.Number("FLOP/B", func(w *winner) float64 { return float64(w.PerByte) }, digits.SixDigits),
		show.Number("split", func(w *winner) float64 { return float64(w.Split) }, digits.SixDigits))
}
