package logiccmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	pages "github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/formats/tensile"
)

type gainOptions struct {
	factory *session.Factory
	records []string
	tile    string
	report  string
}

func newGain(f *session.Factory) *cobra.Command {
	o := &gainOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "gain [FILE] --arch ARCH --records FOLDER",
		Short: "Say what a tuned kernel for each size is worth",
		Long: "Print how much longer other choices take than the fastest measured kernel of each size, as\n" +
			"geometric means: the fastest kernel of one tile, the best single kernel for all sizes, the model's\n" +
			"pick, the vendor's library, and the kernel of the library logic in FILE. CSV has the times of each\n" +
			"size.",
		Example: "  origami logic gain --arch sm90@h200 --records ./deepbench-nn --records ./deepbench-tn\n" +
			"  origami logic gain --arch sm90@h200 --records ./sweep --tile 128x128 --report gain.html\n" +
			"  origami logic gain h200.json --arch sm90@h200 --records ./another-day",
		Args: func(cmd *cobra.Command, args []string) error {
			return session.NoArguments(cmd, args[min(1, len(args)):])
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringArrayVar(&o.records, "records", nil, "`FOLDER` of a data set; may be repeated")
	cmd.Flags().StringVar(&o.tile, "tile", "128x128", "the `TILE` to compare with, as block_m x block_n")
	cmd.Flags().String("kernel", "", "kernel `FAMILY`; the architecture's first otherwise")
	cmd.Flags().StringVar(&o.report, "report", "", pages.Usage)
	return cmd
}

// tuned is a size with the times of its fastest kernel and of other choices, NaN if unknown.
type tuned struct {
	problem gemm.Problem
	best    gemm.Config
	pick    gemm.Config
	times   map[gemm.Config]float64
	seconds []float64 // of the fastest, and then of gain.others
}

// gain is what was found.
type gain struct {
	subject string
	others  []string
	sizes   []tuned
	one     gemm.Config
	logic   *tensile.Logic // nil without one
}

func (o *gainOptions) run(ctx context.Context, args []string) error {
	var m, n int
	if _, err := fmt.Sscanf(o.tile, "%dx%d", &m, &n); err != nil || o.tile != fmt.Sprintf("%dx%d", m, n) {
		return diag.Inputf("%q is no tile", o.tile).At("--tile").Do("write one as 128x128")
	}
	if len(o.records) == 0 {
		return diag.Inputf("--records is missing").Do("name the folder of a data set")
	}
	a, err := o.factory.Architecture(ctx)
	if err != nil {
		return err
	}
	var g gain
	var library string
	for _, file := range args {
		if g.logic, err = session.ReadLogic(ctx, file); err != nil {
			return err
		}
	}
	for _, folder := range o.records {
		data, err := datastore.Folder(ctx, a.Describe(), o.factory.Settings.Kernel, "--records", folder)
		if err != nil {
			return err
		}
		if g.logic != nil {
			if err := belongs(g.logic, args[0], a.Describe(), data.Kernel); err != nil {
				return err
			}
		}
		if names := data.Libraries(); len(names) > 0 {
			library = names[0]
		}
		if err := g.add(ctx, a, data, library, m, n); err != nil {
			return err
		}
		g.subject = fmt.Sprintf("%s, kernels of %s", a.Describe().DeviceName, data.Kernel)
	}
	if len(g.sizes) == 0 {
		return diag.Inputf("no size has a time").At("--records").Do("measure some first")
	}
	g.addOne()
	g.others = []string{"fastest " + o.tile + ", no split", "one kernel for all sizes", "the model's pick"}
	if library != "" {
		g.others = append(g.others, library)
	}
	if g.logic != nil {
		if library == "" { // the place of its times
			g.others = append(g.others, "the vendor's library")
		}
		g.others = append(g.others, "the kernel of "+args[0])
	}
	if err := g.write(o.factory.Streams, o.factory.Format()); err != nil {
		return err
	}
	return pages.Write(ctx, o.factory, o.report, g.write)
}

// add enters the sizes of a data set. A size of an earlier set gets the times of both, the least of each kernel. The
// place of the one kernel for all sizes stays empty.
func (g *gain) add(ctx context.Context, a arch.Architecture, data *dataset.Dataset, library string, m, n int) error {
	for _, p := range data.Problems() {
		list, times := data.Times(p)
		if len(list) == 0 {
			continue
		}
		at, vendor := slices.IndexFunc(g.sizes, func(x tuned) bool { return x.problem == p }), math.NaN()
		if at >= 0 {
			vendor = g.sizes[at].seconds[4]
			for c, t := range g.sizes[at].times {
				if have, ok := times[c]; !ok || t < have {
					times[c] = t
				}
			}
			list = slices.SortedFunc(maps.Keys(times), func(c, d gemm.Config) int { return cmp.Compare(c.String(), d.String()) })
		}
		x, tile := tuned{problem: p, times: times}, math.NaN()
		for c, t := range times {
			if c.BlockM == m && c.BlockN == n && c.SplitK == 1 && !(t >= tile) {
				tile = t
			}
		}
		x.best = slices.MinFunc(list, func(c, d gemm.Config) int { return cmp.Compare(x.times[c], x.times[d]) })
		pick := math.NaN()
		answer, err := ask.RankAmong(ctx, a, data.Kernel, p, list)
		if err != nil {
			return err
		}
		if answer.Err == nil {
			x.pick = answer.Entries[0].Config
			pick = x.times[x.pick]
		}
		if r, ok := data.FindLibrary(p, library); ok && r.Median > 0 {
			vendor = float64(r.Median)
		}
		x.seconds = []float64{x.times[x.best], tile, math.NaN(), pick, vendor}
		if g.logic != nil {
			chosen, err := g.chosen(ctx, a, data.Kernel, p, &x)
			if err != nil {
				return err
			}
			x.seconds = append(x.seconds, chosen)
		}
		if at >= 0 {
			g.sizes[at] = x
		} else {
			g.sizes = append(g.sizes, x)
		}
	}
	return nil
}

// chosen is the time of the kernel that the logic has for a size: its own, or the model's pick among its kernels where
// it leaves the size to the model. It is NaN for one that was not measured.
func (g *gain) chosen(ctx context.Context, a arch.Architecture, kernel string, p gemm.Problem, x *tuned) (
	float64, error,
) {
	time := func(c gemm.Config) float64 {
		if t, ok := x.times[c]; ok {
			return t
		}
		return math.NaN()
	}
	if err := g.logic.Type.Answers(&p); err != nil {
		return 0, err
	}
	if k, _ := g.logic.Lookup(logic.SizeOf(&p)); k >= 0 {
		return time(g.logic.Kernels[k].Config), nil
	}
	list := make([]gemm.Config, len(g.logic.Kernels))
	for i := range list {
		list[i] = g.logic.Kernels[i].Config
	}
	answer, err := ask.RankAmong(ctx, a, kernel, p, list)
	if err != nil || answer.Err != nil {
		return math.NaN(), err
	}
	return time(answer.Entries[0].Config), nil
}

// addOne finds the kernel that was measured at all sizes and has the least geometric mean.
func (g *gain) addOne() {
	least := math.Inf(1)
	for c := range g.sizes[0].times {
		sum := 0.0
		for i := range g.sizes {
			t, ok := g.sizes[i].times[c]
			if !ok {
				t = math.Inf(1)
			}
			sum += math.Log(t / g.sizes[i].seconds[0])
		}
		if sum < least || sum == least && c.String() < g.one.String() {
			least, g.one = sum, c
		}
	}
	for i := range g.sizes {
		if t, ok := g.sizes[i].times[g.one]; ok {
			g.sizes[i].seconds[2] = t
		}
	}
}

// ratios are the times of a choice ÷ those of the fastest kernel, at the sizes that have both.
func (g *gain) ratios(choice int) (ratios []float64) {
	for i := range g.sizes {
		if s := g.sizes[i].seconds; !math.IsNaN(s[1+choice]) {
			ratios = append(ratios, s[1+choice]/s[0])
		}
	}
	return ratios
}

// choice is a choice against the fastest kernels: its times ÷ the fastest kernels' times.
type choice struct {
	Against string  `json:"against"` // what chooses
	Sizes   int     `json:"sizes"`   // how many sizes have its time
	Mean    float64 `json:"mean"`    // of the ratios; the mean is geometric
	Median  float64 `json:"median"`
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
}

func (g *gain) summary() (list []choice) {
	for i, name := range g.others {
		if r := g.ratios(i); len(r) > 0 {
			list = append(list, choice{name, len(r), geomean(r), stats.Median(r), slices.Min(r), slices.Max(r)})
		}
	}
	return list
}

func choiceColumns() []show.Column[choice] {
	thousandths := func(header string, value func(*choice) float64) show.Column[choice] {
		return show.Text(header, func(c *choice) string { return strconv.FormatFloat(value(c), 'f', 3, 64) })
	}
	return []show.Column[choice]{
		show.Key[choice]("against", "time ÷ that of the fastest kernel"), show.Key[choice]("sizes"),
		thousandths("mean", func(c *choice) float64 { return c.Mean }),
		thousandths("median", func(c *choice) float64 { return c.Median }),
		thousandths("least", func(c *choice) float64 { return c.Least }),
		thousandths("most", func(c *choice) float64 { return c.Most }),
	}
}

// timed is a size with the times of all choices, in CSV.
type timed struct {
	Problem gemm.Record `json:"problem"`
	Best    string      `json:"best"` // the fastest kernel, and the model's pick
	Pick    string      `json:"pick"`
	Seconds ask.Fields  `json:"seconds"`
}

func (g *gain) write(s *iostreams.Streams, format table.Format) error {
	switch format {
	case table.CSV, table.TSV:
		rows := make([]timed, len(g.sizes))
		for i := range g.sizes {
			x := &g.sizes[i]
			rows[i] = timed{Problem: x.problem.Record(), Best: x.best.String(), Pick: x.pick.String()}
			for j, name := range append([]string{"fastest"}, g.others...) {
				rows[i].Seconds = append(rows[i].Seconds, ask.Field{Name: name, Value: ask.Number(x.seconds[j])})
			}
		}
		return show.Write(s, format, rows)
	case table.Table:
		for _, line := range g.lines() {
			table.Line(s, line[0], "%s", line[1])
		}
		s.Printf("\n")
	case table.JSON:
	}
	return show.Write(s, format, g.summary(), choiceColumns()...)
}

func (g *gain) lines() [][2]string {
	one := "none was measured at all sizes"
	if g.one != (gemm.Config{}) {
		one = g.one.String()
	}
	return [][2]string{{"times", g.subject}, {"sizes", strconv.Itoa(len(g.sizes))}, {"one kernel", one}}
}

func geomean(ratios []float64) float64 {
	sum := 0.0
	for _, r := range ratios {
		sum += math.Log(r)
	}
	return math.Exp(sum / float64(len(ratios)))
}
