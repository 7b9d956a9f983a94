package table

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/unit"
)

func TestDelimited(t *testing.T) {
	rows := [][2]string{{"a,b", "tab\there"}, {"say \"hi\"", "two\nlines"}}
	columns := Columns[[2]string]{Group([]string{"x", "y"}, func(row *[2]string) []string { return row[:] })}
	for f, want := range map[Format]string{
		CSV: "x,y\n\"a,b\",tab\\there\n\"say \"\"hi\"\"\",two\\nlines\n",
		TSV: "x\ty\na,b\ttab\\there\nsay 'hi'\ttwo\\nlines\n",
	} {
		var out bytes.Buffer
		s := iostreams.Plain(strings.NewReader(""), &out, &out)
		if err := columns.Write(s, f, rows); err != nil {
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

// One list of columns gives all formats: nested keys and empty values of JSON, exact numbers of CSV, and people's text.
func TestColumns(t *testing.T) {
	type row struct {
		name   string
		time   float64 // seconds, NaN if unknown
		right  bool
		labels []string
	}
	columns := Columns[row]{
		Col("name||problem", func(r *row) string { return r.name }),
		Opt("times.pick|pick_seconds|time", func(r *row) float64 { return r.time },
			func(v float64) string { return unit.Seconds(v).String() }).Or("–"),
		Col("times.right||-", func(r *row) bool { return r.right }).Omit(),
		Col("labels|-", func(r *row) []string { return r.labels }).Omit(),
		Group([]string{"a", "b"}, func(r *row) []string { return append(r.labels, "", "")[:2] }).In(CSV),
		Text("seen", func(*row) string { return "by people" }),
		Const[row]("never", 1).If(false),
	}
	rows := []row{{"<1x2>", 1.0 / 3, true, []string{"x", "y"}}, {"3x4", math.NaN(), false, nil}}
	for f, want := range map[Format]string{
		JSON: `{"name":"<1x2>","times":{"pick":0.3333333333333333,"right":true},"labels":["x","y"]}` + "\n" +
			`{"name":"3x4","times":{"pick":null}}` + "\n",
		CSV:   "name,pick_seconds,times.right,a,b\n<1x2>,0.3333333333333333,1,x,y\n3x4,,0,,\n",
		Table: "problem    time  seen\n<1x2>    333 ms  by people\n3x4           –  by people\n",
	} {
		var out bytes.Buffer
		s := iostreams.Plain(strings.NewReader(""), &out, &out)
		if err := columns.Write(s, f, rows); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%s: got\n%s, want\n%s", f, out.String(), want)
		}
	}
	inf := Columns[row]{Col("times.pick", func(*row) float64 { return math.Inf(1) })}
	err := inf.Write(iostreams.Plain(strings.NewReader(""), io.Discard, io.Discard), JSON, rows)
	if d := (*diag.Error)(nil); !errors.As(err, &d) || d.Where != "times.pick" {
		t.Errorf("a number that JSON cannot hold: %v", err)
	}
}
