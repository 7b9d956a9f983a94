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
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// outcome is the score of a model on a data set.
type outcome struct{ *ask.Scored }

// level is the level of the intervals, 0 if no problem has one.
func (o *outcome) level() float64 {
	for i := range o.Rows {
		if u := o.Scope(&o.Rows[i].Problem, o.Rows[i].Pick.Config.SplitK).Uncertainty; u != nil {
			return u.Level
		}
	}
	return 0
}

func (o *outcome) write(s *iostreams.Streams, f table.Format) error {
	if f != table.Table {
		e := o.Evaluation()
		return show.Answer(s, f, e, nil, e.Problems)
	}
	t := o.text()
	table.Lines(s, t.above...)
	table.Grid{Header: t.header, Rows: t.rows, Least: []string{"top 16", "top 8", "top 4", "in-sample",
		"best's place", "pick's place", "interval held", "tau", "class", "best's time", "pick's time"}}.Write(s)
	s.Printf("\n")
	table.WriteTable(s, t.classHeader, t.classes)
	s.Printf("\n")
	table.Lines(s, t.below...)
	return nil
}

// columns are what people see of the problems.
func (o *outcome) columns() []show.Column[ask.Evaluated] {
	key, text := show.Key[ask.Evaluated], show.Text[ask.Evaluated]
	c := []show.Column[ask.Evaluated]{text("problem", func(r *ask.Evaluated) string { return r.Record.String() })}
	for _, name := range o.Labels {
		c = append(c, key("labels."+name, name))
	}
	inSample := o.InSample()
	return append(c, key("class"), text("pick", func(r *ask.Evaluated) string { return o.short(r.Pick) }),
		text("pick's time", func(r *ask.Evaluated) string { return milliseconds(float64(r.PickMS)) }).Or(none),
		text("best", func(r *ask.Evaluated) string { return o.short(r.Best) }),
		text("best's time", func(r *ask.Evaluated) string { return milliseconds(r.BestMS) }),
		key("efficiency", "of best"), key("efficiency_top4", "top 4"), key("efficiency_top8", "top 8"),
		key("efficiency_top16", "top 16"), text("tau", func(r *ask.Evaluated) string { return tau(float64(r.Tau)) }),
		text("pick's place", func(r *ask.Evaluated) string {
			if math.IsNaN(float64(r.PickMS)) {
				return none
			}
			return fmt.Sprintf("%d of %d", *r.PickRank, r.Recorded)
		}),
		key("best_rank_predicted", "best's place").Or(none), key("error_median", "error").Or(none),
		key("interval_held", "interval held").If(o.level() > 0),
		key("in_sample", "in-sample").If(inSample > 0 && inSample < len(o.Rows)))
}

// milliseconds writes a time, "" for NaN.
func milliseconds(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return unit.Seconds(v / 1e3).String()
}

// outside counts the problems outside of what the intervals were found on.
func (o *outcome) outside() int {
	return o.Count(func(r *score.Evaluation) bool {
		s := o.Scope(&r.Problem, r.Pick.Config.SplitK)
		return s.Uncertainty == nil || s.Wide
	})
}

// inSampleText says how many of the scores are in-sample, and why.
func (o *outcome) inSampleText() string {
	n, of := o.InSample(), len(o.Rows)
	switch {
	case len(o.Fitted()) == 0:
		return "no: the model was fitted to no data set"
	case n == 0 && slices.ContainsFunc(o.Fitted(), func(f arch.Fitted) bool { return len(f.Problems) == 0 }):
		return "unknown: the model was fitted to " + strings.Join(ask.DataSets(o.Fitted()), ", ") +
			", and does not list its problems"
	case n == 0:
		return "no: the model was fitted to other problems, of " + strings.Join(ask.DataSets(o.Fitted()), ", ")
	}
	to := strings.Join(ask.DataSets(o.Fitted()), ", ")
	if n == of {
		return fmt.Sprintf("yes: the model was fitted to measurements of these problems, in %s", to)
	}
	return fmt.Sprintf("in part: the model was fitted to measurements of %d of the %s, in %s", n,
		digits.Plural(of, "problem", "problems"), to)
}

// text is the outcome for a terminal and for a report.
type text struct {
	above       []string
	header      []string
	rows        [][]string
	classHeader []string
	classes     [][]string
	below       []string
}

// page begins a report with what both kinds of scores have: the lines, and the tables.
func (t *text) page(p *report.Report, title string) {
	p.Heading(1, title)
	p.List(t.above)
	p.List(t.below)
	p.Table(t.classHeader, t.classes)
	p.Table(t.header, t.rows)
}

const none = "–"

func (o *outcome) text() text {
	s := score.SummariseEvaluations(o.Rows, o.Scope)
	out := text{above: append(table.DeviceLines(o.Arch), table.ModelLine(o.Arch, o.Data.Kernel),
		fmt.Sprintf("%-11s %s%s", "measured", o.Data.Name, o.held()),
		fmt.Sprintf("%-11s %s", "in-sample", o.inSampleText()))}
	out.header, out.rows = show.Texts(o.Evaluation().Problems, o.columns()...)
	out.classHeader = []string{"class", "problems", "of best", "p10", "worst", "top 8", "worst top 8", "tau",
		"worst tau", "error"}
	classes, summaries := score.SummariseByClass(o.Rows, o.Scope)
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = c.String()
	}
	if len(classes) > 1 {
		names, summaries = append(names, "all"), append(summaries, s)
	}
	for i, name := range names {
		c := &summaries[i]
		out.classes = append(out.classes, []string{
			name, strconv.Itoa(c.Problems), percent(c.Efficiency.Geomean), percent(c.Efficiency.P10),
			percent(c.Efficiency.Worst), percent(c.Top[1].Geomean), percent(c.Top[1].Worst), tau(c.TauMean), tau(c.TauWorst),
			percent(c.Error),
		})
	}
	line := func(label, format string, args ...any) {
		out.below = append(out.below, fmt.Sprintf("%-11s %s", label, fmt.Sprintf(format, args...)))
	}
	spread := func(label string, v stats.Quantiles) {
		line(label, "geomean %s, median %s, p10 %s, worst %s", percent(v.Geomean), percent(v.Median), percent(v.P10),
			percent(v.Worst))
	}
	spread("of best", s.Efficiency)
	for i, n := range score.TopCounts {
		spread(fmt.Sprintf("top %d", n), s.Top[i])
	}
	if n := s.Unmeasured - s.Failed; n > 0 {
		line("unrecorded", "%s never tried: efficiencies leave out the problems without a time",
			digits.Plural(n, "pick was", "picks were"))
	}
	if s.Failed > 0 {
		line("failed", "%s tried and failed: the efficiency is 0", digits.Plural(s.Failed, "pick was", "picks were"))
	}
	line("tau", "mean %s, worst %s", tau(s.TauMean), tau(s.TauWorst))
	line("error", "median |predicted ÷ measured − 1| %s", percent(s.Error))
	if o.level() > 0 {
		line("coverage", "the %s intervals cover %s of the times, and %s of the picks' times",
			digits.Level(o.level()), percent(s.Coverage), percent(s.PickCoverage))
		line("unmeasured", "mean expected regret %s, mean regret %s", percent(s.ExpectedRegret), percent(s.Regret))
		spread("auto", s.AutoEfficiency)
		line("", "the fastest of as many candidates as are worth measuring, %.1f on average", s.CandidatesMeasured)
	} else {
		of := "this kernel family"
		if o.Arch.HasUncertainty(o.Data.Kernel) {
			of = "problems like these"
		}
		line("coverage", "the model states no intervals for %s", of)
	}
	if n := o.outside(); n > 0 && o.Arch.HasUncertainty(o.Data.Kernel) {
		line("outside", "%s outside of what the intervals were found on: they are wider, or missing",
			digits.Plural(n, "problem is", "problems are"))
	}
	for _, c := range []struct {
		name     string
		choice   score.AxisChoice
		constant int
	}{{"group", o.Group, o.Data.Group}, {"split", o.Split, o.Data.Split}} {
		if v := c.choice.Chosen; v.Count > 0 {
			constant := ""
			if c.constant > 0 {
				constant = fmt.Sprintf("; a constant %d geomean %s, worst %s", c.constant,
					digits.Percent(c.choice.Constant.Geomean), digits.Percent(c.choice.Constant.Worst))
			}
			line(c.name, "the model's is geomean %s, worst %s of the best over %s%s", digits.Percent(v.Geomean),
				digits.Percent(v.Worst), digits.Plural(v.Count, "configuration", "configurations"), constant)
		}
	}
	return out
}

// held names the axes that the sweep holds constant.
func (o *outcome) held() string {
	var parts []string
	if o.Data.Group > 0 {
		parts = append(parts, fmt.Sprintf("group %d", o.Data.Group))
	}
	if o.Data.Split > 0 {
		parts = append(parts, fmt.Sprintf("split %d", o.Data.Split))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", " + strings.Join(parts, ", ")
}

func tau(v float64) string {
	if math.IsNaN(v) {
		return none
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

func percent(v float64) string {
	if math.IsNaN(v) {
		return none
	}
	return digits.Percent(v)
}

// short writes a configuration without what the sweep holds constant.
func (o *outcome) short(c gemm.Config) string {
	if o.Data.Group > 0 {
		c.GroupM = 0
	}
	if o.Data.Split > 0 {
		c.SplitK = 1
	}
	return c.String()
}

// contents are the files of a report: eval.md with the tables and the plots, eval.csv and eval.json with the numbers.
func (o *outcome) contents() report.Contents {
	c := report.Contents{Name: "eval", Subject: o.Arch.DeviceName, Numbers: o.write}
	if len(o.Rows) > 0 { // otherwise what went wrong has been said
		c.Page = o.page
	}
	return c
}

func (o *outcome) page(to *report.Report) {
	title := fmt.Sprintf("%s, %s model on rung %s, kernel family %s", o.Arch.ID(), o.Arch.Model, o.Arch.Rung,
		o.Data.Kernel)
	var points []score.Point
	efficiency := make([]figure.Curve, 1+len(score.TopCounts))
	efficiency[0].Name = "pick"
	for i, n := range score.TopCounts {
		efficiency[1+i].Name = fmt.Sprintf("best of the first %d", n)
	}
	for i := range o.Rows {
		r := &o.Rows[i]
		points = append(points, r.Points...)
		for c, v := range append([]float64{r.Efficiency()}, r.Top[:]...) {
			if !math.IsNaN(v) {
				efficiency[c].Values = append(efficiency[c].Values, v)
			}
		}
	}
	t := o.text()
	t.page(to, title)
	to.Figure("efficiency", "efficiency over the problems, worst first",
		figure.Sorted(title, "share of the problems", "best time ÷ time", efficiency))
	to.Agreement(title, points)
}
