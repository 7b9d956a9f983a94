// Package picturecmd is `origami map` and `origami roofline`: maps of the fastest kernels over sizes, and kernels under
// the roofs of devices.
package picturecmd

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
)

// MapShort says what the command answers.
const MapShort = "Map rates, winners and regret over a grid of sizes"

// MapOptions are what the command line says.
type MapOptions struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	Grid    question.Grid
	// Records is the folder of a data set, From a file of winners, Report a folder to write.
	Records, From, Report string
}

// NewMap returns the command.
func NewMap(f *session.Factory) *cobra.Command {
	o := &MapOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "map (--arch ARCH (-m SIZES -n SIZES -k SIZES | --problems FILE | --records FOLDER) | --from FILE)",
		Short: MapShort,
		Long: "For each size of a grid, print the fastest kernel, its rate, the FLOP by byte of its tile, its split\n" +
			"of K, what limits it by the model, and how many of its CTAs run at once on an SM or CU. Two of m, n\n" +
			"and k vary. --problems has scattered sizes, which are drawn as points. Without --records the model says\n" +
			"which kernel is the fastest.\n" +
			"With --records the measurements do, and the model's pick among them and its regret are printed too:\n" +
			"how much longer the pick takes than the fastest. --from maps a table that others made, or that this\n" +
			"command wrote as CSV. A table lists the kernels, CSV and JSON the sizes. --report draws the maps.",
		Example: `  origami map --arch sm90@h200 -m 16:16:16:5632 -n 16:16:16:5632 -k 3104 --report ./maps
  origami map --arch gfx900 --dtype fp32 -m 64:64:1024 -n 64:64:1024 -k 3104
  origami map --arch sm90@h200 --problems shapes.csv --report ./maps
  origami map --arch sm90@h200 --records ./my-sweep --report ./maps
  origami map --from winners.csv --dtype fp32 --report ./maps`,
		Args: session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return Map(cmd.Context(), o) },
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *MapOptions) register(flags *pflag.FlagSet) {
	session.Register(flags, &o.Grid)
	session.Register(flags, &o.Query.Types)
	session.Register(flags, &o.Query.Search)
	flags.StringVar(&o.Query.Problems, "problems", "",
		"map the problems of a `FILE` (CSV, TSV, JSON or JSON Lines with m,n,k[,batch,…]; - is stdin)")
	flags.StringVar(&o.Records, "records", "", "`FOLDER` of a data set: map what was measured, at its sizes")
	flags.StringVar(&o.From, "from", "",
		"map this CSV `FILE` with the columns m,n,k and some of gflops,winner,config,tile,split,flop_per_byte,regret")
	flags.StringVar(&o.Report, "report", "", "also write Markdown, CSV, JSON and the maps into `FOLDER`")
	session.Files(flags, "problems", "records", "from", "report")
}

// outcome is what was found.
type outcome struct {
	*grid
	// heading are labelled lines: what was mapped.
	heading [][2]string
	// subject is the title of the maps.
	subject string
	// laid are the cells in their places, nil where there is none.
	laid    []*cell
	cells   []cell
	kernels []kernel
	picks   bool // some cells have a pick
	ours    bool // it has problems of ours, with a type and a layout
}

// MapAsk adds the flags of a question, and returns what answers it.
func MapAsk(f *session.Factory, flags *pflag.FlagSet) func(context.Context) (any, error) {
	o := &MapOptions{Factory: f}
	o.register(flags)
	return func(ctx context.Context) (any, error) {
		out, err := o.find(ctx)
		if err != nil {
			return nil, err
		}
		return out.answers(), nil
	}
}

// Map answers.
func Map(ctx context.Context, o *MapOptions) error {
	out, err := o.find(ctx)
	if err != nil {
		return err
	}
	if err := out.write(o.Factory.Streams, o.Factory.Format()); err != nil {
		return err
	}
	return report.Write(ctx, o.Factory, o.Report, report.Contents{Name: "map", Subject: out.subject, Numbers: out.write,
		Page: out.page})
}

// find fills the map.
func (o *MapOptions) find(ctx context.Context) (*outcome, error) {
	out := &outcome{}
	err := o.contradiction()
	if err != nil {
		return nil, err
	}
	if o.From != "" {
		err = o.fromFile(ctx, out)
	} else {
		err = o.fromModel(ctx, out)
	}
	if err != nil {
		return nil, err
	}
	out.laid = out.lay(out.cells)
	out.kernels = kernels(out.cells)
	out.picks = slices.ContainsFunc(out.cells, func(c cell) bool { return c.pick != nil })
	out.summarise()
	return out, nil
}

// contradiction is an error if two flags say which sizes to map.
func (o *MapOptions) contradiction() error {
	from, records, problems := o.From != "", o.Records != "", o.Query.Problems != ""
	sizes := o.Grid.Sizes()
	for _, c := range []struct {
		flags string
		both  bool
	}{
		{"--from and --records", from && records}, {"--from and --problems", from && problems},
		{"--problems and --records", problems && records},
		{"--problems and -m, -n, -k", problems && len(sizes[0])+len(sizes[1])+len(sizes[2]) > 0},
	} {
		if c.both {
			return diag.Inputf("%s contradict each other", c.flags).Do("leave one of them out")
		}
	}
	return nil
}

func (o *MapOptions) fromFile(ctx context.Context, out *outcome) error {
	base, err := o.Query.Base(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	if out.cells, err = readFile(ctx, o.From, base); err != nil {
		return err
	}
	out.cells = slices.DeleteFunc(out.cells, func(c cell) bool { return !holds(o.Grid.Sizes(), &c.problem) })
	if len(out.cells) == 0 {
		return diag.Inputf("it has none of these sizes").At("%s", o.From).Do("leave -m, -n and -k out")
	}
	out.subject = base.DType.String()
	out.heading = [][2]string{{"file", o.From}}
	out.grid, err = among(out.cells)
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
		if out.grid, err = given(&o.Grid); err != nil {
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
	if out.cells, err = measured(ctx, a, data, base, o.Grid.Sizes()); err != nil {
		return err
	}
	out.named(d, data.Kernel, base.DType.String(), "measured")
	out.heading = append(out.heading, [2]string{"times", source(data)})
	out.grid, err = among(out.cells)
	return err
}

func source(d *dataset.Dataset) string {
	if d.Software == "" {
		return d.Name
	}
	return d.Name + ": " + d.Software
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
	done, stop := table.Work(o.Factory.Streams, "predicting", len(problems))
	cells, bad, err := predicted(ctx, a, family, problems, done)
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
	if out.grid == nil {
		if out.grid, err = among(cells); err != nil {
			return err
		}
		if i := slices.IndexFunc(cells, func(c cell) bool { return c.problem.DType != cells[0].problem.DType }); i > 0 {
			types = "several types"
		} else {
			types = cells[0].problem.DType.String()
		}
	}
	out.named(d, family, types, "predicted")
	if d.RanksOnly {
		o.Factory.Streams.Note("the model puts kernels in order, and its times are none: rates are left out")
	}
	return nil
}

// problems are those of the grid, or of a file.
func (o *MapOptions) problems(ctx context.Context, base gemm.Problem, out *outcome) ([]gemm.Problem, error) {
	if out.grid != nil {
		return out.problems(base)
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
	var rates, logs []float64
	validated, worst := 0, 0.0
	for i := range out.cells {
		c := &out.cells[i]
		if !math.IsNaN(c.best.gflops) {
			rates = append(rates, c.best.gflops)
		}
		if !math.IsNaN(c.regret) {
			logs = append(logs, math.Log1p(c.regret))
			worst = max(worst, c.regret)
		}
		if c.validated {
			validated++
		}
	}
	if len(rates) > 0 {
		out.heading = append(out.heading, [2]string{"rate", fmt.Sprintf("%s to %s, median %s",
			rate(slices.Min(rates)), rate(slices.Max(rates)), rate(stats.Median(rates)))})
	}
	if len(logs) > 0 {
		out.heading = append(out.heading, [2]string{"regret", fmt.Sprintf("of the model's pick: mean %s, worst %s, %s",
			digits.Percent(math.Expm1(mean(logs))), digits.Percent(worst), digits.Plural(len(logs), "size", "sizes"))})
	}
	if out.ours {
		out.heading = append(out.heading, [2]string{"validated",
			fmt.Sprintf("%d of %d sizes are like those that the model was checked on", validated, len(out.cells))})
	}
}

func rate(gflops float64) string { return digits.Quantity(gflops*1e9, "FLOP/s") }

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
