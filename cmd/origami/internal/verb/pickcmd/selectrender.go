package pickcmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

// selectWriter writes one answer after the other in the chosen format.
type selectWriter struct {
	s         *table.Streams
	format    table.Format
	many      bool
	top       int  // how many configurations to list
	regret    bool // the expected regret was asked for
	more      bool // there are columns for what few problems have
	labels    []string
	delimited *table.Delimited
	heading   []string   // of the table of many problems
	rows      [][]string // of that table
	time      string     // the header of its times
}

func newSelectWriter(
	s *table.Streams, f table.Format, many bool, problems *session.Problems, axes []gemm.Axis, top int,
) *selectWriter {
	w := &selectWriter{s: s, format: f, many: many, top: top, more: problems.More(), labels: problems.Labels()}
	if f == table.CSV || f == table.TSV {
		header := slices.Concat(table.KeyColumns, table.LaunchColumns(axes),
			[]string{"arch", "device", "model", "kernel", "rung", "cycles", "seconds", "tflops", "bound", "candidates",
				"rejected",
				"interval_low_seconds", "interval_high_seconds", "expected_loss", "worth_measuring", "measured_seconds",
				"noise_floor", "measured", "outside", "ranks_only", "expected_regret"}, w.rankColumn(), w.labels,
			table.MoreColumns(w.more))
		w.delimited = table.NewDelimited(s, f, header)
	}
	return w
}

// rankColumn is a column that a list of several configurations has.
func (w *selectWriter) rankColumn() []string {
	if w.top > 1 {
		return []string{"rank"}
	}
	return nil
}

func (w *selectWriter) write(a *ask.Ranking) error {
	if w.format.Pasted() {
		return table.Paste(w.s, w.format, a, w.top)
	}
	if w.format == table.Table && !w.many {
		w.card(a)
		return nil
	}
	for i := range a.Entries[:min(w.top, len(a.Entries))] {
		if err := w.entry(a, &a.Entries[i], i+1); err != nil {
			return err
		}
	}
	return nil
}

// entry writes a configuration of an answer as a line or a row.
func (w *selectWriter) entry(a *ask.Ranking, best *ask.Entry, rank int) error {
	var ranks []string
	if w.top > 1 {
		ranks = []string{strconv.Itoa(rank)}
	}
	switch {
	case w.format == table.JSON:
		o := a.Answer(best)
		if w.top > 1 {
			o.Rank = rank
		}
		return table.JSONLine(w.s, o)
	case w.delimited != nil:
		o := a.Answer(best)
		uncertain := uncertaintyCells(&o)
		axes := a.Arch.Axes(a.Kernel)
		if a.Requested != "" { // the header has the axes of the family that was asked for
			axes = a.Arch.Axes(a.Requested)
		}
		return w.delimited.Write(slices.Concat(table.KeyCells(a.Problem, best.Config),
			table.LaunchCells(best.Config, axes),
			[]string{
				o.Arch, o.Device, o.Model, o.Kernel, string(o.Rung), digits.Exact(o.Predicted.Cycles),
				digits.Exact(o.Predicted.Seconds),
				digits.Exact(o.Predicted.TFLOPS), o.Predicted.Bound, strconv.Itoa(o.Candidates),
				strconv.Itoa(o.Rejected),
			}, uncertain, []string{strings.Join(o.Outside, "; "), table.Flag(o.RanksOnly), uncertain[regretCell]},
			ranks, a.Labels.Texts(), table.MoreCells(a.Problem, w.more)))
	default:
		if w.rows == nil {
			heading := table.Heading(a, best)
			if a.Arch.HasUncertainty(a.Kernel) {
				heading = heading[:len(heading)-1] // each row has its own
			}
			w.heading = heading
		}
		if len(w.rows) == mostRows {
			w.table()
			w.s.Printf("\n")
		}
		w.time = table.TimeHeader(a.Arch)
		row := slices.Concat([]string{a.Problem.String()}, a.Labels.Texts(), ranks)
		row = append(row, best.Config.String(), table.TimeCell(a, best), table.RateCell(a, best), peakShare(a, best),
			best.Estimate.Bound.String())
		if a.Arch.HasUncertainty(a.Kernel) {
			row = append(row, table.ValidatedCell(a, best))
		}
		w.rows = append(w.rows, row)
		return nil
	}
}

// regretCell is the place of the expected regret in uncertaintyCells. The column
// expected_regret has it again.
const regretCell = 2

// uncertaintyCells fills the columns from interval_low_seconds to measured. A column is empty if the model states no
// uncertainty, or if nothing was measured.
func uncertaintyCells(o *ask.Answer) []string {
	cells := make([]string, 7)
	if i := o.Predicted.Interval; i != nil {
		cells[0], cells[1] = digits.Exact(i[0]), digits.Exact(i[1])
	}
	if o.ExpectedRegret != nil {
		cells[regretCell], cells[3] = digits.Exact(*o.ExpectedRegret), strconv.Itoa(o.WorthMeasuring)
	}
	if m := o.Measured; m != nil {
		for _, c := range m.Candidates {
			if c.Chosen {
				cells[4] = digits.Exact(*c.Median)
			}
		}
		if noise := float64(m.Noise); digits.Finite(noise) {
			cells[5] = digits.Exact(noise)
		}
		cells[6] = strconv.Itoa(len(m.Candidates))
	}
	return cells
}

// mostRows is how many rows a table has. A longer list is written as several, because a table is held until its widths
// are known.
const mostRows = 4096

// table writes the rows of the table of many problems that are not written yet.
func (w *selectWriter) table() {
	if len(w.rows) == 0 {
		return
	}
	table.Lines(w.s, w.heading...)
	header := slices.Concat([]string{"problem"}, w.labels, w.rankColumn(),
		[]string{"pick", w.time, "rate", "of peak", "bound", "validated"})
	table.Grid{Header: header[:len(w.rows[0])], Rows: w.rows,
		Least: []string{"validated", "of peak", "rate", "bound"}}.Write(w.s)
	w.heading, w.rows = nil, w.rows[:0]
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
	line("candidates", "%s", table.CandidateCounts(a.Feasible, a.Rejected))
	switch r := a.Regret; {
	case r != nil:
		advice := "measuring other candidates does not pay"
		if r.WorthMeasuring > 1 {
			advice = fmt.Sprintf("measure the first %d", r.WorthMeasuring)
		}
		line("unmeasured", "expected regret %s, %s", percent(r.Expected), advice)
	case w.regret:
		line("unmeasured", "expected regret unknown: the model states no error")
	}
	if w.top > 1 {
		w.s.Printf("\n")
		w.best(a)
	}
	if a.Measured != nil {
		header, rows, verdict := measuredTable(a)
		line("measured", "%s", verdict)
		if len(rows) > 0 {
			w.s.Printf("\n")
			table.WriteTable(w.s, header, rows)
		}
	}
}

// best lists the best configurations of an answer.
func (w *selectWriter) best(a *ask.Ranking) {
	first := float64(a.Entries[0].Estimate.Cycles)
	var rows [][]string
	for i := range a.Entries[:min(w.top, len(a.Entries))] {
		e := &a.Entries[i]
		rows = append(rows, []string{strconv.Itoa(i + 1), e.Config.String(), table.TimeCell(a, e),
			table.RateCell(a, e), digits.Percent(float64(e.Estimate.Cycles)/first - 1), e.Estimate.Bound.String()})
	}
	table.WriteTable(w.s, []string{"rank", "config", table.TimeHeader(a.Arch), "rate", "slower by", "bound"}, rows)
}

func percent(v float64) string {
	if !digits.Finite(v) {
		return "–"
	}
	return digits.Percent(v)
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
