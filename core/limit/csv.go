package limit

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"unicode"

	"github.com/origami-gemm/origami/core/diag"
)

// CSV says how a CSV file is written, in the words of encoding/csv.Reader.
type CSV struct {
	Comma            byte // 0 means ','
	Comment          byte // 0 means that there are no comments
	TrimLeadingSpace bool
	// Rows is the most rows that are read, 0 for any number: for a file whose rows are not held in memory.
	Rows int
}

// Reader returns a reader of a CSV file that ends with an *ExceededError at a row of more than Row bytes or Cells
// cells, or after too many rows. The limits hold before a row is parsed: encoding/csv needs a hundred bytes for an
// empty cell.
// name is the file's name in the error, fix is its advice if there are too many rows.
func (c CSV) Reader(in io.Reader, name, fix string) *csv.Reader {
	return c.reader(in, name, fix, int(Row), Cells)
}

func (c CSV) reader(in io.Reader, name, fix string, row, cells int) *csv.Reader {
	if c.Comma == 0 {
		c.Comma = ','
	}
	r := csv.NewReader(&rowReader{CSV: c, in: bufio.NewReaderSize(in, row+1), name: name, fix: fix, row: row, cells: cells,
		line: 1})
	r.Comma, r.Comment, r.TrimLeadingSpace = rune(c.Comma), rune(c.Comment), c.TrimLeadingSpace
	r.ReuseRecord = true
	return r
}

// rowReader passes on the lines of a CSV file whose rows are within the limits. It finds the ends of cells as
// encoding/csv does.
type rowReader struct {
	CSV
	in         *bufio.Reader
	name, fix  string
	row, cells int // the limits

	rest   []byte // of a line that is within the limits
	line   int    // the next line, from 1
	first  int    // line of the current row
	size   int    // bytes of the current row so far
	count  int    // cells of the current row so far
	quoted bool   // the next line begins within quotes
	rows   int
	err    error
}

// Read implements io.Reader.
func (r *rowReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		line, err := r.in.ReadSlice('\n')
		if r.err = err; err == nil || errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
			r.next(line)
		}
		if r.err == nil || errors.Is(r.err, io.EOF) {
			r.rest = line
		}
		r.line++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next counts a line.
func (r *rowReader) next(line []byte) {
	starts := !r.quoted
	if starts {
		r.size, r.count, r.first = 0, 1, r.line
	}
	r.size += len(line)
	if !starts || len(line) > 0 && line[0] != '\n' && (r.Comment == 0 || line[0] != r.Comment) {
		if starts {
			r.rows++
		}
		r.split(line)
	}
	switch {
	case r.Rows > 0 && r.rows > r.Rows+1: // and the header
		r.err = &ExceededError{Name: r.name, Fix: r.fix,
			What: fmt.Sprintf("it has more than %d rows, the most that is read of such a file", r.Rows)}
	case r.count > r.cells:
		r.exceeded("the row has more than %d cells, the most that is read of a row", r.cells)
	case r.size > r.row:
		r.exceeded("the row is longer than %v, the most that is read of a row", Size(r.row))
	}
}

// split counts the cells of a line, up to a misplaced quote: encoding/csv drops the rest of such a line.
func (r *rowReader) split(line []byte) {
	for {
		if !r.quoted {
			if r.TrimLeadingSpace {
				line = bytes.TrimLeftFunc(line, unicode.IsSpace)
			}
			if r.quoted = len(line) > 0 && line[0] == '"'; !r.quoted {
				cell, rest, more := bytes.Cut(line, []byte{r.Comma})
				if !more || bytes.IndexByte(cell, '"') >= 0 {
					return
				}
				line = rest
				r.count++
				continue
			}
			line = line[1:]
		}
		_, rest, ended := bytes.Cut(line, []byte{'"'})
		switch {
		case !ended:
			return
		case len(rest) > 0 && rest[0] == '"': // a quote in the cell
		case len(rest) > 0 && rest[0] == r.Comma:
			r.quoted = false
			r.count++
		default:
			r.quoted = false
			return
		}
		line = rest[1:]
	}
}

func (r *rowReader) exceeded(format string, args ...any) {
	fix := "write one row per line"
	if r.quoted || r.first != r.line {
		fix = "close the quote that the row opens"
	}
	r.err = &ExceededError{Name: fmt.Sprintf("%s:%d", r.name, r.first), What: fmt.Sprintf(format, args...), Fix: fix}
}

// ExceededError says that a file or a row of it is larger than its limit. It unwraps to a *diag.Error of kind
// diag.Input.
type ExceededError struct {
	// Name is the file, with the line if the error is about a row.
	Name, What, Fix string
}

// Error returns "name: what; fix" on one line.
func (e *ExceededError) Error() string { return e.diagnostic().Error() }

// Unwrap returns the error in the form that reaches users.
func (e *ExceededError) Unwrap() error { return e.diagnostic() }

func (e *ExceededError) diagnostic() *diag.Error {
	return diag.Inputf("%s", e.What).At("%s", e.Name).Do("%s", e.Fix)
}
