package evalcmd

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
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
	AllPairs score.Comparability `json:"all_pairs"` // the numbers of `pairs` over all
	Sources  []*published.Source `json:"sources"`   // the sources of the times
	// parts with published times that no plugin has a device file for
	Without  []string         `json:"without_model"`
	Doubtful []publishedDoubt `json:"not_scored"` // published times that are not scored
	// how intervals hold for another source of a device, and for another device of an architecture
	LeftOut []publishedLeftOut `json:"left_out"`
}

// publishedLeftOut is how intervals hold for times that they were not found on. These times still correct predictions,
// except with the option nearby=none.
type publishedLeftOut struct {
	Evidence arch.Evidence `json:"evidence"` // another source, or another device
	score.GroupsLeftOut
}

// accuracy is how far predicted times are from published ones.
type accuracy struct {
	score.Accuracy
	score.Ceiling
}

// publishedClass is the score on a class of shapes, or on all of them.
type publishedClass struct {
	Class string `json:"class"` // the class of shape
	accuracy
}

// publishedKind is a device, a type and a scheme.
type publishedKind struct {
	Device string `json:"device"` // as `arch@device`
	Part   string `json:"part"`   // as published
	DType  string `json:"dtype"`  // the type
	Scheme string `json:"scheme"` // the scheme of scales
}

// publishedGroup is the score of a model on the times of a device, a type and a scheme.
type publishedGroup struct {
	publishedKind
	Score   accuracy         `json:"score"`        // over all classes
	Refused int              `json:"not_modelled"` // how many times the model refuses, and why the first
	Reason  string           `json:"reason,omitempty"`
	Classes []publishedClass `json:"classes"` // by class of shape
}

// publishedRow is a group or one of its classes, in CSV.
type publishedRow struct {
	publishedKind
	publishedClass
	Refused *int `json:"not_modelled"` // of the group
}

// publishedDoubt is a number of times that are not scored.
type publishedDoubt struct {
	Device string `json:"device"` // the device
	Reason string `json:"reason"` // a word of [published times](published.md#times-that-are-not-scored)
	Times  int    `json:"times"`  // how many
}

// publishedPair is the score of a model on the ratios of the times of two devices.
type publishedPair struct {
	pairedDevices
	score.Comparability
}

// pairedDevices are two devices with a type, a scheme and a class of shapes.
type pairedDevices struct {
	First  string `json:"first"` // the devices
	Second string `json:"second"`
	DType  string `json:"dtype"` // the type, and the scheme of scales
	Scheme string `json:"scheme"`
	Class  string `json:"class"` // the class of shape
}

// sumUp fills in the scores, without the intervals, which take longest.
func (o *publishedOutcome) sumUp() {
	o.Groups, o.Classes, o.LeftOut = o.groups(), classes(o.predicted), []publishedLeftOut{}
	o.Pairs, o.AllPairs = o.comparisons()
	o.Sources = slices.DeleteFunc(published.Sources(), func(s *published.Source) bool {
		return !slices.ContainsFunc(o.times, func(t *publishedTime) bool { return t.Source == s })
	})
}

// leaveOut fills in how intervals hold, of the grades of which something could be left out.
func (o *publishedOutcome) leaveOut() {
	_, sources, devices := leftOut(o.intervals())
	o.LeftOut = []publishedLeftOut{}
	for _, f := range []publishedLeftOut{{arch.EvidenceChecked, sources}, {arch.EvidenceSister, devices}} {
		if len(f.Left) > 0 {
			slices.SortStableFunc(f.Left, func(a, b score.LeftOut) int { return cmp.Compare(a.Held, b.Held) })
			o.LeftOut = append(o.LeftOut, f)
		}
	}
}

// groups sums up by device, type and scheme, in this order.
func (o *publishedOutcome) groups() []publishedGroup {
	out := []publishedGroup{}
	for _, times := range sortedBy(o.times, func(t *publishedTime) string { return joined(t.Device, t.DType, t.Scheme) }) {
		t := times[0]
		g := publishedGroup{publishedKind: publishedKind{t.Device, t.Part, t.DType, t.Scheme}}
		var predicted []*publishedTime
		for _, t := range times {
			if g.Reason = cmp.Or(g.Reason, t.Reason); t.err == nil {
				predicted = append(predicted, t)
			}
		}
		g.Score, g.Classes, g.Refused = accuracyOf(predicted), classes(predicted), len(times)-len(predicted)
		out = append(out, g)
	}
	return out
}

// accuracyOf sums up predicted times.
func accuracyOf(times []*publishedTime) accuracy {
	figures := make([][]unit.Seconds, len(times))
	for i, t := range times {
		figures[i] = t.Stacks()
	}
	return accuracy{score.AccuracyOf(rowsOf(times)), score.CeilingOf(figures)}
}

// classes sums up predicted times by class of shape, in the order of the classes.
func classes(times []*publishedTime) []publishedClass {
	out := []publishedClass{}
	for _, list := range sortedBy(times, func(t *publishedTime) string {
		return strconv.Itoa(int(score.LayerOf(t.row.Problem)))
	}) {
		out = append(out, publishedClass{list[0].Class, accuracyOf(list)})
	}
	return out
}

// comparisons sums up by pair of devices, type, scheme and class, and over all of them.
func (o *publishedOutcome) comparisons() ([]publishedPair, score.Comparability) {
	type kindOfTime struct { // what two devices have to have in common to be compared on a shape
		m, n, k        int
		dtype, scheme  string
		transA, transB bool
	}
	by := map[pairedDevices][]score.Versus{}
	layers := map[string]score.Layer{}
	var all []score.Versus
	for _, times := range score.GroupBy(o.predicted, func(t **publishedTime) kindOfTime {
		return kindOfTime{(*t).M, (*t).N, (*t).K, (*t).DType, (*t).Scheme, (*t).TransA, (*t).TransB}
	}) {
		times = onePerDevice(times)
		for i, a := range times {
			layers[a.Class] = score.LayerOf(a.row.Problem)
			for _, b := range times[i+1:] {
				v := score.Versus{Predicted: float64(a.Predicted / b.Predicted), Measured: float64(a.Median / b.Median)}
				v.Odds, v.Apart = o.odds(a, b)
				key := pairedDevices{a.Device, b.Device, a.DType, a.Scheme, a.Class}
				by[key], all = append(by[key], v), append(all, v)
			}
		}
	}
	out := make([]publishedPair, 0, len(by))
	for key, list := range by {
		out = append(out, publishedPair{key, score.ComparabilityOf(list)})
	}
	slices.SortFunc(out, func(a, b publishedPair) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Second, b.Second), cmp.Compare(a.DType, b.DType),
			cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(layers[a.Class], layers[b.Class]))
	})
	return out, score.ComparabilityOf(all)
}

// odds returns the probability that the first of two times is the shorter one, and whether their intervals do not
// touch. It is NaN without intervals.
func (o *publishedOutcome) odds(a, b *publishedTime) (odds float64, apart bool) {
	of := func(t *publishedTime) (arch.Distribution, bool) {
		r := &t.row
		return t.model.Scope(o.Kernel, &r.Problem, r.Config.SplitK).Distribution(r.Estimate(), r.Predicted)
	}
	first, ok := of(a)
	second, also := of(b)
	if !ok || !also {
		return math.NaN(), false
	}
	return score.Odds(first, second), first.High < second.Low || second.High < first.Low
}

// onePerDevice sorts times of one shape by device and keeps one of each, one of a model or of layers, or else a cold
// one, which other devices are likely to have too.
func onePerDevice(times []*publishedTime) []*publishedTime {
	order := []timing.Timing{timing.Warm, timing.Cold, timing.Layers5, timing.Layers, timing.Model}
	slices.SortFunc(times, func(a, b *publishedTime) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device),
			cmp.Compare(slices.Index(order, b.Timing), slices.Index(order, a.Timing)), cmp.Compare(a.Median, b.Median))
	})
	return slices.CompactFunc(times, func(a, b *publishedTime) bool { return a.Device == b.Device })
}

// each has each time.
func (o *publishedOutcome) each() *answer {
	key := show.Key[*publishedTime]
	return &answer{
		rows: func(s *iostreams.Streams, f show.Format) error { return show.Write(s, f, o.times) },
		page: func(s *iostreams.Streams) {
			_ = show.Write(s, show.Table, o.times, key("device"), key("dtype", "type"), key("m"), key("n"), key("k"),
				key("published_seconds", "published"),
				show.Text("predicted", func(t **publishedTime) string { return unit.Seconds((*t).Predicted).String() }),
				key("predicted_by_published", "predicted ÷ published").Or(none), key("source"))
		}}
}

// answer has the o.
func (o *publishedOutcome) answer(withPairs bool) *answer {
	o.sumUp()
	var rows []publishedRow
	for i := range o.Groups {
		g := &o.Groups[i]
		rows = append(rows, publishedRow{g.publishedKind, publishedClass{"all", g.Score}, &g.Refused})
		for _, c := range g.Classes {
			rows = append(rows, publishedRow{g.publishedKind, c, nil})
		}
	}
	return &answer{
		value: func() any {
			o.leaveOut()
			return &o.publishedAnswer
		},
		rows: func(s *iostreams.Streams, f show.Format) error {
			if withPairs {
				return show.Write(s, f, o.Pairs)
			}
			return show.Write(s, f, rows)
		},
		page: func(s *iostreams.Streams) { o.print(s, withPairs) },
	}
}

// print prints what people read.
func (o *publishedOutcome) print(s *iostreams.Streams, withPairs bool) {
	devices := sortedBy(o.times, deviceOf)
	show.Line(s, "model", "%s, kernel family %s", strings.Join(o.Models, ", "), o.Kernel)
	show.Line(s, "published", "%d times of %s; docs/published.md names their sources", len(o.times),
		digits.Plural(len(devices), "device", "devices"))
	if o.RanksOnly {
		show.Line(s, "not a time", "a model here ranks configurations and predicts no times: its ratios show where it is "+
			"off")
	}
	key, group, pair := show.Key[publishedClass], show.Key[publishedGroup], show.Key[publishedPair]
	_ = show.Write(s, show.Table, o.Groups, slices.Concat([]show.Column[publishedGroup]{group("device"),
		show.Text("type", func(g *publishedGroup) string { return typeName(g.DType, g.Scheme) })},
		accuracyColumns("score.", func(g *publishedGroup) *accuracy { return &g.Score }),
		[]show.Column[publishedGroup]{group("not_modelled", "not modelled")})...)
	s.Printf("\n")
	_ = show.Write(s, show.Table, append(o.Classes, publishedClass{"all", accuracyOf(o.predicted)}),
		slices.Concat([]show.Column[publishedClass]{key("class", "shapes")},
			accuracyColumns("", func(c *publishedClass) *accuracy { return &c.accuracy }))...)
	s.Printf("\n")
	if withPairs {
		_ = show.Write(s, show.Table, o.Pairs, pair("first"), pair("second"),
			show.Text("type", func(p *publishedPair) string { return typeName(p.DType, p.Scheme) }), pair("class", "shapes"),
			pair("shapes", "times"), pair("within", "ratio within 20 %"), pair("decided", "over 1.1"),
			pair("winner", "right winner").Or(none), pair("sure", "90–95 % sure"),
			pair("sure_right", "of these right").Or(none))
		s.Printf("\n")
	}
	o.below(s)
}

// accuracyColumns are what people see of an accuracy.
func accuracyColumns[T any](at string, of func(*T) *accuracy) []show.Column[T] {
	key := func(name, header string) show.Column[T] { return show.Key[T](at+name, header).Or(none) }
	return []show.Column[T]{key("times", "times"), key("geomean", "predicted ÷ measured"), key("p10", "p10"),
		key("p90", "p90"), key("within", "within 20 %"), key("ceiling", "stacks agree"),
		show.Text("of that", func(r *T) string { return percent(float64(of(r).Within / of(r).Share)) })}
}

// typeName is the type, and the scheme if there are several for it.
func typeName(dtype, scheme string) string {
	if plain(scheme) == published.TensorScheme {
		return dtype
	}
	return dtype + " " + scheme
}

// below is what people read below the tables.
func (o *publishedOutcome) below(s *iostreams.Streams) {
	if c := &o.AllPairs; c.Count > 0 {
		show.Line(s, "pairs", "%s of times on two devices: %s within 20 %%; of the %d measured ratios over 1.1, %s have "+
			"the right winner", digits.Plural(c.Count, "ratio", "ratios"), percent(float64(c.Within)), c.Decided,
			percent(float64(c.Winner)))
	}
	show.Line(s, "stacks agree", "the share of the pairs of software stacks whose times of one problem on one GPU are "+
		"within 20 %%; none where one stack was timed")
	// The reason of the first time of each group, with all groups that share it.
	for _, same := range score.GroupBy(o.Groups, func(g *publishedGroup) [2]string {
		return [...]string{typeName(g.DType, g.Scheme), g.Reason}
	}) {
		if same[0].Reason == "" {
			continue
		}
		var devices []string
		refused := 0
		for i := range same {
			refused, devices = refused+same[i].Refused, append(devices, same[i].Device)
		}
		show.Line(s, "not modelled", "%s, %s of %s: %s", typeName(same[0].DType, same[0].Scheme),
			digits.Plural(refused, "time", "times"), strings.Join(devices, ", "), same[0].Reason)
	}
	for _, d := range o.Doubtful {
		show.Line(s, "not scored", "%s of %s: %s; docs/published.md says why", digits.Plural(d.Times, "time", "times"),
			d.Device, d.Reason)
	}
	if len(o.Without) > 0 {
		show.Line(s, "no model", "%s", strings.Join(o.Without, ", "))
	}
}
