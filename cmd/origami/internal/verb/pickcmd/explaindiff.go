package pickcmd

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
)

// writeDiff sets two configurations of a problem beside each other. all asks a page for the intermediate terms too.
func writeDiff(s *iostreams.Streams, f show.Format, first, second *ask.Explained, all bool) error {
	switch {
	case f == show.JSON:
		return show.JSONLine(s, struct {
			First  ask.Explanation `json:"first"`
			Second ask.Explanation `json:"second"`
		}{first.Explanation(), second.Explanation()})
	case f != show.Table:
		return diag.Inputf("two configurations side by side are no rows").At("--format %s", f).Do("use table or json")
	}
	show.Lines(s, show.Heading(first.Ranking, &first.Entry)...)
	show.Line(s, "problem", "%s", first.Problem)
	rows := [][]string{
		{"predicted", timeOf(first), timeOf(second), difference(first.Arch, float64(first.Estimate.Cycles),
			float64(second.Estimate.Cycles), "cycles")},
		{"bound", bound(&row{first.Ranking, &first.Entry}), bound(&row{second.Ranking, &second.Entry}), ""},
		{"rank", rankOf(first), rankOf(second), ""},
	}
	kinds := []arch.TermKind{arch.KindShare, arch.KindStep}
	if all {
		kinds = append(kinds, arch.KindIntermediate)
	}
	var headings []int
	for _, name := range []string{arch.CommonRegisters, arch.CommonSpills} {
		rows = append(rows, resource(first, second, name)...)
	}
	for _, kind := range kinds {
		if terms := diffOf(first, second, kind); len(terms) > 0 {
			headings = append(headings, len(rows))
			rows = append(append(rows, []string{diffTitles[kind], "", "", ""}), terms...)
		}
	}
	header := []string{"", first.Config.String(), second.Config.String(), "difference"}
	show.Grid{Header: header, Rows: rows, Headings: headings}.Write(s)
	if !all {
		show.Lines(s, "--terms adds the intermediate terms that differ")
	}
	return nil
}

var diffTitles = map[arch.TermKind]string{
	arch.KindShare: "where the time goes", arch.KindStep: "one K step", arch.KindIntermediate: "intermediate",
}

// diffOf lists the terms of a kind that are not zero in both, and of intermediate terms those that differ.
func diffOf(first, second *ask.Explained, kind arch.TermKind) (rows [][]string) {
	for i, t := range first.Arch.Terms {
		a, b := first.Terms[i], second.Terms[i]
		if t.Kind != kind || a == 0 && b == 0 || kind == arch.KindIntermediate && a == b {
			continue
		}
		rows = append(rows, []string{"  " + t.Name, termOf(first.Arch, t, a), termOf(first.Arch, t, b),
			difference(first.Arch, a, b, t.Unit)})
	}
	return rows
}

func termOf(d *arch.Description, t arch.Term, v float64) string {
	return cell(t, v, func(v float64) string { return show.TermCell(d, v, t.Unit) })
}

// resource is a row of what the compiler gives two kernels, if it is not the same.
func resource(first, second *ask.Explained, name string) [][]string {
	i := slices.IndexFunc(first.Arch.Terms, func(t arch.Term) bool { return t.CommonName() == name })
	if i < 0 || first.Terms[i] == second.Terms[i] {
		return nil
	}
	t := first.Arch.Terms[i]
	return [][]string{{strings.ReplaceAll(t.CommonName(), "_", " "), digits.Quantity(first.Terms[i], t.Unit),
		digits.Quantity(second.Terms[i], t.Unit), ""}}
}

// noise is the part of a value below which a difference is an error of rounding.
const noise = 1e-9

// difference is second − first, and its share of first.
func difference(of *arch.Description, first, second float64, unit string) string {
	d := second - first
	if !(math.Abs(d) > noise*max(math.Abs(first), math.Abs(second))) || math.IsInf(d, 0) {
		return ""
	}
	text := show.TermCell(of, d, unit)
	if d > 0 {
		text = "+" + text
	}
	if share := math.Abs(d / first); share <= 10 { // else it says nothing
		text += fmt.Sprintf(" (%+.3g %%)", 100*d/first)
	}
	return text
}

func timeOf(e *ask.Explained) string {
	if e.Estimate.Reject != "" {
		return "rejected: " + string(e.Estimate.Reject)
	}
	return show.TimeCell(e.Ranking, &e.Entry)
}

func rankOf(e *ask.Explained) string {
	if e.Rank == 0 {
		return "none"
	}
	return fmt.Sprintf("%d of %d", e.Rank, e.Feasible)
}
