package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/plugins/library/terms"
)

// Each part of the page that is written here stands between two comments.
const (
	begin = "<!-- %s: written by make generate -->\n"
	end   = "<!-- end of %s -->"
)

// fill returns the page with new generated parts.
func fill(text string) (string, error) {
	parts := map[string]string{
		"numbers": numbers(), "quantities": quantities(), "quantities of generations": byGeneration(),
	}
	for _, p := range terms.Parts {
		parts["terms of "+p.Name] = equations(p.Terms)
	}
	for name, part := range parts {
		before, rest, ok := strings.Cut(text, fmt.Sprintf(begin, name))
		_, after, closed := strings.Cut(rest, fmt.Sprintf(end, name))
		if !ok || !closed {
			return "", fmt.Errorf("%s has no place for the %s", page, name)
		}
		text = before + fmt.Sprintf(begin, name) + part + fmt.Sprintf(end, name) + after
	}
	return text, nil
}

// numbers lists the numbers of the machine.
func numbers() string {
	var b strings.Builder
	b.WriteString("\n| number | unit | what |\n| --- | --- | --- |\n")
	for _, n := range slices.Concat(terms.Machine, terms.Condition) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", n.Name, n.Unit, n.Doc)
	}
	return b.String() + "\n"
}

// quantities lists them with their bounds.
func quantities() string {
	var b strings.Builder
	b.WriteString("\n| quantity | unit | bounds | what |\n| --- | --- | --- | --- |\n")
	for _, q := range terms.Quantities {
		fmt.Fprintf(&b, "| `%s` | %s | %s–%s | %s |\n", q.Name, q.Unit, number(q.Low), number(q.High), q.Doc)
	}
	return b.String() + "\n"
}

// byGeneration has a row per quantity, with its value for each generation.
func byGeneration() string {
	var b strings.Builder
	b.WriteString("\n| quantity |")
	for _, g := range terms.Generations() {
		fmt.Fprintf(&b, " %s |", g)
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", 1+len(terms.Generations())) + "\n")
	for _, q := range terms.Quantities {
		fmt.Fprintf(&b, "| `%s` |", q.Name)
		for _, g := range terms.Generations() {
			value, _ := q.On(terms.Variant{Generation: g})
			fmt.Fprintf(&b, " %s |", number(value))
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

var exponent = regexp.MustCompile(`e([+-])0`)

func number(v float64) string {
	return exponent.ReplaceAllString(strconv.FormatFloat(v, 'g', 4, 64), "e$1")
}

// equations writes terms as lines of code, each under its explanation.
func equations(list []terms.Term) string {
	var b strings.Builder
	b.WriteString("\n```text\n")
	for _, t := range list {
		doc := t.Doc
		if t.Unit != "1" {
			doc += " (" + t.Unit + ")"
		}
		fmt.Fprintf(&b, "# %s\n", doc)
		if t.Formula == "" {
			fmt.Fprintf(&b, "%s: %s\n", t.Name, t.From)
		} else {
			b.WriteString(layout(t.Name + " = " + t.Formula))
		}
	}
	return b.String() + "```\n\n"
}

// layout indents a formula with its line breaks in the table: by the tabs of each line beyond those of the least
// indented.
func layout(text string) string {
	lines := strings.Split(text, "\n")
	tabs := func(line string) int { return len(line) - len(strings.TrimLeft(line, "\t")) }
	least := math.MaxInt
	for _, line := range lines[1:] {
		least = min(least, tabs(line))
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteString(strings.Repeat("    ", 1+tabs(line)-least))
		}
		b.WriteString(strings.TrimLeft(line, "\t") + "\n")
	}
	return b.String()
}
