package measurecmd

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
)

// writer writes a row per problem and, where the format has room for it, the summary.
type writer struct {
	s      *iostreams.Streams
	format table.Format
	arch   *arch.Description
	data   *dataset.Dataset
	stream func(*row) error // nil for a table, which needs all rows for its widths
	more   bool             // there are columns for what few problems have
	labels []string         // of the problems file
	rows   []row
}

func newWriter(
	s *iostreams.Streams, f table.Format, d *arch.Description, data *dataset.Dataset, labels []string,
) *writer {
	w := &writer{s: s, format: f, arch: d, data: data, labels: labels}
	w.more = slices.ContainsFunc(data.Problems(), func(p gemm.Problem) bool { return !p.Plain() })
	if f != table.Table {
		w.stream = w.columns(&score.ComparisonSummary{}).Stream(s, f)
	}
	return w
}

// comparisons are the rows alone.
func (w *writer) comparisons() []score.Comparison {
	rows := make([]score.Comparison, len(w.rows))
	for i := range w.rows {
		rows[i] = w.rows[i].Comparison
	}
	return rows
}

func (w *writer) summarised() score.ComparisonSummary {
	return score.SummariseComparisons(w.comparisons())
}

func (w *writer) write(r row) error {
	w.rows = append(w.rows, r)
	if w.stream == nil {
		return nil
	}
	return w.stream(&r)
}

func (w *writer) close() error {
	s := w.summarised()
	switch w.format {
	case table.JSON:
		return table.JSONLine(w.s, map[string]any{"summary": w.object(&s)})
	case table.Table:
		table.Lines(w.s, w.above()...)
		if err := w.columns(&s).Write(w.s, w.format, w.rows,
			"registers", "noise", "best's place", "pick's place", "tau", "left out", "best TF/s"); err != nil {
			return err
		}
		table.Lines(w.s, w.below(&s)...)
	case table.CSV, table.TSV: // every row is out
	}
	return nil
}

// above are the lines above the table.
func (w *writer) above() []string {
	l2, group := "cold", "each at its own group"
	if w.data.WarmL2 {
		l2 = "warm"
	}
	if w.data.GroupM > 0 {
		group = fmt.Sprintf("group %d", w.data.GroupM)
	}
	return append(table.DeviceLines(w.arch), table.Model(w.arch, w.data.Kernel),
		fmt.Sprintf("%-11s %s: %s, %s L2, %s inputs, %s", "measured", w.data.Name, w.data.Software, l2, w.data.Input, group))
}

// below are the lines below the table.
func (w *writer) below(s *score.ComparisonSummary) []string {
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
			line(label, "median %s, geomean %s, p10 %s, worst %s over %s", digits.Percent(v.Median),
				digits.Percent(v.Geomean),
				digits.Percent(v.P10), digits.Percent(v.Worst), digits.Plural(v.Count, "problem", "problems"))
		}
	}
	quantiles("of best", s.Efficiency)
	var others []float64
	for i := range w.rows {
		if e := w.rows[i].Efficiency(); e > 0 && w.rows[i].Pick.Resources.SpillBytes == 0 {
			others = append(others, e)
		}
	}
	if len(others) < s.Efficiency.Count {
		quantiles("no spills", stats.QuantilesOf(others))
	}
	for i, v := range s.Libraries {
		quantiles("of "+libraries[i], v)
		var others []float64
		marked := 0
		for j := range w.rows {
			switch r := &w.rows[j]; {
			case slow(r, i):
				marked++
			case r.VersusLibrary(i) > 0:
				others = append(others, r.VersusLibrary(i))
			}
		}
		if marked > 0 && len(others) > 0 {
			line("*", "in %s %s takes at least 1.1 times as long as the fastest kernel; geomean %s without them",
				digits.Plural(marked, "problem", "problems"), libraries[i], digits.Percent(stats.QuantilesOf(others).Geomean))
		}
	}
	if s.PassedOver > 0 {
		line("passed over", "in %s the model's first choices have no time (they do not compile, or are not recorded); "+
			"\"after N\" counts them",
			digits.Plural(s.PassedOver, "problem", "problems"))
	}
	if !math.IsNaN(s.TauMean) {
		line("tau", "mean %.3f, worst %.3f", s.TauMean, s.TauWorst)
	}
	if s.Finals > 0 {
		line("finals", "the times of %s are from runs in turns; the sweep's rank and correlate",
			digits.Plural(s.Finals, "problem", "problems"))
	}
	if !math.IsNaN(s.Noise) {
		line("noise floor", "median %s between two measurements of the same pick", digits.Percent(s.Noise))
	}
	if s.Wrong+s.Failed > 0 {
		line("left out", "%s", leftOut(s.Wrong, s.Failed))
	}
	if s.NotBuilt > 0 {
		line("not built", "%s", digits.Plural(s.NotBuilt, "candidate", "candidates"))
	}
	if missing := w.unfinished(s); missing != "" {
		line("unfinished", "%s", missing)
	}
	if s.ClockMoved > 0 {
		line("clock", "it moved by more than 2 %% during %s", digits.Plural(s.ClockMoved, "measurement",
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
	return fmt.Sprintf("in %s %s not recorded", digits.Plural(s.Unfinished, "problem", "problems"),
		digits.Plural(s.Missing, "candidate is", "candidates are"))
}

// leftOut counts the measurements that have no valid time.
func leftOut(wrong, failed int) string {
	var parts []string
	if wrong > 0 {
		parts = append(parts, digits.Plural(wrong, "wrong result", "wrong results"))
	}
	if failed > 0 {
		parts = append(parts, digits.Plural(failed, "failure", "failures"))
	}
	return strings.Join(parts, ", ")
}

// integers reports whether all operands are integers.
func (w *writer) integers() bool {
	return !slices.ContainsFunc(w.rows, func(r row) bool { return !r.Problem.DType.Integer() })
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
