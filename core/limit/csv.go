package limit

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode"
	"unicode/utf8"

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
	r := csv.NewReader(&rowReader{CSV: c, in: in, name: name, fix: fix, row: row, cells: cells, line: 1,
		buffer: make([]byte, min(row, 4<<10))})
	r.Comma, r.Comment, r.TrimLeadingSpace = rune(c.Comma), rune(c.Comment), c.TrimLeadingSpace
	r.ReuseRecord = true
	return r
}

// rowReader passes on the rows of a CSV file that are within the limits. It finds their ends as encoding/csv does.
type rowReader struct {
	CSV
	in         io.Reader
	name, fix  string
	row, cells int // the limits

	// buffer[begin:ready] are whole rows, buffer[ready:end] is the beginning of another. It grows to hold a row.
	buffer            []byte
	begin, ready, end int

	at    place
	line  int // of the next byte, from 1
	first int // line of the current row
	size  int // bytes of the current row so far
	count int // cells of the current row so far
	rows  int
	space []byte // what of a letter at the start of a cell was read
	err   error
}

// place says where in a row the next byte is.
type place uint8

const (
	rowStart place = iota
	comment
	cellStart
	bare       // in a cell without quotes
	quoted     // within quotes
	quoteEnded // behind a quote that ends the cell or is the first of two
	dropped    // behind a misplaced quote: encoding/csv drops such a row, up to the end of the line
)

// Read implements io.Reader.
func (r *rowReader) Read(p []byte) (int, error) {
	for r.begin == r.ready && r.err == nil {
		r.fill()
	}
	if r.begin == r.ready {
		return 0, r.err
	}
	n := copy(p, r.buffer[r.begin:r.ready])
	r.begin += n
	return n, nil
}

// fill reads more of the file.
func (r *rowReader) fill() {
	r.end = copy(r.buffer, r.buffer[r.begin:r.end])
	if r.end == len(r.buffer) {
		r.buffer = slices.Grow(r.buffer, r.end)[:2*r.end]
	}
	r.begin, r.ready = 0, 0
	n, err := r.in.Read(r.buffer[r.end:])
	for range n {
		r.next(r.buffer[r.end])
		if r.err != nil {
			return
		}
		if r.end++; r.at == rowStart {
			r.ready = r.end
		}
	}
	if errors.Is(err, io.EOF) {
		r.ready = r.end
	}
	r.err = err
}

// next counts one byte.
func (r *rowReader) next(b byte) {
	if r.at == rowStart {
		r.size, r.count, r.first = 0, 1, r.line
	}
	if r.size++; r.size > r.row {
		r.exceeded("the row is longer than %v, the most that is read of a row", Size(r.row))
		return
	}
	if b == '\n' {
		r.line++
		if r.at != quoted {
			r.at = rowStart
		}
		r.space = r.space[:0]
		return
	}
	switch r.at {
	case comment, dropped:
	case quoted:
		if b == '"' {
			r.at = quoteEnded
		}
	case quoteEnded:
		switch b {
		case '"':
			r.at = quoted
		case r.Comma:
			r.cell()
		default:
			r.at = dropped
		}
	case bare:
		r.inBare(b)
	case rowStart:
		if r.Comment != 0 && b == r.Comment {
			r.at = comment
			return
		}
		if r.rows++; r.Rows > 0 && r.rows > r.Rows+1 { // and the header
			r.err = &ExceededError{Name: r.name, Fix: r.fix,
				What: fmt.Sprintf("it has more than %d rows, the most that is read of such a file", r.Rows)}
			return
		}
		r.at = cellStart
		r.inStart(b)
	case cellStart:
		r.inStart(b)
	}
}

// inStart counts a byte at the start of a cell.
func (r *rowReader) inStart(b byte) {
	if r.TrimLeadingSpace {
		r.space = append(r.space, b)
		if !utf8.FullRune(r.space) {
			return
		}
		c, _ := utf8.DecodeRune(r.space)
		if unicode.IsSpace(c) {
			r.space = r.space[:0]
			return
		}
	}
	switch {
	case b == '"' && len(r.space) <= 1: // not behind half of a letter
		r.at = quoted
	default:
		r.at = bare
		r.inBare(b)
	}
	r.space = r.space[:0]
}

// inBare counts a byte of a cell without quotes.
func (r *rowReader) inBare(b byte) {
	switch b {
	case r.Comma:
		r.cell()
	case '"':
		r.at = dropped
	}
}

// cell counts a separator.
func (r *rowReader) cell() {
	r.at = cellStart
	if r.count++; r.count > r.cells {
		r.exceeded("the row has more than %d cells, the most that is read of a row", r.cells)
	}
}

func (r *rowReader) exceeded(format string, args ...any) {
	fix := "write one row per line"
	if r.at == quoted || r.first != r.line {
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
