package table

import (
	"bytes"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
)

func TestDelimited(t *testing.T) {
	rows := [][]string{{"a,b", "tab\there"}, {"say \"hi\"", "two\nlines"}}
	for f, want := range map[Format]string{
		CSV: "x,y\n\"a,b\",tab\\there\n\"say \"\"hi\"\"\",two\\nlines\n",
		TSV: "x\ty\na,b\ttab\\there\nsay 'hi'\ttwo\\nlines\n",
	} {
		var out bytes.Buffer
		s := iostreams.Plain(strings.NewReader(""), &out, &out)
		if err := WriteRows(s, f, []string{"x", "y"}, [][]string{append([]string{}, rows[0]...),
			append([]string{}, rows[1]...)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%s: got %q, want %q", f, out.String(), want)
		}
	}
}

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
		WriteTable(s, []string{"name", "time", "note"}, rows)
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != tc.want {
			t.Errorf("colour %v: got\n%q, want\n%q", tc.colour, out.String(), tc.want)
		}
	}
}
