// Package problems reads problems and candidate configurations from files: CSV, TSV, JSON and JSON Lines. Rows are read
// as they are asked for, so that a pipe is answered row by row.
package problems

import (
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

// ranged is how many of numbered may be lists and ranges of sizes.
const ranged = 4

// Problem is a problem and the place where it was read, empty outside of files.
type Problem struct {
	gemm.Problem
	Where string
	// Labels are the cells of the columns File.Labels.
	Labels []string
	// Count is how often a program computes the problem: what the label count says, 0 without one.
	Count int
}

// Shapes returns problems without their places and labels.
func Shapes(list []Problem) []gemm.Problem {
	out := make([]gemm.Problem, len(list))
	for i := range list {
		out[i] = list[i].Problem
	}
	return out
}

// Row is the next thing in a list of problems: a problem, why a row is none, or why there are no more rows.
type Row struct {
	Problem Problem
	// Bad says why the row is no problem. Other rows can follow.
	Bad error
	// End is io.EOF after the last row, or why the list cannot be read on.
	End error
	// Share is how much of the list has been read, from 0 to 1. It is 0 if that is unknown, as it is of a pipe.
	Share float64
}

// File reads problems: rows of cells with the columns m, n, k and optionally batch, trans_a, trans_b (0, 1,
// false or true), dtype and gemm.MoreColumns, in any order and case, or with names as in aliases. An empty cell, and a
// column that is not there, mean what base has. Other columns are labels. A row whose sizes are lists or ranges stands
// for all combinations.
type File struct {
	name   string
	base   gemm.Problem
	header []string
	rows   rows
	begun  bool // there was a row
	one    bool // the problem in grid is all
	again  bool // several columns say the same
	grid   grid // what is left of a row that stands for several problems
	// before and after are the shares of the file that had been read before and after the row.
	before, after float64
}

// Open reads the names of the columns, or all of a text that package shapes reads. Of others, what begins like JSON is
// JSON or JSON Lines; a header with a tab is TSV, and any other is CSV. size is the size of the file in bytes, 0 if it
// is unknown.
func Open(name string, r io.Reader, size int64, base gemm.Problem) (*File, error) {
	rows, rest, err := openForeign(name, r)
	if rows == nil && err == nil {
		rows, err = openRows(name, limit.Reader(rest, name, limit.Table, splitFiles), size,
			jsonForm{within: map[string]int{"problem": 0, "labels": 0},
				fix: `write an array of objects, or an object per line, such as {"m": 4096, "n": 4096, "k": 4096}`})
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, diag.Inputf("the problems file is empty").At("%s", name).Do(headerForm)
	case err != nil:
		return nil, err
	}
	return newFile(name, rows, base)
}

// Inline returns the problems of a row that is written in place of a file, as m=16:16:16:5632,n=4096,k=64,128. ok is
// false if the text is no such row.
func Inline(name, text string, base gemm.Problem) (f *File, ok bool, err error) {
	rows, ok := inline(name, text)
	if !ok {
		return nil, false, nil
	}
	f, err = newFile(name, rows, base)
	return f, true, err
}

// One returns a list of one problem.
func One(p gemm.Problem) *File {
	return &File{base: p, one: true, grid: grid{row: Problem{Problem: p}, all: 1, left: 1}}
}

// newFile checks the names of the columns.
func newFile(name string, rows rows, base gemm.Problem) (*File, error) {
	names, header := slices.Clone(rows.columns()), columnsOf(rows.columns())
	for i, written := range names {
		names[i] = strings.TrimPrefix(strings.TrimPrefix(written, "problem."), "labels.") // as origami writes them
		if header[i] == "" {
			header[i] = names[i]
			if err := unknownColumn(written, rows.place(i)); err != nil {
				return nil, err
			}
		}
		if slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, names[i]) }) < i {
			return nil, diag.Inputf("column %s is there twice", header[i]).At("%s", rows.place(i)).
				Do("leave one of them out")
		}
	}
	for _, required := range columns[:3] {
		if !slices.Contains(header, required) {
			return nil, diag.Inputf("column %s is missing", required).At("%s", rows.line()).Do(headerForm)
		}
	}
	again := len(slices.Compact(slices.Sorted(slices.Values(header)))) < len(header) || slices.Contains(header, layout)
	return &File{name: name, base: base, header: header, rows: rows, again: again}, nil
}

// unknownColumn returns an error for a column that cannot be a label: it has no name, or looks like a column of the
// problem that is spelled wrong.
func unknownColumn(name, at string) error {
	e := diag.Inputf("unknown column %q", name).At("%s", at)
	if telling.MatchString(name) {
		return e.Do("%s, or labels.%s to pass it through", meant(name), name)
	}
	name = strings.TrimPrefix(name, "labels.")
	if near := diag.Typo(name, columns); near != "" {
		return e.Do("did you mean %s? %s", near, headerForm)
	}
	_, err := strconv.ParseFloat(name, 64)
	if number := err == nil; number || name == "" {
		return e.Do(headerForm)
	}
	return nil
}

// Has reports whether the file has a column.
func (f *File) Has(column string) bool {
	return slices.Contains(f.header, column) || strings.HasPrefix(column, "trans_") && slices.Contains(f.header, layout)
}

// Next returns the next row. With brief, a row that is no problem has no reason: the first rows' reasons are enough.
func (f *File) Next(brief bool) Row {
	p, bad, err := f.next(brief)
	return Row{Problem: p, Bad: bad, End: err, Share: f.share()}
}

func (f *File) next(brief bool) (p Problem, bad, err error) {
	switch {
	case f.one && f.grid.left == 0:
		return p, nil, io.EOF
	case f.one:
		f.grid.left--
		return f.grid.row, nil, nil
	case f.grid.left > 0:
		return f.combination(brief)
	}
	cells, bad, err := f.rows.next(brief)
	switch {
	case errors.Is(err, io.EOF) && !f.begun:
		return p, nil, diag.Inputf("the problems file has no rows").At("%s", f.name).
			Do("add a row such as 4096,4096,4096")
	case err != nil:
		return p, nil, err
	}
	f.begun = true
	f.before, f.after = f.after, f.rows.share()
	if bad == nil {
		bad = f.parse(cells, brief)
	}
	if bad != nil {
		return p, bad, nil
	}
	return f.combination(brief)
}

// grid is a row that stands for the combinations of its sizes.
type grid struct {
	row   Problem
	sizes [ranged][]int // empty for a size that has one value
	// all is how many problems the row stands for, left how many of them are left.
	all, left int
}

// parse reads a row into f.grid.
func (f *File) parse(cells []string, brief bool) error {
	g := grid{row: Problem{Problem: f.base, Where: f.rows.line()}, left: 1}
	for i, cell := range cells {
		column := f.header[i]
		if !slices.Contains(columns, column) && column != layout {
			g.row.Labels = append(g.row.Labels, cell)
			if column != "count" {
				continue
			}
		}
		if cell == "" && !slices.Contains(columns[:3], column) {
			continue
		}
		before := g.row.Problem
		fix, err := g.set(column, cell)
		if f.again && err == nil && g.row.Problem != before && f.contradicts(cells, i) {
			fix, err = "leave one of them out", errors.New("is not what another column says")
		}
		switch {
		case err != nil && brief:
			return errUnread
		case err != nil:
			return diag.Inputf("%s %q %v", column, cell, err).At("%s", f.rows.place(i)).Do("%s", fix)
		}
	}
	g.all = g.left
	f.grid = g
	return nil
}

// set gives the row what a cell says.
func (g *grid) set(column, cell string) (fix string, err error) {
	if column == "count" {
		g.row.Count, err = ParseSize(cell)
		return "write how often the program computes the problem", err
	}
	at := slices.Index(numbered[:ranged], column)
	if at < 0 || !strings.ContainsAny(cell, ":,") {
		return setCell(&g.row.Problem, column, cell)
	}
	list, err := ParseSizes(cell)
	if err != nil {
		return "write a list of sizes and ranges, as in 64,128:1024 or 16:16:16:5632", err
	}
	g.sizes[at] = list
	if g.left *= len(list); g.left > limit.Rows {
		return "take larger steps", fmt.Errorf("makes more than %d problems of the row", limit.Rows)
	}
	return "", nil
}

// combination returns the next problem of the row.
func (f *File) combination(brief bool) (Problem, error, error) {
	f.grid.left--
	p, rest := f.grid.row, f.grid.left
	for i := ranged - 1; i >= 0; i-- {
		if values := f.grid.sizes[i]; len(values) > 0 {
			*numbers[i](&p.Problem) = values[len(values)-1-rest%len(values)]
			rest /= len(values)
		}
	}
	if err := p.Validate(); err != nil {
		if brief {
			return Problem{}, errUnread, nil
		}
		return Problem{}, diag.Within(p.Where, err), nil
	}
	p.Problem = p.Canonical()
	return p, nil, nil
}

// Labels are the names of the columns that are no part of a problem.
func (f *File) Labels() (names []string) {
	for _, name := range f.header {
		if !slices.Contains(columns, name) && name != layout {
			names = append(names, name)
		}
	}
	return names
}

// share is how much of the file has been asked for, 0 if that is unknown.
func (f *File) share() float64 {
	if f.grid.all == 0 {
		return f.after
	}
	return f.after - (f.after-f.before)*float64(f.grid.left)/float64(f.grid.all)
}
