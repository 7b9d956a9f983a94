package nvidia

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// kernelFile is a CSV file with a row per kernel. Errors call it place, and tell who gave another file what to do: remedy.
type kernelFile struct {
	place, remedy string
	// columns must be there; others may be.
	columns []string
}

// kernelRow is one row of the file.
type kernelRow struct {
	file   *kernelFile
	csv    *csv.Reader
	column map[string]int
	cells  []string
}

// each calls f for every row. What the row holds is lost with the next.
func (k *kernelFile) each(data []byte, f func(*kernelRow) error) error {
	row := kernelRow{file: k, csv: csv.NewReader(bytes.NewReader(data)), column: map[string]int{}}
	row.csv.ReuseRecord = true
	header, err := row.csv.Read()
	if err != nil {
		return diag.Inputf("no header: %v", err).At("%s", k.place).Do("%s", k.remedy)
	}
	for i, name := range header {
		row.column[name] = i
	}
	for _, name := range k.columns {
		if _, ok := row.column[name]; !ok {
			return diag.Inputf("no column %s", name).At("%s", k.place).Do("it needs %s", strings.Join(k.columns, ", "))
		}
	}
	for {
		row.cells, err = row.csv.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return diag.Inputf("%v", err).At("%s", k.place).Do("%s", k.remedy)
		}
		if err := f(&row); err != nil {
			return err
		}
	}
}

// text returns the cell of a column that must be there.
func (r *kernelRow) text(name string) string { return r.cells[r.column[name]] }

// other reports whether the row has a column with another value than the one that counts.
func (r *kernelRow) other(name, value string) bool {
	i, ok := r.column[name]
	return ok && r.cells[i] != value
}

// fault says which cell is wrong.
func (r *kernelRow) fault(name string) *diag.Error {
	line, _ := r.csv.FieldPos(r.column[name])
	return diag.Inputf("line %d: %s is %q", line, name, r.text(name)).At("%s", r.file.place)
}
