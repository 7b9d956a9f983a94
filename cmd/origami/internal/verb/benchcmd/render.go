package benchcmd

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
)

// writer writes a row per problem and, where the format has room for it, the summary.
type writer struct {
	s         *iostreams.Streams
	format    table.Format
	arch      *arch.Description
	data      *dataset.Dataset
	delimited *table.Delimited
	more      bool     // there are columns for what few problems have
	labels    []string // of the problems file
	rows      []labelled
}

// labelled is a row with the cells of the writer's labels.
type labelled struct {
	score.Comparison
	labels []string
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

// columns are those of CSV and TSV. Those of the first library are there whether it was measured or not; others have
// columns under their names.
func columns(data *dataset.Dataset, axes []gemm.Axis, labels []string, more bool) []string {
	names := slices.Concat(table.KeyColumns, table.LaunchColumns(axes), []string{
		"predicted_ms", "pick_ms", "best_ms", "library_ms", "efficiency", "versus_library", "tau", "pick_rank",
		"passed_over", "measured", "candidates",
		"registers", "spill_bytes", "best",
		"pick_tflops", "best_tflops", "library_tflops", "phase", "noise_floor", "best_rank", "wrong",
		"not_built", "failed",
		"missing", "clock_moved", "ranks_only",
	})
	for i, name := range data.Libraries() {
		if i > 0 {
			name = strings.ReplaceAll(name, "-", "_")
			names = append(names, name+"_ms", name+"_tflops", "versus_"+name)
		}
	}
	return slices.Concat(names, labels, table.MoreColumns(more))
}

func newWriter(
	s *iostreams.Streams, f table.Format, d *arch.Description, data *dataset.Dataset, labels []string,
) *writer {
	w := &writer{s: s, format: f, arch: d, data: data, labels: labels}
	w.more = slices.ContainsFunc(data.Problems(), func(p gemm.Problem) bool { return !p.Plain() })
	if f == table.CSV || f == table.TSV {
		w.delimited = table.NewDelimited(s, f, columns(data, w.axes(), labels, w.more))
	}
	return w
}

// axes are those of the configurations.
func (w *writer) axes() []gemm.Axis { return w.arch.Axes(w.data.Kernel) }

func (w *writer) write(r labelled) error {
	w.rows = append(w.rows, r)
	switch {
	case w.format == table.JSON:
		return table.JSONLine(w.s, w.object(&r))
	case w.delimited != nil:
		return w.delimited.Write(w.cells(&r))
	default:
		return nil // the table needs all rows for its widths
	}
}

func (w *writer) close() error {
	switch {
	case w.format == table.JSON:
		return table.JSONLine(w.s, map[string]any{"summary": w.summary()})
	case w.delimited != nil:
		return nil
	default:
		t := w.text()
		table.Lines(w.s, t.above...)
		table.Grid{Header: t.header, Rows: t.rows,
			Least: []string{"registers", "noise", "best's place", "pick's place", "tau", "left out", "best TF/s"}}.Write(w.s)
		table.Lines(w.s, t.below...)
		return nil
	}
}

func (w *writer) cells(r *labelled) []string {
	out := append(table.KeyCells(r.Problem, r.Pick.Config), table.LaunchCells(r.Pick.Config, w.axes())...)
	milliseconds := func(t unit.Seconds) string {
		if t <= 0 {
			return ""
		}
		return table.Exact(float64(t) * 1e3)
	}
	number := func(v float64, ok bool) string {
		if !ok {
			return ""
		}
		return table.Exact(v)
	}
	rate := func(t unit.Seconds) string { return number(float64(r.Rate(t))/1e12, t > 0) }
	first, versus := unit.Seconds(0), 0.0
	if len(r.Libraries) > 0 {
		first, versus = r.Libraries[0], r.VersusLibrary(0)
	}
	out = append(out, milliseconds(r.Predicted), milliseconds(r.Pick.Time), milliseconds(r.Best.Time),
		milliseconds(first),
		table.Exact(r.Efficiency()), number(versus, first > 0), number(r.Tau, !math.IsNaN(r.Tau)),
		strconv.Itoa(r.PickRank), strconv.Itoa(r.PassedOver), strconv.Itoa(r.Measured), strconv.Itoa(r.Candidates),
		strconv.Itoa(r.Pick.Resources.Registers), table.Exact(float64(r.Pick.Resources.SpillBytes)),
		r.Best.Config.String(),
		rate(r.Pick.Time), rate(r.Best.Time), rate(first), string(r.Phase), number(r.Noise, !math.IsNaN(r.Noise)),
		strconv.Itoa(r.BestRank),
		strconv.Itoa(r.Wrong), strconv.Itoa(r.NotBuilt), strconv.Itoa(r.Failed), strconv.Itoa(r.Missing),
		strconv.Itoa(r.ClockMoved), table.Flag(w.arch.RanksOnly))
	for i, t := range r.Libraries {
		if i > 0 {
			out = append(out, milliseconds(t), rate(t), number(r.VersusLibrary(i), t > 0))
		}
	}
	return slices.Concat(out, r.labels, table.MoreCells(r.Problem, w.more))
}
