package explaincmd

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
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

// term is one explained number.
type term struct {
	render.TermJSON
	Kind        string `json:"kind"`
	Formula     string `json:"formula,omitempty"`
	Substituted string `json:"substituted,omitempty"`
	Doc         string `json:"doc,omitempty"`
	Source      string `json:"source,omitempty"`

	name string
	kind arch.TermKind
	text string // the value as text
}

// parameter is one number that the terms are computed from.
type parameter struct {
	Name   string       `json:"name"`
	Value  table.Number `json:"value"`
	Unit   string       `json:"unit"`
	Tier   string       `json:"tier,omitempty"`
	Doc    string       `json:"doc,omitempty"`
	Method string       `json:"method,omitempty"`
	Source string       `json:"source"`
	Date   string       `json:"date,omitempty"`
	Used   *bool        `json:"used,omitempty"`

	unused string // the note for a parameter that the model does not use
}

// object is `explain --json`.
type object struct {
	render.Object
	Rank       *int              `json:"rank"`
	Status     string            `json:"status"`
	Reason     arch.Reason       `json:"reason,omitempty"`
	Detail     string            `json:"detail,omitempty"`
	Parameters []parameter       `json:"parameters"`
	Constants  []parameter       `json:"constants"`
	Options    map[string]string `json:"options"`
	Terms      table.Fields      `json:"terms"`
	Besides    table.Fields      `json:"besides,omitempty"`
}

// write writes an explanation. all asks a page for every number.
func write(s *iostreams.Streams, f table.Format, e *Explanation, all bool) error {
	switch f {
	case table.JSON:
		return writeJSON(s, e)
	case table.CSV, table.TSV:
		return writeRecords(s, f, e)
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

// terms explains every term, in the order in which the model computes them.
func terms(e *Explanation, number func(float64) string) []term {
	values := formula.Values(e.Arch, e.Problem, e.Candidate, e.Terms)
	out := make([]term, len(e.Arch.Terms))
	entering := e.Entering(&e.Entry)
	for i, t := range e.Arch.Terms {
		explained := term{
			TermJSON: render.TermJSONOf(e.Answer, &e.Entry, i), Kind: render.TermKind(t.Kind),
			Formula: t.Formula, Doc: t.Doc,
			Source: t.Source, name: t.Name, kind: t.Kind, text: number(e.Terms[i]),
		}
		if session.IsRejectedTotal(t, e.Terms[i]) {
			explained.text = "rejected"
		}
		if entering != nil && !entering[i] {
			explained.Used = new(bool)
		}
		if t.Formula != "" && !formula.IsRule(t.Formula) {
			explained.Substituted = formula.Substitute(t.Formula, values, number)
		}
		out[i] = explained
	}
	return out
}

func parameters(d *arch.Description) []parameter {
	out := make([]parameter, len(d.Params))
	for i, p := range d.Params {
		out[i] = parameter{Name: p.Name, Value: table.Number(p.Value), Unit: p.Unit, Tier: p.Tier.String(),
			Method: string(p.Method), Source: p.Source, Date: p.Date,
			Used: render.Used(d, p.Name), unused: render.Unused(d, p.Name)}
	}
	return out
}

func constants(d *arch.Description) []parameter {
	out := make([]parameter, len(d.Constants))
	for i, c := range d.Constants {
		out[i] = parameter{Name: c.Name, Value: table.Number(c.Value), Unit: c.Unit, Doc: c.Doc, Source: c.Source}
	}
	return out
}

func writeJSON(s *iostreams.Streams, e *Explanation) error {
	return table.JSONLine(s, objectOf(e))
}

func objectOf(e *Explanation) object {
	o := object{
		Object: render.ObjectOf(e.Answer, &e.Entry), Status: "ok", Reason: e.Estimate.Reject, Detail: e.Detail,
		Parameters: parameters(e.Arch), Constants: constants(e.Arch), Options: map[string]string{},
	}
	if e.Rank > 0 {
		o.Rank = &e.Rank
	}
	if o.Reason != "" {
		o.Status = "rejected"
	}
	for _, option := range e.Arch.Options {
		o.Options[option.Key] = option.Value
	}
	for _, t := range terms(e, table.Exact) {
		o.Terms = append(o.Terms, table.Field{Name: t.name, Value: t})
	}
	for _, b := range e.Besides {
		o.Besides = append(o.Besides, table.Field{Name: b.Name, Value: table.Number(b.Cycles)})
	}
	return o
}

// writeRecords writes a row per number. All rows have the same columns; a column that does not apply is empty.
func writeRecords(s *iostreams.Streams, f table.Format, e *Explanation) error {
	r := table.NewDelimited(s, f, []string{"kind", "name", "value", "unit", "share", "tier", "formula", "substituted",
		"doc", "source"})
	row := func(cells ...string) error { return r.Write(cells) }
	var err error
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	for i, cell := range table.KeyCells(e.Problem, e.Config) {
		kind := "problem"
		if i >= len(gemm.Columns) {
			kind = "config"
		}
		keep(row(kind, table.KeyColumns[i], cell, "", "", "", "", "", "", ""))
	}
	for i, cell := range e.Problem.MoreCells() {
		if cell != "" {
			keep(row("problem", gemm.MoreColumns[i], cell, "", "", "", "", "", "", ""))
		}
	}
	axes := e.Arch.Axes(e.Kernel)
	columns := table.LaunchColumns(axes)
	for i, cell := range table.LaunchCells(e.Config, axes) {
		keep(row("config", columns[i], cell, "", "", "", "", "", "", ""))
	}
	if e.Estimate.Reject != "" {
		keep(row("rejected", string(e.Estimate.Reject), "", "", "", "", "", "", e.Detail, ""))
	}
	for _, outside := range e.Outside(&e.Entry) {
		keep(row("outside", outside, "", "", "", "", "", "", "", ""))
	}
	for _, p := range parameters(e.Arch) {
		keep(row("parameter", p.Name, table.Exact(float64(p.Value)), p.Unit, "", p.Tier, "", "", p.unused, p.Source))
	}
	for _, c := range constants(e.Arch) {
		keep(row("constant", c.Name, table.Exact(float64(c.Value)), c.Unit, "", "", "", "", c.Doc, c.Source))
	}
	for _, t := range terms(e, table.Exact) {
		share := ""
		if t.Share != nil {
			share = table.Exact(float64(*t.Share))
		}
		if t.Used != nil {
			t.Doc = "does not enter the total; " + t.Doc
		}
		keep(row(t.Kind, t.name, t.text, t.Unit, share, "", t.Formula, t.Substituted, t.Doc, t.Source))
	}
	for _, b := range e.Besides {
		keep(row("besides", b.Name, table.Exact(float64(b.Cycles)), "cycles", "", "", "", "", b.Doc, ""))
	}
	if err != nil {
		return err
	}
	return nil
}

// writeSummary writes what the prediction is and where the time goes.
func writeSummary(s *iostreams.Streams, e *Explanation) {
	line := func(label, format string, args ...any) {
		table.Line(s, label, format, args...)
	}
	table.Lines(s, render.Heading(e.Answer, &e.Entry)...)
	line("problem", "%s", e.Problem)
	line("config", "%s", s.Bold(e.Config.String()))
	switch {
	case e.Estimate.Reject != "" && e.Detail != "":
		line("rejected", "%s: %s", e.Estimate.Reject, e.Detail)
	case e.Estimate.Reject != "":
		line("rejected", "%s", e.Estimate.Reject)
	default:
		line("predicted", "%s", render.Prediction(e.Answer, &e.Entry))
		line("why", "%s", render.Why(e.Answer, &e.Entry))
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
}

// mostNamed is how many terms a line names.
const mostNamed = 5

// largest names the largest terms of a kind: a share with its part of the total, a step with its cycles. One that takes
// time off says so.
func largest(e *Explanation, kind arch.TermKind) []string {
	var found []int
	for i, t := range e.Arch.Terms {
		if t.Kind == kind && e.Terms[i] != 0 && !session.IsRejectedTotal(t, e.Terms[i]) {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(i, j int) int { return cmp.Compare(math.Abs(e.Terms[j]), math.Abs(e.Terms[i])) })
	var parts []string
	for _, i := range found[:min(mostNamed, len(found))] {
		t := &e.Arch.Terms[i]
		value := table.WithUnit(table.SixDigits(e.Terms[i]), t.Unit)
		if share, ok := e.Share(&e.Entry, i); ok {
			value = table.Percent(share)
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
func writeText(s *iostreams.Streams, e *Explanation) {
	section := func(title string) { s.Printf("\n%s\n", s.Bold(title)) }
	section("Hardware parameters")
	rows := [][]string{}
	for i := range e.Arch.Params {
		p := &e.Arch.Params[i]
		rows = append(rows, []string{"  " + p.Name, table.Parameter(p.Value, p.Unit), p.Tier.String(),
			render.SourceOf(e.Arch, p)})
	}
	table.WriteColumns(s, rows)
	if list := constants(e.Arch); len(list) > 0 {
		section("Constants of the model")
		rows = rows[:0]
		for _, c := range list {
			rows = append(rows, []string{"  " + c.Name, table.Quantity(float64(c.Value), c.Unit), meaning(c.Doc, c.Source)})
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

	all := terms(e, table.SixDigits)
	whole := len(all)
	all = slices.DeleteFunc(all, func(t term) bool { return t.Used != nil })
	for _, group := range sections {
		in := func(t term) bool { return slices.Contains(group.kinds, t.kind) }
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
			writeTerm(s, &term{name: b.Name, text: table.SixDigits(float64(b.Cycles)),
				TermJSON: render.TermJSON{Unit: "cycles"}, Doc: b.Doc})
		}
	}

	if unused := whole - len(all); unused > 0 {
		s.Printf("\n%s not enter the total of this kernel; --json has them\n",
			table.Plural(unused, "other term does", "other terms do"))
	}

	section("Launch order")
	if e.Mapping.GroupM == 0 {
		s.Printf("  unknown")
	} else {
		s.Printf("  group_m %d", e.Mapping.GroupM)
	}
	if e.Mapping.XCDs > 0 {
		s.Printf("; %s", render.LaunchOrder(e.Mapping))
	}
	s.Printf("\n")
}

// writeTerm prints a term in up to four lines, or more where the screen is narrow: value, formula, formula with
// numbers, meaning and source.
func writeTerm(s *iostreams.Streams, t *term) {
	value := table.WithUnit(t.text, t.Unit)
	if t.text == "rejected" {
		value = t.text
	}
	if t.Share != nil {
		value += "   " + table.Percent(float64(*t.Share)) + " of the total"
	}
	s.Printf("  %s = %s\n", s.Bold(t.name), value)
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
