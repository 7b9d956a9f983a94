package columns

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
)

// Zipped ends the name of a file of gzip.
const Zipped = ".gz"

// Open returns the text of a file, decompressed as the end of its name says. fix is what to do about a file that is too
// large.
func Open(file io.Reader, name, fix string) (io.Reader, error) {
	switch path.Ext(name) {
	case Zipped:
		return gzip.NewReader(file)
	case Suffix:
		return NewReader(file, name, fix)
	}
	return file, nil
}

// Table is a CSV file with a header: recorded times, or what is known of kernels. Place and Fix are for errors: what
// the file is called, and what to do about a wrong one. Split is what to do about one that is too large; without it
// the table is one of the program, and has no limits.
type Table struct {
	Place, Fix, Split string
	// Columns must be there. Others may be.
	Columns []string
}

// Each calls use for every row below the header, which is valid until use returns.
func (t Table) Each(in io.Reader, use func(*Row) error) error {
	r := Row{table: &t, csv: csv.NewReader(in), column: map[string]int{}}
	if r.csv.ReuseRecord = true; t.Split != "" {
		r.csv = limit.CSV{Rows: limit.Rows}.Reader(in, t.Place, t.Split)
	}
	header, err := r.csv.Read()
	if err != nil {
		return t.unreadable(err)
	}
	for i, name := range header {
		r.column[name] = i
	}
	for _, name := range t.Columns {
		if !r.Has(name) {
			return diag.Inputf("column %s is missing", name).At("%s:1", t.Place).
				Do("the columns are %s", strings.Join(t.Columns, ","))
		}
	}
	for {
		r.cells, err = r.csv.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return t.unreadable(err)
		}
		if err := use(&r); err != nil {
			return err
		}
		if r.err != nil {
			return r.err
		}
	}
}

func (t Table) unreadable(err error) error {
	if large := limit.Exceeded(err); large != nil {
		return large
	}
	return diag.Inputf("it cannot be read: %v", diag.WithoutPath(err)).At("%s", t.Place).
		Do("the file may be truncated; %s", t.Fix)
}

// Row is a row of a table. Its methods read cells. The first wrong cell is an error of the row, with which Each ends.
type Row struct {
	table  *Table
	csv    *csv.Reader
	column map[string]int
	cells  []string
	err    error
}

// Has reports whether the table has a column.
func (r *Row) Has(column string) bool {
	_, there := r.column[column]
	return there
}

// Text returns a cell, empty without the column.
func (r *Row) Text(column string) string {
	if i, there := r.column[column]; there {
		return r.cells[i]
	}
	return ""
}

// Err is the error of the first cell that was wrong.
func (r *Row) Err() error { return r.err }

// Fault says what is wrong with a cell, unless another one was wrong before.
func (r *Row) Fault(column, format string, args ...any) {
	if r.err == nil {
		line, at := r.csv.FieldPos(r.column[column])
		r.err = diag.Inputf("%s", fmt.Sprintf(format, args...)).At("%s:%d:%d", r.table.Place, line, at).Do("%s", r.table.Fix)
	}
}

// Number returns a whole number of at least 0.
func (r *Row) Number(column string) int {
	v, err := strconv.Atoi(r.Text(column))
	if err != nil || v < 0 {
		r.Fault(column, "%s %q is not a whole number of at least 0", column, r.Text(column))
	}
	return v
}

// Count returns a whole number of at least 1.
func (r *Row) Count(column string) int {
	v := r.Number(column)
	if v < 1 {
		r.Fault(column, "%s is %d", column, v)
	}
	return v
}

// Positive returns a finite number above 0.
func (r *Row) Positive(column string) float64 {
	v, err := strconv.ParseFloat(r.Text(column), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		r.Fault(column, "%s %q is no number above 0", column, r.Text(column))
	}
	return v
}
