package printable_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"128x128x64, 96.1 %":          "128x128x64, 96.1 %",
		"866 µs – NVIDIA GeForce™ 日本": "866 µs – NVIDIA GeForce™ 日本",
		"\x1b[2J\a":                   `\x1b[2J\a`,
		"a\tb\r\nc\x00":               `a\tb\r\nc\x00`,
		"\x7f\u0080\u009b31m":         `\x7f\u0080\u009b31m`,
		"abc\u202edef\u202c":          `abc\u202edef\u202c`,
		"\u2066x\u2069\u200e\u200f":   `\u2066x\u2069\u200e\u200f`,
		"\u2028\u2029\u0085":          `\u2028\u2029\u0085`,
		"\u200b\ufeff\u00ad\u061c":    `\u200b\ufeff\u00ad\u061c`, // invisible
		"\U000e0041":                  `\U000e0041`,               // a tag
		"x\xff\xc3\x28\xe2\x80":       `x\xff\xc3(\xe2\x80`,
		"\ufffd":                      "\ufffd", // is printable itself
	} {
		must.Equal(t, printable.Line(text), want, text)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc… (1 bytes more)"}, {"aä", 2, "a… (2 bytes more)"},
		{"日本", 2, "… (6 bytes more)"}, {"\x80\x80\x80\x80\x80\x80", 5, "\x80… (5 bytes more)"},
		{"abc", 0, "… (3 bytes more)"},
	} {
		must.Equal(t, printable.Cut(c.text, c.most), c.want, c.text, "at", c.most)
	}
}

// A spreadsheet computes no cell, and numbers stay numbers.
func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "-": "-", "-1.5": "-1.5", "+3e4": "+3e4", "NVIDIA H200": "NVIDIA H200", "a=b": "a=b", "=": "=",
		"=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)", "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0", "-2+3": "'-2+3",
		"--arch": "--arch", "--a|b": "'--a|b", "\t=1": `\t=1`, "\r\n=1": `\r\n=1`, "\x00=1": `\x00=1`,
	} {
		must.Equal(t, printable.Cell(text), want, text)
	}
}

// Whatever the text is, nothing of it is left that is not printable, and printable text is left alone. JSON still says
// the same.
func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[2J", "\u202e\u009b\u2028", "\xff\xfe", "a\nb", "\U000e0041", "\\u202e",
		"\ud7ff\ue000", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line := printable.Line(text)
		for i, r := range line {
			must.Need(t, unicode.IsGraphic(r) && (r != utf8.RuneError || strings.HasPrefix(line[i:], "\ufffd")),
				"%q: %q", text, line)
		}
		again := printable.Line(line)
		must.Need(t, again == line, "%q became %q", line, again)
		cell := printable.Cell(text)
		must.Need(t, (cell == line || cell == "'"+line) && printable.Cell(cell) == cell, "%q as a cell: %q", text, cell)
		encoded := must.Get(json.Marshal(map[string]string{text: text}))(t)
		shown := printable.JSON(encoded)
		must.Need(t, printable.Line(string(shown)) == string(shown), "%q: %q", text, shown)
		var want, got any
		must.Do(t, json.Unmarshal(encoded, &want))
		err := json.Unmarshal(shown, &got)
		must.Need(t, err == nil && reflect.DeepEqual(got, want), "%q: %q, %v", text, shown, err)
	})
}
