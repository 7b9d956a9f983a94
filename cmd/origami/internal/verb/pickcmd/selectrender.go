package pickcmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/logic"
)

// row is a configuration of a ranking in a table. One without a rank cannot be used.
type row struct {
	*ask.Ranking
	*ask.Entry
}

// best returns the first rows of a ranking.
func best(a *ask.Ranking, n int) []row {
	rows := make([]row, min(n, len(a.Entries)))
	for i := range rows {
		rows[i] = row{a, &a.Entries[i]}
	}
	return rows
}

// The columns of tables.
var (
	placeColumn  = show.Text("rank", func(r *row) string { return strings.TrimLeft(strconv.Itoa(r.Rank), "0") })
	configColumn = show.Text("config", func(r *row) string { return r.Config.String() })
	rateColumn   = show.Text("rate", ranked(show.RateCell))
	boundColumn  = show.Text("bound", bound)
)

func timeColumn(d *arch.Description) show.Column[row] {
	return show.Text(show.TimeHeader(d), ranked(show.TimeCell))
}

func ranked(cell func(*ask.Ranking, *ask.Entry) string) func(*row) string {
	return func(r *row) string {
		if r.Rank == 0 {
			return ""
		}
		return cell(r.Ranking, r.Entry)
	}
}

// bound is what limits a configuration that can be used.
func bound(r *row) string {
	if r.Estimate.Reject != "" {
		return ""
	}
	return r.Estimate.Bound.String()
}

// selectWriter writes one answer after the other in the chosen format.
type selectWriter struct {
	s       *iostreams.Streams
	format  show.Format
	many    bool
	top     int  // how many configurations to list
	regret  bool // the expected regret was asked for
	logic   bool // a library logic answers
	labels  []string
	answers *show.Rows[ask.Answer]
	rows    []row // of the table of many problems, if they are not written yet
	begun   bool  // that table
}

func newSelectWriter(o *SelectOptions, many bool) *selectWriter {
	s, f, top := o.Factory.Streams, o.Factory.Format(), max(1, o.Top)
	w := &selectWriter{s: s, format: f, many: many, top: top, regret: o.Regret, logic: o.Logic != "",
		answers: show.NewRows[ask.Answer](s, f)}
	return w
}

func (w *selectWriter) write(a *ask.Ranking) error {
	switch {
	case w.format.Pasted():
		return show.Paste(w.s, w.format, a, w.top)
	case w.format == show.Table && !w.many:
		w.card(a)
		return nil
	case w.format == show.Table:
		if len(w.rows) >= mostRows {
			w.table()
			w.s.Printf("\n")
		}
		w.rows = append(w.rows, best(a, w.top)...)
		return nil
	}
	for i := range a.Entries[:min(w.top, len(a.Entries))] {
		o := a.Answer(&a.Entries[i])
		if w.top > 1 {
			o.Rank = i + 1
		}
		if err := w.answers.Add(&o); err != nil {
			return err
		}
	}
	return nil
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
		heading := show.Heading(first.Ranking, first.Entry)
		if states(*first) {
			heading = heading[:len(heading)-1] // each row has its own
		}
		show.Lines(w.s, heading...)
	}
	columns := []show.Column[row]{show.Text("problem", func(r *row) string { return r.Problem.String() })}
	for i, name := range w.labels {
		columns = append(columns, show.Text(name, func(r *row) string { return fmt.Sprint(r.Labels[i].Value) }))
	}
	columns = append(columns,
		placeColumn.If(w.top > 1),
		show.Text("pick", func(r *row) string { return r.Config.String() }),
		timeColumn(first.Arch),
		rateColumn,
		show.Text("of peak", func(r *row) string { return peakShare(r.Ranking, r.Entry) }),
		boundColumn,
		show.Text("answered by", func(r *row) string { return string(r.Logic.Layer) }).If(w.logic),
		show.Text("regret", func(r *row) string {
			if r.Regret == nil {
				return "unknown"
			}
			return percent(r.Regret.Expected)
		}).If(w.regret),
		show.Text("worth measuring", func(r *row) string {
			if r.Regret == nil {
				return ""
			}
			return strconv.Itoa(r.Regret.WorthMeasuring)
		}).If(w.regret),
		show.Text("advice", func(r *row) string {
			if lines := show.Advice(r.Ranking); len(lines) > 0 {
				return lines[0]
			}
			return ""
		}).If(slices.ContainsFunc(w.rows, func(r row) bool { return len(r.Advice) > 0 })),
		show.Text("evidence", func(r *row) string { return show.EvidenceCell(r.Ranking, r.Entry) }).If(some))
	list := show.NewRows(w.s, show.Table, columns...).Least("evidence", "of peak", "rate", "bound")
	_ = list.All(w.rows) // an error of the screen shows when it is flushed
	w.begun, w.rows = true, w.rows[:0]
}

// card writes the answer for one problem for a reader.
func (w *selectWriter) card(a *ask.Ranking) {
	best := &a.Entries[0]
	line := func(label, format string, args ...any) { show.Line(w.s, label, format, args...) }
	show.Lines(w.s, show.Heading(a, best)...)
	if a.Contraction != nil {
		show.ContractionLines(w.s, a)
	}
	line("problem", "%s", a.Problem)
	if a.Logic != nil {
		show.LogicLine(w.s, a.Logic)
	}
	line("pick", "%s", w.s.Winner(best.Config.String()))
	if m := best.Mapping; m.XCDs > 0 {
		line("", "%s", show.LaunchOrder(m))
	}
	line("predicted", "%s", show.Prediction(a, best))
	if low, high, ok := a.Interval(best); ok {
		wider := ""
		if widened, ok := a.Widened(best); ok && widened >= 1.05 {
			wider = fmt.Sprintf(", %.2g times as wide as inside of what was checked", widened)
		}
		line("", "%s interval %s%s", digits.Level(a.Scope(best).Uncertainty.Level), digits.Span(low, high), wider)
	}
	line("why", "%s", a.Why(best))
	switch {
	case a.Logic != nil && a.Logic.Layer != logic.LayerModel:
		line("model", "%s", beside(best, &a.Entries[1]))
	case len(a.Entries) > 1 && w.top == 1:
		second := &a.Entries[1]
		line("runner-up", "%s, %s", second.Config, slower(float64(second.Estimate.Cycles),
			float64(best.Estimate.Cycles)))
	}
	invariantLine(w.s, a)
	show.WayLines(w.s, a)
	line("candidates", "%s", show.CandidateCounts(a.Feasible, a.Rejected))
	switch r := a.Regret; {
	case r != nil:
		advice := "measuring other candidates does not pay"
		if r.WorthMeasuring > 1 {
			advice = fmt.Sprintf("measure the first %d", r.WorthMeasuring)
		}
		line("unmeasured", "expected regret %s, %s", percent(r.Expected), advice)
	case w.regret && (a.Logic == nil || a.Logic.Layer == logic.LayerModel):
		line("unmeasured", "expected regret unknown: the model states no error")
	}
	if w.top > 1 {
		w.s.Printf("\n")
		w.ranking(a)
	}
}

// invariantLine says what it costs that the order of sums does not depend on M, where that was asked for.
func invariantLine(s *iostreams.Streams, a *ask.Ranking) {
	if a.Price != nil {
		show.Line(s, "invariant", "the order of sums does not depend on M; that costs %s of the time of the pick of all "+
			"configurations", percent(*a.Price))
	}
}

// ranking lists the best configurations of an answer.
func (w *selectWriter) ranking(a *ask.Ranking) {
	_ = show.Write(w.s, show.Table, best(a, w.top), placeColumn, configColumn, timeColumn(a.Arch), rateColumn,
		show.Text("slower by", func(r *row) string {
			return digits.Percent(float64(r.Estimate.Cycles)/float64(a.Entries[0].Estimate.Cycles) - 1)
		}), boundColumn) // an error of the screen shows when it is flushed
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

// leastGap is the difference of two predicted times that says nothing: no model is that precise.
const leastGap = 0.005

// slower says how much slower the runner-up is.
func slower(second, best float64) string {
	switch {
	case second == best:
		return "predicted to be equally fast"
	case second > best && second < best*(1+leastGap):
		return "slower by less than " + digits.Percent(leastGap)
	}
	if second < best {
		return digits.Percent((best-second)/best) + " faster in the prediction, which is no more than noise"
	}
	return digits.Percent((second-best)/best) + " slower"
}

func percent(v float64) string {
	if !digits.Finite(v) {
		return "–"
	}
	return digits.Percent(v)
}
