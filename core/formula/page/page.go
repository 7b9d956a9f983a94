// Package page makes the generated parts of a model's page in docs/. Each stands between two comments.
package page

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// The comments around a part, by its name.
const (
	begin = "<!-- %s: written by make generate -->\n"
	end   = "<!-- end of %s -->"
)

// Fill returns the text of a page with new parts, by name. A part without its comments is an error.
func Fill(text string, parts map[string]string) (string, error) {
	for name, part := range parts {
		before, rest, ok := strings.Cut(text, fmt.Sprintf(begin, name))
		_, after, closed := strings.Cut(rest, fmt.Sprintf(end, name))
		if !ok || !closed {
			return "", fmt.Errorf("the page has no place for the %s", name)
		}
		text = before + fmt.Sprintf(begin, name) + part + fmt.Sprintf(end, name) + after
	}
	return text, nil
}

// Comment writes what a term is, above its equation. A unit of 1 is left out.
func Comment(doc, unit string) string {
	if unit != "1" {
		doc += " (" + unit + ")"
	}
	return "# " + doc + "\n"
}

// Layout indents a formula with its line breaks in the table: by the tabs of each line beyond those of the least
// indented.
func Layout(text string) string {
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

var exponent = regexp.MustCompile(`e([+-])0`)

// Number writes a value with some significant digits; -1 writes as many as it has.
func Number(v float64, digits int) string {
	return exponent.ReplaceAllString(strconv.FormatFloat(v, 'g', digits, 64), "e$1")
}
