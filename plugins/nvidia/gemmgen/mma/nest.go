package mma

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// Elements of a problem with a nest are looked up. The address of an element is
//
//	matrix + batch's offset + offset of its row + offset of its column
//
// with one table of offsets for each dimension that the matrix has. The nested loops over several summation indices are
// thus one loop over the table of K, and a tile may have rows from several values of an outer index.

// offsetBytes is the size of an offset in a table.
const offsetBytes = 8

// acrossK are the tables of a matrix across K, by its name. C has one for its rows, and c_n for its columns.
var acrossK = map[string]string{"a": "a_m", "b": "b_n", "c": "c_m"}

// table returns the address of a table's entry. An invalid index is 0.
func (e *emitter) table(name string, index ptx.Operand) ptx.Operand {
	at := e.Pointer(name)
	if index != (ptx.Operand{}) {
		e.MadWideU32(at, index, ptx.Int(offsetBytes), at)
	}
	return at
}

// offsetAt reads an entry of a table, some entries behind an address.
func (e *emitter) offsetAt(table ptx.Operand, entry int) ptx.Operand {
	return e.LdGlobalB64(e.B64(), ptx.Global(table, entry*offsetBytes))
}

// plus returns the sum of an address and an offset.
func (e *emitter) plus(at, offset ptx.Operand) ptx.Operand { return e.AddS64(e.B64(), at, offset) }

// matrix returns the address of the CTA's matrix of the batch.
func (e *emitter) matrix(name string) ptx.Operand {
	base := e.Pointer(name)
	return e.plus(base, e.offsetAt(e.table(name+"_batch", e.Special(ptx.CtaidZ)), 0))
}

// lookup is how a copier finds elements.
type lookup struct {
	// base is the matrix. across is the table of rows, if these are across K. along is the entry in the table of K of the
	// thread's first element in the next block: its column, or row 0 if rows are along K.
	base, across, along ptx.Operand
}

// lookUp emits the set-up. If rows are along K, pointer has the address of each position's column.
func (c *copier) lookUp(first, limit ptx.Operand) {
	e := c.e
	c.nested.base = e.matrix(c.t.name)
	c.nested.along = e.table(c.t.name+"_k", e.FirstK)
	last := e.Add(limit, ptx.Int(-1))
	if !c.t.kRows {
		c.lastRow = last
		c.row0 = e.Add(c.row0, first)
		c.nested.across = e.table(acrossK[c.t.name], ptx.Operand{})
		e.MadWideU32(c.nested.along, c.column, ptx.Int(offsetBytes), c.nested.along)
		return
	}
	for i := range c.across {
		column := e.Add(e.Add(c.column, ptx.Int(i*c.columnStep/c.t.size)), first)
		e.MinS32(column, column, last)
		c.pointer = append(c.pointer, e.plus(c.nested.base, e.offsetAt(e.table(acrossK[c.t.name], column), 0)))
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
		first := e.At(row0, offsetBytes, c.nested.along)
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
			rows[row] = e.offsetAt(e.At(at, offsetBytes, c.nested.across), 0)
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
	w.pointer = w.matrix("c")
	w.nested.rows = w.table(acrossK["c"], ptx.Operand{})
	w.nested.row, w.nested.last = row, w.Add(w.M, ptx.Int(-1))
	last := w.Add(w.N, ptx.Int(-1))
	for i := range w.across {
		at := w.Add(column, ptx.Int(32*i*w.width))
		w.MinS32(at, at, last)
		w.nested.columns = append(w.nested.columns, w.offsetAt(w.table("c_n", at), 0))
	}
}

// lookUpRow finds the places of the stores in the next row, and moves on.
func (w *writer) lookUpRow() {
	at := w.MinS32(w.B32(), w.nested.row, w.nested.last)
	start := w.plus(w.pointer, w.offsetAt(w.At(at, offsetBytes, w.nested.rows), 0))
	w.nested.places = w.nested.places[:0]
	for _, column := range w.nested.columns {
		w.nested.places = append(w.nested.places, w.plus(start, column))
	}
	w.AddS32(w.nested.row, w.nested.row, ptx.Int(min(w.rowStep, 16)))
}
