package mma

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// Elements of a problem with a nest are looked up. The address of an element is
//
//	matrix + batch's offset + offset of its row + offset of its column
//
// with one table of offsets for each dimension that the matrix has. The nested loops over several summation indices are
// thus one loop over the table of K, and a tile may have rows from several values of an outer index.

// tables are the parameters that point to the offsets of one matrix: across K, along K and from matrix to matrix of the
// batch. C has those of its rows and columns in the first two.
type tables struct{ across, along, batch ptx.Operand }

// offsetBytes is the size of an offset in a table.
const offsetBytes = 8

// nestedParams declares the tables.
func (e *emitter) nestedParams(p *params) {
	table := func(name string) ptx.Operand { return e.Param(name, ptx.U64) }
	p.a.tables = tables{table("a_m"), table("a_k"), table("a_batch")}
	p.b.tables = tables{table("b_n"), table("b_k"), table("b_batch")}
	p.c.tables = tables{table("c_m"), table("c_n"), table("c_batch")}
}

// table returns the address of a table's entry. An invalid index is 0.
func (e *emitter) table(parameter, index ptx.Operand) ptx.Operand {
	at := e.CvtaToGlobalU64(e.B64(), e.Param64(parameter))
	if index != (ptx.Operand{}) {
		e.MadWideU32(at, index, ptx.Int(offsetBytes), at)
	}
	return at
}

// offsetAt reads an entry of a table, some entries behind an address.
func (e *emitter) offsetAt(table ptx.Operand, entry int) ptx.Operand {
	d := e.LdGlobalB64(e.B64(), ptx.Global(table, entry*offsetBytes))
	return d
}

// plus returns the sum of addresses and offsets.
func (e *emitter) plus(first ptx.Operand, rest ...ptx.Operand) ptx.Operand {
	for _, x := range rest {
		d := e.AddS64(e.B64(), first, x)
		first = d
	}
	return first
}

// matrix returns the address of the CTA's matrix of the batch.
func (e *emitter) matrix(p *matrixParams) ptx.Operand {
	base := e.CvtaToGlobalU64(e.B64(), e.Param64(p.address))
	return e.plus(base, e.offsetAt(e.table(p.tables.batch, e.Special(ptx.CtaidZ)), 0))
}

// lookup is how a copier finds elements.
type lookup struct {
	// base is the matrix. across is the table of rows, if these are across K. along is the entry in the table of K of the
	// thread's first element in the next block: its column, or row 0 if rows are along K.
	base, across, along ptx.Operand
}

// lookUp emits the set-up. If rows are along K, pointer has the address of each position's column.
func (c *copier) lookUp(p matrixParams, first, limit, begin ptx.Operand) {
	e := c.e
	c.nested.base = e.matrix(&p)
	c.nested.along = e.table(p.tables.along, begin)
	last := e.Add(limit, ptx.Int(-1))
	if !c.t.kRows {
		c.lastRow = last
		c.row0 = e.Add(c.row0, first)
		c.nested.across = e.table(p.tables.across, ptx.Operand{})
		e.MadWideU32(c.nested.along, c.column, ptx.Int(offsetBytes), c.nested.along)
		return
	}
	for i := range c.across {
		column := e.Add(e.Add(c.column, ptx.Int(i*c.columnStep/c.t.size)), first)
		e.MinS32(column, column, last)
		c.pointer = append(c.pointer, e.plus(c.nested.base, e.offsetAt(e.table(p.tables.across, column), 0)))
	}
}

// advanceNested moves on by k indices along K, or by a whole block if k is invalid.
func (c *copier) advanceNested(k ptx.Operand) {
	if k == (ptx.Operand{}) {
		c.e.AddS64(c.nested.along, c.nested.along, ptx.Int(offsetBytes*c.e.s.Config.BlockK))
		return
	}
	c.e.MadWideU32(c.nested.along, k, ptx.Int(offsetBytes), c.nested.along)
}

// nestedSource returns the addresses of the copies from row0 on. Each offset is read once, however many copies it is
// for.
func (c *copier) nestedSource(row0 ptx.Operand) func(at ptx.Operand, row, position int) ptx.Operand {
	e, rows := c.e, map[int]ptx.Operand{}
	if c.t.kRows {
		first := e.MadWideU32(e.B64(), row0, ptx.Int(offsetBytes), c.nested.along)
		return func(_ ptx.Operand, row, position int) ptx.Operand {
			if rows[row] == (ptx.Operand{}) {
				rows[row] = e.offsetAt(first, row)
			}
			return e.plus(c.pointer[position], rows[row])
		}
	}
	var starts []ptx.Operand
	for i := range c.across {
		starts = append(starts, e.plus(c.nested.base, e.offsetAt(c.nested.along, i*c.columnStep/c.t.size)))
	}
	return func(at ptx.Operand, row, position int) ptx.Operand {
		if rows[row] == (ptx.Operand{}) {
			entry := e.MadWideU32(e.B64(), at, ptx.Int(offsetBytes), c.nested.across)
			rows[row] = e.offsetAt(entry, 0)
		}
		return e.plus(starts[position], rows[row])
	}
}

// nestedWriter is how the epilogue finds elements of C.
type nestedWriter struct {
	// rows is the table of rows, row the lane's next one, last the last one of C.
	rows, row, last ptx.Operand
	// columns are the offsets of the stores in a row, places the addresses of those in the current row.
	columns, places []ptx.Operand
}

// lookUp emits the set-up for the elements from a row and a column on.
func (w *writer) lookUp(row, column ptx.Operand) {
	w.pointer = w.matrix(&w.p.c)
	w.nested.rows = w.table(w.p.c.tables.across, ptx.Operand{})
	w.nested.row, w.nested.last = row, w.Add(w.m, ptx.Int(-1))
	last := w.Add(w.n, ptx.Int(-1))
	for i := range w.across {
		at := w.Add(column, ptx.Int(32*i*w.width))
		w.MinS32(at, at, last)
		w.nested.columns = append(w.nested.columns, w.offsetAt(w.table(w.p.c.tables.along, at), 0))
	}
}

// lookUpRow finds the places of the stores in the next row, and moves on.
func (w *writer) lookUpRow() {
	at := w.MinS32(w.B32(), w.nested.row, w.nested.last)
	entry := w.MadWideU32(w.B64(), at, ptx.Int(offsetBytes), w.nested.rows)
	start := w.plus(w.pointer, w.offsetAt(entry, 0))
	w.nested.places = w.nested.places[:0]
	for _, column := range w.nested.columns {
		w.nested.places = append(w.nested.places, w.plus(start, column))
	}
	w.AddS32(w.nested.row, w.nested.row, ptx.Int(min(w.rowStep, 16)))
}
