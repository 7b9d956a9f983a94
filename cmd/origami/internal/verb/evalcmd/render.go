package evalcmd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// outcome is what there is to say.
type outcome struct {
	arch         *arch.Description
	data         *score.Subset
	rows         []score.Evaluation
	group, split score.AxisChoice
}

// uncertainty is what the model says of its times, nil if it says nothing.
func (o *outcome) uncertainty() *arch.Uncertainty { return o.arch.UncertaintyOf(o.data.Kernel) }

// heldWord says whether the interval of a pick held, "" where there is none.
func (o *outcome) heldWord(r *score.Evaluation, yes, no string) string {
	held, ok := r.PickCovered(o.uncertainty())
	switch {
	case !ok:
		return ""
	case held:
		return yes
	default:
		return no
	}
}

func (o *outcome) write(s *iostreams.Streams, f render.Format) error {
	switch f {
	case render.JSON:
		return render.JSONLine(s, o.object())
	case render.Table:
		t := o.text()
		for _, line := range t.above {
			fmt.Fprintln(s.Out, line)
		}
		render.Grid(s, t.header, t.rows)
		fmt.Fprintln(s.Out)
		render.Grid(s, t.classHeader, t.classes)
		fmt.Fprintln(s.Out)
		for _, line := range t.below {
			fmt.Fprintln(s.Out, line)
		}
		return nil
	default:
		rows := make([][]string, len(o.rows))
		for i := range o.rows {
			rows[i] = o.cells(&o.rows[i])
		}
		return render.Rows(s, f, columns, rows)
	}
}

// object is what `eval --json` writes; docs/json.md describes it.
type object struct {
	Arch     string           `json:"arch"`
	Device   string           `json:"device"`
	Model    string           `json:"model"`
	Kernel   string           `json:"kernel"`
	Rung     arch.Rung        `json:"rung"`
	Records  string           `json:"records"`
	GroupM   int              `json:"group_m"`
	SplitK   int              `json:"split_k"`
	Problems []problem        `json:"problems"`
	Partial  []render.Problem `json:"partial,omitempty"`
	Summary  render.Fields    `json:"summary"`
	Classes  render.Fields    `json:"classes"`
	Group    *render.Fields   `json:"group,omitempty"`
	Split    *render.Fields   `json:"split,omitempty"`
}

// problem is one problem in JSON.
type problem struct {
	render.Problem
	Class string `json:"class"`

	Pick        render.Config `json:"pick"`
	PickMS      render.Number `json:"pick_ms"`
	PredictedMS float64       `json:"predicted_ms"`
	IntervalMS  *[2]float64   `json:"interval_ms"`
	Best        render.Config `json:"best"`
	BestMS      float64       `json:"best_ms"`
	Eff         float64       `json:"efficiency"`
	Top4        float64       `json:"efficiency_top4"`
	Top8        float64       `json:"efficiency_top8"`
	Top16       float64       `json:"efficiency_top16"`
	Tau         render.Number `json:"tau"`
	PickRank    *int          `json:"pick_rank_measured"`
	BestRank    *int          `json:"best_rank_predicted"`
	Error       render.Number `json:"error_median"`
	Held        *bool         `json:"interval_held"`
	Coverage    render.Number `json:"interval_coverage"`
	Recorded    int           `json:"recorded"`
	Refused     int           `json:"refused"`
}

// place is a rank, null where there is none.
func place(rank int) *int {
	if rank == 0 {
		return nil
	}
	return &rank
}

// milliseconds is a time, NaN for none.
func milliseconds(t unit.Seconds) float64 {
	if t <= 0 {
		return math.NaN()
	}
	return float64(t) * 1e3
}

func (o *outcome) object() object {
	out := object{
		Arch: o.arch.Arch, Device: o.arch.Device, Model: o.arch.Model, Kernel: o.data.Kernel, Rung: o.arch.Rung, Records: o.data.Name,
		GroupM: o.data.Group, SplitK: o.data.Split, Problems: []problem{}, Summary: summary(score.SummariseEvaluations(o.rows, o.uncertainty())), Classes: render.Fields{},
		Group: choice(o.group), Split: choice(o.split),
	}
	for i := range o.rows {
		r := &o.rows[i]
		own := problem{
			Problem: render.ProblemJSON(r.Problem), Class: r.Class.String(),
			Pick: render.ConfigJSON(r.Pick.Config), PickMS: render.Number(milliseconds(r.Pick.Time)), PredictedMS: milliseconds(r.Predicted),
			Best: render.ConfigJSON(r.Best.Config), BestMS: milliseconds(r.Best.Time), Eff: r.Efficiency(), Top4: r.Top[0], Top8: r.Top[1], Top16: r.Top[2],
			Tau: render.Number(r.Tau), PickRank: place(r.PickRank), BestRank: place(r.BestRank), Error: render.Number(r.Error),
			Coverage: render.Number(coverage(r, o.uncertainty())), Recorded: r.Measured, Refused: r.Rejected,
		}
		if u := o.uncertainty(); u != nil {
			if low, high, ok := u.Interval(r.Bound, r.Predicted); ok {
				own.IntervalMS = &[2]float64{float64(low) * 1e3, float64(high) * 1e3}
			}
		}
		if held, ok := r.PickCovered(o.uncertainty()); ok {
			own.Held = &held
		}
		out.Problems = append(out.Problems, own)
	}
	for _, p := range o.data.Partial {
		out.Partial = append(out.Partial, render.ProblemJSON(p))
	}
	classes, summaries := score.SummariseByClass(o.rows, o.uncertainty())
	for i, c := range classes {
		out.Classes = append(out.Classes, render.Field{Name: c.String(), Value: summary(summaries[i])})
	}
	return out
}

// coverage is the share of the recorded times that lie in their intervals, NaN without intervals.
func coverage(r *score.Evaluation, u *arch.Uncertainty) float64 {
	held, of := r.PointsCovered(u)
	return float64(held) / float64(of)
}

func summary(s score.EvaluationSummary) render.Fields {
	f := render.Fields{{Name: "problems", Value: s.Problems}, {Name: "unrecorded_picks", Value: s.Unmeasured}}
	spread := func(prefix string, v stats.Quantiles) {
		for _, n := range []struct {
			name  string
			value float64
		}{{"geomean", v.Geomean}, {"median", v.Median}, {"p10", v.P10}, {"worst", v.Worst}} {
			f = append(f, render.Field{Name: prefix + "_" + n.name, Value: n.value})
		}
	}
	spread("efficiency", s.Efficiency)
	for i, n := range score.TopCounts {
		spread("top"+strconv.Itoa(n), s.Top[i])
	}
	f = append(f, render.Field{Name: "tau_mean", Value: render.Number(s.TauMean)}, render.Field{Name: "tau_worst", Value: render.Number(s.TauWorst)},
		render.Field{Name: "error_median", Value: render.Number(s.Error)}, render.Field{Name: "interval_coverage", Value: render.Number(s.Coverage)},
		render.Field{Name: "interval_coverage_picks", Value: render.Number(s.PickCoverage)})
	if s.AutoEfficiency.Count > 0 {
		spread("auto", s.AutoEfficiency)
		f = append(f, render.Field{Name: "auto_measured_mean", Value: s.CandidatesMeasured}, render.Field{Name: "expected_loss_mean", Value: s.ExpectedRegret},
			render.Field{Name: "recorded_loss_mean", Value: s.Regret})
	}
	return f
}

// choice is what a choice is worth, nil where the records do not vary the axis.
func choice(c score.AxisChoice) *render.Fields {
	if c.Chosen.Count == 0 {
		return nil
	}
	return &render.Fields{
		{Name: "configurations", Value: c.Chosen.Count}, {Name: "efficiency_geomean", Value: c.Chosen.Geomean}, {Name: "efficiency_p10", Value: c.Chosen.P10},
		{Name: "efficiency_worst", Value: c.Chosen.Worst}, {Name: "constant_geomean", Value: c.Constant.Geomean}, {Name: "constant_worst", Value: c.Constant.Worst},
	}
}

// columns are those of CSV and TSV.
var columns = slices.Concat(render.KeyColumns, render.LaunchColumns, []string{
	"class", "predicted_ms", "pick_ms", "best", "best_ms", "efficiency", "efficiency_top4", "efficiency_top8", "efficiency_top16", "tau",
	"pick_rank_measured", "best_rank_predicted", "error_median", "interval_held", "interval_coverage", "recorded", "refused",
})

func (o *outcome) cells(r *score.Evaluation) []string {
	number := func(v float64) string {
		if !session.Finite(v) {
			return ""
		}
		return render.Exact(v)
	}
	rank := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return slices.Concat(render.KeyCells(r.Problem, r.Pick.Config), render.LaunchCells(r.Pick.Config), []string{
		r.Class.String(), number(milliseconds(r.Predicted)), number(milliseconds(r.Pick.Time)), r.Best.Config.String(), number(milliseconds(r.Best.Time)),
		number(r.Efficiency()), number(r.Top[0]), number(r.Top[1]), number(r.Top[2]), number(r.Tau), rank(r.PickRank), rank(r.BestRank), number(r.Error),
		o.heldWord(r, "1", "0"), number(coverage(r, o.uncertainty())), strconv.Itoa(r.Measured), strconv.Itoa(r.Rejected),
	})
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

const none = "–"

func (o *outcome) text() text {
	s := score.SummariseEvaluations(o.rows, o.uncertainty())
	out := text{above: []string{render.Device(o.arch), render.Model(o.arch, o.data.Kernel), fmt.Sprintf("%-11s %s%s", "measured", o.data.Name, o.held())}}
	out.header = []string{"problem", "class", "pick", "time", "best", "time", "of best", "top 4", "top 8", "top 16", "tau", "pick's place", "best's place", "error"}
	if o.uncertainty() != nil {
		out.header = append(out.header, "interval held")
	}
	for i := range o.rows {
		out.rows = append(out.rows, o.tableCells(&o.rows[i]))
	}
	out.classHeader = []string{"class", "problems", "of best", "p10", "worst", "top 8", "worst", "tau", "worst", "error"}
	classes, summaries := score.SummariseByClass(o.rows, o.uncertainty())
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
			name, strconv.Itoa(c.Problems), render.Percent(c.Efficiency.Geomean), render.Percent(c.Efficiency.P10), render.Percent(c.Efficiency.Worst),
			render.Percent(c.Top[1].Geomean), render.Percent(c.Top[1].Worst), tau(c.TauMean), tau(c.TauWorst), percent(c.Error),
		})
	}
	line := func(label, format string, args ...any) {
		out.below = append(out.below, fmt.Sprintf("%-11s %s", label, fmt.Sprintf(format, args...)))
	}
	spread := func(label string, v stats.Quantiles) {
		line(label, "geomean %s, median %s, p10 %s, worst %s", render.Percent(v.Geomean), render.Percent(v.Median), render.Percent(v.P10), render.Percent(v.Worst))
	}
	spread("of best", s.Efficiency)
	for i, n := range score.TopCounts {
		spread(fmt.Sprintf("top %d", n), s.Top[i])
	}
	if s.Unmeasured > 0 {
		line("unrecorded", "%s no recorded time and count 0", render.Count(s.Unmeasured, "pick has", "picks have"))
	}
	line("tau", "mean %s, worst %s", tau(s.TauMean), tau(s.TauWorst))
	line("error", "median |predicted ÷ measured − 1| %s", percent(s.Error))
	if u := o.uncertainty(); u != nil {
		line("intervals", "of %s hold %s of the times and %s of the picks'", render.Percent(u.Level), percent(s.Coverage), percent(s.PickCoverage))
		line("unmeasured", "expected to lose %s on the average; recorded %s", percent(s.ExpectedRegret), percent(s.Regret))
		spread("auto", s.AutoEfficiency)
		line("", "by measuring the first %.1f on the average, as many as are worth it", s.CandidatesMeasured)
	} else {
		line("intervals", "the model has none for this kernel family")
	}
	for _, c := range []struct {
		name     string
		choice   score.AxisChoice
		constant int
	}{{"group", o.group, o.data.Group}, {"split", o.split, o.data.Split}} {
		if v := c.choice.Chosen; v.Count > 0 {
			line(c.name, "the model's is geomean %s, worst %s of the best over %s; a constant %d geomean %s, worst %s", render.Percent(v.Geomean), render.Percent(v.Worst),
				render.Count(v.Count, "configuration", "configurations"), c.constant, render.Percent(c.choice.Constant.Geomean), render.Percent(c.choice.Constant.Worst))
		}
	}
	return out
}

// held says what the sweep holds constant.
func (o *outcome) held() string {
	var parts []string
	if o.data.Group > 0 {
		parts = append(parts, fmt.Sprintf("group %d", o.data.Group))
	}
	if o.data.Split > 0 {
		parts = append(parts, fmt.Sprintf("split %d", o.data.Split))
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
	return render.Percent(v)
}

// short writes a configuration without what the sweep holds constant.
func (o *outcome) short(c gemm.Config) string {
	s := fmt.Sprintf("%dx%dx%d w%d s%d", c.BlockM, c.BlockN, c.BlockK, c.NumWarps, c.NumStages)
	if o.data.Group == 0 {
		s += fmt.Sprintf(" g%d", c.GroupM)
	}
	if o.data.Split == 0 {
		s += fmt.Sprintf(" k%d", c.SplitK)
	}
	return s
}

func (o *outcome) tableCells(r *score.Evaluation) []string {
	time, pickPlace, bestPlace := none, none, none
	if r.Pick.Time > 0 {
		time, pickPlace = r.Pick.Time.String(), fmt.Sprintf("%d of %d", r.PickRank, r.Measured)
	}
	if r.BestRank > 0 {
		bestPlace = strconv.Itoa(r.BestRank)
	}
	out := []string{
		r.Problem.String(), r.Class.String(), o.short(r.Pick.Config), time, o.short(r.Best.Config), r.Best.Time.String(), render.Percent(r.Efficiency()),
		render.Percent(r.Top[0]), render.Percent(r.Top[1]), render.Percent(r.Top[2]), tau(r.Tau), pickPlace, bestPlace, percent(r.Error),
	}
	if o.uncertainty() != nil {
		out = append(out, o.heldWord(r, "yes", "no"))
	}
	return out
}

// report writes the outcome into a folder: eval.md with the tables and the plots, eval.csv and eval.json with the numbers.
func (o *outcome) report(folder string) error {
	to := report.Folder(folder)
	if err := to.Make(); err != nil {
		return err
	}
	if len(o.rows) == 0 {
		return nil // what went wrong has been said
	}
	title := fmt.Sprintf("%s, %s model on rung %s, kernel family %s", o.arch.ID(), o.arch.Model, o.arch.Rung, o.data.Kernel)
	var points []score.Point
	efficiency := make([]report.Series, 1+len(score.TopCounts))
	efficiency[0].Name = "pick"
	for i, n := range score.TopCounts {
		efficiency[1+i].Name = fmt.Sprintf("best of the first %d", n)
	}
	for i := range o.rows {
		r := &o.rows[i]
		points = append(points, r.Points...)
		efficiency[0].Values = append(efficiency[0].Values, r.Efficiency())
		for t := range score.TopCounts {
			efficiency[1+t].Values = append(efficiency[1+t].Values, r.Top[t])
		}
	}
	scatter, err := report.Scatter(folder, "predicted-measured", title, points)
	if err != nil {
		return report.Unwritable(folder, err)
	}
	curves, err := report.Sorted(folder, "efficiency", title, "share of the problems", "best time ÷ time", efficiency)
	if err != nil {
		return report.Unwritable(folder, err)
	}
	if err := to.Numbers("eval", o.write); err != nil {
		return err
	}
	t := o.text()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n%s\n\n%s\n\n%s", title, report.List(t.above), report.List(t.below), report.Table(t.classHeader, t.classes), report.Table(t.header, t.rows))
	fmt.Fprintf(&b, "\n\n![efficiency over the problems, worst first](%s)\n\n![predicted against measured times](%s)\n", curves.SVG, scatter.PNG)
	return to.Text("eval.md", b.String())
}
