package ask

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Cell is one size of a map. Sizes without a kernel are left out. An unknown number is `null`, an unknown text empty.
type Cell struct {
	// the size
	Problem gemm.Record `json:"problem"`
	// the number of the fastest kernel: 0 wins most sizes
	Winner *int `json:"winner"`
	// its configuration as text
	Config string `json:"config"`
	// its tile as text
	Tile string `json:"tile"`
	// its parts of K
	Split *int `json:"split"`
	// 2·block_m·block_n ÷ ((block_m + block_n) · bytes of an element)
	PerByte Number `json:"flop_per_byte"`
	// its time
	Seconds Number `json:"seconds" unit:"s"`
	// its rate
	GFLOPS Number `json:"gflops"`
	// what limits it by the model, as in `select`
	Bound string `json:"bound"`
	// CTAs that run at once on an SM or CU, by the model
	PerUnit Number `json:"ctas_per_unit"`
	// its CTAs ÷ CTAs that run at once on the device
	Waves Number `json:"waves"`
	// with `--records`: the model's pick among the measured configurations
	Pick *CellPick `json:"pick,omitempty"`
	// as in `select`
	Validated bool `json:"validated"`

	// Size is the size as a problem.
	Size gemm.Problem `json:"-"`
}

// CellPick is the model's pick among measured configurations.
type CellPick struct {
	// the number of the kernel
	Kernel *int `json:"kernel"`
	// its configuration as text
	Config string `json:"config"`
	// its measured time
	Seconds Number `json:"seconds"`
	// its time ÷ the fastest kernel's − 1
	Regret Number `json:"regret"`

	tile  string
	split int
}

// Winner is a kernel of a map.
type Winner struct {
	// Number is −1 if it is unknown. Sizes are how many it wins.
	Number, Sizes int
	// Config and Tile are texts, empty if unknown.
	Config, Tile string
	// PerByte and Split are a cell's, Split 0 if unknown.
	PerByte Number
	Split   int
}

// NewCell returns the cell of a configuration that takes a time. The model's part of it is unknown.
func NewCell(p *gemm.Problem, c gemm.Config, seconds float64) Cell {
	split, unknown, tile := max(c.SplitK, 1), Number(math.NaN()), fmt.Sprintf("%dx%d", c.BlockM, c.BlockN)
	return Cell{Size: *p, Problem: p.Record(), Config: c.String(), Tile: tile, Split: &split,
		PerByte: TilePerByte(tile, p.DType), Seconds: Number(seconds), GFLOPS: Number(p.Flops() / seconds / 1e9),
		PerUnit: unknown, Waves: unknown}
}

// TilePerByte is the operations by byte of the operands that a tile loads: 2·m·n ÷ ((m + n) · bytes of an element). It
// is unknown for a text that is no tile.
func TilePerByte(tile string, t gemm.DType) Number {
	var m, n float64
	if _, err := fmt.Sscanf(tile, "%fx%f", &m, &n); err != nil {
		return Number(math.NaN())
	}
	return Number(2 * m * n / ((m + n) * float64(t.Bits()) / 8))
}

// limits fills in what a model says of how a kernel fills a device, and what limits it.
func (c *Cell) limits(x *Ranking, e *Entry) {
	if e.Estimate.Bound != arch.BoundUnknown {
		c.Bound = e.Estimate.Bound.String()
	}
	if r := x.Roofline(e); r.CTAsPerUnit > 0 {
		c.PerUnit, c.Waves = Number(r.CTAsPerUnit), Number(r.Waves)
	}
}

// validated reports whether the model has an error for the likes of an entry.
func (a *Ranking) validated(e *Entry) bool { return a.Scope(e).Checked() && len(a.Outside(e)) == 0 }

// PredictedCells asks a model for its pick at each size. It returns the errors of sizes without one too. done is told
// how many sizes were asked.
func PredictedCells(
	ctx context.Context, a arch.Architecture, kernel string, problems []gemm.Problem, done func(int),
) (cells []Cell, bad []error, err error) {
	const atOnce = 64
	for part := range slices.Chunk(problems, atOnce) {
		answers, err := Rankings(ctx, a, Question{Problems: part, Kernel: kernel, Top: 1, Terms: true})
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
			c := NewCell(&x.Problem, e.Config, seconds)
			c.limits(x, e)
			c.Validated = x.validated(e)
			cells = append(cells, c)
		}
	}
	return cells, bad, nil
}

// MeasuredCells returns the fastest configurations of a data set at the sizes of a grid, and the model's picks among
// those that were measured at each. Sizes of the grid that were not measured are left out; a nil size of the grid is
// any.
func MeasuredCells(ctx context.Context, a arch.Architecture, data *dataset.Dataset, base gemm.Problem, sizes [3][]int) (
	[]Cell, error,
) {
	var cells []Cell
	for _, p := range data.Problems() {
		if !p.Plain() || p.DType != base.DType || p.TransA() != base.TransA() || p.TransB() != base.TransB() ||
			!Holds(sizes, &p) {
			continue
		}
		list, times := data.Times(p)
		if len(list) == 0 {
			continue
		}
		best := slices.MinFunc(list, func(x, y gemm.Config) int { return cmp.Compare(times[x], times[y]) })
		x, err := RankAmong(ctx, a, data.Kernel, p, list)
		if err != nil {
			return nil, err
		}
		c := NewCell(&p, best, times[best])
		if x.Err == nil {
			e, err := EntryOf(ctx, a, p, best)
			if err != nil {
				return nil, err
			}
			c.limits(x, &e)
			c.Validated = x.validated(&x.Entries[0])
			pick := NewCell(&p, x.Entries[0].Config, times[x.Entries[0].Config])
			c.Pick = &CellPick{Config: pick.Config, Seconds: pick.Seconds, Regret: pick.Seconds/c.Seconds - 1,
				tile: pick.Tile, split: *pick.Split}
		}
		cells = append(cells, c)
	}
	if len(cells) == 0 {
		return nil, diag.Inputf("%s has no measured sizes of this type, layout and grid", data.Name).
			Do("use --dtype, --trans-a, --trans-b and the sizes that it has")
	}
	return cells, nil
}

// Winners numbers the kernels of cells. The kernel that is fastest at the most sizes comes first, and picks that win
// nowhere come last. Where some configurations are unknown, the numbers that cells have stay.
func Winners(cells []Cell) []Winner {
	var all []Winner
	enter := func(number *int, w Winner) {
		if w.Number = -1; number != nil {
			w.Number = *number
		}
		i := slices.IndexFunc(all, func(o Winner) bool {
			return o.Config == w.Config && (w.Config != "" || o.Number == w.Number)
		})
		if i < 0 {
			all = append(all, w)
		} else {
			all[i].Sizes += w.Sizes
		}
	}
	named := true
	for i := range cells {
		c := &cells[i]
		w := Winner{Sizes: 1, Config: c.Config, Tile: c.Tile, PerByte: c.PerByte}
		if c.Split != nil {
			w.Split = *c.Split
		}
		enter(c.Winner, w)
		named = named && c.Config != ""
	}
	for i := range cells {
		if pick := cells[i].Pick; pick != nil {
			enter(pick.Kernel, Winner{Config: pick.Config, Tile: pick.tile, Split: pick.split,
				PerByte: TilePerByte(pick.tile, cells[i].Size.DType)})
		}
	}
	slices.SortStableFunc(all, func(x, y Winner) int {
		return cmp.Or(cmp.Compare(y.Sizes, x.Sizes), cmp.Compare(x.Config, y.Config))
	})
	if !named {
		return slices.DeleteFunc(all, func(w Winner) bool { return w.Number < 0 })
	}
	numbers := map[string]*int{}
	for i := range all {
		all[i].Number = i
		numbers[all[i].Config] = &all[i].Number
	}
	for i := range cells {
		cells[i].Winner = numbers[cells[i].Config]
		if cells[i].Pick != nil {
			cells[i].Pick.Kernel = numbers[cells[i].Pick.Config]
		}
	}
	return all
}
