package iostreams

import (
	"bytes"
	"github.com/origami-gemm/origami/internal/testing/must"
	"strings"
	"testing"
)

// Lines come above the status, whichever stream they are of, and nothing is left of it.
func TestStatusStaysBelow(t *testing.T) {
	var terminal bytes.Buffer
	s := Plain(strings.NewReader(""), &terminal, &terminal)
	s.out.to = above{s.screen, &terminal}
	s.screen.width = func() int { return 12 }

	s.SetStatus("0123456789abcdef") // cut to the width
	s.Warn("w")
	s.SetStatus("half\n\x1b[2J") // foreign text stays on its line
	s.Printf("row\n")
	must.Do(t, s.Flush())
	s.CloseStatus()
	s.SetStatus("late")
	const want = clearLine + "0123456789a" + clearLine + "origami: warning: w\n" + clearLine + "0123456789a" +
		clearLine + clearLine + `half\n\x1b[` + clearLine + "row\n" + clearLine + `half\n\x1b[` + clearLine
	got := terminal.String()
	must.That(t, got == want, "got  %q\nwant %q", got, want)
}

// A line that has no end yet is not torn by the status.
func TestStatusWaitsForTheLine(t *testing.T) {
	var terminal bytes.Buffer
	s := Plain(strings.NewReader(""), &terminal, &terminal)
	s.out.to = above{s.screen, &terminal}
	s.Printf("the first half,")
	must.Do(t, s.Flush())
	s.SetStatus("bar")
	s.Printf(" the second\n")
	must.Do(t, s.Flush())
	got, want := terminal.String(), "the first half, the second\n"+clearLine+"bar"
	must.That(t, got == want, "got  %q\nwant %q", got, want)
}
