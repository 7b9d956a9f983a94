package benchcmd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// text is the outcome as a table with the lines above and below it, for a terminal and for a report.
type text struct {
	above  []string
	header []string
	rows   [][]string
	below  []string
}

func (w *writer) text() text {
	s := w.summarised()
	l2, group := "cold", "each at its own group"
	if w.data.WarmL2 {
		l2 = "warm"
	}
	if w.data.GroupM > 0 {
		group = fmt.Sprintf("group %d", w.data.GroupM)
	}
	// Columns that would be empty throughout are left out.
	finals, excluded := s.Finals > 0, s.Wrong+s.Failed > 0
	out := text{
		above: append(render.DeviceLines(w.arch),
			render.Model(w.arch, w.data.Kernel),
			fmt.Sprintf("%-11s %s: %s, %s L2, %s inputs, %s", "measured", w.data.Name, w.data.Software, l2,
				w.data.Input, group)),
		header: slices.Insert(header(w.data.Libraries(), w.integers(), finals, excluded), 1, w.labels...),
		below:  w.summaryLines(&s),
	}
	uniform := w.uniform()
	for i := range w.rows {
		cells := tableCells(&w.rows[i].Comparison, uniform, finals, excluded)
		out.rows = append(out.rows, slices.Insert(cells, 1, w.rows[i].labels...))
	}
	return out
}

// header names the columns that tableCells fills.
func header(libraries []string, integers, finals, excluded bool) []string {
	rate := " TF/s"
	if integers {
		rate = " TOPS"
	}
	names := []string{"problem", "pick" + rate, "best" + rate}
	for _, name := range libraries {
		names = append(names, name+rate)
	}
	names = append(names, "of best")
	for _, name := range libraries {
		names = append(names, "of "+name)
	}
	if finals {
		names = append(names, "noise")
	}
	names = append(names, "tau", "pick's place", "best's place", "pick", "registers")
	if excluded {
		names = append(names, "left out")
	}
	return names
}

// summaryLines are the lines below the table.
func (w *writer) summaryLines(s *score.ComparisonSummary) []string {
	libraries := w.data.Libraries()
	width := 11
	for _, name := range libraries {
		width = max(width, len("of "+name))
	}
	var lines []string
	line := func(label, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-*s %s", width, label, fmt.Sprintf(format, args...)))
	}
	quantiles := func(label string, v stats.Quantiles) {
		if v.Count > 0 {
			line(label, "median %s, geomean %s, p10 %s, worst %s over %s", table.Percent(v.Median),
				table.Percent(v.Geomean),
				table.Percent(v.P10), table.Percent(v.Worst), table.Plural(v.Count, "problem", "problems"))
		}
	}
	quantiles("of best", s.Efficiency)
	for i, v := range s.Libraries {
		quantiles("of "+libraries[i], v)
	}
	if s.PassedOver > 0 {
		line("passed over", "in %s the model's first choices have no time (they do not compile, or are not recorded); "+
			"\"after N\" counts them",
			table.Plural(s.PassedOver, "problem", "problems"))
	}
	if !math.IsNaN(s.TauMean) {
		line("tau", "mean %.3f, worst %.3f", s.TauMean, s.TauWorst)
	}
	if s.Finals > 0 {
		line("finals", "the times of %s are from runs in turns; the sweep's rank and correlate",
			table.Plural(s.Finals, "problem", "problems"))
	}
	if !math.IsNaN(s.Noise) {
		line("noise floor", "median %s between two measurements of the same pick", table.Percent(s.Noise))
	}
	if s.Wrong+s.Failed > 0 {
		line("left out", "%s", leftOut(s.Wrong, s.Failed))
	}
	if s.NotBuilt > 0 {
		line("not built", "%s", table.Plural(s.NotBuilt, "candidate", "candidates"))
	}
	if missing := w.unfinished(s); missing != "" {
		line("unfinished", "%s", missing)
	}
	if s.ClockMoved > 0 {
		line("clock", "it moved by more than 2 %% during %s", table.Plural(s.ClockMoved, "measurement",
			"measurements"))
	}
	return lines
}

// unfinished says how much of a sweep is missing. It is empty for a data set of times alone, which does not tell the
// candidates that do not compile from those that were not tried.
func (w *writer) unfinished(s *score.ComparisonSummary) string {
	if s.Unfinished == 0 || w.data.Executor == "" {
		return ""
	}
	return fmt.Sprintf("in %s %s not recorded", table.Plural(s.Unfinished, "problem", "problems"),
		table.Plural(s.Missing, "candidate is", "candidates are"))
}

// leftOut counts the measurements that have no valid time.
func leftOut(wrong, failed int) string {
	var parts []string
	if wrong > 0 {
		parts = append(parts, table.Plural(wrong, "wrong result", "wrong results"))
	}
	if failed > 0 {
		parts = append(parts, table.Plural(failed, "failure", "failures"))
	}
	return strings.Join(parts, ", ")
}

// integers reports whether all operands are integers.
func (w *writer) integers() bool {
	return !slices.ContainsFunc(w.rows, func(r labelled) bool { return !r.Problem.DType.Integer() })
}

// uniform reports whether the problems differ in nothing but m, n and k.
func (w *writer) uniform() bool {
	for i := range w.rows {
		p := w.rows[i].Problem
		p.M, p.N, p.K = w.rows[0].Problem.M, w.rows[0].Problem.N, w.rows[0].Problem.K
		if p != w.rows[0].Problem {
			return false
		}
	}
	return true
}

func tableCells(r *score.Comparison, uniform, finals, excluded bool) []string {
	const none = "–"
	tflops := func(t unit.Seconds) string {
		if t <= 0 {
			return none
		}
		return strconv.FormatFloat(float64(r.Rate(t))/1e12, 'f', 1, 64)
	}
	problem := r.Problem.String()
	if uniform {
		problem = fmt.Sprintf("%dx%dx%d", r.Problem.M, r.Problem.N, r.Problem.K)
	}
	registers := none
	if n := r.Pick.Resources.Registers; n > 0 {
		registers = strconv.Itoa(n)
		if spill := float64(r.Pick.Resources.SpillBytes); spill > 0 {
			registers += fmt.Sprintf(" + %s B spilled", table.SixDigits(spill))
		}
	}
	c := r.Pick.Config
	pick := fmt.Sprintf("%dx%dx%d", c.BlockM, c.BlockN, c.BlockK)
	if r.PassedOver > 0 {
		pick += fmt.Sprintf(" after %d", r.PassedOver)
	}
	cells := []string{problem, tflops(r.Pick.Time), tflops(r.Best.Time)}
	for _, t := range r.Libraries {
		cells = append(cells, tflops(t))
	}
	cells = append(cells, table.Percent(r.Efficiency()))
	for i, t := range r.Libraries {
		if t > 0 {
			cells = append(cells, table.Percent(r.VersusLibrary(i)))
		} else {
			cells = append(cells, none)
		}
	}
	if finals {
		if math.IsNaN(r.Noise) {
			cells = append(cells, none)
		} else {
			cells = append(cells, table.Percent(r.Noise))
		}
	}
	cells = append(cells, fmt.Sprintf("%.3f", r.Tau), fmt.Sprintf("%d of %d", r.PickRank, r.Measured),
		fmt.Sprintf("%d of %d", r.BestRank, r.Measured), pick, registers)
	if excluded {
		left := leftOut(r.Wrong, r.Failed)
		if left == "" {
			left = none
		}
		cells = append(cells, left)
	}
	return cells
}
