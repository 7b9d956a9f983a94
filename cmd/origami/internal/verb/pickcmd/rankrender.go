package pickcmd

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
)

// rankWriter writes one ranking after the other in the chosen format.
type rankWriter struct {
	s        *iostreams.Streams
	format   table.Format
	rejected bool
	tables   int
	labels   []string
	more     bool             // there are columns for what few problems have
	stream   func(*row) error // of CSV and TSV; nil before the first row
}

func newRankWriter(o *RankOptions, f table.Format, problems *session.Problems) *rankWriter {
	return &rankWriter{s: o.Factory.Streams, format: f, rejected: o.Rejected, labels: problems.Labels(),
		more: problems.More()}
}

// columns are the columns of CSV.
func (w *rankWriter) columns(a *ask.Ranking) table.Columns[row] {
	terms := make([]int, len(a.Arch.Terms))
	for i := range terms {
		terms[i] = i
	}
	return slices.Concat(keys(a), table.Columns[row]{
		placeColumn,
		table.Col("-|status|-", func(r *row) string { return r.Status() }),
		table.Col("-|reason|-", func(r *row) arch.Reason { return r.Estimate.Reject }),
	}, predicted(), table.Columns[row]{
		termColumns(a.Arch, terms, func(r *row, i int) string { return cell(a.Arch.Terms[i], r.Terms[i], digits.Exact) }),
		table.Col("-|outside|-", outside),
		labels(w.labels),
		table.More(w.more, problemOf),
	})
}

func (w *rankWriter) write(a *ask.Ranking) error {
	switch {
	case w.format.Pasted():
		return table.Paste(w.s, w.format, a, len(a.Entries))
	case w.format == table.Table:
		w.table(a)
		return nil
	case w.stream == nil && w.format != table.JSON:
		w.stream = w.columns(a).Stream(w.s, w.format)
	}
	for i := range a.Entries {
		e := &a.Entries[i]
		var err error
		if w.stream != nil {
			err = w.stream(&row{a, e})
		} else {
			err = table.JSONLine(w.s, a.Ranked(e, w.rejected))
		}
		if err != nil {
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
	invariantLine(w.s, a)
	table.Line(w.s, "candidates", "%s", table.CandidateCounts(a.Feasible, a.Rejected))
	var shown []int
	for _, kind := range []arch.TermKind{arch.KindStep, arch.KindShare} {
		for i, t := range a.Arch.Terms {
			if t.Kind == kind {
				shown = append(shown, i)
			}
		}
	}
	rows := make([]row, len(a.Entries))
	for i := range rows {
		rows[i] = row{a, &a.Entries[i]}
	}
	_ = table.Columns[row]{ // an error of the screen shows when it is flushed
		placeColumn, configColumn, timeColumn(a.Arch), rateColumn, boundColumn,
		table.Text("reason", func(r *row) string {
			if r.Detail != "" {
				return string(r.Estimate.Reject) + ": " + r.Detail
			}
			return string(r.Estimate.Reject)
		}).If(w.rejected),
		termColumns(a.Arch, shown, func(r *row, i int) string {
			if share, ok := r.Share(r.Entry, i); ok {
				return digits.Percent(share)
			}
			return cell(a.Arch.Terms[i], r.Terms[i], digits.SixDigits)
		}),
	}.Write(w.s, table.Table, rows)
	if w.tables == 1 && len(shown) > 0 {
		table.Lines(w.s, "terms in their unit, shares of the total in percent; `origami explain --terms` shows all of "+
			"them with their formulas")
	}
}

// termColumns are columns of terms, by their numbers.
func termColumns(d *arch.Description, which []int, text func(r *row, term int) string) table.Column[row] {
	names := make([]string, len(which))
	for i, t := range which {
		names[i] = d.Terms[t].Name
	}
	return table.Group(names, func(r *row) []string {
		cells := make([]string, len(which))
		for i, t := range which {
			cells[i] = text(r, t)
		}
		return cells
	})
}

// cell writes a term's value; the total of a candidate that the model rejects is a word, not a number.
func cell(t arch.Term, v float64, number func(float64) string) string {
	if ask.IsRejectedTotal(t, v) {
		return ask.StatusRejected
	}
	return number(v)
}
