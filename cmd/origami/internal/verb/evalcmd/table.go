package evalcmd

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
)

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
	out.header, out.rows = o.columns().Text(o.evaluated())
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
	if o.hasIntervals() {
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
