package evalcmd

import (
	"cmp"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// publishedGroup is the score of a model on the times of a device, a type and a scheme.
type publishedGroup struct {
	device, part, dtype, scheme string
	publishedClass
	// refused is the number of times that the model does not predict, reason why it does not predict the first.
	refused int
	reason  error
	classes []publishedClass
}

// typeName is the type, and the scheme if there are several for it.
func typeName(dtype, scheme string) string {
	if scheme == published.NoScheme || scheme == published.TensorScheme {
		return dtype
	}
	return dtype + " " + scheme
}

// publishedClass is the score on a class of shapes, or on all of them.
type publishedClass struct {
	name string
	score.Accuracy
	ceiling score.Ceiling
}

// groups sums up by device, type and scheme, in this order.
func (o *publishedOutcome) groups() []publishedGroup {
	compare := func(a, b *publishedTime) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.DType, b.DType), cmp.Compare(a.Scheme, b.Scheme))
	}
	sorted := make([]*publishedTime, len(o.times))
	for i := range o.times {
		sorted[i] = &o.times[i]
	}
	slices.SortStableFunc(sorted, compare)
	var out []publishedGroup
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && compare(sorted[0], sorted[n]) == 0 {
			n++
		}
		first := sorted[0]
		g := publishedGroup{device: first.Device, part: first.Part, dtype: first.DType, scheme: first.Scheme,
			publishedClass: summarise("all", sorted[:n])}
		for _, t := range sorted[:n] {
			if t.Err == nil {
				continue
			}
			if g.refused++; g.reason == nil {
				g.reason = t.Err
			}
		}
		g.classes = classes(sorted[:n])
		out, sorted = append(out, g), sorted[n:]
	}
	return out
}

// summarise sums up the times that the model predicts.
func summarise(name string, times []*publishedTime) publishedClass {
	var ratios []float64
	var figures [][]unit.Seconds
	for _, t := range times {
		if t.Err == nil {
			ratios = append(ratios, t.ratio())
			figures = append(figures, t.Stacks())
		}
	}
	return publishedClass{name, score.AccuracyOf(ratios), score.CeilingOf(figures)}
}

// classes sums up by class of shape those that have a time.
func classes(times []*publishedTime) []publishedClass {
	members := map[score.Layer][]*publishedTime{}
	for _, t := range times {
		if t.Err == nil {
			l := score.LayerOf(t.problem)
			members[l] = append(members[l], t)
		}
	}
	var out []publishedClass
	for _, l := range score.Layers() {
		if len(members[l]) > 0 {
			out = append(out, summarise(l.String(), members[l]))
		}
	}
	return out
}

// doubts lists the times that are not scored, by device.
func (o *publishedOutcome) doubts() []publishedDoubt {
	var out []publishedDoubt
	for d, n := range o.doubtful {
		out = append(out, publishedDoubt{d.device, d.reason, n})
	}
	slices.SortFunc(out, func(a, b publishedDoubt) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Device, b.Device))
	})
	return out
}

// publishedDoubt is a number of times that are not scored.
type publishedDoubt struct {
	Device string `json:"device"` // the device
	Reason string `json:"reason"` // a word of [published times](published.md#times-that-are-not-scored)
	Times  int    `json:"times"`  // how many
}

func (o *publishedOutcome) all() publishedGroup {
	times := make([]*publishedTime, len(o.times))
	for i := range o.times {
		times[i] = &o.times[i]
	}
	return publishedGroup{publishedClass: summarise("all", times), classes: classes(times)}
}

// publishedPair is the score of a model on the ratios of the times of two devices.
type publishedPair struct {
	pairedDevices
	score.Comparability
}

// kindOfTime is what two devices have to have in common to be compared on a shape.
type kindOfTime struct {
	m, n, k        int
	dtype, scheme  string
	transA, transB bool
}

// pairedDevices are two devices with a type, a scheme and a class of shapes.
type pairedDevices struct {
	first, second, dtype, scheme string
	class                        score.Layer
}

// comparisons sums up by pair of devices, type, scheme and class, and over all of them.
func (o *publishedOutcome) comparisons() ([]publishedPair, publishedPair) {
	shapes := map[kindOfTime][]*publishedTime{}
	for i := range o.times {
		t := &o.times[i]
		if t.Err == nil {
			k := kindOfTime{t.M, t.N, t.K, t.DType, t.Scheme, t.TransA, t.TransB}
			shapes[k] = append(shapes[k], t)
		}
	}
	by := map[pairedDevices][]score.Versus{}
	var all []score.Versus
	for _, times := range shapes {
		times = onePerDevice(times)
		for i, a := range times {
			for _, b := range times[i+1:] {
				v := score.Versus{
					Predicted: float64(a.Prediction.Time / b.Prediction.Time), Measured: float64(a.Median / b.Median),
				}
				v.Odds, v.Apart = o.odds(a, b)
				key := pairedDevices{a.Device, b.Device, a.DType, a.Scheme, score.LayerOf(a.problem)}
				by[key], all = append(by[key], v), append(all, v)
			}
		}
	}
	out := make([]publishedPair, 0, len(by))
	for key, list := range by {
		out = append(out, publishedPair{key, score.ComparabilityOf(list)})
	}
	slices.SortFunc(out, func(a, b publishedPair) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.second, b.second), cmp.Compare(a.dtype, b.dtype),
			cmp.Compare(a.scheme, b.scheme), cmp.Compare(a.class, b.class))
	})
	return out, publishedPair{Comparability: score.ComparabilityOf(all)}
}

// odds returns the probability that the first of two times is the shorter one, and whether their intervals do not
// touch.
// It is NaN without intervals.
func (o *publishedOutcome) odds(a, b *publishedTime) (odds float64, apart bool) {
	low, high, ok := o.interval(a)
	from, to, also := o.interval(b)
	if !ok || !also {
		return math.NaN(), false
	}
	return score.Odds(float64(low), float64(high), float64(from), float64(to), score.Level), high < from || to < low
}

// interval returns the interval of a predicted time.
func (o *publishedOutcome) interval(t *publishedTime) (low, high unit.Seconds, ok bool) {
	return t.model.Scope(o.kernel, &t.problem, t.Config.SplitK).Interval(t.Bound, t.Prediction.Time)
}

// onePerDevice sorts times of one shape by device and keeps one of each, one of a model or of layers, or else a cold
// one, which other devices are likely to have too.
func onePerDevice(times []*publishedTime) []*publishedTime {
	order := []timing.Timing{timing.Model, timing.Layers, timing.Layers5, timing.Cold, timing.Warm}
	rank := func(t *publishedTime) int {
		if i := slices.Index(order, t.Timing); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(times, func(a, b *publishedTime) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), rank(a)-rank(b),
			cmp.Compare(a.Median, b.Median))
	})
	return slices.CompactFunc(times, func(a, b *publishedTime) bool { return a.Device == b.Device })
}
