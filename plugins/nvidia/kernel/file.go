package kernel

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
)

// file is a CSV file with a row per kernel. place and remedy are for errors: the kind of file, and what to do.
type file struct {
	place, remedy string
	// columns are the required columns. There may be others.
	columns []string
}

// row is one row of a file.
type row struct {
	file   *file
	csv    *csv.Reader
	column map[string]int
	cells  []string
}

// each calls use for every row. A row is valid until use returns.
func (k *file) each(data []byte, use func(*row) error) error {
	r := row{file: k, column: map[string]int{},
		csv: limit.CSV{Rows: limit.Rows}.Reader(bytes.NewReader(data), k.place, "leave rows out")}
	header, err := r.csv.Read()
	if large := limit.Exceeded(err); large != nil {
		return large
	} else if err != nil {
		return diag.Inputf("no header: %v", err).At("%s", k.place).Do("%s", k.remedy)
	}
	for i, name := range header {
		r.column[name] = i
	}
	for _, name := range k.columns {
		if _, ok := r.column[name]; !ok {
			return diag.Inputf("no column %s", name).At("%s", k.place).Do("it needs %s", strings.Join(k.columns, ", "))
		}
	}
	for {
		r.cells, err = r.csv.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if large := limit.Exceeded(err); large != nil {
			return large
		} else if err != nil {
			return diag.Inputf("%v", err).At("%s", k.place).Do("%s", k.remedy)
		}
		if err := use(&r); err != nil {
			return err
		}
	}
}

// text returns the cell of a required column.
func (r *row) text(name string) string { return r.cells[r.column[name]] }

// fault is the error for a wrong cell.
func (r *row) fault(name string) *diag.Error {
	line, _ := r.csv.FieldPos(r.column[name])
	return diag.Inputf("line %d: %s is %q", line, name, r.text(name)).At("%s", r.file.place)
}
