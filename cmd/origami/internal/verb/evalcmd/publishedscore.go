package evalcmd

import (
	"cmp"
	"math"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// publishedAnswer is what `eval --published --json` writes.
type publishedAnswer struct {
	Kernel    string           `json:"kernel"` // the kernel family, and the models that answered
	Models    []string         `json:"models"`
	RanksOnly bool             `json:"ranks_only,omitempty"` // `true` if one of the models predicts no times
	Times     int              `json:"times"`                // the number of published times that were asked about
	Groups    []publishedGroup `json:"groups"`               // per device, type and scheme
	Classes   []publishedClass `json:"classes"`              // by class of shape, over all groups
	// per pair of devices, type, scheme and class of shape
	Pairs    []publishedPair     `json:"pairs"`
	AllPairs comparability       `json:"all_pairs"` // the numbers of `pairs` over all
	Sources  []*published.Source `json:"sources"`   // the sources of the times
	// parts with published times that no plugin has a device file for
	Without  []string         `json:"without_model"`
	Doubtful []publishedDoubt `json:"not_scored"` // published times that are not scored
	// how intervals hold for another source of a device, and for another device of an architecture
	LeftOut []publishedLeftOut `json:"left_out"`
}

// publishedLeftOut is how intervals hold where the times that they are of did not count.
type publishedLeftOut struct {
	Evidence arch.Evidence `json:"evidence" enum:"checked,sister"` // another source, or another device
	// the share of the times that the intervals hold, each source or device with the same weight
	Held  float64 `json:"held"`
	Width float64 `json:"width"` // the median of high ÷ low
	// by class of shape, the share of the times
	Classes map[string]ask.Number `json:"classes"`
	Groups  []score.LeftOut       `json:"groups"` // the hardest first
}

// accuracy is how far predicted times are from published ones. The numbers are `null` without times.
type accuracy struct {
	Times   int        `json:"times"`   // how many
	Geomean ask.Number `json:"geomean"` // of predicted ÷ measured
	P10     ask.Number `json:"p10"`
	P90     ask.Number `json:"p90"`
	Within  ask.Number `json:"within" unit:"fraction"`       // the share within 20 %
	Error   ask.Number `json:"error_median" unit:"fraction"` // of \|predicted ÷ measured − 1\|
	// the problems that several stacks timed, and how often these agree; `null` with one stack
	CeilingOf int        `json:"ceiling_problems"`
	Ceiling   ask.Number `json:"ceiling" unit:"fraction"`
}

// publishedClass is the score on a class of shapes, or on all of them.
type publishedClass struct {
	Class string `json:"class"` // the class of shape
	accuracy
}

// publishedGroup is the score of a model on the times of a device, a type and a scheme.
type publishedGroup struct {
	Device  string           `json:"device"`       // as `arch@device`
	Part    string           `json:"part"`         // as published
	DType   string           `json:"dtype"`        // the type
	Scheme  string           `json:"scheme"`       // the scheme of scales
	Score   accuracy         `json:"score"`        // over all classes
	Refused int              `json:"not_modelled"` // how many times the model refuses, and why the first
	Reason  string           `json:"reason,omitempty"`
	Classes []publishedClass `json:"classes"` // by class of shape
}

// publishedDoubt is a number of times that are not scored.
type publishedDoubt struct {
	Device string `json:"device"` // the device
	Reason string `json:"reason"` // a word of [published times](published.md#times-that-are-not-scored)
	Times  int    `json:"times"`  // how many
}

// comparability is how well a model compares two devices. The shares are `null` where they are of nothing.
type comparability struct {
	Shapes    int        `json:"shapes"`                     // that both have a time of
	Within    ask.Number `json:"within" unit:"fraction"`     // the share of the ratios within 20 %
	Decided   int        `json:"decided"`                    // measured ratios over 1.1
	Winner    ask.Number `json:"winner" unit:"fraction"`     // the share of these with the right winner
	Sure      int        `json:"sure"`                       // one of the two has odds of 90 to 95 % to be faster
	SureRight ask.Number `json:"sure_right" unit:"fraction"` // the share of these with the right winner
	Brier     ask.Number `json:"brier"`                      // the mean of (odds − 1 or 0)²
	Apart     ask.Number `json:"brier_apart"`                // the same for deciding only where intervals do not touch
}

// publishedPair is the score of a model on the ratios of the times of two devices.
type publishedPair struct {
	pairedDevices
	comparability
}

// pairedDevices are two devices with a type, a scheme and a class of shapes.
type pairedDevices struct {
	First  string `json:"first"` // the devices
	Second string `json:"second"`
	DType  string `json:"dtype"` // the type, and the scheme of scales
	Scheme string `json:"scheme"`
	Class  string `json:"class"` // the class of shape
}

func (o *publishedOutcome) answer() publishedAnswer {
	all := o.pointers()
	out := publishedAnswer{Kernel: o.kernel, Models: o.models, RanksOnly: o.ranksOnly, Times: len(o.times),
		Groups: o.groups(), Classes: classes(all), Without: append([]string{}, o.without...), Doubtful: o.doubts(),
		LeftOut: []publishedLeftOut{}}
	out.Pairs, out.AllPairs = o.comparisons()
	sources, devices := leftOut(o.intervals())
	out.addLeftOut(arch.EvidenceChecked, &sources)
	out.addLeftOut(arch.EvidenceSister, &devices)
	out.Sources = slices.DeleteFunc(published.Sources(), func(s *published.Source) bool {
		return !slices.ContainsFunc(o.times, func(t publishedTime) bool { return t.Source == s })
	})
	return out
}

// addLeftOut adds a grade, unless nothing could be left out.
func (o *publishedAnswer) addLeftOut(evidence arch.Evidence, f *score.Ungrouped) {
	if len(f.Left) == 0 {
		return
	}
	out := publishedLeftOut{evidence, f.Held, f.Width, map[string]ask.Number{}, f.Left}
	for _, l := range score.Layers() {
		if share := f.Layers[l]; !math.IsNaN(share) {
			out.Classes[l.String()] = ask.Number(share)
		}
	}
	slices.SortStableFunc(out.Groups, func(a, b score.LeftOut) int { return cmp.Compare(a.Held, b.Held) })
	o.LeftOut = append(o.LeftOut, out)
}

func (o *publishedOutcome) pointers() []*publishedTime {
	all := make([]*publishedTime, len(o.times))
	for i := range o.times {
		all[i] = &o.times[i]
	}
	return all
}

// groups sums up by device, type and scheme, in this order.
func (o *publishedOutcome) groups() []publishedGroup {
	compare := func(a, b *publishedTime) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.DType, b.DType), cmp.Compare(a.Scheme, b.Scheme))
	}
	sorted, out := o.pointers(), []publishedGroup{}
	slices.SortStableFunc(sorted, compare)
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && compare(sorted[0], sorted[n]) == 0 {
			n++
		}
		first := sorted[0]
		g := publishedGroup{Device: first.Device, Part: first.Part, DType: first.DType, Scheme: first.Scheme,
			Score: accuracyOf(sorted[:n]), Classes: classes(sorted[:n])}
		for _, t := range sorted[:n] {
			if t.Err == nil {
				continue
			}
			if g.Refused++; g.Reason == "" {
				g.Reason = t.Err.Error()
			}
		}
		out, sorted = append(out, g), sorted[n:]
	}
	return out
}

// accuracyOf sums up the times that the model predicts.
func accuracyOf(times []*publishedTime) accuracy {
	var ratios []float64
	var figures [][]unit.Seconds
	for _, t := range times {
		if t.Err == nil {
			ratios = append(ratios, t.ratio())
			figures = append(figures, t.Stacks())
		}
	}
	a, ceiling := score.AccuracyOf(ratios), score.CeilingOf(figures)
	return accuracy{a.Count, unless(a.Count, a.Geomean), unless(a.Count, a.P10), unless(a.Count, a.P90),
		unless(a.Count, a.Within), unless(a.Count, a.Error), ceiling.Count, unless(ceiling.Count, ceiling.Share)}
}

// unless is a number that is unknown if it is the mean of none.
func unless(count int, v float64) ask.Number {
	if count == 0 {
		return ask.Number(math.NaN())
	}
	return ask.Number(v)
}

// classes sums up by class of shape those that have a time.
func classes(times []*publishedTime) []publishedClass {
	members, out := map[score.Layer][]*publishedTime{}, []publishedClass{}
	for _, t := range times {
		if t.Err == nil {
			l := score.LayerOf(t.problem)
			members[l] = append(members[l], t)
		}
	}
	for _, l := range score.Layers() {
		if len(members[l]) > 0 {
			out = append(out, publishedClass{l.String(), accuracyOf(members[l])})
		}
	}
	return out
}

// doubts lists the times that are not scored, by device.
func (o *publishedOutcome) doubts() []publishedDoubt {
	out := []publishedDoubt{}
	for d, n := range o.doubtful {
		out = append(out, publishedDoubt{d.device, d.reason, n})
	}
	slices.SortFunc(out, func(a, b publishedDoubt) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Device, b.Device))
	})
	return out
}

// kindOfTime is what two devices have to have in common to be compared on a shape.
type kindOfTime struct {
	m, n, k        int
	dtype, scheme  string
	transA, transB bool
}

// comparisons sums up by pair of devices, type, scheme and class, and over all of them.
func (o *publishedOutcome) comparisons() ([]publishedPair, comparability) {
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
				key := pairedDevices{a.Device, b.Device, a.DType, a.Scheme, score.LayerOf(a.problem).String()}
				by[key], all = append(by[key], v), append(all, v)
			}
		}
	}
	out := make([]publishedPair, 0, len(by))
	for key, list := range by {
		out = append(out, publishedPair{key, comparabilityOf(list)})
	}
	class := func(p *publishedPair) int {
		return slices.IndexFunc(score.Layers(), func(l score.Layer) bool { return l.String() == p.Class })
	}
	slices.SortFunc(out, func(a, b publishedPair) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Second, b.Second), cmp.Compare(a.DType, b.DType),
			cmp.Compare(a.Scheme, b.Scheme), class(&a)-class(&b))
	})
	return out, comparabilityOf(all)
}

func comparabilityOf(list []score.Versus) comparability {
	c := score.ComparabilityOf(list)
	return comparability{c.Count, unless(c.Count, c.Within), c.Decided, unless(c.Decided, c.Winner), c.Sure,
		unless(c.Sure, c.SureRight), unless(c.Stated, c.Brier), unless(c.Stated, c.BrierApart)}
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
