package columns_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/columns"
	"github.com/origami-gemm/origami/internal/testing/must"
)

const recorded = `{"m":64,"time":"2026-11-22T14:55:15.393Z","samples":[0.000032864000648260114, 3e-05,7],"x":{"m":-1}}
{"m":65,"time":"2026-11-22T14:55:15.401Z","samples":[0.000032864000648260114],"x":{"m":007}}

no numbers, ünicode
m,n,us
1,2,3.5e9
,,18446744073709551616
1.,.5,1e,1e+,--2
`

func packed(t testing.TB, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	must.Do(t, columns.Write(&file, []byte(text)))
	return file.Bytes()
}

func read(file []byte) (string, error) {
	text, err := columns.NewReader(bytes.NewReader(file), "file", "restore it")
	if err != nil {
		return "", err
	}
	all, err := io.ReadAll(text)
	return string(all), err
}

// A text comes back byte for byte.
func TestRoundTrip(t *testing.T) {
	var many strings.Builder
	for i := range 70_000 {
		many.WriteString(strings.Repeat("9", i%19) + string(rune('a'+i%26)) + "\n")
	}
	for _, text := range []string{"", "\n", recorded, many.String(), strings.Repeat(recorded, 300)} {
		got, err := read(packed(t, text))
		must.That(t, got == text && err == nil, "%d of %d bytes, %v", len(got), len(text), err)
	}
	must.Fail(t, columns.Write(io.Discard, []byte("a\nb")), "has no line feed")
}

// A damaged file is an error, and costs no more memory than it has bytes.
func FuzzReader(f *testing.F) {
	f.Add([]byte(recorded))
	f.Add([]byte("columns 1\n\x01\x01\x017\x02\x00\x00\x01\x01\x00\x01a\x01b\x02\x00\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 0 && text[len(text)-1] == '\n' {
			got, err := read(packed(t, string(text)))
			must.That(t, got == string(text) && err == nil, "%q, %v", got, err)
		}
		_, _ = read(zip(text))
	})
}

// Every byte of a file that is changed is noticed.
func TestDamaged(t *testing.T) {
	file := packed(t, strings.Repeat(recorded, 20))
	for i := 10; i < len(file); i++ { // behind the header of gzip, which has a time and a system
		bad := bytes.Clone(file)
		bad[i] ^= 1
		got, err := read(bad)
		must.Need(t, err != nil, "byte %d of %d is changed, and %d bytes are read", i, len(file), len(got))
	}
}

// A table is the same in text, gzip and columns. The first wrong cell ends it, with its place.
func TestTable(t *testing.T) {
	table := columns.Table{Place: "t.csv", Fix: "restore it", Columns: []string{"m", "us"}}
	sum := func(name, text string) (total float64, err error) {
		file := []byte(text)
		switch {
		case strings.HasSuffix(name, columns.Suffix):
			file = packed(t, text)
		case strings.HasSuffix(name, columns.Zipped):
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(file)
			_ = z.Close()
			file = b.Bytes()
		}
		in := must.Get(columns.Open(bytes.NewReader(file), name, "split it"))(t)
		err = table.Each(in, func(r *columns.Row) error {
			must.That(t, !r.Has("none") && r.Text("none") == "", "there is no such column")
			total += float64(r.Count("m")) * r.Positive("us")
			return nil
		})
		return total, err
	}
	for _, name := range []string{"t.csv", "t.csv.gz", "t.csv.cols"} {
		got, err := sum(name, "us,more,m\n0.5,x,4\n1.5,y,2\n")
		must.That(t, got == 5 && err == nil, "%s: %v, %v", name, got, err)
	}
	unread := func(why string) string {
		return "t.csv: it cannot be read: " + why + "; the file may be truncated; restore it"
	}
	for text, want := range map[string]string{
		"":                 unread("EOF"),
		"m\n1\n":           "t.csv:1: column us is missing; the columns are m,us",
		"m,us\n1,2\n0,x\n": "t.csv:3:1: m is 0; restore it",
		"m,us\n1,-2\n":     `t.csv:2:3: us "-2" is no number above 0; restore it`,
		"m,us\n1.5,2\n":    `t.csv:2:1: m "1.5" is not a whole number of at least 0; restore it`,
		"m,us\n1\n":        unread("record on line 2: wrong number of fields"),
	} {
		_, err := sum("t.csv", text)
		must.That(t, err != nil && err.Error() == want, "%q: %v, want %s", text, err, want)
	}
}

// zip is a file with any content.
func zip(text []byte) []byte {
	var file bytes.Buffer
	z := gzip.NewWriter(&file)
	_, _ = z.Write(text)
	_ = z.Close()
	return file.Bytes()
}
