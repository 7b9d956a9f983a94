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

func least(v []float64) int { return slices.Index(v, slices.Min(v)) }

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

// Predictions are a model's times of the kernels of a table, +Inf for those that it rejects.
type Predictions struct {
	// Times are those at the sizes of the table.
	Times [][]float64
	// Sizes are others, as Between returns them, and Elsewhere the times there.
	Sizes     []Size
	Elsewhere [][]float64
}

// between is how many sizes Between returns.
const between = 256

// Between returns sizes that fill the box of the given ones evenly in the logarithms of m, n and k. They are multiples
// of the powers of two, up to 64, that the given ones are multiples of.
func Between(sizes []Size) []Size {
	low, high := box(sizes)
	out := make([]Size, between)
	for i := range out {
		like := sizes[i%len(sizes)]
		out[i] = like
		for j, at := range []int{I, J, L} {
			// A rank-1 lattice of three dimensions: the powers of the inverse of the root of x⁴ = x + 1.
			_, part := math.Modf(0.5 + float64(i+1)*math.Pow(1.2207440846057596, -float64(j+1)))
			v := float64(low[at]) * math.Pow(float64(high[at])/float64(low[at]), part)
			step := min(64, like[at]&-like[at])
			out[i][at] = int(math.Round(v/float64(step))) * step
			switch { // rounding does not leave the box
			case out[i][at] < low[at]:
				out[i][at] += step
			case out[i][at] > high[at]:
				out[i][at] -= step
			}
		}
	}
	return out
}

// box returns the smallest and the largest value of each index.
func box(sizes []Size) (low, high Size) {
	low, high = sizes[0], sizes[0]
	for _, s := range sizes {
		for i, v := range s {
			low[i], high[i] = min(low[i], v), max(high[i], v)
		}
	}
	return low, high
}

// view is a size and one way of choosing a kernel there: the library's kernel with the least by is taken. A kernel's
// loss is log(its time ÷ the time of the fastest of all kernels).
type view struct {
	by, loss []float64
	weight   float64
}

// unanswered is the loss of a size at which no kernel of a library has a time: more than any kernel's.
const unanswered = 20

func newView(by, times []float64, weight float64) view {
	v := view{slices.Clone(by), make([]float64, len(times)), weight}
	fastest := times[least(times)]
	for k, t := range times {
		if v.loss[k] = math.Log(t / fastest); !(v.loss[k] < unanswered) {
			v.by[k], v.loss[k] = math.Inf(1), unanswered
		}
	}
	return v
}

// views are what kernels are chosen by. The measured sizes count twice: answered by the table, and as the model would
// answer if they were not in it. The sizes that were not measured count as the model answers them; what its choice
// loses there is held against the model's times as the measured ones correct them.
func (t *Table) views(model *Predictions) []view {
	var views []view
	for i, times := range t.Times {
		views = append(views, newView(times, times, 1/float64(len(t.Sizes))))
		if model != nil {
			views = append(views, newView(model.Times[i], times, 1/float64(len(t.Sizes))))
		}
	}
	if model != nil {
		errs := t.errors(model)
		for i, times := range model.Elsewhere {
			if math.IsInf(times[least(times)], 1) {
				continue
			}
			views = append(views, newView(times, t.corrected(times, model.Sizes[i], errs),
				1/float64(len(model.Elsewhere))))
		}
	}
	return views
}

// errors are the logarithms of measured ÷ predicted times, NaN where one is missing, less their mean at each size:
// errors that all kernels share change no choice.
func (t *Table) errors(model *Predictions) [][]float64 {
	errs := make([][]float64, len(t.Sizes))
	for i := range errs {
		errs[i] = make([]float64, len(t.Kernels))
		sum, count := 0.0, 0.0
		for k := range errs[i] {
			if e := math.Log(t.Times[i][k] / model.Times[i][k]); !math.IsInf(e, 0) {
				errs[i][k] = e
			} else {
				errs[i][k] = math.NaN()
			}
			if !math.IsNaN(errs[i][k]) {
				sum, count = sum+errs[i][k], count+1
			}
		}
		for k := range errs[i] {
			errs[i][k] -= sum / count
		}
	}
	return errs
}

// Measured sizes correct predictions by the mean of their errors, with the weight of a normal distribution in the
// distance, and beside them a prior of no error. Both constants are assumed: on sizes left out of 16 sweeps of one
// device, a prior of 2 is as good.
const (
	reach = 2.0 // octaves
	prior = 0.5 // measured sizes at no distance
)

// corrected returns predicted times of a size, corrected by the model's errors at the measured sizes.
func (t *Table) corrected(predicted []float64, s Size, errs [][]float64) []float64 {
	sums, weights := make([]float64, len(predicted)), make([]float64, len(predicted))
	at := logsOf(s)
	for i := range t.Sizes {
		d := 0.0
		for j, x := range logsOf(t.Sizes[i]) {
			d += (x - at[j]) * (x - at[j])
		}
		weight := math.Exp(-d / (2 * reach * reach * math.Ln2 * math.Ln2))
		for k, e := range errs[i] {
			if !math.IsNaN(e) {
				sums[k], weights[k] = sums[k]+weight*e, weights[k]+weight
			}
		}
	}
	out := slices.Clone(predicted)
	for k := range out {
		out[k] *= math.Exp(sums[k] / (weights[k] + prior))
	}
	return out
}

// choose returns the kernels of a library. Without a limit they are all that are the fastest at some measured size,
// and those that lower the loss of the model's choices. With one, the kernel that lowers the mean loss most is added
// until there are enough, and then each is exchanged for another while that lowers it.
func (t *Table) choose(o *Options) ([]int, error) {
	for i, row := range t.Times {
		if math.IsInf(row[least(row)], 1) {
			return nil, diag.Inputf("no kernel has a time at %v", t.Sizes[i]).Do("leave the size out")
		}
	}
	c := chooser{t.views(o.Model), len(t.Kernels)}
	var kept []int
	if o.Most == 0 {
		for _, row := range t.Times {
			if k := least(row); !slices.Contains(kept, k) {
				kept = append(kept, k)
			}
		}
	}
	for o.Most == 0 || len(kept) < o.Most {
		gains := c.gains(kept)
		k := largest(gains)
		if !(gains[k] > noGain) {
			break
		}
		kept = append(kept, k)
	}
	for better := o.Most > 0; better; {
		better = false
		for i := range kept {
			gains := c.gains(slices.Delete(slices.Clone(kept), i, i+1))
			if k := largest(gains); gains[k] > gains[kept[i]]+noGain {
				kept[i], better = k, true
			}
		}
	}
	for i, row := range t.Times {
		if !slices.ContainsFunc(kept, func(k int) bool { return !math.IsInf(row[k], 1) }) {
			return nil, diag.Inputf("%d kernels do not reach: none of them has a time at %v", o.Most, t.Sizes[i]).
				Do("allow more")
		}
	}
	slices.Sort(kept)
	return slices.Compact(kept), nil // one that only misled the model was exchanged for one that is there
}

// noGain is a mean loss that is rounding alone, so that equal kernels are not exchanged for ever.
const noGain = 1e-12

func largest(v []float64) int { return slices.Index(v, slices.Max(v)) }

// chooser finds kernels that lower the mean loss of all views.
type chooser struct {
	views   []view
	kernels int
}

// gains are what each kernel lowers the mean loss of a library by: nothing, if the library has it.
func (c *chooser) gains(kept []int) []float64 {
	gains := make([]float64, c.kernels)
	for i := range c.views {
		v := &c.views[i]
		by, loss := math.Inf(1), float64(unanswered)
		for _, k := range kept {
			if v.by[k] < by {
				by, loss = v.by[k], v.loss[k]
			}
		}
		for k, other := range v.by {
			if other < by {
				gains[k] += v.weight * (loss - v.loss[k])
			}
		}
	}
	return gains
}
