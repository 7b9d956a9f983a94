package evalcmd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/plugins/library/published"
)

func (o *publishedOutcome) write(s *table.Streams, f table.Format) error {
	switch {
	case f == table.JSON:
		return table.JSONLine(s, o.object())
	case f == table.Table:
		o.table(s)
		return nil
	case o.pairs:
		return table.WriteRows(s, f, publishedPairColumns, o.pairRows())
	default:
		return table.WriteRows(s, f, publishedColumns, o.groupRows())
	}
}

// publishedColumns are those of CSV and TSV: a row for each device, type and scheme, and for each class of it.
var publishedColumns = []string{"device", "part", "dtype", "scheme", "class", "times", "geomean", "p10", "p90",
	"within", "error_median", "ceiling_problems", "ceiling", "not_modelled"}

func (o *publishedOutcome) groupRows() [][]string {
	var rows [][]string
	for _, g := range o.groups() {
		row := func(class string, a score.Accuracy, c score.Ceiling, refused string) {
			cells := []string{g.device, g.part, g.dtype, g.scheme, class, strconv.Itoa(a.Count), "", "", "", "", "",
				strconv.Itoa(c.Count), "", refused}
			if a.Count > 0 {
				for i, v := range []float64{a.Geomean, a.P10, a.P90, a.Within, a.Error} {
					cells[6+i] = digits.Exact(v)
				}
			}
			if c.Count > 0 {
				cells[12] = digits.Exact(c.Share)
			}
			rows = append(rows, cells)
		}
		row("all", g.Accuracy, g.ceiling, strconv.Itoa(g.refused))
		for _, c := range g.classes {
			row(c.String(), c.Accuracy, c.ceiling, "")
		}
	}
	return rows
}

var publishedPairColumns = []string{"first", "second", "dtype", "scheme", "shapes", "within", "decided", "winner"}

func (o *publishedOutcome) pairRows() [][]string {
	pairs, _ := o.comparisons()
	rows := make([][]string, len(pairs))
	for i, p := range pairs {
		rows[i] = []string{p.first, p.second, p.dtype, p.scheme, strconv.Itoa(p.Count), digits.Exact(p.Within),
			strconv.Itoa(p.Decided), ""}
		if p.Decided > 0 {
			rows[i][7] = digits.Exact(p.Winner)
		}
	}
	return rows
}

func (o *publishedOutcome) table(s *table.Streams) {
	t := o.text()
	table.Lines(s, t.above...)
	table.WriteTable(s, t.header, t.rows)
	s.Printf("\n")
	table.WriteTable(s, t.classHeader, t.classes)
	s.Printf("\n")
	if o.pairs {
		table.WriteTable(s, publishedPairHeader, o.pairCells())
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
	total, ceiling, byClass := o.all()
	line(&out.above, "model", "%s, kernel family %s", strings.Join(o.models, ", "), o.kernel)
	line(&out.above, "published", "%d times of %s; docs/published.md names their sources", len(o.times),
		digits.Plural(o.devices(), "device", "devices"))
	if o.ranksOnly {
		line(&out.above, "not a time", "a model here ranks configurations and predicts no times: its ratios show where "+
			"it is off")
	}
	numbers := func(a score.Accuracy, c score.Ceiling) []string {
		cells := []string{strconv.Itoa(a.Count), none, none, none, none, none, none}
		if a.Count > 0 {
			cells[1], cells[2], cells[3] = ratioText(a.Geomean), ratioText(a.P10), ratioText(a.P90)
			cells[4] = digits.Percent(a.Within)
		}
		if a.Count > 0 && c.Count > 0 {
			cells[5], cells[6] = digits.Percent(c.Share), digits.Percent(a.Within/c.Share)
		}
		return cells
	}
	header := []string{"times", "predicted ÷ measured", "p10", "p90", "within 20 %", "stacks agree", "of that"}
	out.header = slices.Concat([]string{"device", "type"}, header, []string{"not modelled"})
	for i := range groups {
		g := &groups[i]
		out.rows = append(out.rows, slices.Concat([]string{g.device, g.name()}, numbers(g.Accuracy, g.ceiling),
			[]string{strconv.Itoa(g.refused)}))
	}
	out.classHeader = append([]string{"shapes"}, header...)
	for _, c := range byClass {
		out.classes = append(out.classes, append([]string{c.String()}, numbers(c.Accuracy, c.ceiling)...))
	}
	out.classes = append(out.classes, append([]string{"all"}, numbers(total, ceiling)...))

	if _, c := o.comparisons(); c.Count > 0 {
		line(&out.below, "pairs", "%s of times on two devices: %s within 20 %%; of the %d measured ratios over 1.1, "+
			"%s have the right winner", digits.Plural(c.Count, "ratio", "ratios"), digits.Percent(c.Within), c.Decided,
			percent(winner(c)))
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
func winner(c score.Comparability) float64 {
	if c.Decided == 0 {
		return math.NaN()
	}
	return c.Winner
}

var publishedPairHeader = []string{"first", "second", "type", "shapes", "ratio within 20 %", "over 1.1", "right winner"}

func (o *publishedOutcome) pairCells() [][]string {
	pairs, _ := o.comparisons()
	rows := make([][]string, len(pairs))
	for i := range pairs {
		p := &pairs[i]
		rows[i] = []string{p.first, p.second, p.name(), strconv.Itoa(p.Count), digits.Percent(p.Within),
			strconv.Itoa(p.Decided), percent(winner(p.Comparability))}
	}
	return rows
}

// devices counts the devices of the times.
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
		text := g.name() + "\n" + g.reason.Error()
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

// sourcesOf lists the sources of the times.
func (o *publishedOutcome) sourcesOf() []*published.Source {
	return slices.DeleteFunc(published.Sources(), func(s *published.Source) bool {
		return !slices.ContainsFunc(o.times, func(t publishedTime) bool { return t.Source == s })
	})
}
