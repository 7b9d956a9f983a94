package evalcmd

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// each has each time.
func (o *publishedOutcome) each() *answer {
	key := show.Key[*publishedTime]
	return &answer{value: func() any { return o.times }, lines: true,
		rows: func(s *iostreams.Streams, f table.Format) error { return show.Write(s, f, o.times) },
		page: func(s *iostreams.Streams) {
			grid(s, o.times, key("device"), key("dtype", "type"), key("m"), key("n"), key("k"),
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
		rows: func(s *iostreams.Streams, f table.Format) error {
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
	table.Line(s, "model", "%s, kernel family %s", strings.Join(o.Models, ", "), o.Kernel)
	table.Line(s, "published", "%d times of %s; docs/published.md names their sources", len(o.times),
		digits.Plural(len(devices), "device", "devices"))
	if o.RanksOnly {
		table.Line(s, "not a time", "a model here ranks configurations and predicts no times: its ratios show where it is "+
			"off")
	}
	key, group, pair := show.Key[publishedClass], show.Key[publishedGroup], show.Key[publishedPair]
	grid(s, o.Groups, slices.Concat([]show.Column[publishedGroup]{group("device"),
		show.Text("type", func(g *publishedGroup) string { return typeName(g.DType, g.Scheme) })},
		accuracyColumns("score.", func(g *publishedGroup) *accuracy { return &g.Score }),
		[]show.Column[publishedGroup]{group("not_modelled", "not modelled")})...)
	s.Printf("\n")
	grid(s, append(o.Classes, publishedClass{"all", accuracyOf(o.predicted)}),
		slices.Concat([]show.Column[publishedClass]{key("class", "shapes")},
			accuracyColumns("", func(c *publishedClass) *accuracy { return &c.accuracy }))...)
	s.Printf("\n")
	if withPairs {
		grid(s, o.Pairs, pair("first"), pair("second"),
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
		table.Line(s, "pairs", "%s of times on two devices: %s within 20 %%; of the %d measured ratios over 1.1, %s have "+
			"the right winner", digits.Plural(c.Count, "ratio", "ratios"), percent(float64(c.Within)), c.Decided,
			percent(float64(c.Winner)))
	}
	table.Line(s, "stacks agree", "the share of the pairs of software stacks whose times of one problem on one GPU are "+
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
		table.Line(s, "not modelled", "%s, %s of %s: %s", typeName(same[0].DType, same[0].Scheme),
			digits.Plural(refused, "time", "times"), strings.Join(devices, ", "), same[0].Reason)
	}
	for _, d := range o.Doubtful {
		table.Line(s, "not scored", "%s of %s: %s; docs/published.md says why", digits.Plural(d.Times, "time", "times"),
			d.Device, d.Reason)
	}
	if len(o.Without) > 0 {
		table.Line(s, "no model", "%s", strings.Join(o.Without, ", "))
	}
}
