package pickcmd

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/unit"
)

// selectWriter writes one answer after the other in the chosen format.
type selectWriter struct {
	s      *iostreams.Streams
	format table.Format
	many   bool
	top    int  // how many configurations to list
	regret bool // the expected regret was asked for
	logic  bool // a library logic answers
	labels []string
	more   bool             // there are columns for what few problems have
	stream func(*row) error // of CSV and TSV; nil before the first row
	rows   []row            // of the table of many problems, if they are not written yet
	begun  bool             // that table
	list   *table.PasteList // of many problems, nil if the format has none
}

func newSelectWriter(
	s *iostreams.Streams, f table.Format, many bool, problems *session.Problems, top int,
) *selectWriter {
	w := &selectWriter{s: s, format: f, many: many, top: top, labels: problems.Labels(), more: problems.More()}
	if many {
		w.list = table.NewPasteList(f, top)
	}
	return w
}

func (w *selectWriter) write(a *ask.Ranking) error {
	switch {
	case w.list != nil:
		return w.list.Add(a)
	case w.format.Pasted():
		return table.Paste(w.s, w.format, a, w.top)
	case w.format == table.Table && !w.many:
		w.card(a)
		return nil
	case w.stream == nil && (w.format == table.CSV || w.format == table.TSV):
		w.stream = slices.Concat(keys(a), predicted(), judged(), table.Columns[row]{
			layerColumn.If(w.logic), placeColumn.If(w.top > 1),
			labels(w.labels), table.More(w.more, problemOf)}).Stream(w.s, w.format)
	}
	for i := range a.Entries[:min(w.top, len(a.Entries))] {
		var err error
		switch e := &a.Entries[i]; {
		case w.format == table.JSON:
			o := a.Answer(e)
			if w.top > 1 {
				o.Rank = i + 1
			}
			err = table.JSONLine(w.s, o)
		case w.stream != nil:
			err = w.stream(&row{a, e})
		default:
			if len(w.rows) == mostRows {
				w.table()
				w.s.Printf("\n")
			}
			w.rows = append(w.rows, row{a, e})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// judged are the columns of CSV with how far a prediction is to be trusted. One is empty if the model states no
// uncertainty, or if nothing was measured.
func judged() table.Columns[row] {
	interval := func(names string, end int) table.Column[row] {
		return table.Opt(names, func(r *row) float64 {
			low, high, ok := r.Interval(r.Entry)
			if !ok {
				return math.NaN()
			}
			return float64([...]unit.Seconds{low, high}[end])
		})
	}
	regret := func(names string) table.Column[row] {
		return table.Col(names, func(r *row) *float64 {
			if r.Regret == nil {
				return nil
			}
			return &r.Regret.Expected
		})
	}
	measured := func(names string, value func(*ask.Measurements) any) table.Column[row] {
		return table.Col(names, func(r *row) any {
			if r.Measured == nil {
				return nil
			}
			return value(r.Measured)
		})
	}
	return table.Columns[row]{
		table.Col("-|candidates|-", func(r *row) int { return r.Feasible }),
		table.Col("-|rejected|-", func(r *row) int { return r.RejectedTotal() }),
		interval("-|interval_low_seconds|-", 0),
		interval("-|interval_high_seconds|-", 1),
		regret("-|expected_loss|-"),
		table.Col("-|worth_measuring|-", func(r *row) *int {
			if r.Regret == nil {
				return nil
			}
			return &r.Regret.WorthMeasuring
		}),
		measured("-|measured_seconds|-", func(m *ask.Measurements) any {
			if i := slices.IndexFunc(m.Candidates, func(c ask.Timed) bool { return c.Chosen }); i >= 0 {
				return float64(m.Candidates[i].Measurement.Median)
			}
			return nil
		}),
		measured("-|noise_floor|-", func(m *ask.Measurements) any { return ask.Number(m.Noise) }),
		measured("-|measured|-", func(m *ask.Measurements) any { return len(m.Candidates) }),
		table.Col("-|outside|-", outside),
		table.Col("-|ranks_only|-", func(r *row) bool { return r.Arch.RanksOnly }),
		regret("-|expected_regret|-"),
	}
}

// mostRows is how many rows a table has. A longer list is written as several, because a table is held until its widths
// are known.
const mostRows = 4096

// table writes the rows of the table of many problems that are not written yet.
func (w *selectWriter) table() {
	if len(w.rows) == 0 {
		return
	}
	states := func(r row) bool { return r.Arch.HasUncertainty(r.Kernel) }
	first, some := &w.rows[0], slices.ContainsFunc(w.rows, states)
	if !w.begun {
		heading := table.Heading(first.Ranking, first.Entry)
		if states(*first) {
			heading = heading[:len(heading)-1] // each row has its own
		}
		table.Lines(w.s, heading...)
	}
	_ = table.Columns[row]{ // an error of the screen shows when it is flushed
		table.Text("problem", func(r *row) string { return r.Problem.String() }),
		labels(w.labels),
		placeColumn.If(w.top > 1),
		table.Text("pick", func(r *row) string { return r.Config.String() }),
		timeColumn(first.Arch),
		rateColumn,
		table.Text("of peak", func(r *row) string { return peakShare(r.Ranking, r.Entry) }),
		boundColumn,
		layerColumn.If(w.logic),
		table.Text("regret", func(r *row) string {
			if r.Regret == nil {
				return "unknown"
			}
			return percent(r.Regret.Expected)
		}).If(w.regret),
		table.Text("worth measuring", func(r *row) string {
			if r.Regret == nil {
				return ""
			}
			return strconv.Itoa(r.Regret.WorthMeasuring)
		}).If(w.regret),
		table.Text("advice", func(r *row) string {
			if lines := table.Advice(r.Ranking); len(lines) > 0 {
				return lines[0]
			}
			return ""
		}).If(slices.ContainsFunc(w.rows, func(r row) bool { return len(r.Advice) > 0 })),
		table.Text("evidence", func(r *row) string { return table.EvidenceCell(r.Ranking, r.Entry) }).If(some),
	}.Write(w.s, table.Table, w.rows, "evidence", "of peak", "rate", "bound")
	w.begun, w.rows = true, w.rows[:0]
}

// card writes the answer for one problem for a reader.
func (w *selectWriter) card(a *ask.Ranking) {
	best := &a.Entries[0]
	line := func(label, format string, args ...any) { table.Line(w.s, label, format, args...) }
	table.Lines(w.s, table.Heading(a, best)...)
	if a.Contraction != nil {
		table.ContractionLines(w.s, a)
	}
	line("problem", "%s", a.Problem)
	if a.Logic != nil {
		table.LogicLine(w.s, a.Logic)
	}
	line("pick", "%s", w.s.Winner(best.Config.String()))
	if m := best.Mapping; m.XCDs > 0 {
		line("", "%s", table.LaunchOrder(m))
	}
	line("predicted", "%s", table.Prediction(a, best))
	if low, high, ok := a.Interval(best); ok {
		wider := ""
		if widened, ok := a.Widened(best); ok {
			wider = fmt.Sprintf(", %.2g times as wide as inside of what was checked", widened)
		}
		line("", "%s interval %s%s", digits.Level(a.Scope(best).Uncertainty.Level), digits.Span(low, high), wider)
	}
	line("why", "%s", a.Why(best))
	switch {
	case a.Logic != nil && a.Logic.Kernel != "":
		line("model", "%s", beside(best, &a.Entries[1]))
	case len(a.Entries) > 1 && a.Measured == nil && w.top == 1:
		second := &a.Entries[1]
		line("runner-up", "%s, %s", second.Config, slower(float64(second.Estimate.Cycles),
			float64(best.Estimate.Cycles)))
	}
	invariantLine(w.s, a)
	table.WayLines(w.s, a)
	line("candidates", "%s", table.CandidateCounts(a.Feasible, a.Rejected))
	switch r := a.Regret; {
	case r != nil:
		advice := "measuring other candidates does not pay"
		if r.WorthMeasuring > 1 {
			advice = fmt.Sprintf("measure the first %d", r.WorthMeasuring)
		}
		line("unmeasured", "expected regret %s, %s", percent(r.Expected), advice)
	case w.regret && (a.Logic == nil || a.Logic.Kernel == ""):
		line("unmeasured", "expected regret unknown: the model states no error")
	}
	if w.top > 1 {
		w.s.Printf("\n")
		w.best(a)
	}
	if a.Measured != nil {
		chosen, verdict := verdictOf(a)
		line("measured", "%s", verdict)
		if chosen != nil {
			w.s.Printf("\n")
			_ = measuredColumns(a, chosen).Write(w.s, table.Table, a.Measured.Candidates) // see table
		}
	}
}

// invariantLine says what it costs that the order of sums does not depend on M, where that was asked for.
func invariantLine(s *iostreams.Streams, a *ask.Ranking) {
	if a.Price != nil {
		table.Line(s, "invariant", "the order of sums does not depend on M; that costs %s of the time of the pick of all "+
			"configurations", percent(*a.Price))
	}
}

// best lists the best configurations of an answer.
func (w *selectWriter) best(a *ask.Ranking) {
	rows := make([]row, min(w.top, len(a.Entries)))
	for i := range rows {
		rows[i] = row{a, &a.Entries[i]}
	}
	_ = table.Columns[row]{placeColumn, configColumn, timeColumn(a.Arch), rateColumn, // see table
		table.Text("slower by", func(r *row) string {
			return digits.Percent(float64(r.Estimate.Cycles)/float64(a.Entries[0].Estimate.Cycles) - 1)
		}), boundColumn}.Write(w.s, table.Table, rows)
}

func peakShare(a *ask.Ranking, e *ask.Entry) string {
	if share, ok := a.PeakShare(e); ok && !a.Arch.RanksOnly {
		return digits.Percent(share)
	}
	return ""
}

// beside says what the model picks beside a library logic.
func beside(e, model *ask.Entry) string {
	if e.Config == model.Config {
		return "picks the same"
	}
	share := 1 - float64(model.Estimate.Cycles)/float64(e.Estimate.Cycles)
	if share < 0 {
		return fmt.Sprintf("picks %s, within its tie window", model.Config)
	}
	return fmt.Sprintf("picks %s, predicted to take %s less", model.Config, digits.Percent(share))
}

// slower says how much slower the runner-up is.
func slower(second, best float64) string {
	if second == best {
		return "predicted to be equally fast"
	}
	if second < best {
		return digits.Percent((best-second)/best) + " faster in the prediction, but within the model's tie window"
	}
	return digits.Percent((second-best)/best) + " slower"
}
