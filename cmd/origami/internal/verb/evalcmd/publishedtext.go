package evalcmd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/plugins/library/published"
)

func (o *publishedOutcome) write(s *iostreams.Streams, f table.Format) error {
	switch {
	case f == table.JSON:
		return table.JSONLine(s, o.object())
	case f == table.Table:
		o.table(s)
		return nil
	case o.pairs:
		pairs, _ := o.comparisons()
		return pairColumns.Write(s, f, pairs)
	default:
		return groupColumns.Write(s, f, o.groupRows())
	}
}

// accuracy are the columns of a score: what is undefined without times, or with one stack, is unknown.
var accuracy = table.Columns[publishedClass]{
	table.Col("times", func(c *publishedClass) int { return c.Count }),
	table.Opt("geomean||predicted ÷ measured", some(func(c *publishedClass) float64 { return c.Geomean }),
		ratioText).Or(none),
	table.Opt("p10", some(func(c *publishedClass) float64 { return c.P10 }), ratioText).Or(none),
	table.Opt("p90", some(func(c *publishedClass) float64 { return c.P90 }), ratioText).Or(none),
	table.Opt("within||within 20 %", some(func(c *publishedClass) float64 { return c.Within }), digits.Percent).Or(none),
	table.Opt("error_median||-", some(func(c *publishedClass) float64 { return c.Error })),
	table.Col("ceiling_problems||-", func(c *publishedClass) int { return c.ceiling.Count }),
	table.Opt("ceiling||-", func(c *publishedClass) float64 { return unless(c.ceiling.Count, c.ceiling.Share) }),
	table.Opt("-|-|stacks agree", both(func(c *publishedClass) float64 { return c.ceiling.Share }),
		digits.Percent).Or(none),
	table.Opt("-|-|of that", both(func(c *publishedClass) float64 { return c.Within / c.ceiling.Share }), digits.Percent).
		Or(none),
}

// unless is a number that is unknown if it is the mean of none.
func unless(count int, v float64) float64 {
	if count == 0 {
		return math.NaN()
	}
	return v
}

func some(of func(*publishedClass) float64) func(*publishedClass) float64 {
	return func(c *publishedClass) float64 { return unless(c.Count, of(c)) }
}

func both(of func(*publishedClass) float64) func(*publishedClass) float64 {
	return func(c *publishedClass) float64 { return unless(c.Count*c.ceiling.Count, of(c)) }
}

var classColumns = append(table.Columns[publishedClass]{
	table.Col("class|-|shapes", func(c *publishedClass) string { return c.name }),
}, accuracy...)

// groupRow is a class of a group, or the group.
type groupRow struct {
	*publishedGroup
	of *publishedClass
}

var groupColumns = append(append(table.Columns[groupRow]{
	table.Col("device", func(r *groupRow) string { return r.device }),
	table.Col("part||-", func(r *groupRow) string { return r.part }),
	table.Col("dtype||-", func(r *groupRow) string { return r.dtype }),
	table.Col("scheme||-", func(r *groupRow) string { return r.scheme }),
	table.Text("type", func(r *groupRow) string { return typeName(r.dtype, r.scheme) }),
	table.Col("class||-", func(r *groupRow) string { return r.of.name }),
}, table.Part(accuracy, func(r *groupRow) *publishedClass { return r.of })...),
	table.Col("not_modelled||not modelled", func(r *groupRow) *int {
		if r.of != &r.publishedClass {
			return nil
		}
		return &r.refused
	}, func(n *int) string { return strconv.Itoa(*n) }))

func (o *publishedOutcome) groupRows() (rows []groupRow) {
	for _, g := range o.groups() {
		rows = append(rows, groupRow{&g, &g.publishedClass})
		for i := range g.classes {
			rows = append(rows, groupRow{&g, &g.classes[i]})
		}
	}
	return rows
}

var comparability = table.Columns[publishedPair]{
	table.Col("shapes||times", func(p *publishedPair) int { return p.Count }),
	table.Opt("within||ratio within 20 %", func(p *publishedPair) float64 { return unless(p.Count, p.Within) },
		digits.Percent),
	table.Col("decided||over 1.1", func(p *publishedPair) int { return p.Decided }),
	table.Opt("winner||right winner", (*publishedPair).winner, digits.Percent).Or(none),
	table.Col("sure||90–95 % sure", func(p *publishedPair) int { return p.Sure }),
	table.Opt("sure_right||of these right", func(p *publishedPair) float64 { return unless(p.Sure, p.SureRight) },
		digits.Percent).Or(none),
	table.Opt("brier||-", func(p *publishedPair) float64 { return unless(p.Stated, p.Brier) }),
	table.Opt("brier_apart||-", func(p *publishedPair) float64 { return unless(p.Stated, p.BrierApart) }),
}

var pairColumns = append(table.Columns[publishedPair]{
	table.Col("first", func(p *publishedPair) string { return p.first }),
	table.Col("second", func(p *publishedPair) string { return p.second }),
	table.Col("dtype||-", func(p *publishedPair) string { return p.dtype }),
	table.Col("scheme||-", func(p *publishedPair) string { return p.scheme }),
	table.Text("type", func(p *publishedPair) string { return typeName(p.dtype, p.scheme) }),
	table.Col("class||shapes", func(p *publishedPair) string { return p.class.String() }),
}, comparability...)

func (o *publishedOutcome) table(s *iostreams.Streams) {
	t := o.text()
	table.Lines(s, t.above...)
	table.WriteTable(s, t.header, t.rows)
	s.Printf("\n")
	table.WriteTable(s, t.classHeader, t.classes)
	s.Printf("\n")
	if o.pairs {
		pairs, _ := o.comparisons()
		header, rows := pairColumns.Text(pairs)
		table.WriteTable(s, header, rows)
		s.Printf("\n")
	}
	table.Lines(s, t.below...)
}

// text is what a terminal and a report show.
func (o *publishedOutcome) text() text {
	var out text
	line := func(to *[]string, label, format string, args ...any) {
		*to = append(*to, fmt.Sprintf("%-13s %s", label, fmt.Sprintf(format, args...)))
	}
	groups := o.groups()
	all := o.all()
	line(&out.above, "model", "%s, kernel family %s", strings.Join(o.models, ", "), o.kernel)
	line(&out.above, "published", "%d times of %s; docs/published.md names their sources", len(o.times),
		digits.Plural(o.devices(), "device", "devices"))
	if o.ranksOnly {
		line(&out.above, "not a time", "a model here ranks configurations and predicts no times: its ratios show where "+
			"it is off")
	}
	var rows []groupRow
	for i := range groups {
		rows = append(rows, groupRow{&groups[i], &groups[i].publishedClass})
	}
	out.header, out.rows = groupColumns.Text(rows)
	out.classHeader, out.classes = classColumns.Text(append(all.classes, all.publishedClass))
	if _, c := o.comparisons(); c.Count > 0 {
		line(&out.below, "pairs", "%s of times on two devices: %s within 20 %%; of the %d measured ratios over 1.1, "+
			"%s have the right winner", digits.Plural(c.Count, "ratio", "ratios"), digits.Percent(c.Within), c.Decided,
			percent(c.winner()))
	}
	line(&out.below, "stacks agree", "the share of the pairs of software stacks whose times of one problem on one GPU "+
		"are within 20 %%; none where one stack was timed")
	for _, r := range reasons(groups) {
		line(&out.below, "not modelled", "%s", r)
	}
	for _, d := range o.doubts() {
		line(&out.below, "not scored", "%s of %s: %s; docs/published.md says why", digits.Plural(d.Times, "time", "times"),
			d.Device, d.Reason)
	}
	if len(o.without) > 0 {
		line(&out.below, "no model", "%s", strings.Join(o.without, ", "))
	}
	return out
}

func ratioText(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// winner is the share of the right winners, NaN if none was decided.
func (p *publishedPair) winner() float64 { return unless(p.Decided, p.Winner) }

func (o *publishedOutcome) devices() int {
	ids := map[string]bool{}
	for i := range o.times {
		ids[o.times[i].Device] = true
	}
	return len(ids)
}

// reasons says why times are not modelled: the reason of the first of each group, with all groups that share it.
func reasons(groups []publishedGroup) []string {
	var texts []string
	counts := map[string]int{}
	devices := map[string][]string{}
	for i := range groups {
		g := &groups[i]
		if g.reason == nil {
			continue
		}
		text := typeName(g.dtype, g.scheme) + "\n" + g.reason.Error()
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		counts[text] += g.refused
		devices[text] = append(devices[text], g.device)
	}
	for i, text := range texts {
		name, reason, _ := strings.Cut(text, "\n")
		texts[i] = fmt.Sprintf("%s, %s of %s: %s", name, digits.Plural(counts[text], "time", "times"),
			strings.Join(devices[text], ", "), reason)
	}
	return texts
}

func (o *publishedOutcome) sourcesOf() []*published.Source {
	return slices.DeleteFunc(published.Sources(), func(s *published.Source) bool {
		return !slices.ContainsFunc(o.times, func(t publishedTime) bool { return t.Source == s })
	})
}
