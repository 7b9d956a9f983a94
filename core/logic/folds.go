package logic

import (
	"cmp"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/digits"
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
	// BySize is the table itself, at the sizes that it was built from.
	BySize Way = "measured sizes"
)

// Trial is what libraries are worth on sizes that were left out when they were built.
type Trial struct {
	Most    int     `json:"most"` // kernels allowed (0: all), and their mean number
	Kernels float64 `json:"kernels"`
	Way     Way     `json:"way"` // what answered
	Regret
}

// Regret is how much slower chosen kernels are than the fastest ones measured: time ÷ fastest time − 1.
type Regret struct {
	Sizes      int `json:"sizes"` // how many, and how many have no answer
	Unanswered int `json:"unanswered"`
	// the mean and the largest
	Mean  digits.Number `json:"mean" unit:"fraction"`
	Worst digits.Number `json:"worst" unit:"fraction"`
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
		if usable && t.Sizes > 0 && (best == nil || t.Mean < best.Mean) {
			best = t
		}
	}
	if best == nil {
		return Trial{}, false
	}
	return *best, true
}

// Trials holds the ways of answering against each other on sizes left out: sizes are dealt out to parts, and each part
// is answered by libraries from the others. Without a model, the ways that need one are left out. Regrets are against
// the fastest of all kernels of the table. done is told of each library, of len(most) times the number of parts.
func Trials(t *Table, most []int, o Options, parts int, done func(libraries int)) ([]Trial, error) {
	var trials []Trial
	ways := []Way{BySize, ByNearest, ByRanges}
	if o.Model != nil {
		ways = append(ways, ByModel)
	}
	for _, n := range most {
		o.Most = n
		sums := map[Way]*tally{}
		for _, way := range ways {
			sums[way] = &tally{}
		}
		kernels, used := 0, 0
		for f := range min(parts, len(t.Sizes)) {
			p := deal(t, o.Model, f, parts)
			if len(p.built.Sizes) == 0 {
				continue
			}
			kept, err := p.answer(o, sums)
			if err != nil {
				return nil, err
			}
			kernels, used = kernels+kept, used+1
			done(1)
		}
		for _, way := range ways {
			trials = append(trials, Trial{n, float64(kernels) / float64(used), way, sums[way].regret()})
		}
	}
	if o.Model != nil {
		var all tally
		for i, row := range t.Times {
			all.add(row, least(o.Model.Times[i]))
		}
		trials = append(trials, Trial{0, float64(len(t.Kernels)), ByModelOfAll, all.regret()})
	}
	return trials, nil
}

// part is a table of the sizes that a library is built from, and one of those that it is asked for, with what a model
// says of them: nil without one.
type part struct {
	built, asked *Table
	model        *Predictions
	predicted    [][]float64
}

// deal makes a part. Nothing is known of the sizes that are asked for, so that the model is not asked outside of the
// box of the others.
func deal(t *Table, model *Predictions, f, parts int) *part {
	p := &part{built: &Table{Kernels: t.Kernels}, asked: &Table{Kernels: t.Kernels}}
	for i := range t.Sizes {
		to := p.built
		if i%parts == f {
			to = p.asked
		}
		to.Sizes, to.Times = append(to.Sizes, t.Sizes[i]), append(to.Times, t.Times[i])
	}
	if model == nil || len(p.built.Sizes) == 0 {
		return p
	}
	p.model = &Predictions{}
	for i, times := range model.Times {
		if i%parts == f {
			p.predicted = append(p.predicted, times)
		} else {
			p.model.Times = append(p.model.Times, times)
		}
	}
	low, high := box(p.built.Sizes)
	for i, s := range model.Sizes {
		inside := true
		for j, v := range s {
			inside = inside && low[j] <= v && v <= high[j]
		}
		if inside {
			p.model.Sizes, p.model.Elsewhere = append(p.model.Sizes, s), append(p.model.Elsewhere, model.Elsewhere[i])
		}
	}
	return p
}

// answer builds a library, adds the regrets of each way, and returns how many kernels the library has.
func (p *part) answer(o Options, sums map[Way]*tally) (kernels int, err error) {
	o.Ranges, o.Fallback, o.Model = true, Nearest, p.model
	kept, err := p.built.choose(&o) // the kernels of the library in the table
	if err != nil {
		return 0, err
	}
	l, err := p.built.with(kept, &o)
	if err != nil {
		return 0, err
	}
	add := func(way Way, times []float64, k int) {
		if k >= 0 {
			k = kept[k]
		}
		sums[way].add(times, k)
	}
	for i, s := range p.built.Sizes {
		k, _ := l.Lookup(s)
		add(BySize, p.built.Times[i], k)
	}
	for i, s := range p.asked.Sizes {
		nearest := l.nearest(s)
		if nearest >= 0 {
			nearest = l.Exact[nearest].Kernel
		}
		add(ByNearest, p.asked.Times[i], nearest)
		k, _ := l.Lookup(s)
		add(ByRanges, p.asked.Times[i], k)
		if p.predicted != nil {
			sums[ByModel].add(p.asked.Times[i], slices.MinFunc(kept, func(a, b int) int {
				return cmp.Compare(p.predicted[i][a], p.predicted[i][b])
			}))
		}
	}
	return len(kept), nil
}

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

// regret has the geometric mean. It and the worst are NaN without sizes.
func (t *tally) regret() Regret {
	worst := digits.Number(t.worst)
	if t.sizes == 0 {
		worst = digits.Number(math.NaN())
	}
	return Regret{t.sizes, t.unanswered, digits.Number(math.Expm1(t.sum / float64(t.sizes))), worst}
}
