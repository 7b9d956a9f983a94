package limit_test

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestCSV(t *testing.T) {
	long := strings.Repeat("x", int(limit.Row)-3)
	separators := strings.Repeat(",", limit.Cells)
	for name, tc := range map[string]struct {
		text string
		rows int    // that are read before the error
		want string // the error, without the name of the file
	}{
		"most cells":      {separators[1:] + "\n1\n", 2, ""},
		"cells":           {"1,2\n" + separators + "\n", 1, ":2: the row has more than 1024 cells, "},
		"quoted commas":   {`"` + separators + separators + "\"\n", 1, ""},
		"most bytes":      {"1\n" + long + ",2\n" + long + ",2\n", 3, ""},
		"bytes":           {"1\n\n" + long + ",22\n", 1, ":3: the row is longer than 64 KiB, the most that is "},
		"open quote":      {"1\n\"" + strings.Repeat(",,,\n", 1<<14), 1, ":2: the row is longer than 64 KiB, "},
		"cells in lines":  {"1\n" + strings.Repeat(separators[2:]+"\"\n\"", 9), 1, ":2: the row has more than "},
		"long comment":    {"1\n#" + long + long, 1, ":2: the row is longer than 64 KiB, "},
		"most rows":       {"a\n" + strings.Repeat("#\n\n1\n", 5), 6, ""},
		"rows":            {"a\n" + strings.Repeat("1\n", 6), 6, ": it has more than 5 rows, the most that is read "},
		"misplaced quote": {"1\n2\"\n3\n", 1, ""},
	} {
		r := limit.CSV{Comment: '#', Rows: 5}.Reader(strings.NewReader(tc.text), "f.csv", "split it")
		r.FieldsPerRecord = -1
		rows := 0
		for {
			_, err := r.Read()
			if err == nil {
				rows++
				continue
			}
			e := limit.Exceeded(err)
			must.That(t, (e == nil) == (tc.want == "") && (e == nil ||
				strings.HasPrefix(e.Error(), "f.csv"+tc.want) && diag.KindOf(e) == diag.Input), "%s: got %v", name, err)
			break
		}
		must.Equal(t, rows, tc.rows, name)
	}
}

// FuzzCSV: a row is never longer than allowed, and a file whose rows are not is read as encoding/csv reads it.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "\"a\nb\",c\r\n#,,,\n\n \"x\",\"\"\"\"\n", "1\"2\n\"3\"4\n5\n", "\"a\",\"b\"\r\n\r\"\n",
		"\u00a0\"a\n\",b\n",
		",,,,,\n", "aaaaaaaaaaaaaaaaa\n", "\"\n\n\n\n\n\n\n", "\r#,\"\n,,,,,\n", "\t\t\"\n\"\t1\n",
		"1,2", "\"", "\" \"\r", "0\",\"\n\",,", "\xc3\"\n,\"\n\",,,,\"\n", "\xe2\x80\x83\"\n,,\"\n",
	} {
		f.Add([]byte(seed), true, true, true)
		f.Add([]byte(seed), false, false, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, tabs, comments, trim bool) {
		const row, cells = 12, 3
		form := limit.CSV{TrimLeadingSpace: trim}
		if tabs {
			form.Comma = '\t'
		}
		if comments {
			form.Comment = '#'
		}
		limited := limit.CSVOf(form, strings.NewReader(string(data)), row, cells)
		plain := csv.NewReader(strings.NewReader(string(data)))
		plain.Comma, plain.Comment, plain.TrimLeadingSpace = limited.Comma, limited.Comment, trim
		limited.FieldsPerRecord, plain.FieldsPerRecord = -1, -1

		small := true
		for offset := int64(0); ; offset = plain.InputOffset() {
			want, wantErr := plain.Read()
			small = small && plain.InputOffset()-offset <= row && strings.Count(string(data[offset:plain.InputOffset()]),
				string(plain.Comma)) < cells
			got, err := limited.Read()
			if limit.Exceeded(err) != nil {
				must.Need(t, !small, "%v", err)
				return
			}
			must.Need(t, slices.Equal(got, want) && errors.Is(err, io.EOF) == errors.Is(wantErr, io.EOF) &&
				(err == nil) == (wantErr == nil), "got %q, %v, want %q, %v", got, err, want, wantErr)
			must.Need(t, len(got) <= cells && len(strings.Join(got, "")) <= row, "got %q", got)
			if errors.Is(err, io.EOF) {
				return
			}
		}
	})
}
