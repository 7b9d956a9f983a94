package problems

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
)

// csvRows are the rows of CSV or TSV. Lines that start with # are skipped.
type csvRows struct {
	name   string
	header []string
	csv    *csv.Reader
	size   int64 // of the file, 0 if unknown
}

// headerLine returns the first line that is neither empty nor a comment, as far as the buffer has room for it.
func headerLine(r *bufio.Reader) (line []byte) {
	peek(r, r.Size(), func(text []byte) bool {
		for more := true; more; {
			line, text, more = bytes.Cut(text, []byte("\n"))
			if more && len(bytes.TrimSpace(line)) > 0 && line[0] != '#' {
				return true
			}
		}
		return false
	})
	return line
}

func openCSV(name string, r io.Reader, size int64, header []byte) (rows, error) {
	form := limit.CSV{Comment: '#', TrimLeadingSpace: true}
	switch {
	case bytes.IndexByte(header, '\t') >= 0:
		form.Comma, form.TrimLeadingSpace = '\t', false // a leading tab is an empty cell
	case bytes.IndexByte(header, ',') < 0 && bytes.IndexByte(header, ';') >= 0:
		form.Comma = ';'
	}
	in := form.Reader(r, name, "")
	in.FieldsPerRecord = -1
	first, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, err
	}
	if err != nil {
		return nil, rowError(name, err)
	}
	return &csvRows{name: name, header: trimmed(slices.Clone(first)), csv: in, size: size}, nil
}

func trimmed(cells []string) []string {
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

func (r *csvRows) columns() []string { return r.header }

func (r *csvRows) place(column int) string {
	line, at := r.csv.FieldPos(column)
	return fmt.Sprintf("%s:%d:%d", r.name, line, at)
}

func (r *csvRows) line() string {
	line, _ := r.csv.FieldPos(0)
	return fmt.Sprintf("%s:%d", r.name, line)
}

func (r *csvRows) share() float64 {
	if r.size == 0 {
		return 0
	}
	return float64(r.csv.InputOffset()) / float64(r.size)
}

func (r *csvRows) next(brief bool) (cells []string, bad, err error) {
	row, err := r.csv.Read()
	var syntax *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil, io.EOF
	case err != nil && !errors.As(err, &syntax):
		return nil, nil, rowError(r.name, err)
	case err == nil && len(row) == len(r.header):
		return trimmed(row), nil, nil
	case brief:
		return nil, errUnread, nil
	case err != nil:
		return nil, rowError(r.name, err), nil
	}
	return nil, diag.Inputf("the row has %d cells, the header %d", len(row), len(r.header)).
		At("%s", r.place(min(len(row), len(r.header)+1)-1)).Do("give one cell per column"), nil
}

// rowError says where a row stopped being CSV.
func rowError(name string, err error) error {
	var syntax *csv.ParseError
	if errors.As(err, &syntax) && limit.Exceeded(err) == nil {
		return diag.Inputf("not CSV: %v", syntax.Err).At("%s:%d:%d", name, syntax.Line, syntax.Column).
			Do("quote a cell that holds commas or quotes")
	}
	return unreadable(name, err)
}
