package show

import (
	"bytes"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// A table is plain text: aligned, without trailing blanks, with escape sequences only if colour is wanted.
func TestGrid(t *testing.T) {
	rows := [][]string{{"alpha", "1.5 µs", "x"}, {"be", "137 µs", ""}}
	for _, tc := range []struct {
		colour bool
		want   string
	}{
		{false, "name     time  note\nalpha  1.5 µs  x\nbe     137 µs\n"},
		{true, "\x1b[1mname\x1b[0m     \x1b[1mtime\x1b[0m  \x1b[1mnote\x1b[0m\nalpha  1.5 µs  x\nbe     137 µs\n"},
	} {
		var out bytes.Buffer
		s := iostreams.Plain(strings.NewReader(""), &out, &out)
		s.Colour = tc.colour
		Grid{Header: []string{"name", "time", "note"}, Rows: rows}.Write(s)
		must.Do(t, s.Flush())
		must.That(t, out.String() == tc.want, "colour %v: got\n%q, want\n%q", tc.colour, out.String(), tc.want)
	}
}
