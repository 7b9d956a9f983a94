package picturecmd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// cell is what a map has at a size.
type cell struct {
	problem gemm.Problem
	// best is the winner: the fastest measured configuration, or the model's pick.
	best choice
	// pick is the model's first among the measured configurations, nil for a map without measurements. regret is how much
	// longer it takes than the fastest, NaN if unknown.
	pick   *choice
	regret float64
	// validated says that the model has an error for the likes of this.
	validated bool
}

// choice is a kernel at a size.
type choice struct {
	// name is the configuration, empty where only a number is known. tile is as "128x256", empty if unknown.
	name, tile string
	// number is that of the kernel: 0 is the one that wins most sizes. It is −1 if unknown.
	number int
	// gflops is the rate in GFLOP/s, seconds the time; both are NaN if unknown.
	gflops, seconds float64
	// perByte is FLOP by byte of the operands that a tile loads, NaN if unknown; split the parts of K, 0 if unknown.
	perByte float64
	split   int
	// bound is what limits it by the model, empty if unknown. perUnit is how many of its CTAs run at once on an SM or CU,
	// and waves how often those fill the device; both are NaN if unknown.
	bound          string
	perUnit, waves float64
}

// chosen returns the choice of a configuration that takes a time.
func chosen(p *gemm.Problem, c gemm.Config, seconds float64) choice {
	m, n := float64(c.BlockM), float64(c.BlockN)
	return choice{
		name: c.String(), tile: fmt.Sprintf("%dx%d", c.BlockM, c.BlockN), number: -1, seconds: seconds,
		gflops: p.Flops() / seconds / 1e9, perByte: 2 * m * n / ((m + n) * float64(p.DType.Bits()) / 8),
		split: max(c.SplitK, 1), perUnit: math.NaN(), waves: math.NaN(),
	}
}

// limits fills in what a model says of how a kernel fills a device, and what limits it.
func (c *choice) limits(x *ask.Ranking, e *ask.Entry) {
	c.bound = e.Estimate.Bound.String()
	if e.Estimate.Bound == arch.BoundUnknown {
		c.bound = ""
	}
	if r := x.Roofline(e); r.CTAsPerUnit > 0 {
		c.perUnit, c.waves = r.CTAsPerUnit, r.Waves
	}
}

// chunk is how many sizes a model is asked at once.
const chunk = 64

// predicted asks a model for its pick at each size. It returns the errors of sizes without one too. done is told how
// many sizes were asked.
func predicted(
	ctx context.Context, a arch.Architecture, kernel string, problems []gemm.Problem, done func(int),
) (cells []cell, bad []error, err error) {
	for part := range slices.Chunk(problems, chunk) {
		answers, err := ask.Rankings(ctx, a, ask.Question{Problems: part, Kernel: kernel, Top: 1, Terms: true})
		if err != nil {
			return nil, nil, err
		}
		done(len(part))
		for i := range answers {
			x := &answers[i]
			if x.Err != nil {
				bad = append(bad, x.Err)
				continue
			}
			e := &x.Entries[0]
			seconds := float64(x.Seconds(e))
			if x.Arch.RanksOnly {
				seconds = math.NaN()
			}
			validated := x.Scope(e).Checked() && len(x.Outside(e)) == 0
			c := cell{problem: x.Problem, best: chosen(&x.Problem, e.Config, seconds), regret: math.NaN(), validated: validated}
			c.best.limits(x, e)
			cells = append(cells, c)
		}
	}
	return cells, bad, nil
}

// measured returns the fastest configurations of a data set at the sizes of a grid, and the model's picks among those
// that were measured at each. Sizes of the grid that were not measured are left out; a nil size of the grid is any.
func measured(ctx context.Context, a arch.Architecture, data *dataset.Dataset, base gemm.Problem, sizes [3][]int) (
	[]cell, error,
) {
	var cells []cell
	for _, p := range data.Problems() {
		if !p.Plain() || p.DType != base.DType || p.TransA() != base.TransA() || p.TransB() != base.TransB() ||
			!holds(sizes, &p) {
			continue
		}
		list, times := datastore.Times(data, p)
		if len(list) == 0 {
			continue
		}
		best := slices.MinFunc(list, func(x, y gemm.Config) int { return cmp.Compare(times[x], times[y]) })
		x, err := ask.RankAmong(ctx, a, data.Kernel, p, list)
		if err != nil {
			return nil, err
		}
		c := cell{problem: p, best: chosen(&p, best, times[best]), regret: math.NaN()}
		if x.Err == nil {
			pick := chosen(&p, x.Entries[0].Config, times[x.Entries[0].Config])
			c.pick, c.regret = &pick, pick.seconds/c.best.seconds-1
			e, err := ask.EntryOf(ctx, a, p, best)
			if err != nil {
				return nil, err
			}
			c.best.limits(x, &e)
			c.validated = x.Scope(&x.Entries[0]).Checked() && len(x.Outside(&x.Entries[0])) == 0
		}
		cells = append(cells, c)
	}
	if len(cells) == 0 {
		return nil, diag.Inputf("%s has no measured sizes of this type, layout and grid", data.Name).
			Do("use --dtype, --trans-a, --trans-b and the sizes that it has")
	}
	return cells, nil
}

func holds(sizes [3][]int, p *gemm.Problem) bool {
	for d, v := range sizesOf(p) {
		if len(sizes[d]) > 0 && !slices.Contains(sizes[d], v) {
			return false
		}
	}
	return true
}

// kernel is a winner.
type kernel struct {
	choice
	wins int
}

// kernels numbers the winners, those of most sizes first, and then the picks that win nowhere. Numbers that a file gave
// stay.
func kernels(cells []cell) []kernel {
	var all []kernel
	places := map[string]int{}
	enter := func(c *choice, wins int) {
		key := c.name
		if key == "" {
			key = fmt.Sprint(c.number)
		}
		at, ok := places[key]
		if !ok {
			at = len(all)
			places[key] = at
			all = append(all, kernel{choice: *c})
		}
		all[at].wins += wins
	}
	named := true
	for i := range cells {
		enter(&cells[i].best, 1)
		named = named && cells[i].best.name != ""
	}
	for i := range cells {
		if cells[i].pick != nil {
			enter(cells[i].pick, 0)
		}
	}
	slices.SortStableFunc(all, func(x, y kernel) int {
		return cmp.Or(cmp.Compare(y.wins, x.wins), cmp.Compare(x.name, y.name))
	})
	if !named {
		return slices.DeleteFunc(all, func(k kernel) bool { return k.number < 0 })
	}
	numbers := map[string]int{}
	for i := range all {
		all[i].number = i
		numbers[all[i].name] = i
	}
	for i := range cells {
		cells[i].best.number = numbers[cells[i].best.name]
		if cells[i].pick != nil {
			cells[i].pick.number = numbers[cells[i].pick.name]
		}
	}
	return all
}
