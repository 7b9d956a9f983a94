package session

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
)

// The columns of a problems file. The first three are required; the others default to what the flags say.
var columns = slices.Concat(gemm.Columns, gemm.MoreColumns)

const headerForm = "write a header line such as m,n,k,batch,trans_a,trans_b,dtype"

// ReadCSV reads a problems file: a header with the columns m, n, k and optionally batch, trans_a, trans_b (0, 1, false
// or true), dtype and gemm.MoreColumns, in any order, then a problem per row. An empty cell, and a column that is not there, mean what
// base has. Lines that start with # are skipped.
//
// A row that cannot be read is an error in bad with file:line:column, and the other rows are still returned; err is for
// a file that has no usable header or no rows.
func ReadCSV(name string, r io.Reader, base gemm.Problem) (good []Problem, bad []error, err error) {
	buffered := bufio.NewReader(limit.Reader(r, name, limit.Table, "split it into several files"))
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3) // they are there: they were peeked at
	}
	in := csv.NewReader(buffered)
	in.Comment = '#'
	in.FieldsPerRecord = -1
	in.ReuseRecord = true
	in.TrimLeadingSpace = true

	first, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil, diag.Inputf("the problems file is empty").At("%s", name).Do(headerForm)
	}
	if err != nil {
		return nil, nil, rowError(name, err)
	}
	header := slices.Clone(first)
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
		line, column := in.FieldPos(i)
		at := fmt.Sprintf("%s:%d:%d", name, line, column)
		if !slices.Contains(columns, header[i]) {
			e := diag.Inputf("unknown column %q", header[i]).At("%s", at)
			if near := diag.Nearest(header[i], columns, 1); len(near) > 0 && len(header[i]) > 1 {
				return nil, nil, e.Do("did you mean %s? %s", near[0], headerForm)
			}
			return nil, nil, e.Do(headerForm)
		}
		if slices.Index(header, header[i]) < i {
			return nil, nil, diag.Inputf("column %s is there twice", header[i]).At("%s", at).Do("leave one of them out")
		}
	}
	for _, required := range columns[:3] {
		if !slices.Contains(header, required) {
			return nil, nil, diag.Inputf("column %s is missing", required).At("%s:1", name).Do(headerForm)
		}
	}

	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var syntax *csv.ParseError
		if err != nil && !errors.As(err, &syntax) {
			return good, bad, rowError(name, err)
		}
		if err != nil {
			bad = append(bad, rowError(name, err))
			continue
		}
		p, err := parseRow(name, in, header, row, base)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		good = append(good, p)
	}
	if len(good) == 0 && len(bad) == 0 {
		return nil, nil, diag.Inputf("the problems file has a header and no rows").At("%s", name).
			Do("add a row such as 4096,4096,4096")
	}
	return good, bad, nil
}

func parseRow(name string, in *csv.Reader, header, row []string, base gemm.Problem) (Problem, error) {
	line, _ := in.FieldPos(0)
	if len(row) != len(header) {
		last, column := in.FieldPos(min(len(row), len(header)+1) - 1)
		return Problem{}, diag.Inputf("the row has %d cells, the header %d", len(row), len(header)).
			At("%s:%d:%d", name, last, column).Do("give one cell per column")
	}
	p := base
	for i, cell := range row {
		cell = strings.TrimSpace(cell)
		if cell == "" && !slices.Contains(columns[:3], header[i]) {
			continue
		}
		if fix, err := setCell(&p, header[i], cell); err != nil {
			line, column := in.FieldPos(i)
			return Problem{}, diag.Inputf("%s %q %v", header[i], cell, err).At("%s:%d:%d", name, line,
				column).Do("%s", fix)
		}
	}
	where := fmt.Sprintf("%s:%d", name, line)
	if err := p.Validate(); err != nil {
		var d *diag.Error
		if errors.As(err, &d) {
			return Problem{}, d.At("%s:1", where)
		}
		return Problem{}, err
	}
	return Problem{p.Canonical(), where}, nil
}

// rowError says where a row stopped being CSV.
func rowError(name string, err error) error {
	if large := limit.Exceeded(err); large != nil {
		return large
	}
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		return diag.Inputf("not CSV: %v", syntax.Err).At("%s:%d:%d", name, syntax.Line, syntax.Column).
			Do("quote a cell that holds commas or quotes")
	}
	return diag.Inputf("the file cannot be read: %v", err).At("%s", name).Do("check the file")
}
