package ask

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// MostCells bounds the sizes of a map.
const MostCells = 1 << 14

// Letters name the sizes in the order in which they are held.
var Letters = [3]string{"M", "N", "K"}

// Grid is the sizes of a map: two vary and the third is fixed, or they are scattered.
type Grid struct {
	Sizes [3][]int
	// Row and Column are the places of the two in Sizes.
	Row, Column int
	// Scattered is how many sizes there are if they make no grid, else 0.
	Scattered int
}

// Holds reports whether a grid has a size. A nil size of the grid is any.
func Holds(sizes [3][]int, p *gemm.Problem) bool {
	for d, v := range dimensions(p) {
		if len(sizes[d]) > 0 && !slices.Contains(sizes[d], v) {
			return false
		}
	}
	return true
}

// newGrid checks the sizes of a map. The first of those that vary goes down, the second across.
func newGrid(sizes [3][]int) (*Grid, error) {
	g := &Grid{Sizes: sizes}
	var vary []int
	cells := 1
	for i, v := range sizes {
		if cells *= len(v); cells > MostCells {
			return nil, diag.Inputf("the map has more than %d sizes", MostCells).Do("take larger steps")
		}
		if len(v) > 1 {
			vary = append(vary, i)
		}
	}
	switch len(vary) {
	case 3:
		return nil, diag.Inputf("m, n and k all vary").Do(
			"give one of them a single size, as in -k 4096; or scattered sizes in --problems FILE")
	case 2:
		g.Row, g.Column = vary[0], vary[1]
	case 1:
		if g.Column = vary[0]; g.Column == 0 {
			g.Column = 1
		}
	default:
		g.Column = 1
	}
	return g, nil
}

// WholeGrid is a grid of which all sizes are given.
func WholeGrid(sizes [3][]int) (*Grid, error) {
	var missing []string
	for i, v := range sizes {
		if len(v) == 0 {
			missing = append(missing, "-"+strings.ToLower(Letters[i]))
		}
	}
	if len(missing) > 0 {
		be := "are"
		if len(missing) == 1 {
			be = "is"
		}
		return nil, diag.Inputf("%s %s missing", strings.Join(missing, " and "), be).
			Do("give all three, two of them as ranges, as in -m 256:4096 -n 256:4096 -k 4096")
	}
	return newGrid(sizes)
}

// sparse is how many times as many places as sizes a grid has at most.
const sparse = 4

// GridAmong returns the grid of the sizes that some cells have. They are scattered if all three vary, if few places of
// a grid would be filled, or if a size is there twice.
func GridAmong(list []Cell) (*Grid, error) {
	var sizes [3][]int
	distinct := map[[3]int]bool{}
	for i := range list {
		at := dimensions(&list[i].Size)
		distinct[at] = true
		for d, v := range at {
			sizes[d] = append(sizes[d], v)
		}
	}
	places, vary := 1.0, 0
	for d := range sizes {
		slices.Sort(sizes[d])
		sizes[d] = slices.Compact(sizes[d])
		places *= float64(len(sizes[d]))
		if len(sizes[d]) > 1 {
			vary++
		}
	}
	if vary == 3 || places > float64(sparse*len(list)) || len(distinct) < len(list) {
		if len(list) > MostCells {
			return nil, diag.Inputf("the map has more than %d sizes", MostCells).Do("leave sizes out")
		}
		return &Grid{Sizes: sizes, Scattered: len(list)}, nil
	}
	return newGrid(sizes)
}

func dimensions(p *gemm.Problem) [3]int { return [3]int{p.M, p.N, p.K} }

// Fixed is the place of the size that does not vary.
func (g *Grid) Fixed() int { return 3 - g.Row - g.Column }

// Rows are the sizes that go down, and Columns those that go across.
func (g *Grid) Rows() []int { return g.Sizes[g.Row] }

// Columns is described at Rows.
func (g *Grid) Columns() []int { return g.Sizes[g.Column] }

// Problems lists the grid row by row.
func (g *Grid) Problems(base gemm.Problem) ([]gemm.Problem, error) {
	var out []gemm.Problem
	var at [3]int
	at[g.Fixed()] = g.Sizes[g.Fixed()][0]
	for _, at[g.Row] = range g.Rows() {
		for _, at[g.Column] = range g.Columns() {
			p := base
			p.M, p.N, p.K = at[0], at[1], at[2]
			if err := p.Validate(); err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// Lay puts cells in the places of the grid, row by row; nil where there is none. Scattered ones keep their order.
func (g *Grid) Lay(list []Cell) []*Cell {
	if g.Scattered > 0 {
		out := make([]*Cell, len(list))
		for i := range list {
			out[i] = &list[i]
		}
		return out
	}
	out := make([]*Cell, len(g.Rows())*len(g.Columns()))
	for i := range list {
		at := dimensions(&list[i].Size)
		row, ok := slices.BinarySearch(g.Rows(), at[g.Row])
		column, also := slices.BinarySearch(g.Columns(), at[g.Column])
		if ok && also && at[g.Fixed()] == g.Sizes[g.Fixed()][0] {
			out[row*len(g.Columns())+column] = &list[i]
		}
	}
	return out
}

// String names the sizes, as "27 × 27 sizes, M 16-5632, N 16-5632, K 3104".
func (g *Grid) String() string {
	text := fmt.Sprintf("%d scattered sizes", g.Scattered)
	if g.Scattered == 0 {
		text = fmt.Sprintf("%d × %d sizes", len(g.Rows()), len(g.Columns()))
	}
	for i, v := range g.Sizes {
		text += ", " + Letters[i] + " " + extent(v)
	}
	return text
}

func extent(v []int) string {
	if len(v) == 1 {
		return fmt.Sprint(v[0])
	}
	return fmt.Sprintf("%d-%d", v[0], v[len(v)-1])
}
