package logiccmd

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/formats/tensile"
)

type evalOptions struct {
	measured
	folds int
	most  []int
	loss  float64
}

func newEval(f *session.Factory) *cobra.Command {
	o := &evalOptions{measured: measured{factory: f}}
	cmd := &cobra.Command{
		Use:   "eval [FILE | --folds N] --arch ARCH",
		Short: "Say what a tuned kernel for each size, and a library logic, are worth",
		Long: "Print how much longer other choices take than the fastest measured kernel of each size, as\n" +
			"geometric means: the fastest kernel of 128x128, the best single kernel for all sizes, the model's\n" +
			"pick, the vendor's library, and the kernels of the library logic in FILE, also as if the size were\n" +
			"none of its sizes. CSV has the times of each size. With --folds, print what libraries of few and of\n" +
			"many kernels are worth on sizes left out when they were built, answered by the library, the nearest\n" +
			"size, ranges, and the model.",
		Example: "  origami logic eval --arch sm90@h200 --records ./deepbench-nn --records ./deepbench-tn\n" +
			"  origami logic eval h200.yaml --arch sm90@h200 --records ./another-day\n" +
			"  origami logic eval --folds 5 --most 1,4,8,16,32,0 --arch sm90@h200 --records ./my-sweep",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("folds"):
				return session.NoArguments(cmd, args[min(1, len(args)):])
			case o.folds < 2 || o.folds > mostFolds:
				return diag.Inputf("--folds is %d", o.folds).Do("give a number from 2 to %d", mostFolds)
			case len(args) > 0:
				return diag.Inputf("--folds builds libraries of its own").Do("leave the file out")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			typed := slices.ContainsFunc([]string{"dtype", "out-dtype", "trans-a", "trans-b"}, cmd.Flags().Changed)
			if o.folds > 0 {
				return o.runFolds(cmd.Context())
			}
			return o.run(cmd.Context(), args, typed)
		},
	}
	o.register(cmd)
	cmd.Flags().IntVar(&o.folds, "folds", 0, "build libraries that leave each of `N` parts of the sizes out")
	cmd.Flags().IntSliceVar(&o.most, "most", []int{1, 4, 8, 16, 32, 0},
		"with --folds, the `KERNELS` of the libraries; 0 is for no limit")
	cmd.Flags().Float64Var(&o.loss, "loss", 0.02, "with --folds, the tolerated loss of a range at each of its sizes")
	return cmd
}

// mostFolds bounds --folds.
const mostFolds = 100

// column is a choice with its times at all sizes in seconds, NaN if unknown. The first one of a list is the fastest
// kernel of each size.
type column struct {
	name    string
	configs []gemm.Config // nil if the choice is not one of the measured kernels
	seconds []float64
}

// comparison is a sample with the choices at its sizes.
type comparison struct {
	*sample
	columns []column
	one     string // the best single kernel
}

// run compares choices. typed means that the flags name a type or a layout.
func (o *evalOptions) run(ctx context.Context, args []string, typed bool) (err error) {
	takes := func(*gemm.Problem) error { return nil }
	if typed {
		if _, takes, err = o.like(); err != nil {
			return err
		}
	}
	var l *tensile.Logic
	if len(args) > 0 {
		if l, err = session.ReadLogic(ctx, args[0]); err != nil {
			return err
		}
		takes = func(p *gemm.Problem) error { return diag.Within(args[0], l.Type.Answers(p)) }
	}
	x, err := o.sample(ctx, takes)
	if err != nil {
		return err
	}
	g := &comparison{sample: x}
	g.add("fastest", func(s *timedSize) gemm.Config { return g.least(s, func(gemm.Config) bool { return true }) })
	g.add("fastest 128x128, no split", func(s *timedSize) gemm.Config {
		return g.least(s, func(c gemm.Config) bool { return c.BlockM == 128 && c.BlockN == 128 && c.SplitK == 1 })
	})
	g.addOne()
	if err := g.addPicks(ctx, "the model's pick", x.kernels, nil); err != nil {
		return err
	}
	if x.library != "" {
		g.columns = append(g.columns, column{name: x.library})
		for i := range x.sizes {
			last := &g.columns[len(g.columns)-1]
			last.seconds = append(last.seconds, x.sizes[i].vendor)
		}
	}
	if l != nil {
		if d := x.model.Describe(); l.Arch != d.Arch || l.Device != d.Device || l.Family != x.kernel {
			return diag.Inputf("the logic is for %s on %s@%s, and the times are of %s on %s", l.Family, l.Arch, l.Device,
				x.kernel, d.ID()).At("%s", args[0]).Do("use measurements of its kernels")
		}
		kernels := make([]gemm.Config, len(l.Kernels))
		for i := range kernels {
			kernels[i] = l.Kernels[i].Config
		}
		if err := g.addPicks(ctx, "the kernel of "+args[0], kernels, l.Lookup); err != nil {
			return err
		}
		if err := g.addPicks(ctx, "the same without the size", kernels, l.LookupOther); err != nil {
			return err
		}
	}
	return g.write(o.factory.Streams, o.factory.Format())
}

// add adds a choice among the measured kernels: the zero configuration where it has none.
func (g *comparison) add(name string, choose func(*timedSize) gemm.Config) {
	c := column{name: name}
	for i := range g.sizes {
		config := choose(&g.sizes[i])
		seconds, ok := g.sizes[i].times[config]
		if !ok {
			seconds = math.NaN()
		}
		c.configs, c.seconds = append(c.configs, config), append(c.seconds, seconds)
	}
	g.columns = append(g.columns, c)
}

// least is the fastest of some kernels at a size.
func (g *comparison) least(s *timedSize, among func(gemm.Config) bool) (best gemm.Config) {
	least := math.Inf(1)
	for _, c := range g.kernels {
		if seconds, ok := s.times[c]; ok && seconds < least && among(c) {
			least, best = seconds, c
		}
	}
	return best
}

// addOne adds the kernel that was measured at all sizes and has the least geometric mean.
func (g *comparison) addOne() {
	least, one := math.Inf(1), gemm.Config{}
	for _, c := range g.kernels {
		sum := 0.0
		for i := range g.sizes {
			seconds, ok := g.sizes[i].times[c]
			if !ok {
				seconds = math.Inf(1)
			}
			sum += math.Log(seconds / g.columns[0].seconds[i])
		}
		if sum < least || sum == least && c.String() < one.String() {
			least, one = sum, c
		}
	}
	if g.one = one.String(); math.IsInf(least, 1) {
		g.one = "none was measured at all sizes"
	}
	g.add("one kernel for all sizes", func(*timedSize) gemm.Config { return one })
}

// addPicks adds a kernel for each size: look gives its place in the list of kernels. Where look gives none, or is nil,
// the model picks among the measured kernels of the list.
func (g *comparison) addPicks(
	ctx context.Context, name string, kernels []gemm.Config, look func(logic.Size) (int, logic.Layer),
) (err error) {
	g.add(name, func(s *timedSize) (pick gemm.Config) {
		if look != nil {
			if k, _ := look(logic.SizeOf(&s.problem)); k >= 0 {
				return kernels[k]
			}
		}
		list := kernels
		if look == nil {
			list = slices.DeleteFunc(slices.Clone(kernels), func(c gemm.Config) bool { _, ok := s.times[c]; return !ok })
		}
		answer, e := ask.RankAmong(ctx, g.model, g.kernel, s.problem, list)
		if e != nil {
			err = e
		} else if answer.Err == nil {
			pick = answer.Entries[0].Config
		}
		return pick
	})
	return err
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

func (g *comparison) summary() (list []choice) {
	for _, c := range g.columns[1:] {
		var r []float64
		for i, seconds := range c.seconds {
			if !math.IsNaN(seconds) {
				r = append(r, seconds/g.columns[0].seconds[i])
			}
		}
		if len(r) > 0 {
			list = append(list, choice{c.name, len(r), stats.Geomean(r), stats.Median(r), slices.Min(r), slices.Max(r)})
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

func (g *comparison) write(s *iostreams.Streams, format show.Format) error {
	switch format {
	case show.CSV:
		const pick = 3 // the place of the model's
		rows := make([]timed, len(g.sizes))
		for i := range g.sizes {
			rows[i] = timed{Problem: g.sizes[i].problem.Record(), Best: g.columns[0].configs[i].String(),
				Pick: g.columns[pick].configs[i].String()}
			for _, c := range g.columns {
				rows[i].Seconds = append(rows[i].Seconds, ask.Field{Name: c.name, Value: ask.Number(c.seconds[i])})
			}
		}
		return show.Write(s, format, rows)
	case show.Table:
		show.Line(s, "times", "%s, kernels of %s", g.model.Describe().DeviceName, g.kernel)
		show.Line(s, "sizes", "%d", len(g.sizes))
		show.Line(s, "one kernel", "%s", g.one)
		s.Printf("\n")
	case show.JSON:
	}
	return show.Write(s, format, g.summary(), choiceColumns()...)
}
