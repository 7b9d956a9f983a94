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
	// Importance is the share of all savings below which a kernel is removed.
	Importance float64
	// Predicted are a model's times, in the layout of the table's. With them, a limited number of kernels suits the model
	// too, which chooses among them at other sizes.
	Predicted [][]float64
	// Ranges, or else exact sizes and the fallback alone.
	Ranges   bool
	Fallback Fallback
}

// Build returns the kernels, sizes and rules of a logic for a table; the caller says what it is for.
func Build(t *Table, o Options) (*Logic, error) {
	if len(t.Sizes) == 0 {
		return nil, diag.Inputf("there are no measured sizes").Do("measure some first")
	}
	kept, err := t.keep(o)
	if err != nil {
		return nil, err
	}
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

// keep returns the kernels that stay. It begins with those that are the fastest somewhere. The one that saves the least
// goes, one after the other, while there are too many, or while it saves less than Importance of what all save. A
// kernel saves what the next best one takes longer, over the sizes where it is the fastest. The only one that works at
// some size stays. Of a limited number, each is exchanged then for what is better beside the others, also for a kernel
// that is the fastest nowhere.
func (t *Table) keep(o Options) ([]int, error) {
	wins := make([]bool, len(t.Kernels))
	for i, row := range t.Times {
		best := least(row)
		if math.IsInf(row[best], 1) {
			return nil, diag.Inputf("no kernel has a time at %v", t.Sizes[i]).Do("leave the size out")
		}
		wins[best] = true
	}
	var kept []int
	for k, w := range wins {
		if w {
			kept = append(kept, k)
		}
	}
	for len(kept) > 1 {
		saved := t.savings(kept)
		i, all := least(saved), 0.0
		for _, s := range saved {
			if !math.IsInf(s, 1) {
				all += s
			}
		}
		tooMany := o.Most > 0 && len(kept) > o.Most
		if math.IsInf(saved[i], 1) {
			if tooMany {
				return nil, diag.Inputf("%d kernels do not reach: at some size only one of %d works", o.Most, len(kept)).
					Do("allow more")
			}
			break
		}
		if !tooMany && !(saved[i] < o.Importance*all) {
			break
		}
		kept = slices.Delete(kept, i, i+1)
	}
	if o.Most > 0 && len(kept) == o.Most {
		t.exchange(kept, o.Predicted)
	}
	return kept, nil
}

// exchange replaces kept kernels, one at a time, until no other kernel lowers the mean regret: of the fastest kept
// kernel at each size, and of the one that is predicted to be.
func (t *Table) exchange(kept []int, predicted [][]float64) {
	ways := [][][]float64{t.Times}
	if predicted != nil {
		ways = append(ways, predicted)
	}
	type choice struct{ by, time float64 }
	others := make([][]choice, len(ways)) // by way and size, of the kept kernels but one
	loss := func(k int) (sum float64) {
		for w, by := range ways {
			for s, other := range others[w] {
				if by[s][k] < other.by {
					other.time = t.Times[s][k]
				}
				sum += math.Log(other.time)
			}
		}
		return sum
	}
	for better := true; better; {
		better = false
		for i := range kept {
			for w, by := range ways {
				others[w] = make([]choice, len(t.Sizes))
				for s := range others[w] {
					others[w][s] = choice{math.Inf(1), math.Inf(1)}
					for j, k := range kept {
						if j != i && by[s][k] < others[w][s].by {
							others[w][s] = choice{by[s][k], t.Times[s][k]}
						}
					}
				}
			}
			least := loss(kept[i])
			for k := range t.Kernels {
				if l := loss(k); l < least-1e-12 && !slices.Contains(kept, k) {
					kept[i], least, better = k, l, true
				}
			}
		}
	}
	slices.Sort(kept)
}

// savings are the relative time that each kept kernel saves, so that small sizes count as much as large ones.
func (t *Table) savings(kept []int) []float64 {
	saved := make([]float64, len(kept))
	for _, row := range t.Times {
		best, second := -1, math.Inf(1)
		for i, k := range kept {
			switch {
			case best < 0 || row[k] < row[kept[best]]:
				if best >= 0 {
					second = row[kept[best]]
				}
				best = i
			case row[k] < second:
				second = row[k]
			}
		}
		saved[best] += second/row[kept[best]] - 1
	}
	return saved
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

// Regret is how much slower a logic's kernels are than the fastest ones measured.
type Regret struct {
	// Sizes are those that the logic answers for, Unanswered those that it leaves to a model, or for which its kernel has
	// no time.
	Sizes, Unanswered int
	// Mean is the geometric mean of time ÷ fastest time − 1, Worst the largest. Both are NaN without sizes.
	Mean, Worst float64
}

// Answerer is a way to use a logic.
type Answerer func(l *Logic, s Size) int

// The ways to use a logic.
var (
	Whole      Answerer = func(l *Logic, s Size) int { k, _ := l.Lookup(s); return k }
	RangesOnly Answerer = func(l *Logic, s Size) int { return l.inRange(s) }
	// NearestOther takes the nearest size that is not the size itself.
	NearestOther Answerer = func(l *Logic, s Size) int {
		if i := l.nearest(s, true); i >= 0 {
			return l.Exact[i].Kernel
		}
		return -1
	}
)

// Regret holds a logic against a table with its kernels, found by their configurations. Those of other libraries have
// none, and are found by name.
func (l *Logic) Regret(t *Table, ask Answerer) Regret {
	var sum tally
	l.tally(t, ask, &sum)
	return sum.regret()
}

func (l *Logic) tally(t *Table, ask Answerer, sum *tally) {
	place := make([]int, len(l.Kernels))
	for i := range l.Kernels {
		own := &l.Kernels[i]
		place[i] = slices.IndexFunc(t.Kernels, func(k Kernel) bool {
			if own.Config.BlockM == 0 || k.Config.BlockM == 0 {
				return k.Name == own.Name
			}
			return k.Config == own.Config
		})
	}
	for i, s := range t.Sizes {
		k := ask(l, s)
		if k >= 0 {
			k = place[k]
		}
		sum.add(t.Times[i], k)
	}
}
