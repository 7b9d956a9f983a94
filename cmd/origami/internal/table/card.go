package table

import (
	"fmt"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
)

// labelWidth is the width of the labels of a card.
const labelWidth = 11

// Line prints a line of a card: a label, then text.
func Line(s *iostreams.Streams, label, format string, args ...any) {
	printLine(s, fmt.Sprintf("%-*s %s", labelWidth, label, s.Sprintf(format, args...)))
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

// Lines prints lines that are composed of foreign text.
func Lines(s *iostreams.Streams, lines ...string) {
	for _, line := range lines {
		printLine(s, string(s.Sprintf("%s", line)))
	}
}

// Hanging prints a line that is composed of foreign text, in several where the screen ends. Those behind the first are
// indented.
func Hanging(s *iostreams.Streams, indent int, line string) {
	for _, part := range broken(s, string(s.Sprintf("%s", line)), indent) {
		s.Printf("%s\n", iostreams.Styled(part))
	}
}

// printLine prints a line that is printable, in several where the screen ends, with what follows below the text of a
// card.
func printLine(s *iostreams.Streams, line string) {
	indent := 2
	if text := []rune(line); len(text) > labelWidth && text[labelWidth] == ' ' {
		indent = labelWidth + 1
	}
	for _, part := range broken(s, line, indent) {
		s.Printf("%s\n", iostreams.Styled(part))
	}
}
