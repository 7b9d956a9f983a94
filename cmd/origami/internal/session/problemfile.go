package session

import (
	"bufio"
	"bytes"
	"context"
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

// ranged are the columns whose cells may be lists and ranges of sizes.
var ranged = columns[:4]

// splitFiles is the advice for a file that is too large.
const splitFiles = "split it into several files"

const headerForm = "write a header line such as m,n,k,batch,trans_a,trans_b,dtype"

// problemFile reads problems: rows of cells with the columns m, n, k and optionally batch, trans_a, trans_b (0, 1,
// false or true), dtype and gemm.MoreColumns, in any order and case. An empty cell, and a column that is not there,
// mean what base has. Other columns are labels. A row whose sizes are lists or ranges stands for all combinations.
type problemFile struct {
	name   string
	base   gemm.Problem
	header []string
	rows   problemRows
	begun  bool // there was a row
	grid   grid // what is left of a row that stands for several problems
	// before and after are the shares of the file that had been read before and after the row.
	before, after float64
}

// problemRows are the rows of a problems file, in whatever form.
type problemRows interface {
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

// openProblems reads the names of the columns. What begins like JSON is JSON or JSON Lines; a header with a tab is TSV,
// any other CSV. size is that of the file in bytes, 0 if it is unknown.
func openProblems(name string, r io.Reader, size int64, base gemm.Problem) (*problemFile, error) {
	buffered := bufio.NewReader(limit.Reader(r, name, limit.Table, splitFiles))
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3) // they are there: they were peeked at
	}
	var (
		rows problemRows
		err  error
	)
	if beginsJSON(peek(buffered, jsonWithin, func(text []byte) bool { return len(blanksCut(text)) > 0 })) {
		rows, err = openJSON(name, buffered)
	} else {
		rows, err = openCSV(name, buffered, size, bytes.IndexByte(headerLine(buffered), '\t') >= 0)
	}
	if err != nil {
		return nil, err
	}
	return newProblemFile(name, rows, base)
}

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

// newProblemFile checks the names of the columns.
func newProblemFile(name string, rows problemRows, base gemm.Problem) (*problemFile, error) {
	header := slices.Clone(rows.columns())
	for i, written := range header {
		if lower := strings.ToLower(written); slices.Contains(columns, lower) {
			header[i] = lower
		} else if err := unknownColumn(written, rows.place(i)); err != nil {
			return nil, err
		}
		if slices.Index(header, header[i]) < i {
			return nil, diag.Inputf("column %s is there twice", header[i]).At("%s", rows.place(i)).
				Do("leave one of them out")
		}
	}
	for _, required := range columns[:3] {
		if !slices.Contains(header, required) {
			return nil, diag.Inputf("column %s is missing", required).At("%s", rows.line()).Do(headerForm)
		}
	}
	return &problemFile{name: name, base: base, header: header, rows: rows}, nil
}

// unknownColumn returns an error for a column that cannot be a label: it has no name, or looks like a column of the
// problem that is spelled wrong.
func unknownColumn(name, at string) error {
	e := diag.Inputf("unknown column %q", name).At("%s", at)
	if near := diag.Typo(name, columns); near != "" {
		return e.Do("did you mean %s? %s", near, headerForm)
	}
	_, err := strconv.ParseFloat(name, 64)
	if number := err == nil; number || name == "" {
		return e.Do(headerForm)
	}
	return nil
}

// errUnread is a row that cannot be read, without the reason.
var errUnread = errors.New("the row cannot be read")

// next returns the next problem, or in bad why a row cannot be read, with its place. Other rows can follow. With brief,
// bad is errUnread. err is io.EOF after the last row, or why the file cannot be read on.
func (f *problemFile) next(brief bool) (p Problem, bad, err error) {
	if f.grid.left > 0 {
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
	sizes [len(gridFields)][]int // empty for a size that has one value
	// all is how many problems the row stands for, left how many of them are left.
	all, left int
}

// gridFields are the sizes that can be ranges, in the order of ranged.
var gridFields = [...]func(*gemm.Problem) *int{
	func(p *gemm.Problem) *int { return &p.M }, func(p *gemm.Problem) *int { return &p.N },
	func(p *gemm.Problem) *int { return &p.K }, func(p *gemm.Problem) *int { return &p.Batch },
}

// parse reads a row into f.grid.
func (f *problemFile) parse(cells []string, brief bool) error {
	g := grid{row: Problem{Problem: f.base, Where: f.rows.line()}, left: 1}
	for i, cell := range cells {
		column := f.header[i]
		if !slices.Contains(columns, column) {
			g.row.Labels = append(g.row.Labels, cell)
			continue
		}
		if cell == "" && !slices.Contains(columns[:3], column) {
			continue
		}
		fix, err := g.set(column, cell)
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
	at := slices.Index(ranged, column)
	if at < 0 || !strings.ContainsAny(cell, ":,") {
		return setCell(&g.row.Problem, column, cell)
	}
	var list Sizes
	if err := list.Set(cell); err != nil {
		return "write a list of sizes and ranges, as in 64,128:1024 or 16:16:16:5632", err
	}
	g.sizes[at] = list.values
	if g.left *= len(list.values); g.left > limit.Rows {
		return "take larger steps", fmt.Errorf("makes more than %d problems of the row", limit.Rows)
	}
	return "", nil
}

// combination returns the next problem of the row.
func (f *problemFile) combination(brief bool) (Problem, error, error) {
	f.grid.left--
	p, rest := f.grid.row, f.grid.left
	for i := len(gridFields) - 1; i >= 0; i-- {
		if values := f.grid.sizes[i]; len(values) > 0 {
			*gridFields[i](&p.Problem) = values[len(values)-1-rest%len(values)]
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

// inlineRows is a row that the command line has in place of a file.
type inlineRows struct {
	names, cells []string
	begun        bool
}

// inline reads "m=16:16:16:5632,n=4096,k=64,128": what has no "=" belongs to the name before it.
func inline(text string) (rows *inlineRows, ok bool) {
	rows = &inlineRows{}
	for _, part := range strings.Split(text, ",") {
		name, cell, found := strings.Cut(part, "=")
		switch {
		case found:
			rows.names, rows.cells = append(rows.names, strings.TrimSpace(name)), append(rows.cells, cell)
		case len(rows.cells) == 0:
			return nil, false
		default:
			rows.cells[len(rows.cells)-1] += "," + part
		}
	}
	return rows, slices.Contains(columns, strings.ToLower(rows.names[0]))
}

func (r *inlineRows) columns() []string { return r.names }
func (r *inlineRows) line() string      { return "--problems" }
func (r *inlineRows) place(int) string  { return "--problems" }

func (r *inlineRows) share() float64 {
	if r.begun {
		return 1
	}
	return 0
}

func (r *inlineRows) next(bool) (cells []string, bad, err error) {
	if r.begun {
		return nil, nil, io.EOF
	}
	r.begun = true
	return r.cells, nil, nil
}

// share is how much of the file has been asked for, 0 if that is unknown.
func (f *problemFile) share() float64 {
	if f.grid.all == 0 {
		return f.after
	}
	return f.after - (f.after-f.before)*float64(f.grid.left)/float64(f.grid.all)
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
