// Package shapes reads the products of matrices that other programs name: traces and logs of PyTorch, logs of vendors'
// libraries, and results of tuners and benchmarks. Biases, activations and scales of operands are left out.
package shapes

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
)

// Columns are the cells of a row. The last is how often the program computes the product, as far as the text says.
var Columns = slices.Concat(gemm.Columns, []string{"out_dtype", "lda", "ldb", "ldc", "beta", "count"})

// Row is a product, or why there is none. Line is 0 in a text without lines.
type Row struct {
	Line  int
	Cells []string
	Bad   error
	count int
}

// reader collects rows. Equal ones are one.
type reader struct {
	line int
	rows []Row
	seen map[string]int // the places in rows
	// table reads the rows of a table with a header, and tune is what Inductor has logged of a product so far, from the
	// line tuned.
	table  func(record) (product, error)
	header []string
	tune   string
	tuned  int
	why    error // why a text in a known format names no products
}

// Text reads the lines of a log or a table. There are no rows if it is in no format that is known.
func Text(in io.Reader) (rows []Row, err error) {
	r := &reader{seen: map[string]int{}}
	lines, begun := limit.NewLines(in), ""
	for err == nil && len(r.rows) <= limit.Rows {
		var text []byte
		text, err = lines.Next()
		r.line++
		line := begun + strings.TrimSpace(string(text))
		begun = ""
		if more, ok := strings.CutSuffix(line, `\`); ok && len(more) < limit.Line {
			begun = more // a command goes on
			continue
		}
		for _, mark := range marks {
			if at := strings.Index(line, mark.text); at >= 0 {
				mark.read(r, line[at:])
			}
		}
		r.row(line)
	}
	r.endTune()
	return r.result(err)
}

func (r *reader) result(err error) ([]Row, error) {
	switch {
	case len(r.rows) > limit.Rows:
		return nil, diag.Inputf("it names more than %d products, the most that are read", limit.Rows).Do("split it")
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(r.rows) == 0:
		return nil, r.why
	}
	for _, row := range r.rows {
		if row.Bad == nil {
			row.Cells[len(Columns)-1] = strconv.Itoa(row.count)
		}
	}
	return r.rows, nil
}

// add adds a product that is computed so many more times. A result of a tuner counts once, however often it is there.
func (r *reader) add(p product, calls int, err error) {
	cells, unread := p.cells()
	key := strings.Join(cells, ",")
	if err = cmp.Or(err, unread); err != nil {
		key = err.Error()
	}
	i, ok := r.seen[key]
	if !ok {
		i = len(r.rows)
		r.seen[key], r.rows = i, append(r.rows, Row{Line: r.line, Cells: cells, Bad: err})
	}
	r.rows[i].count = max(r.rows[i].count+calls, 1)
}

// matrix is an operand or the result. Its rows are contiguous, or its columns.
type matrix struct {
	dtype, ld string
	columns   bool
}

// product is a product as a format has it.
type product struct {
	m, n, k, batch, beta string
	a, b, c              matrix
}

const asCSV = "write m,n,k,batch,trans_a,trans_b,dtype as CSV"

// cells returns the cells of Columns. If C has contiguous columns, they are of the transposed product, Cᵀ = Bᵀ·Aᵀ.
func (p product) cells() ([]string, error) {
	if p.c.columns {
		p.m, p.n, p.a, p.b = p.n, p.m, p.b, p.a
		p.a.columns, p.b.columns = !p.a.columns, !p.b.columns
	}
	if p.a.dtype == "" || p.b.dtype == "" {
		return nil, diag.Inputf("it does not say which type the matrices have").Do(asCSV)
	}
	a, err := gemm.ParseDType(p.a.dtype)
	b, also := gemm.ParseDType(p.b.dtype)
	switch err = cmp.Or(err, also); {
	case err != nil:
		return nil, err
	case a.CostsLike() != b.CostsLike():
		return nil, diag.Inputf("A and B are %s and %s, and no model multiplies two types", min(a, b), max(a, b)).Do(asCSV)
	}
	if v, err := strconv.ParseFloat(p.beta, 64); err == nil && v == 0 {
		p.beta = ""
	}
	transA, ldA := p.a.stored(p.k, p.m)
	transB, ldB := p.b.stored(p.n, p.k)
	_, ldC := matrix{ld: p.c.ld}.stored(p.n, p.n)
	return []string{p.m, p.n, p.k, cmp.Or(p.batch, "1"), transA, transB, a.String(), p.c.dtype, ldA, ldB, ldC, p.beta, ""},
		nil
}

// stored returns whether the columns are contiguous, and the leading dimension if it is more than the elements of a row
// or a column.
func (m matrix) stored(row, column string) (trans, ld string) {
	trans = "0"
	if m.columns {
		trans, row = "1", column
	}
	n, err := strconv.Atoi(m.ld)
	if elements, _ := strconv.Atoi(row); err != nil || n <= elements {
		return trans, ""
	}
	return trans, m.ld
}
