package show

import (
	"fmt"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/logic"
)

// labelWidth is the width of the labels of a card.
const labelWidth = 11

// Line prints a line of a card: a label, then text.
func Line(s *iostreams.Streams, label, format string, args ...any) {
	hanging(s, fmt.Sprintf("%-*s %s", labelWidth, label, s.Sprintf(format, args...)))
}

// Lines prints lines that are composed of foreign text.
func Lines(s *iostreams.Streams, lines ...string) {
	for _, line := range lines {
		hanging(s, string(s.Sprintf("%s", line)))
	}
}

// hanging prints a line that is printable, in several where the screen ends, with what follows below the text of a
// card.
func hanging(s *iostreams.Streams, line string) {
	indent := 2
	if text := []rune(line); len(text) > labelWidth && text[labelWidth] == ' ' {
		indent = labelWidth + 1
	}
	s.Printf("%s\n", iostreams.Styled(Hang(line, indent, ScreenWidth(s))))
}

// Hanging is Lines for one line, with its further lines indented.
func Hanging(s *iostreams.Streams, indent int, line string) {
	s.Printf("%s\n", iostreams.Styled(Hang(string(s.Sprintf("%s", line)), indent, ScreenWidth(s))))
}

// WayLines prints the other ways to run the problem of an answer, and the advice for it.
func WayLines(s *iostreams.Streams, a *ask.Ranking) {
	block(s, "other ways", Ways(a))
	block(s, "advice", Advice(a))
}

// block prints lines with a label before the first.
func block(s *iostreams.Streams, label string, lines []string) {
	for _, line := range lines {
		Line(s, label, "%s", line)
		label = ""
	}
}

// ContractionLines print how GEMMs compute a contraction, and how long that takes beside the other way.
func ContractionLines(s *iostreams.Streams, a *ask.Ranking) {
	c := a.Contraction
	Line(s, "contraction", "%s", c.String())
	Line(s, "", "%s", c.Plan.Text())
	if !c.Plan.Direct() {
		Line(s, "in all", "%s", s.Bold(c.Seconds.String()+": "+parts(a, c)))
	}
	for i, other := range c.Instead {
		Line(s, [...]string{"instead", ""}[min(i, 1)], "%s: %s", other.Plan.Text(), other.Seconds)
	}
}

// parts says what the time of a contraction consists of.
func parts(a *ask.Ranking, c *ask.Contracted) string {
	gemms := digits.Plural(c.Plan.Calls, "GEMM", "GEMMs") + " of " + a.Seconds(&a.Entries[0]).String()
	if c.Plan.Moved == 0 {
		return gemms
	}
	text := fmt.Sprintf("%s, and %.3g MB moved besides at the bandwidth of DRAM", gemms, c.Plan.Moved/1e6)
	if len(c.Plan.Copied) > 0 {
		text += ", in " + digits.Plural(len(c.Plan.Copied), "copy", "copies")
	}
	return text
}

// layers are how a line names what answered.
var layers = map[logic.Layer]string{
	logic.LayerExact: "the exact size", logic.LayerRange: "its ranges", logic.LayerNearest: "the nearest size",
	logic.LayerModel: "the model: the logic has no such size",
}

// LogicLine says which part of a library logic answered.
func LogicLine(s *iostreams.Streams, p *ask.LogicPick) {
	by := layers[p.Layer]
	if p.Layer == logic.LayerModel && p.Kernel != "" {
		by = "the model among its kernels: " + p.Kernel
	}
	Line(s, "logic", "%s, answered by %s", p.File, by)
}

// Answer writes an object with a list. JSON is the object, CSV has the rows of the list, and people read lines
// above the rows.
func Answer[T any](
	s *iostreams.Streams, f Format, object any, lines func(), rows []T, columns ...Column[T],
) error {
	switch f {
	case JSON:
		return JSONLine(s, object)
	case Table:
		lines()
	case CSV: // the rows alone
	}
	return Write(s, f, rows, columns...)
}

// Texts are the header and the cells of a table for people.
func Texts[T any](rows []T, columns ...Column[T]) (header []string, cells [][]string) {
	return NewRows[T](nil, Table, columns...).Text(rows)
}

// Facts prints a line of a card for each column that is not empty of an object.
func Facts[T any](s *iostreams.Streams, of *T, columns ...Column[T]) {
	header, cells := Texts([]T{*of}, columns...)
	for i, cell := range cells[0] {
		if cell != "" {
			Line(s, header[i], "%s", cell)
		}
	}
}
