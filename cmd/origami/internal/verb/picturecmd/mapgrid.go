package picturecmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// mostCells bounds the sizes of a map.
const mostCells = 1 << 14

// letters name the sizes in the order in which they are held.
var letters = [3]string{"M", "N", "K"}

// grid is the sizes of a map: two that vary, and one that does not; or scattered ones.
type grid struct {
	sizes [3][]int
	// row and column are the places of the two in sizes.
	row, column int
	// scattered is how many sizes there are if they make no grid, else 0.
	scattered int
}

// newGrid checks the sizes of a map. The first of those that vary goes down, the second across.
func newGrid(sizes [3][]int) (*grid, error) {
	g := &grid{sizes: sizes}
	var vary []int
	cells := 1
	for i, v := range sizes {
		if cells *= len(v); cells > mostCells {
			return nil, diag.Inputf("the map has more than %d sizes", mostCells).Do("take larger steps")
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
		g.row, g.column = vary[0], vary[1]
	case 1:
		if g.column = vary[0]; g.column == 0 {
			g.column = 1
		}
	default:
		g.column = 1
	}
	return g, nil
}

// given checks that flags name a whole grid.
func given(flags *question.Grid) (*grid, error) {
	sizes := flags.Sizes()
	var missing []string
	for i, v := range sizes {
		if len(v) == 0 {
			missing = append(missing, "-"+strings.ToLower(letters[i]))
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

// among returns the grid of the sizes that some cells have. They are scattered if all three vary, if few places of a
// grid would be filled, or if a size is there twice.
func among(list []cell) (*grid, error) {
	var sizes [3][]int
	distinct := map[[3]int]bool{}
	for i := range list {
		at := sizesOf(&list[i].problem)
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
		if len(list) > mostCells {
			return nil, diag.Inputf("the map has more than %d sizes", mostCells).Do("leave sizes out")
		}
		return &grid{sizes: sizes, scattered: len(list)}, nil
	}
	return newGrid(sizes)
}

func sizesOf(p *gemm.Problem) [3]int { return [3]int{p.M, p.N, p.K} }

// fixed is the place of the size that does not vary.
func (g *grid) fixed() int { return 3 - g.row - g.column }

func (g *grid) rows() []int    { return g.sizes[g.row] }
func (g *grid) columns() []int { return g.sizes[g.column] }

// problems lists the grid row by row.
func (g *grid) problems(base gemm.Problem) ([]gemm.Problem, error) {
	var out []gemm.Problem
	var at [3]int
	at[g.fixed()] = g.sizes[g.fixed()][0]
	for _, at[g.row] = range g.rows() {
		for _, at[g.column] = range g.columns() {
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

// lay puts cells in the places of the grid, row by row; nil where there is none. Scattered ones keep their order.
func (g *grid) lay(list []cell) []*cell {
	if g.scattered > 0 {
		out := make([]*cell, len(list))
		for i := range list {
			out[i] = &list[i]
		}
		return out
	}
	out := make([]*cell, len(g.rows())*len(g.columns()))
	for i := range list {
		at := sizesOf(&list[i].problem)
		row, ok := slices.BinarySearch(g.rows(), at[g.row])
		column, also := slices.BinarySearch(g.columns(), at[g.column])
		if ok && also && at[g.fixed()] == g.sizes[g.fixed()][0] {
			out[row*len(g.columns())+column] = &list[i]
		}
	}
	return out
}

// String names the sizes, as "27 × 27 sizes, M 16-5632, N 16-5632, K 3104".
func (g *grid) String() string {
	text := fmt.Sprintf("%d scattered sizes", g.scattered)
	if g.scattered == 0 {
		text = fmt.Sprintf("%d × %d sizes", len(g.rows()), len(g.columns()))
	}
	for i, v := range g.sizes {
		text += ", " + letters[i] + " " + span(v)
	}
	return text
}

func span(v []int) string {
	if len(v) == 1 {
		return fmt.Sprint(v[0])
	}
	return fmt.Sprintf("%d-%d", v[0], v[len(v)-1])
}
