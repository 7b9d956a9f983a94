package gemm

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/origami-gemm/origami/core/diag"
)

// Groups are the rows of A and C that belong to each matrix B of a grouped problem, such as the tokens of each expert
// of a mixture. A group may be empty. Two are == if they list the same numbers. The zero value has no groups.
type Groups struct {
	// text is "120,33,0,512". The zero handle stands for no groups.
	text unique.Handle[string]
}

const (
	// MaxGroups bounds the groups of a problem.
	MaxGroups = 1 << 10
	// mostListed is up to how many groups the text of a problem lists.
	mostListed = 16
)

// NewGroups returns groups of that many rows each.
func NewGroups(rows ...int) (Groups, error) {
	if len(rows) == 0 {
		return Groups{}, nil
	}
	if len(rows) > MaxGroups {
		return Groups{}, diag.Inputf("there are %d groups", len(rows)).Do("give at most %d", MaxGroups)
	}
	text := make([]byte, 0, 6*len(rows))
	for i, v := range rows {
		if v < 0 || v >= 1<<52 { // the sum of all fits into an int
			return Groups{}, diag.Inputf("group %d has %d rows", i, v).Do("give whole numbers from 0 to 2^52 - 1")
		}
		text = append(strconv.AppendInt(text, int64(v), 10), ',')
	}
	return Groups{unique.Make(string(text[:len(text)-1]))}, nil
}

// ParseGroups reads numbers of rows with commas between them, as in 120,33,0,512.
func ParseGroups(text string) (Groups, error) {
	if n := strings.Count(text, ",") + 1; n > MaxGroups {
		return Groups{}, diag.Inputf("there are %d groups", n).Do("give at most %d", MaxGroups)
	}
	rows := make([]int, 0, 64)
	for cell := range strings.SplitSeq(text, ",") {
		cell = strings.TrimSpace(cell)
		v, err := strconv.ParseUint(cell, 10, 63)
		if err != nil {
			return Groups{}, diag.Inputf("%q is no number of rows", cell).
				Do("write the rows of each group, as in 120,33,0,512")
		}
		rows = append(rows, int(v))
	}
	return NewGroups(rows...)
}

// String returns what ParseGroups reads, or the empty string.
func (g Groups) String() string {
	if g == (Groups{}) {
		return ""
	}
	return g.text.Value()
}

// Equal is ==.
func (g Groups) Equal(h Groups) bool { return g == h }

// All iterates over the rows of each group.
func (g Groups) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		text := g.String()
		for i := 0; i < len(text); i++ {
			v := 0
			for ; i < len(text) && text[i] != ','; i++ {
				v = 10*v + int(text[i]-'0')
			}
			if !yield(v) {
				return
			}
		}
	}
}

// List returns the rows of each group, nil without groups.
func (g Groups) List() []int { return slices.Collect(g.All()) }

// Len returns the number of groups.
func (g Groups) Len() int {
	if g == (Groups{}) {
		return 0
	}
	return strings.Count(g.String(), ",") + 1
}

// Filled returns the number of groups that are not empty.
func (g Groups) Filled() (n int) {
	for v := range g.All() {
		n += min(v, 1)
	}
	return n
}

// Rows returns the rows of all groups.
func (g Groups) Rows() (sum int) {
	for v := range g.All() {
		sum += v
	}
	return sum
}

// Tiles returns the rows of tiles of all groups: no tile has rows of two.
func (g Groups) Tiles(blockM int) (sum int) {
	for v := range g.All() {
		sum += (v + blockM - 1) / blockM
	}
	return sum
}

// Matrices returns how many matrices of an operand there are, Stride elements apart.
func (p Problem) Matrices(o Operand) int {
	if o == B && p.Groups != (Groups{}) {
		return p.Groups.Len()
	}
	return p.Batch
}

// SetGroups sets the groups, and M to their rows.
func (p *Problem) SetGroups(g Groups) { p.Groups, p.M = g, g.Rows() }

// Products returns how many matrices a problem multiplies, and the rows of each: of a batch, or the groups that
// are not empty, which have as many rows on average.
func (p Problem) Products() (count int, rows float64) {
	if p.Groups == (Groups{}) {
		return p.Batch, float64(p.M)
	}
	count = max(p.Groups.Filled(), 1)
	return count, float64(p.M) / float64(count)
}

// TilesM returns the rows of tiles of all matrices C of a batch, or of all groups.
func (p Problem) TilesM(blockM int) int {
	if p.Groups == (Groups{}) {
		return p.Batch * ((p.M + blockM - 1) / blockM)
	}
	return p.Groups.Tiles(blockM)
}

// validGroups checks groups.
func (p *Problem) validGroups() error {
	if rows := p.Groups.Rows(); rows != p.M {
		return diag.Inputf("the groups have %d rows, and m is %d", rows, p.M).Do("let m be the rows of all groups")
	}
	if p.Batch != 1 {
		return diag.Inputf("a batch of %d has groups", p.Batch).Do("list the groups of the whole batch")
	}
	if p.TransA() {
		return diag.Inputf("A is contiguous along m, and its rows are in groups").Do("let A be contiguous along k")
	}
	// Every group is padded to whole tiles.
	padded := p.Groups.Tiles(MaxConfigNumber) * MaxConfigNumber
	if !fits(padded, pad(p.N), pad(p.K), 1) {
		return diag.Inputf("m·n·k of %s overflows 64-bit arithmetic once each group is padded to whole tiles", *p).
			Do("split the problem: padded m·n·k must stay below 2^60")
	}
	return nil
}
