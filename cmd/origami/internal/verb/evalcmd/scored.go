package evalcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
)

// outcome is the score of a model on a data set.
type outcome struct{ *ask.Scored }

// answer has the scores.
func (o *outcome) answer() *answer {
	e := o.Evaluation()
	return &answer{
		value: func() any { return e },
		rows:  func(s *iostreams.Streams, f show.Format) error { return show.Write(s, f, e.Problems) },
		page: func(s *iostreams.Streams) {
			show.Lines(s, append(show.DeviceLines(o.Arch), show.ModelLine(o.Arch, o.Data.Kernel))...)
			held := o.Data.Name
			if o.Data.Group > 0 {
				held += fmt.Sprintf(", group %d", o.Data.Group)
			}
			if o.Data.Split > 0 {
				held += fmt.Sprintf(", split %d", o.Data.Split)
			}
			show.Line(s, "measured", "%s", held)
			show.Line(s, "in-sample", "%s", o.inSampleText())
			_ = show.NewRows(s, show.Table, o.columns()...).Least("top 16", "top 8", "top 4", "in-sample", "best's place",
				"pick's place", "interval held", "tau", "class", "best's time", "pick's time").All(e.Problems)
			sum := score.SummariseEvaluations(o.Rows, o.Scope)
			s.Printf("\n")
			o.classes(s, sum)
			s.Printf("\n")
			o.summary(s, &sum)
		},
	}
}

// columns are what people see of the problems.
func (o *outcome) columns() []show.Column[ask.Evaluated] {
	key, text := show.Key[ask.Evaluated], show.Text[ask.Evaluated]
	c := []show.Column[ask.Evaluated]{text("problem", func(r *ask.Evaluated) string { return r.String() })}
	for _, name := range o.Labels {
		c = append(c, key("labels."+name, name))
	}
	short := func(c gemm.Config) string { // without what the sweep holds constant
		if o.Data.Group > 0 {
			c.GroupM = 0
		}
		if o.Data.Split > 0 {
			c.SplitK = 1
		}
		return c.String()
	}
	inSample := o.InSample()
	return append(c, key("class"), text("pick", func(r *ask.Evaluated) string { return short(r.Pick) }),
		key("pick_ms", "pick's time").Or(none), text("best", func(r *ask.Evaluated) string { return short(r.Best) }),
		key("best_ms", "best's time"), key("efficiency", "of best"), key("efficiency_top4", "top 4"),
		key("efficiency_top8", "top 8"), key("efficiency_top16", "top 16"), key("tau").Or(none),
		text("pick's place", func(r *ask.Evaluated) string {
			if r.PickRank == nil {
				return none
			}
			return fmt.Sprintf("%d of %d", *r.PickRank, r.Recorded)
		}),
		key("best_rank_predicted", "best's place").Or(none), key("error_median", "error").Or(none),
		key("interval_held", "interval held").If(o.level() > 0),
		key("in_sample", "in-sample").If(inSample > 0 && inSample < len(o.Rows)))
}

// level is the level of the intervals, 0 if no problem has one.
func (o *outcome) level() float64 {
	for i := range o.Rows {
		if u := o.Scope(&o.Rows[i].Problem, o.Rows[i].Pick.Config.SplitK).Uncertainty; u != nil {
			return u.Level
		}
	}
	return 0
}

// classes sums up by class of shape.
func (o *outcome) classes(s *iostreams.Streams, all score.EvaluationSummary) {
	type class = score.ClassSummary
	rows := score.SummariseByClass(o.Rows, o.Scope)
	if len(rows) > 1 {
		rows = append(rows, class{Class: "all", EvaluationSummary: all})
	}
	of := func(header string, write func(float64) string, value func(*class) float64) show.Column[class] {
		return show.Text(header, func(c *class) string { return write(value(c)) })
	}
	_ = show.Write(s, show.Table, rows, show.Key[class]("class"),
		show.Text("problems", func(c *class) string { return fmt.Sprint(c.Problems) }),
		of("of best", percent, func(c *class) float64 { return c.Efficiency.Geomean }),
		of("p10", percent, func(c *class) float64 { return c.Efficiency.P10 }),
		of("worst", percent, func(c *class) float64 { return c.Efficiency.Worst }),
		of("top 8", percent, func(c *class) float64 { return c.Top[1].Geomean }),
		of("worst top 8", percent, func(c *class) float64 { return c.Top[1].Worst }),
		of("tau", ratio, func(c *class) float64 { return c.TauMean }),
		of("worst tau", ratio, func(c *class) float64 { return c.TauWorst }),
		of("error", percent, func(c *class) float64 { return c.Error }))
}

// inSampleText says how many of the scores are in-sample, and why.
func (o *outcome) inSampleText() string {
	n, of := o.InSample(), len(o.Rows)
	to := strings.Join(ask.DataSets(o.Fitted()), ", ")
	switch {
	case len(o.Fitted()) == 0:
		return "no: the model was fitted to no data set"
	case n == 0 && slices.ContainsFunc(o.Fitted(), func(f arch.Fitted) bool { return len(f.Problems) == 0 }):
		return "unknown: the model was fitted to " + to + ", and does not list its problems"
	case n == 0:
		return "no: the model was fitted to other problems, of " + to
	case n == of:
		return "yes: the model was fitted to measurements of these problems, in " + to
	default:
		return fmt.Sprintf("in part: the model was fitted to measurements of %d of the %s, in %s", n,
			digits.Plural(of, "problem", "problems"), to)
	}
}

// summary is the lines below the tables.
func (o *outcome) summary(to *iostreams.Streams, s *score.EvaluationSummary) {
	spread := func(label string, v stats.Quantiles) {
		show.Line(to, label, "geomean %s, median %s, p10 %s, worst %s", percent(v.Geomean), percent(v.Median),
			percent(v.P10), percent(v.Worst))
	}
	spread("of best", s.Efficiency)
	for i, n := range score.TopCounts {
		spread(fmt.Sprintf("top %d", n), s.Top[i])
	}
	if n := s.Unmeasured - s.Failed; n > 0 {
		show.Line(to, "unrecorded", "%s never tried: efficiencies leave out the problems without a time",
			digits.Plural(n, "pick was", "picks were"))
	}
	if s.Failed > 0 {
		show.Line(to, "failed", "%s tried and failed: the efficiency is 0",
			digits.Plural(s.Failed, "pick was", "picks were"))
	}
	show.Line(to, "tau", "mean %s, worst %s", ratio(s.TauMean), ratio(s.TauWorst))
	show.Line(to, "error", "median |predicted ÷ measured − 1| %s", percent(s.Error))
	has, outside := o.Arch.HasUncertainty(o.Data.Kernel), o.Count(func(r *score.Evaluation) bool {
		scope := o.Scope(&r.Problem, r.Pick.Config.SplitK)
		return scope.Uncertainty == nil || scope.Wide
	})
	switch level := o.level(); {
	case level > 0:
		show.Line(to, "coverage", "the %s intervals cover %s of the times, and %s of the picks' times", digits.Level(level),
			percent(s.Coverage), percent(s.PickCoverage))
		show.Line(to, "unmeasured", "mean expected regret %s, mean regret %s", percent(s.ExpectedRegret), percent(s.Regret))
		spread("auto", s.AutoEfficiency)
		show.Line(to, "", "the fastest of as many candidates as are worth measuring, %.1f on average", s.CandidatesMeasured)
	case has:
		show.Line(to, "coverage", "the model states no intervals for problems like these")
	default:
		show.Line(to, "coverage", "the model states no intervals for this kernel family")
	}
	if outside > 0 && has {
		show.Line(to, "outside", "%s outside of what the intervals were found on: they are wider, or missing",
			digits.Plural(outside, "problem is", "problems are"))
	}
	axis := func(name string, c *score.AxisChoice, constant int) {
		if c.Chosen.Count == 0 {
			return
		}
		text := ""
		if constant > 0 {
			text = fmt.Sprintf("; a constant %d geomean %s, worst %s", constant, percent(c.Constant.Geomean),
				percent(c.Constant.Worst))
		}
		show.Line(to, name, "the model's is geomean %s, worst %s of the best over %s%s", percent(c.Chosen.Geomean),
			percent(c.Chosen.Worst), digits.Plural(c.Chosen.Count, "configuration", "configurations"), text)
	}
	axis("group", &o.Group, o.Data.Group)
	axis("split", &o.Split, o.Data.Split)
}

// intervals is what `eval --intervals` writes: an arch.Uncertainty that a model can ship, and its coverage.
type intervals struct {
	Arch        string           `json:"arch"` // as in `select`
	Device      string           `json:"device"`
	Model       string           `json:"model"`
	Rung        arch.Rung        `json:"rung"`
	Uncertainty arch.Uncertainty `json:"uncertainty"`   // what a model can ship
	LeaveOneOut score.Coverage   `json:"leave_one_out"` // how intervals hold for a size that they were not found on
}

// intervalsOf computes them from the scores of a model on measurements. done is told of each.
func intervalsOf(d *arch.Description, data *score.Subset, rows []score.Evaluation, done func(int)) (*answer, error) {
	u, ok := score.Calibrate(data.Kernel, data.Name, rows)
	if !ok || len(rows) <= score.MinSizes { // one is left out in turn
		return nil, diag.Inputf("intervals cannot be found on %s", digits.Plural(len(rows), "size", "sizes")).
			At("--intervals").Do("give records of at least %d sizes", score.MinSizes+1)
	}
	c := score.LeaveOneOut(rows, done)
	u.Source = fmt.Sprintf("origami eval --intervals over %d sizes of %s; of a size left out they hold %s", len(rows),
		data.Name, digits.Percent(c.Points))
	v := &intervals{Arch: d.Arch, Device: d.Device, Model: d.Model, Rung: d.Rung, Uncertainty: u, LeaveOneOut: c}
	return &answer{
		value: func() any { return v },
		rows: func(s *iostreams.Streams, f show.Format) error {
			return show.Write(s, f, v.Uncertainty.Ranges)
		},
		page: func(s *iostreams.Streams) {
			show.Lines(s, append(show.DeviceLines(d), show.ModelLine(d, u.Kernel))...)
			show.Line(s, "intervals", "%s, of measured ÷ predicted time", digits.Level(u.Level))
			_ = show.Write(s, show.Table, v.Uncertainty.Ranges, show.Ranges()...)
			s.Printf("\n")
			show.Lines(s, show.UncertaintyLines(&v.Uncertainty)...)
			show.Line(s, "coverage", "of sizes left out in turn: %s of the times (worst size %s), %s of the picks' times; "+
				"median high ÷ low %.2f", digits.Percent(c.Points), digits.Percent(c.Worst), digits.Percent(c.Picks), c.Width)
			if u.Sigma > 0 {
				show.Line(s, "regret", "without measuring: mean expected %s, mean %s; after measuring as many as are worth it, "+
					"%.1f on average: mean %s", digits.Percent(c.ExpectedRegret), digits.Percent(c.Regret), c.CandidatesMeasured,
					digits.Percent(c.RegretLeft))
			}
		},
	}, nil
}
