package pickcmd

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
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
func write(s *iostreams.Streams, f show.Format, e *ask.Explained, all bool) error {
	switch f {
	case show.JSON:
		return show.JSONLine(s, e.Explanation())
	case show.CSV:
		return show.Write(s, f, numbers(e))
	default:
		writeSummary(s, e)
		if all {
			writeText(s, e)
		} else {
			show.Line(s, "terms", "--terms shows all %d, with formulas and sources", len(e.Arch.Terms))
		}
		return nil
	}
}

// number is a number or a text of an explanation in CSV: a term, a parameter, a constant, or a value of the
// answer by its flattened key.
type number struct {
	Kind        string      `json:"kind"`
	Name        string      `json:"name"`
	Value       string      `json:"value"`
	Unit        string      `json:"unit"`
	Share       *ask.Number `json:"share"`
	Tier        string      `json:"tier"`
	Formula     string      `json:"formula"`
	Substituted string      `json:"substituted"`
	Doc         string      `json:"doc"`
	Source      string      `json:"source"`
	Used        *bool       `json:"used"`
}

// numbers are all numbers of an explanation.
func numbers(e *ask.Explained) (list []number) {
	x := e.Explanation()
	x.Terms = nil
	keys := show.Keys(&x)
	for i, cell := range show.Cells(&x, keys) {
		if cell != "" {
			list = append(list, number{Kind: "answer", Name: keys[i], Value: cell})
		}
	}
	for i, p := range slices.Concat(x.Parameters, x.Constants) {
		kind := "parameter"
		if i >= len(x.Parameters) {
			kind = "constant"
		}
		list = append(list, number{Kind: kind, Name: p.Name, Value: digits.Exact(float64(p.Value)), Unit: p.Unit,
			Tier: p.Tier, Doc: p.Doc, Source: p.Source, Used: p.Used})
	}
	for _, t := range e.ExplainTerms(digits.Exact) {
		list = append(list, number{Kind: t.Kind, Name: t.Name, Value: t.Text, Unit: t.Unit, Share: t.Share,
			Formula: t.Formula, Substituted: t.Substituted, Doc: t.Doc, Source: t.Source, Used: t.Used})
	}
	return list
}

// writeSummary writes what the prediction is and where the time goes.
func writeSummary(s *iostreams.Streams, e *ask.Explained) {
	line := func(label, format string, args ...any) {
		show.Line(s, label, format, args...)
	}
	show.Lines(s, show.Heading(e.Ranking, &e.Entry)...)
	line("problem", "%s", e.Problem)
	line("config", "%s", s.Bold(e.Config.String()))
	switch {
	case e.Estimate.Reject != "" && e.Detail != "":
		line("rejected", "%s: %s", e.Estimate.Reject, e.Detail)
	case e.Estimate.Reject != "":
		line("rejected", "%s", e.Estimate.Reject)
	default:
		line("predicted", "%s", show.Prediction(e.Ranking, &e.Entry))
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
	if n := e.Near(); n != nil {
		line("near times", "%d of %s; the nearest is %.2f away in log M, N, K; factor %.3f", n.Times, n.Source,
			float64(n.Distance), float64(n.Factor))
	}
	if parts := largest(e, arch.KindShare); len(parts) > 0 {
		line("time", "%s", strings.Join(parts, ", "))
	}
	if steps := largest(e, arch.KindStep); len(steps) > 0 {
		line("one K step", "%s", strings.Join(steps, ", "))
	}
	show.WayLines(s, e.Ranking)
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
		value := show.TermCell(e.Arch, e.Terms[i], t.Unit)
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
	list := func(title string, rows [][]string) {
		if len(rows) > 0 {
			section(title)
			show.WriteColumns(s, rows)
		}
	}
	var parameters, constants, options [][]string
	for i := range e.Arch.Params {
		p := &e.Arch.Params[i]
		parameters = append(parameters, []string{"  " + p.Name, digits.Parameter(p.Value, p.Unit), p.Tier.String(),
			show.SourceOf(e.Arch, p)})
	}
	for _, c := range e.Constants() {
		constants = append(constants, []string{"  " + c.Name, digits.Quantity(float64(c.Value), c.Unit),
			meaning(c.Doc, c.Source)})
	}
	for _, o := range e.Arch.Options {
		options = append(options, []string{"  " + o.Key, o.Value})
	}
	list("Hardware parameters", parameters)
	list("Constants of the model", constants)
	list("Options", options)

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
	order := "unknown"
	if e.Mapping.GroupM > 0 {
		order = fmt.Sprintf("group_m %d", e.Mapping.GroupM)
	}
	if e.Mapping.XCDs > 0 {
		order += "; " + show.LaunchOrder(e.Mapping)
	}
	s.Printf("  %s\n", order)
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
		show.Hanging(s, 8, "      = "+strings.TrimSpace(strings.TrimPrefix(t.Formula, "rule:")))
	}
	if t.Substituted != "" && t.Substituted != t.Formula {
		show.Hanging(s, 8, "      = "+t.Substituted)
	}
	if what := meaning(t.Doc, t.Source); what != "" {
		show.Hanging(s, 6, "      "+what)
	}
}

// meaning is what a number means, and where it comes from.
func meaning(doc, source string) string {
	if doc == "" || source == "" {
		return doc + source
	}
	return doc + " [" + source + "]"
}
