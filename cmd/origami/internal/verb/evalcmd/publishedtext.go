package evalcmd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/plugins/library/published"
)

func (o *publishedOutcome) write(s *iostreams.Streams, f table.Format) error {
	switch {
	case f == table.JSON:
		return table.JSONLine(s, o.answer())
	case f == table.Table:
		o.table(s)
		return nil
	case o.pairs:
		pairs, _ := o.comparisons()
		return show.Write(s, f, pairs)
	default:
		return show.Write(s, f, o.rows())
	}
}

// publishedRow is a group or one of its classes, in CSV.
type publishedRow struct {
	Device string `json:"device"`
	Part   string `json:"part"`
	DType  string `json:"dtype"`
	Scheme string `json:"scheme"`
	publishedClass
	Refused *int `json:"not_modelled"` // of the group
}

func (o *publishedOutcome) rows() (rows []publishedRow) {
	for _, g := range o.groups() {
		row := publishedRow{g.Device, g.Part, g.DType, g.Scheme, publishedClass{"all", g.Score}, &g.Refused}
		rows = append(rows, row)
		for _, c := range g.Classes {
			row.publishedClass, row.Refused = c, nil
			rows = append(rows, row)
		}
	}
	return rows
}

// accuracyColumns are what people see of an accuracy.
func accuracyColumns[T any](of func(*T) *accuracy) []show.Column[T] {
	ratio := func(header string, value func(*accuracy) float64) show.Column[T] {
		return show.Text(header, func(r *T) string { return ratioText(value(of(r))) })
	}
	share := func(header string, value func(*accuracy) float64) show.Column[T] {
		return show.Text(header, func(r *T) string { return percent(value(of(r))) })
	}
	return []show.Column[T]{
		show.Text("times", func(r *T) string { return strconv.Itoa(of(r).Times) }),
		ratio("predicted ÷ measured", func(a *accuracy) float64 { return float64(a.Geomean) }),
		ratio("p10", func(a *accuracy) float64 { return float64(a.P10) }),
		ratio("p90", func(a *accuracy) float64 { return float64(a.P90) }),
		share("within 20 %", func(a *accuracy) float64 { return float64(a.Within) }),
		share("stacks agree", func(a *accuracy) float64 { return float64(a.Ceiling) }),
		share("of that", func(a *accuracy) float64 { return float64(a.Within / a.Ceiling) }),
	}
}

var classColumns = append([]show.Column[publishedClass]{show.Key[publishedClass]("class", "shapes")},
	accuracyColumns(func(c *publishedClass) *accuracy { return &c.accuracy })...)

var groupColumns = append(append([]show.Column[publishedGroup]{show.Key[publishedGroup]("device"),
	show.Text("type", func(g *publishedGroup) string { return typeName(g.DType, g.Scheme) })},
	accuracyColumns(func(g *publishedGroup) *accuracy { return &g.Score })...),
	show.Key[publishedGroup]("not_modelled", "not modelled"))

var pairColumns = []show.Column[publishedPair]{show.Key[publishedPair]("first"), show.Key[publishedPair]("second"),
	show.Text("type", func(p *publishedPair) string { return typeName(p.DType, p.Scheme) }),
	show.Key[publishedPair]("class", "shapes"), show.Key[publishedPair]("shapes", "times"),
	show.Key[publishedPair]("within", "ratio within 20 %"), show.Key[publishedPair]("decided", "over 1.1"),
	show.Key[publishedPair]("winner", "right winner").Or(none), show.Key[publishedPair]("sure", "90–95 % sure"),
	show.Key[publishedPair]("sure_right", "of these right").Or(none)}

// typeName is the type, and the scheme if there are several for it.
func typeName(dtype, scheme string) string {
	if scheme == published.NoScheme || scheme == published.TensorScheme {
		return dtype
	}
	return dtype + " " + scheme
}

func (o *publishedOutcome) table(s *iostreams.Streams) {
	t := o.text()
	table.Lines(s, t.above...)
	table.WriteTable(s, t.header, t.rows)
	s.Printf("\n")
	table.WriteTable(s, t.classHeader, t.classes)
	s.Printf("\n")
	if o.pairs {
		pairs, _ := o.comparisons()
		header, rows := show.Texts(pairs, pairColumns...)
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
	line(&out.above, "model", "%s, kernel family %s", strings.Join(o.models, ", "), o.kernel)
	line(&out.above, "published", "%d times of %s; docs/published.md names their sources", len(o.times),
		digits.Plural(o.devices(), "device", "devices"))
	if o.ranksOnly {
		line(&out.above, "not a time", "a model here ranks configurations and predicts no times: its ratios show where "+
			"it is off")
	}
	out.header, out.rows = show.Texts(groups, groupColumns...)
	all := o.pointers()
	out.classHeader, out.classes = show.Texts(append(classes(all), publishedClass{"all", accuracyOf(all)}), classColumns...)
	if _, c := o.comparisons(); c.Shapes > 0 {
		line(&out.below, "pairs", "%s of times on two devices: %s within 20 %%; of the %d measured ratios over 1.1, "+
			"%s have the right winner", digits.Plural(c.Shapes, "ratio", "ratios"), percent(float64(c.Within)), c.Decided,
			percent(float64(c.Winner)))
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

func ratioText(v float64) string {
	if math.IsNaN(v) {
		return none
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

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
		if g.Reason == "" {
			continue
		}
		text := typeName(g.DType, g.Scheme) + "\n" + g.Reason
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		counts[text] += g.Refused
		devices[text] = append(devices[text], g.Device)
	}
	for i, text := range texts {
		name, reason, _ := strings.Cut(text, "\n")
		texts[i] = fmt.Sprintf("%s, %s of %s: %s", name, digits.Plural(counts[text], "time", "times"),
			strings.Join(devices[text], ", "), reason)
	}
	return texts
}

// mostOnCurve is how many points a curve has: more cannot be seen, and fill the files.
const mostOnCurve = 200

// contents are the files of a report: published.md with the tables and the plots, published.csv, pairs.csv and
// published.json with the scores, times.csv with each time, its prediction and its source.
func (o *publishedOutcome) contents() report.Contents {
	scores := *o
	scores.pairs = false // they have a file of their own
	return report.Contents{Name: "published", Subject: "all devices of the times", Numbers: scores.write, Page: o.page}
}

func (o *publishedOutcome) page(r *report.Report) {
	title := "Predicted against published times, kernel family " + o.kernel
	pairs, _ := o.comparisons()
	r.Rows("pairs", func(s *iostreams.Streams, f table.Format) error { return show.Write(s, f, pairs) })
	r.Rows("times", func(s *iostreams.Streams, f table.Format) error { return show.Write(s, f, o.timeRows()) })
	t := o.text()
	t.page(r, title)
	r.Table(show.Texts(pairs, pairColumns...))
	r.Figure("agreement", "agreement by class of shape", figure.Sorted(title, "share of the times",
		"the smaller ÷ the larger of predicted and published time", o.curves()))
	r.Agreement(title, o.points())
}

func (o *publishedOutcome) points() []score.Point {
	var all []score.Point
	for i := range o.times {
		if t := &o.times[i]; t.Err == nil {
			all = append(all, t.point())
		}
	}
	return all
}

// curves are the agreement of predicted and published times by class of shape.
func (o *publishedOutcome) curves() []figure.Curve {
	values := map[score.Layer][]float64{}
	for i := range o.times {
		if t := &o.times[i]; t.Err == nil {
			l := score.LayerOf(t.problem)
			values[l] = append(values[l], min(t.ratio(), 1/t.ratio()))
		}
	}
	var out []figure.Curve
	for _, l := range score.Layers() {
		if len(values[l]) == 0 {
			continue
		}
		slices.Sort(values[l])
		n := min(mostOnCurve, len(values[l]))
		s := figure.Curve{Name: l.String()}
		for i := range n {
			s.Values = append(s.Values, stats.Quantile(values[l], float64(i+1)/float64(n)))
		}
		out = append(out, s)
	}
	return out
}

// timeRow is a time with its prediction and its source, in the report's times.csv.
type timeRow struct {
	Device    string     `json:"device"`
	Part      string     `json:"part"`
	DType     string     `json:"dtype"`
	Out       string     `json:"out_dtype"`
	Scheme    string     `json:"scheme"`
	M         int        `json:"m"`
	N         int        `json:"n"`
	K         int        `json:"k"`
	TransA    bool       `json:"trans_a"`
	TransB    bool       `json:"trans_b"`
	Class     string     `json:"class"`
	Timing    string     `json:"timing"`
	Library   string     `json:"library"`
	Published float64    `json:"published_seconds"`
	Predicted ask.Number `json:"predicted_seconds"`
	Ratio     ask.Number `json:"predicted_by_published"`
	Reason    string     `json:"reason"`
	Source    string     `json:"source"`
	Licence   string     `json:"licence"`
}

func (o *publishedOutcome) timeRows() []timeRow {
	rows := make([]timeRow, len(o.times))
	for i := range o.times {
		t, r := &o.times[i], &rows[i]
		*r = timeRow{Device: t.Device, Part: t.Part, DType: t.DType, Out: t.Out, Scheme: t.Scheme, M: t.M, N: t.N, K: t.K,
			TransA: t.TransA, TransB: t.TransB, Timing: string(t.Timing), Library: t.Library, Published: float64(t.Median),
			Predicted: unless(0, 0), Ratio: unless(0, 0), Source: t.Source.ID, Licence: t.Source.Licence}
		if t.Err != nil {
			r.Reason = t.Err.Error()
			continue
		}
		r.Class, r.Predicted = score.LayerOf(t.problem).String(), ask.Number(t.Prediction.Time)
		r.Ratio = ask.Number(t.ratio())
	}
	return rows
}
