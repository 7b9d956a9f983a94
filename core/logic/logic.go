// Package logic maps the size of a GEMM to a kernel, as a library does when it is called: exact sizes first, then
// ranges, then the nearest size or nothing, which leaves the answer to a model. A logic is built from measured times,
// or read from the files of libraries by a package of formats. It is written as source in Go and C.
package logic

import (
	"cmp"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Size is the size of a problem as a library with a column-major C orders it: the free index of its A, the free index
// of its B, the batch and the sum. For a row-major C these are n, m, batch and k.
type Size [4]int

// The places in a Size.
const (
	I = iota
	J
	B
	L
)

// SizeOf returns the size of a problem.
func SizeOf(p *gemm.Problem) Size { return Size{p.N, p.M, p.Batch, p.K} }

// Kernel is a kernel of a logic.
type Kernel struct {
	Name string
	// Config is the configuration that it is here. Its tile is empty for kernels of other libraries.
	Config gemm.Config
	// Parameters are what the file of a library says of its kernel, nil otherwise.
	Parameters map[string]any
}

// Entry is an exact size.
type Entry struct {
	Size   Size
	Kernel int
	// Speed is what the file says of it: 0 if it says nothing. Logic.Unit is its unit.
	Speed float64
	// LD are the leading dimensions of D, C, A and B, nil if the file has none.
	LD []int
}

// Rule is a step of the range logic: it holds for sizes up to Most of its index, or for all that are left if Most is
// −1. It leads to rules for the next index of Logic.Order, or to a kernel.
type Rule struct {
	Most   int
	Kernel int
	Rules  []Rule
}

// Fallback is what answers where neither an exact size nor a range does.
type Fallback string

// The fallbacks.
const (
	Nearest Fallback = "nearest" // the kernel of the nearest exact size
	Model   Fallback = "model"   // nothing: a model has to be asked
)

// Layer is the part of a logic that answered.
type Layer string

// The layers.
const (
	LayerExact   Layer = "exact"
	LayerRange   Layer = "range"
	LayerNearest Layer = "nearest"
	LayerModel   Layer = "model"
)

// Logic maps sizes to kernels. New and the readers prepare it for Lookup.
type Logic struct {
	// Arch and Device are ids of the catalogue, or what a library's file says. Family is the kernel family.
	Arch, Device, Family string
	// Source says what the logic was built from.
	Source   string
	Kernels  []Kernel
	Exact    []Entry
	Order    []int // the indices of the range logic, outermost first
	Ranges   []Rule
	Fallback Fallback
	// Unit is the unit of the speeds, empty if it is not known.
	Unit string

	exact map[Size]int32
	logs  [][3]float64 // of the exact sizes, for the nearest
}

// defaultOrder is the order of the indices in range logics.
var defaultOrder = []int{B, L, I, J}

// Prepare checks a logic and makes it ready for Lookup.
func (l *Logic) Prepare() error {
	l.exact = make(map[Size]int32, len(l.Exact))
	for i := range l.Exact {
		e := &l.Exact[i]
		if e.Kernel < 0 || e.Kernel >= len(l.Kernels) {
			return diag.Inputf("size %d has kernel %d, and there are %d", i, e.Kernel, len(l.Kernels))
		}
		if _, again := l.exact[e.Size]; !again { // the first counts
			l.exact[e.Size] = int32(e.Kernel)
		}
		l.logs = append(l.logs, logsOf(e.Size))
	}
	if len(l.Order) == 0 {
		l.Order = defaultOrder
	}
	return l.checkRules(l.Ranges, 0)
}

func (l *Logic) checkRules(rules []Rule, depth int) error {
	for i := range rules {
		r := &rules[i]
		switch {
		case r.Rules == nil && depth != len(l.Order)-1 || r.Rules != nil && depth >= len(l.Order)-1:
			return diag.Inputf("the range logic is not %d indices deep everywhere", len(l.Order))
		case r.Rules == nil && (r.Kernel < 0 || r.Kernel >= len(l.Kernels)):
			return diag.Inputf("a range has kernel %d, and there are %d", r.Kernel, len(l.Kernels))
		case i > 0 && (rules[i-1].Most < 0 || r.Most >= 0 && r.Most <= rules[i-1].Most):
			return diag.Inputf("the thresholds of the range logic do not grow: %d after %d", r.Most, rules[i-1].Most)
		}
		if err := l.checkRules(r.Rules, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func logsOf(s Size) [3]float64 {
	return [3]float64{math.Log(float64(s[I])), math.Log(float64(s[J])), math.Log(float64(s[L]))}
}

// Lookup returns the kernel for a size and the layer that answered; LayerModel comes with the kernel −1. The nearest
// size is that with the smallest sum of squared logarithms of the ratios of I, J and L; of equals it is the first.
func (l *Logic) Lookup(s Size) (int, Layer) {
	if k, ok := l.exact[s]; ok {
		return int(k), LayerExact
	}
	return l.LookupOther(s)
}

// LookupOther is Lookup as if the size were none of the exact sizes.
func (l *Logic) LookupOther(s Size) (int, Layer) {
	if k := l.inRange(s); k >= 0 {
		return k, LayerRange
	}
	if l.Fallback == Nearest {
		if i := l.nearest(s); i >= 0 {
			return l.Exact[i].Kernel, LayerNearest
		}
	}
	return -1, LayerModel
}

func (l *Logic) inRange(s Size) int {
	rules := l.Ranges
	for depth := 0; ; depth++ {
		v, next := s[l.Order[min(depth, len(l.Order)-1)]], -1
		for i := range rules {
			if rules[i].Most < 0 || v <= rules[i].Most {
				next = i
				break
			}
		}
		if next < 0 {
			return -1
		}
		if rules[next].Rules == nil {
			return rules[next].Kernel
		}
		rules = rules[next].Rules
	}
}

// nearest returns the place of the nearest exact size that is not the size itself, −1 if there is none.
func (l *Logic) nearest(s Size) int {
	at, best, least := logsOf(s), -1, math.Inf(1)
	for i := range l.logs {
		x := &l.logs[i]
		a, b, c := x[0]-at[0], x[1]-at[1], x[2]-at[2]
		if d := a*a + b*b + c*c; d < least && l.Exact[i].Size != s {
			best, least = i, d
		}
	}
	return best
}

// Speed returns the speed of an exact size, 0 if there is none.
func (l *Logic) Speed(s Size) float64 {
	for i := range l.Exact {
		if l.Exact[i].Size == s {
			return l.Exact[i].Speed
		}
	}
	return 0
}

// Leaves counts the kernels at the ends of the range logic.
func (l *Logic) Leaves() int { return leaves(l.Ranges) }

func leaves(rules []Rule) (n int) {
	for i := range rules {
		if rules[i].Rules == nil {
			n++
		} else {
			n += leaves(rules[i].Rules)
		}
	}
	return n
}

// used counts the exact sizes and leaves of each kernel.
func (l *Logic) used() []int {
	n := make([]int, len(l.Kernels))
	var walk func(rules []Rule)
	walk = func(rules []Rule) {
		for i := range rules {
			if rules[i].Rules == nil {
				n[rules[i].Kernel]++
			}
			walk(rules[i].Rules)
		}
	}
	walk(l.Ranges)
	for i := range l.Exact {
		n[l.Exact[i].Kernel]++
	}
	return n
}

// Wins returns the numbers of the kernels with the exact sizes and leaves of each, the most used first.
func (l *Logic) Wins() (order, counts []int) {
	counts = l.used()
	order = make([]int, len(counts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	return order, counts
}
