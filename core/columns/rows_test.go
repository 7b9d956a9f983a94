package columns_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/columns"
)

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
		in, err := columns.Open(bytes.NewReader(file), name, "split it")
		if err != nil {
			t.Fatal(err)
		}
		err = table.Each(in, func(r *columns.Row) error {
			if r.Has("none") || r.Text("none") != "" {
				t.Error("there is no such column")
			}
			total += float64(r.Count("m")) * r.Positive("us")
			return nil
		})
		return total, err
	}
	for _, name := range []string{"t.csv", "t.csv.gz", "t.csv.cols"} {
		if got, err := sum(name, "us,more,m\n0.5,x,4\n1.5,y,2\n"); got != 5 || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
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
		if _, err := sum("t.csv", text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
