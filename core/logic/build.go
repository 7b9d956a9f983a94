package logic

import (
	"cmp"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
)

// Table are measured times: of each kernel at each size, +Inf where it has none.
type Table struct {
	Kernels []Kernel
	Sizes   []Size
	// Times has a row per size, in seconds.
	Times [][]float64
}

// Options say how a logic is built.
type Options struct {
	// Most is the largest number of kernels, 0 for no limit.
	Most int
	// Loss is the tolerated loss of a range: how much slower than the fastest kernel its kernel may be at each size.
	Loss float64
	// Importance is the share of all savings below which no kernel is added.
	Importance float64
	// Model is what a model says of the table, nil for none. With it, the kernels suit the model too, which chooses among
	// them at other sizes.
	Model *Predictions
	// Ranges, or else exact sizes and the fallback alone.
	Ranges   bool
	Fallback Fallback
}

// Build returns the kernels, sizes and rules of a logic for a table; the caller says what it is for.
func Build(t *Table, o Options) (*Logic, error) {
	if len(t.Sizes) == 0 {
		return nil, diag.Inputf("there are no measured sizes").Do("measure some first")
	}
	kept, err := t.choose(&o)
	if err != nil {
		return nil, err
	}
	return t.with(kept, &o)
}

// with returns the logic of some kernels.
func (t *Table) with(kept []int, o *Options) (*Logic, error) {
	l := &Logic{Fallback: o.Fallback, Order: defaultOrder, Unit: BuildUnit}
	for _, k := range kept {
		l.Kernels = append(l.Kernels, t.Kernels[k])
	}
	b := builder{loss: o.Loss}
	for i, s := range t.Sizes {
		times := make([]float64, len(kept))
		for j, k := range kept {
			times[j] = t.Times[i][k]
		}
		best := least(times)
		flops := 2 * float64(s[I]) * float64(s[J]) * float64(s[B]) * float64(s[L])
		l.Exact = append(l.Exact, Entry{Size: s, Kernel: best, Speed: flops / times[best] / 1e9})
		b.cells = append(b.cells, cell{s, times, times[best]})
	}
	if o.Ranges {
		l.Ranges, _ = b.rules(b.cells, l.Order)
	}
	return l, l.Prepare()
}

// BuildUnit is the unit of the speeds of logics that are built from times.
const BuildUnit = "GFLOPS"

func least(v []float64) int {
	best := 0
	for i := range v {
		if v[i] < v[best] {
			best = i
		}
	}
	return best
}

// cell is a size with the times of the kept kernels.
type cell struct {
	size  Size
	times []float64
	best  float64
}

// builder makes rules.
type builder struct {
	loss  float64
	cells []cell
}

// rules splits cells along the indices of an order. It walks the values of the first index upwards, and joins one to
// the rule before it if a common rule has fewer leaves than two. The second result is false if some cells that cannot
// be told apart have no kernel that all tolerate. The last threshold is the largest value: above, nothing was measured.
func (b *builder) rules(cells []cell, order []int) ([]Rule, bool) {
	index := order[0]
	cells = slices.Clone(cells)
	slices.SortStableFunc(cells, func(x, y cell) int { return cmp.Compare(x.size[index], y.size[index]) })
	var out []Rule
	var group []cell
	for start := 0; start < len(cells); {
		end := start
		for end < len(cells) && cells[end].size[index] == cells[start].size[index] {
			end++
		}
		alone, ok := b.rule(cells[start:end], order)
		if !ok {
			return nil, false
		}
		joined := append(slices.Clip(group), cells[start:end]...)
		if len(out) > 0 {
			last := &out[len(out)-1]
			both, ok := b.rule(joined, order)
			if ok && leaves([]Rule{both}) < leaves([]Rule{*last, alone}) {
				both.Most = cells[start].size[index]
				*last, group, start = both, joined, end
				continue
			}
		}
		alone.Most = cells[start].size[index]
		out, group = append(out, alone), cells[start:end:end]
		start = end
	}
	return out, true
}

// rule returns the rule for cells that the first index does not tell apart.
func (b *builder) rule(cells []cell, order []int) (Rule, bool) {
	if len(order) > 1 {
		rules, ok := b.rules(cells, order[1:])
		return Rule{Rules: rules}, ok
	}
	kernel, least := -1, math.Inf(1)
	for k := range cells[0].times {
		sum := 0.0
		for i := range cells {
			ratio := cells[i].times[k] / cells[i].best
			if ratio > 1+b.loss {
				sum = math.Inf(1)
				break
			}
			sum += ratio
		}
		if sum < least {
			kernel, least = k, sum
		}
	}
	return Rule{Kernel: kernel}, kernel >= 0
}
