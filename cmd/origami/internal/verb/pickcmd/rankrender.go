package pickcmd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
)

// rankWriter writes one ranking after the other in the chosen format.
type rankWriter struct {
	s         *table.Streams
	format    table.Format
	rejected  bool
	tables    int
	more      bool // there are columns for what few problems have
	labels    []string
	delimited *table.Delimited
}

func newRankWriter(o *RankOptions, f table.Format, d *arch.Description, problems *session.Problems) *rankWriter {
	w := &rankWriter{s: o.Factory.Streams, format: f, rejected: o.Rejected, more: problems.More(),
		labels: problems.Labels()}
	if f == table.CSV || f == table.TSV {
		header := slices.Concat(table.KeyColumns, table.LaunchColumns(table.AxesOf(d, o.Factory.Settings.Kernel)),
			[]string{"rank", "status", "reason", "arch", "device", "model", "kernel", "rung", "cycles", "seconds", "tflops",
				"bound"})
		for _, t := range d.Terms {
			header = append(header, t.Name)
		}
		header = append(header, "outside")
		header = append(header, w.labels...)
		header = append(header, table.MoreColumns(w.more)...)
		w.delimited = table.NewDelimited(w.s, f, header)
	}
	return w
}

func (w *rankWriter) write(a *ask.Ranking) error {
	switch {
	case w.format == table.JSON:
		return w.json(a)
	case w.delimited != nil:
		return w.csv(a)
	case w.format.Pasted():
		return table.Paste(w.s, w.format, a, len(a.Entries))
	default:
		w.table(a)
		return nil
	}
}

func (w *rankWriter) json(a *ask.Ranking) error {
	for i := range a.Entries {
		if err := table.JSONLine(w.s, a.Ranked(&a.Entries[i], w.rejected)); err != nil {
			return err
		}
	}
	return nil
}

func (w *rankWriter) csv(a *ask.Ranking) error {
	for i := range a.Entries {
		e := &a.Entries[i]
		row := slices.Concat(table.KeyCells(a.Problem, e.Config), table.LaunchCells(e.Config, a.Arch.Axes(a.Kernel)),
			[]string{rank(e), e.Status(), string(e.Estimate.Reject)}, rankAnswered(a, e))
		for j, v := range e.Terms {
			row = append(row, cell(a.Arch.Terms[j], v, digits.Exact))
		}
		row = append(row, strings.Join(a.Outside(e), "; "))
		row = append(row, a.Labels.Texts()...)
		if err := w.delimited.Write(append(row, table.MoreCells(a.Problem, w.more)...)); err != nil {
			return err
		}
	}
	return nil
}

// table shows what a terminal has room for: the steps and the shares of the total. `explain` shows everything.
func (w *rankWriter) table(a *ask.Ranking) {
	if w.tables > 0 {
		w.s.Printf("\n")
	}
	w.tables++
	table.Lines(w.s, table.Heading(a, &a.Entries[0])...)
	table.Line(w.s, "problem", "%s", strings.Join(append([]string{a.Problem.String()}, a.Labels.Texts()...), "  "))
	table.Line(w.s, "candidates", "%s", table.CandidateCounts(a.Feasible, a.Rejected))
	header := []string{"rank", "config", table.TimeHeader(a.Arch), "rate", "bound"}
	if w.rejected {
		header = append(header, "reason")
	}
	var shown []int
	for _, kind := range []arch.TermKind{arch.KindStep, arch.KindShare} {
		for i, t := range a.Arch.Terms {
			if t.Kind == kind {
				shown = append(shown, i)
				header = append(header, t.Name)
			}
		}
	}
	rows := make([][]string, len(a.Entries))
	for i := range a.Entries {
		e := &a.Entries[i]
		row := []string{rank(e), e.Config.String(), "", "", ""}
		if e.Rank > 0 {
			row[2], row[3], row[4] = table.TimeCell(a, e), table.RateCell(a, e), e.Estimate.Bound.String()
		}
		if w.rejected {
			reason := string(e.Estimate.Reject)
			if e.Detail != "" {
				reason += ": " + e.Detail
			}
			row = append(row, reason)
		}
		for _, j := range shown {
			if share, ok := a.Share(e, j); ok {
				row = append(row, digits.Percent(share))
			} else {
				row = append(row, cell(a.Arch.Terms[j], e.Terms[j], digits.SixDigits))
			}
		}
		rows[i] = row
	}
	table.WriteTable(w.s, header, rows)
	if w.tables == 1 && len(shown) > 0 {
		table.Lines(w.s, "terms in their unit, shares of the total in percent; `origami explain --terms` shows all of "+
			"them with their formulas")
	}
}

// rankAnswered says who predicts what, without the terms. A configuration that cannot be used has no prediction.
func rankAnswered(a *ask.Ranking, e *ask.Entry) []string {
	cells := []string{a.Arch.Arch, a.Arch.Device, a.Arch.Model, a.Kernel, string(a.Arch.Rung), "", "", "", ""}
	if e.Estimate.Reject == "" {
		copy(cells[5:], []string{digits.Exact(float64(e.Estimate.Cycles)), digits.Exact(float64(a.Seconds(e))),
			digits.Exact(float64(a.Rate(e)) / 1e12), e.Estimate.Bound.String()})
	}
	return cells
}

func rank(e *ask.Entry) string {
	if e.Rank == 0 {
		return ""
	}
	return strconv.Itoa(e.Rank)
}

// cell writes a term's value; the total of a candidate that the model rejects is a word, not a number.
func cell(t arch.Term, v float64, number func(float64) string) string {
	if ask.IsRejectedTotal(t, v) {
		return ask.StatusRejected
	}
	return number(v)
}
