package logic

import (
	"cmp"
	"math"
	"slices"
)

// Way is a way to answer for a size that was not measured.
type Way string

// The ways.
const (
	// ByNearest takes the fastest kernel of the nearest measured size, ByRanges ranges and, outside of them, the same.
	ByNearest Way = "nearest size"
	ByRanges  Way = "ranges"
	// ByModel takes the kernel that a model predicts to be the fastest of the library, ByModelOfAll of all that were
	// measured.
	ByModel      Way = "model"
	ByModelOfAll Way = "model, all kernels"
	// ByBoth corrects the predicted times by what the model was wrong by at the nearest measured sizes.
	ByBoth Way = "table and model"
	// BySize is the table itself, at the sizes that it was built from.
	BySize Way = "measured sizes"
)

// Trial is what a way of answering is worth with so many kernels.
type Trial struct {
	// Most is the cap on the kernels, 0 for none. Kernels is how many the libraries have on average.
	Most    int
	Kernels float64
	Way     Way
	Regret  Regret
}

// Folds is how many parts sizes are dealt out to, if nobody says otherwise.
const Folds = 5

// Best returns the trial of the way with the least mean regret on sizes left out, of the ways that a logic can be built
// for, and false if no size could be left out.
func Best(trials []Trial) (Trial, bool) {
	var best *Trial
	for i := range trials {
		t := &trials[i]
		usable := t.Way == ByNearest || t.Way == ByRanges || t.Way == ByModel
		if usable && t.Regret.Sizes > 0 && (best == nil || t.Regret.Mean < best.Regret.Mean) {
			best = t
		}
	}
	if best == nil {
		return Trial{}, false
	}
	return *best, true
}

// Trials holds the ways of answering against each other on sizes left out: sizes are dealt out to parts, and each part
// is answered by libraries from the others. predicted are a model's times, in the layout of the table's; with nil, the
// ways that need a model are left out. Regrets are against the fastest of all kernels of the table. done is told of
// each library, of len(most) times the number of parts.
func Trials(t *Table, predicted [][]float64, most []int, o Options, parts int, done func(libraries int)) (
	[]Trial, error,
) {
	var trials []Trial
	for _, n := range most {
		o.Most = n
		ways := []Way{BySize, ByNearest, ByRanges}
		if predicted != nil {
			ways = append(ways, ByModel, ByBoth)
		}
		sums := make([]tally, len(ways))
		kernels, used := 0, 0
		for f := range min(parts, len(t.Sizes)) {
			p := deal(t, predicted, f, parts)
			if len(p.built.Sizes) == 0 {
				continue
			}
			r, err := p.library(o)
			if err != nil {
				return nil, err
			}
			kernels, used = kernels+len(r.kept), used+1
			for i, way := range ways {
				r.answer(way, &sums[i])
			}
			done(1)
		}
		for i, way := range ways {
			trials = append(trials, Trial{n, float64(kernels) / float64(used), way, sums[i].regret()})
		}
	}
	if predicted != nil {
		var all tally
		for i, row := range t.Times {
			all.add(row, least(predicted[i]))
		}
		trials = append(trials, Trial{0, float64(len(t.Kernels)), ByModelOfAll, all.regret()})
	}
	return trials, nil
}

// part is a table of the sizes that a library is built from, and one of those that it is asked for.
type part struct {
	built, asked                   *Table
	builtPredicted, askedPredicted [][]float64
}

func deal(t *Table, predicted [][]float64, f, parts int) *part {
	p := &part{built: &Table{Kernels: t.Kernels}, asked: &Table{Kernels: t.Kernels}}
	for i := range t.Sizes {
		to, times := p.built, &p.builtPredicted
		if i%parts == f {
			to, times = p.asked, &p.askedPredicted
		}
		to.Sizes, to.Times = append(to.Sizes, t.Sizes[i]), append(to.Times, t.Times[i])
		if predicted != nil {
			*times = append(*times, predicted[i])
		}
	}
	return p
}

// library is a logic, and what it was built from.
type library struct {
	*part
	logic *Logic
	kept  []int // the kernels of the logic in the table
}

func (p *part) library(o Options) (*library, error) {
	o.Ranges, o.Fallback, o.Predicted = true, Nearest, p.builtPredicted
	l, err := Build(p.built, o)
	if err != nil {
		return nil, err
	}
	kept, err := p.built.keep(o)
	return &library{p, l, kept}, err
}

// answer adds the regrets of a way.
func (r *library) answer(way Way, sum *tally) {
	if way == BySize {
		for i, s := range r.built.Sizes {
			k, _ := r.logic.Lookup(s)
			sum.add(r.built.Times[i], r.kept[k])
		}
		return
	}
	for i, s := range r.asked.Sizes {
		k := -1
		switch way {
		case ByNearest:
			k = r.kept[r.logic.Exact[r.logic.nearest(s, false)].Kernel]
		case ByRanges:
			at, _ := r.logic.Lookup(s)
			k = r.kept[at]
		case ByModel:
			k = r.fastest(i, r.askedPredicted[i])
		case ByBoth:
			k = r.fastest(i, r.corrected(s, r.askedPredicted[i]))
		case BySize, ByModelOfAll:
		}
		sum.add(r.asked.Times[i], k)
	}
}

// fastest returns the kernel of the library that some times say is the fastest, of those that work at an asked size.
func (r *library) fastest(i int, times []float64) int {
	best := -1
	for _, k := range r.kept {
		if !math.IsInf(r.asked.Times[i][k], 1) && (best < 0 || times[k] < times[best]) {
			best = k
		}
	}
	return best
}

// neighbours is how many sizes correct a prediction.
const neighbours = 4

// prior is the weight of no correction: as much as that of a size at twice one of m, n and k.
const prior = 1 / (math.Ln2 * math.Ln2)

// corrected returns predicted times, corrected by what the model was wrong by at the nearest measured sizes. At each of
// these a kernel has an error log(measured ÷ predicted), of which the mean over the kernels is taken, since errors that
// all share change no choice. A time is multiplied by the exponential of the mean of its kernel's errors, weighted by
// the inverse square of the distance, and with prior for no error.
func (r *library) corrected(s Size, predicted []float64) []float64 {
	type near struct {
		size   int
		weight float64
	}
	at := logsOf(s)
	var all []near
	for i := range r.logic.logs {
		d := 1e-9
		for j, x := range r.logic.logs[i] {
			d += (x - at[j]) * (x - at[j])
		}
		all = append(all, near{i, 1 / d})
	}
	slices.SortStableFunc(all, func(x, y near) int { return cmp.Compare(y.weight, x.weight) })
	sums, weights := make([]float64, len(predicted)), make([]float64, len(predicted))
	for _, n := range all[:min(len(all), neighbours)] {
		errs, mean, count := make([]float64, len(r.kept)), 0.0, 0
		for i, k := range r.kept {
			errs[i] = math.Log(r.built.Times[n.size][k] / r.builtPredicted[n.size][k])
			if known(errs[i]) {
				mean, count = mean+errs[i], count+1
			}
		}
		for i, k := range r.kept {
			if known(errs[i]) {
				sums[k] += n.weight * (errs[i] - mean/float64(count))
				weights[k] += n.weight
			}
		}
	}
	out := slices.Clone(predicted)
	for _, k := range r.kept {
		out[k] *= math.Exp(sums[k] / (weights[k] + prior))
	}
	return out
}

func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// tally adds up regrets.
type tally struct {
	sum, worst        float64
	sizes, unanswered int
}

// add enters a size: the times of its kernels, and the one that was chosen, −1 for none.
func (t *tally) add(times []float64, k int) {
	if k < 0 || math.IsInf(times[k], 1) {
		t.unanswered++
		return
	}
	ratio := times[k] / times[least(times)]
	t.sizes++
	t.sum += math.Log(ratio)
	t.worst = max(t.worst, ratio-1)
}

func (t *tally) regret() Regret {
	r := Regret{Sizes: t.sizes, Unanswered: t.unanswered, Mean: math.Expm1(t.sum / float64(t.sizes)), Worst: t.worst}
	if t.sizes == 0 {
		r.Mean, r.Worst = math.NaN(), math.NaN()
	}
	return r
}
