package pickcmd

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

// sections are the groups in which a terminal shows the terms: the way to the result as the model computes it, then the
// result.
var sections = []struct {
	title string
	kinds []arch.TermKind
}{
	{"Step by step", []arch.TermKind{arch.KindIntermediate, arch.KindStep}},
	{"Parts of the total", []arch.TermKind{arch.KindShare}},
	{"Total", []arch.TermKind{arch.KindTotal}},
}

// write writes an explanation. all asks a page for every number.
func write(s *iostreams.Streams, f table.Format, e *ask.Explained, all bool) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, e.Explanation())
	case table.CSV, table.TSV:
		return recordColumns.Write(s, f, records(e))
	default:
		writeSummary(s, e)
		if all {
			writeText(s, e)
		} else {
			table.Line(s, "terms", "--terms shows all %d, with formulas and sources", len(e.Arch.Terms))
		}
		return nil
	}
}

// record is a number of an explanation in CSV. What does not apply to it is empty.
type record struct{ kind, name, value, unit, share, tier, formula, substituted, doc, source string }

var recordColumns = table.Columns[record]{
	table.Col("kind", func(r *record) string { return r.kind }),
	table.Col("name", func(r *record) string { return r.name }),
	table.Col("value", func(r *record) string { return r.value }),
	table.Col("unit", func(r *record) string { return r.unit }),
	table.Col("share", func(r *record) string { return r.share }),
	table.Col("tier", func(r *record) string { return r.tier }),
	table.Col("formula", func(r *record) string { return r.formula }),
	table.Col("substituted", func(r *record) string { return r.substituted }),
	table.Col("doc", func(r *record) string { return r.doc }),
	table.Col("source", func(r *record) string { return r.source }),
}

// records are all numbers of an explanation.
func records(e *ask.Explained) (list []record) {
	add := func(r record) { list = append(list, r) }
	number := func(v ask.Number) string { return digits.Exact(float64(v)) }
	asked := keys(e.Ranking)
	names, cells := asked.Header(table.CSV), asked.Cells(table.CSV, rowOf(e))
	for i, name := range names {
		if i == len(gemm.Columns)+len(gemm.TileFields()) {
			for j, cell := range e.Problem.MoreCells() {
				if cell != "" {
					add(record{kind: "problem", name: gemm.MoreColumns[j], value: cell})
				}
			}
		}
		kind := "config"
		if i < len(gemm.Columns) {
			kind = "problem"
		}
		add(record{kind: kind, name: name, value: cells[i]})
	}
	if e.Estimate.Reject != "" {
		add(record{kind: "rejected", name: string(e.Estimate.Reject), doc: e.Detail})
	}
	for _, outside := range e.Outside(&e.Entry) {
		add(record{kind: "outside", name: outside})
	}
	for _, p := range ask.Parameters(e.Arch) {
		add(record{kind: "parameter", name: p.Name, value: number(p.Value), unit: p.Unit, tier: p.Tier,
			doc: table.Unused(e.Arch, p.Name), source: p.Source})
	}
	for _, c := range e.Constants() {
		add(record{kind: "constant", name: c.Name, value: number(c.Value), unit: c.Unit, doc: c.Doc, source: c.Source})
	}
	for _, t := range e.ExplainTerms(digits.Exact) {
		r := record{kind: t.Kind, name: t.Name, value: t.Text, unit: t.Unit, formula: t.Formula,
			substituted: t.Substituted, doc: t.Doc, source: t.Source}
		if t.Share != nil {
			r.share = number(*t.Share)
		}
		if t.Used != nil {
			r.doc = "does not enter the total; " + t.Doc
		}
		add(r)
	}
	for _, b := range e.Besides {
		add(record{kind: "besides", name: b.Name, value: digits.Exact(float64(b.Cycles)), unit: "cycles", doc: b.Doc})
	}
	return list
}

// writeSummary writes what the prediction is and where the time goes.
func writeSummary(s *iostreams.Streams, e *ask.Explained) {
	line := func(label, format string, args ...any) {
		table.Line(s, label, format, args...)
	}
	table.Lines(s, table.Heading(e.Ranking, &e.Entry)...)
	line("problem", "%s", e.Problem)
	line("config", "%s", s.Bold(e.Config.String()))
	switch {
	case e.Estimate.Reject != "" && e.Detail != "":
		line("rejected", "%s: %s", e.Estimate.Reject, e.Detail)
	case e.Estimate.Reject != "":
		line("rejected", "%s", e.Estimate.Reject)
	default:
		line("predicted", "%s", table.Prediction(e.Ranking, &e.Entry))
		line("why", "%s", e.Why(&e.Entry))
	}
	if e.Rank > 0 {
		line("rank", "%d of %d", e.Rank, e.Feasible)
	} else if e.Estimate.Reject == "" {
		line("rank", "none: the configuration is not in the candidate list")
	}
	if e.Estimate.Reject != "" {
		return
	}
	if parts := largest(e, arch.KindShare); len(parts) > 0 {
		line("time", "%s", strings.Join(parts, ", "))
	}
	if steps := largest(e, arch.KindStep); len(steps) > 0 {
		line("one K step", "%s", strings.Join(steps, ", "))
	}
	table.WayLines(s, e.Ranking)
}

// mostNamed is how many terms a line names.
const mostNamed = 5

// largest names the largest terms of a kind: a share with its part of the total, a step with its cycles. One that takes
// time off says so.
func largest(e *ask.Explained, kind arch.TermKind) []string {
	var found []int
	for i, t := range e.Arch.Terms {
		if t.Kind == kind && e.Terms[i] != 0 && !ask.IsRejectedTotal(t, e.Terms[i]) {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(i, j int) int { return cmp.Compare(math.Abs(e.Terms[j]), math.Abs(e.Terms[i])) })
	var parts []string
	for _, i := range found[:min(mostNamed, len(found))] {
		t := &e.Arch.Terms[i]
		value := digits.WithUnit(digits.SixDigits(e.Terms[i]), t.Unit)
		if share, ok := e.Share(&e.Entry, i); ok {
			value = digits.Percent(share)
		}
		if e.Terms[i] < 0 { // "pass -1.85 %" is no share of anything
			parts = append(parts, "less "+strings.TrimPrefix(value, "-")+" ("+t.Name+": "+t.Doc+")")
			continue
		}
		parts = append(parts, t.Name+" "+value)
	}
	return parts
}

// writeText writes every number.
func writeText(s *iostreams.Streams, e *ask.Explained) {
	section := func(title string) { s.Printf("\n%s\n", s.Bold(title)) }
	section("Hardware parameters")
	rows := [][]string{}
	for i := range e.Arch.Params {
		p := &e.Arch.Params[i]
		rows = append(rows, []string{"  " + p.Name, digits.Parameter(p.Value, p.Unit), p.Tier.String(),
			table.SourceOf(e.Arch, p)})
	}
	table.WriteColumns(s, rows)
	if list := e.Constants(); len(list) > 0 {
		section("Constants of the model")
		rows = rows[:0]
		for _, c := range list {
			rows = append(rows, []string{"  " + c.Name, digits.Quantity(float64(c.Value), c.Unit), meaning(c.Doc, c.Source)})
		}
		table.WriteColumns(s, rows)
	}
	if len(e.Arch.Options) > 0 {
		section("Options")
		rows = rows[:0]
		for _, o := range e.Arch.Options {
			rows = append(rows, []string{"  " + o.Key, o.Value})
		}
		table.WriteColumns(s, rows)
	}

	all := e.ExplainTerms(digits.SixDigits)
	whole := len(all)
	all = slices.DeleteFunc(all, func(t ask.ExplainedTerm) bool { return t.Used != nil })
	for _, group := range sections {
		in := func(t ask.ExplainedTerm) bool { return slices.Contains(group.kinds, t.Of) }
		if !slices.ContainsFunc(all, in) {
			continue
		}
		section(group.title)
		for i := range all {
			if in(all[i]) {
				writeTerm(s, &all[i])
			}
		}
	}

	if e.Besides != nil {
		section("Besides the terms")
		for _, b := range e.Besides {
			writeTerm(s, &ask.ExplainedTerm{Name: b.Name, Text: digits.SixDigits(float64(b.Cycles)),
				Term: ask.Term{Unit: "cycles"}, Doc: b.Doc})
		}
	}

	if unused := whole - len(all); unused > 0 {
		s.Printf("\n%s not enter the total of this kernel; --json has them\n",
			digits.Plural(unused, "other term does", "other terms do"))
	}

	section("Launch order")
	if e.Mapping.GroupM == 0 {
		s.Printf("  unknown")
	} else {
		s.Printf("  group_m %d", e.Mapping.GroupM)
	}
	if e.Mapping.XCDs > 0 {
		s.Printf("; %s", table.LaunchOrder(e.Mapping))
	}
	s.Printf("\n")
}

// writeTerm prints a term in up to four lines, or more where the screen is narrow: value, formula, formula with
// numbers, meaning and source.
func writeTerm(s *iostreams.Streams, t *ask.ExplainedTerm) {
	value := digits.WithUnit(t.Text, t.Unit)
	if t.Text == "rejected" {
		value = t.Text
	}
	if t.Share != nil {
		value += "   " + digits.Percent(float64(*t.Share)) + " of the total"
	}
	s.Printf("  %s = %s\n", s.Bold(t.Name), value)
	if t.Formula != "" {
		table.Hanging(s, 8, "      = "+strings.TrimSpace(strings.TrimPrefix(t.Formula, "rule:")))
	}
	if t.Substituted != "" && t.Substituted != t.Formula {
		table.Hanging(s, 8, "      = "+t.Substituted)
	}
	if what := meaning(t.Doc, t.Source); what != "" {
		table.Hanging(s, 6, "      "+what)
	}
}

// meaning is what a number means, and where it comes from.
func meaning(doc, source string) string {
	if doc == "" || source == "" {
		return doc + source
	}
	return doc + " [" + source + "]"
}
