package session

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
)

// The columns of a problems file. The first three are required; the others default to what the flags say.
var columns = slices.Concat(gemm.Columns, gemm.MoreColumns)

// splitFiles is the advice for a file that is too large.
const splitFiles = "split it into several files"

const headerForm = "write a header line such as m,n,k,batch,trans_a,trans_b,dtype"

// problemFile reads a problems file: a header with the columns m, n, k and optionally batch, trans_a, trans_b (0, 1,
// false or true), dtype and gemm.MoreColumns, in any order, then a problem per row. An empty cell, and a column that is
// not there, mean what base has. Lines that start with # are skipped.
type problemFile struct {
	name   string
	base   gemm.Problem
	header []string
	csv    *csv.Reader
	begun  bool // there was a row
}

// openCSV reads the header. With labels, columns that are not about the problem are kept, unless they look like one
// that is.
func openCSV(name string, r io.Reader, base gemm.Problem, labels bool) (*problemFile, error) {
	buffered := bufio.NewReader(limit.Reader(r, name, limit.Table, splitFiles))
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3) // they are there: they were peeked at
	}
	in := limit.CSV{Comment: '#', TrimLeadingSpace: true}.Reader(buffered, name, "")
	in.FieldsPerRecord = -1

	first, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, diag.Inputf("the problems file is empty").At("%s", name).Do(headerForm)
	}
	if err != nil {
		return nil, rowError(name, err)
	}
	header := slices.Clone(first)
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
		line, column := in.FieldPos(i)
		at := fmt.Sprintf("%s:%d:%d", name, line, column)
		if !slices.Contains(columns, header[i]) {
			if err := unknownColumn(header[i], at, labels); err != nil {
				return nil, err
			}
		}
		if slices.Index(header, header[i]) < i {
			return nil, diag.Inputf("column %s is there twice", header[i]).At("%s", at).Do("leave one of them out")
		}
	}
	for _, required := range columns[:3] {
		if !slices.Contains(header, required) {
			return nil, diag.Inputf("column %s is missing", required).At("%s:1", name).Do(headerForm)
		}
	}
	return &problemFile{name: name, base: base, header: header, csv: in}, nil
}

// unknownColumn returns an error for a column that is neither about the problem nor a label.
func unknownColumn(name, at string, labels bool) error {
	e := diag.Inputf("unknown column %q", name).At("%s", at)
	if near := diag.Nearest(name, columns, 1); len(near) > 0 && len(name) > 1 && (len(near[0]) > 1 || !labels) {
		return e.Do("did you mean %s? %s", near[0], headerForm)
	}
	_, err := strconv.ParseFloat(name, 64)
	if number := err == nil; number || name == "" || !labels {
		return e.Do(headerForm)
	}
	return nil
}

// errUnread is a row that cannot be read, without the reason.
var errUnread = errors.New("the row cannot be read")

// next returns the problem of the next row, or in bad why the row cannot be read, with file:line:column. Other rows can
// follow. With brief, bad is errUnread. err is io.EOF after the last row, or why the file cannot be read on.
func (f *problemFile) next(brief bool) (p Problem, bad, err error) {
	row, err := f.csv.Read()
	if errors.Is(err, io.EOF) && !f.begun {
		return p, nil, diag.Inputf("the problems file has a header and no rows").At("%s", f.name).
			Do("add a row such as 4096,4096,4096")
	}
	var syntax *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return p, nil, io.EOF
	case err != nil && !errors.As(err, &syntax):
		return p, nil, rowError(f.name, err)
	}
	f.begun = true
	switch {
	case err == nil:
		p, bad = f.parseRow(row, brief)
	case brief:
		bad = errUnread
	default:
		bad = rowError(f.name, err)
	}
	return p, bad, nil
}

func (f *problemFile) parseRow(row []string, brief bool) (Problem, error) {
	name, in, header := f.name, f.csv, f.header
	line, _ := in.FieldPos(0)
	if len(row) != len(header) {
		if brief {
			return Problem{}, errUnread
		}
		last, column := in.FieldPos(min(len(row), len(header)+1) - 1)
		return Problem{}, diag.Inputf("the row has %d cells, the header %d", len(row), len(header)).
			At("%s:%d:%d", name, last, column).Do("give one cell per column")
	}
	p := f.base
	var labels []string
	for i, cell := range row {
		cell = strings.TrimSpace(cell)
		if !slices.Contains(columns, header[i]) {
			labels = append(labels, cell)
			continue
		}
		if cell == "" && !slices.Contains(columns[:3], header[i]) {
			continue
		}
		if fix, err := setCell(&p, header[i], cell); err != nil {
			if brief {
				return Problem{}, errUnread
			}
			line, column := in.FieldPos(i)
			return Problem{}, diag.Inputf("%s %q %v", header[i], cell, err).At("%s:%d:%d", name, line,
				column).Do("%s", fix)
		}
	}
	where := name + ":" + strconv.Itoa(line)
	if err := p.Validate(); err != nil {
		var d *diag.Error
		if errors.As(err, &d) {
			return Problem{}, d.At("%s:1", where)
		}
		return Problem{}, err
	}
	return Problem{p.Canonical(), where, labels}, nil
}

// rowError says where a row stopped being CSV.
func rowError(name string, err error) error {
	if large := limit.Exceeded(err); large != nil {
		return large
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		return diag.Inputf("not CSV: %v", syntax.Err).At("%s:%d:%d", name, syntax.Line, syntax.Column).
			Do("quote a cell that holds commas or quotes")
	}
	return diag.Inputf("the file cannot be read: %v", err).At("%s", name).Do("check the file")
}
