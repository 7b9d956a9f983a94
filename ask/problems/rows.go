package problems

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/formats/shapes"
)

// The columns of a problems file. The first three are required; the others default to what the flags say.
var columns = slices.Concat(gemm.Columns, gemm.MoreColumns)

// splitFiles is the advice for a file that is too large.
const splitFiles = "split it into several files"

const headerForm = "write a header line, or keys in JSON, such as m,n,k,batch,trans_a,trans_b,dtype"

// rows are the rows of a file of problems, in whatever form.
type rows interface {
	// columns returns the names of the columns as the file has them.
	columns() []string
	// next returns a cell for each column. bad says why a row cannot be read; others can follow. With brief, bad is
	// errUnread. err is io.EOF after the last row, or why the file cannot be read on.
	next(brief bool) (cells []string, bad, err error)
	// place says where a cell of the row, or of the header before the first row, stands; line where the row does.
	place(column int) string
	line() string
	// share is how much of the rows has been read, 0 if that is unknown.
	share() float64
}

// openRows reads the names of the columns. What begins like JSON is JSON or JSON Lines; a header with a tab is TSV, one
// with semicolons alone is what spreadsheets write, and any other is CSV. It returns io.EOF for a CSV of no lines.
func openRows(name string, r io.Reader, size int64, form jsonForm) (rows, error) {
	buffered := bufio.NewReader(r)
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3) // they are there: they were peeked at
	}
	if beginsJSON(peek(buffered, jsonWithin, func(text []byte) bool { return len(blanksCut(text)) > 0 })) {
		return openJSON(name, buffered, size, form)
	}
	return openCSV(name, buffered, size, headerLine(buffered))
}

// errUnread is a row that cannot be read, without the reason.
var errUnread = errors.New("the row cannot be read")

// peek returns the beginning of what is to be read: all, or at most so much, or as soon as it is enough. It waits for
// no more than that: rows are answered as they are written.
func peek(r *bufio.Reader, most int, enough func([]byte) bool) []byte {
	for size := 1; ; size = r.Buffered() + 1 {
		_, err := r.Peek(min(size, most))
		text, _ := r.Peek(min(r.Buffered(), most))
		if enough(text) || len(text) == most || err != nil {
			return text
		}
	}
}

// unreadable says why a file cannot be read on.
func unreadable(name string, err error) error {
	if large := limit.Exceeded(err); large != nil {
		return large
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return diag.Inputf("the file cannot be read: %v", err).At("%s", name).Do("check the file")
}

// inline reads "m=16:16:16:5632,n=4096,k=64,128": what has no "=" belongs to the name before it.
func inline(name, text string) (rows *listRows, ok bool) {
	rows = &listRows{name: name, list: []shapes.Row{{}}}
	row := &rows.list[0]
	for _, part := range strings.Split(text, ",") {
		name, cell, found := strings.Cut(part, "=")
		switch {
		case found:
			rows.names, row.Cells = append(rows.names, strings.TrimSpace(name)), append(row.Cells, cell)
		case len(row.Cells) == 0:
			return nil, false
		default:
			row.Cells[len(row.Cells)-1] += "," + part
		}
	}
	return rows, slices.Contains(columns, strings.ToLower(rows.names[0]))
}
