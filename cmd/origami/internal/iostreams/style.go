package iostreams

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/printable"
)

// Style is how a text looks.
type Style string

// The styles: escape sequences of a terminal.
const (
	Bold    Style = "\x1b[1m"
	Red     Style = "\x1b[31m"
	Green   Style = "\x1b[32m"
	Yellow  Style = "\x1b[33m"
	Magenta Style = "\x1b[35m"
	Cyan    Style = "\x1b[36m"

	plain Style = "\x1b[0m"
)

// sequences are what may pass to a terminal.
var sequences = []Style{Bold, Red, Green, Yellow, Magenta, Cyan, plain}

// sequenceAt returns the escape sequence of origami that a text begins with, empty if there is none.
func sequenceAt(text string) string {
	if text == "" || text[0] != plain[0] {
		return ""
	}
	for _, s := range sequences {
		if strings.HasPrefix(text, string(s)) {
			return string(s)
		}
	}
	return ""
}

// beginsSequence reports whether a text is the incomplete begin of an escape sequence of origami.
func beginsSequence(text string) bool {
	return slices.ContainsFunc(sequences, func(s Style) bool {
		return len(text) < len(s) && strings.HasPrefix(string(s), text)
	})
}

// Styled is printable text with escape sequences of origami.
type Styled string

// Bold returns text in bold where colour is welcome.
func (s *Streams) Bold(text string) Styled { return s.Paint(text, Bold) }

// Winner returns what came out best: bold and green where colour is welcome.
func (s *Streams) Winner(text string) Styled { return s.Paint(text, Bold, Green) }

// Paint returns text in styles where colour is welcome.
func (s *Streams) Paint(text string, styles ...Style) Styled {
	return styled(printable.Line(text), s.Colour, styles)
}

func styled(text string, welcome bool, styles []Style) Styled {
	if !welcome || text == "" {
		return Styled(text)
	}
	var b strings.Builder
	for _, style := range styles {
		b.WriteString(string(style))
	}
	b.WriteString(text)
	b.WriteString(string(plain))
	return Styled(b.String())
}
