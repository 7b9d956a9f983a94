package mma

import (
	"fmt"

	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// copier moves the blocks of one operand from global to shared memory. A copy is as wide as the alignment allows:
// cp.async of 16, 8 or 4 bytes, or plain loads and stores of 2 bytes or 1. Thread t makes copies t, t + threads, …
// of the tile counted along its rows. The edges of the matrix are multiples of a copy's width.
//
// Only the first block along K may be short, and is padded with zeros. Across K, copies beyond the edge repeat the
// last row or column, whose products end in parts of C that are not written. So copies in the loop need no bounds.
//
// If rows are ragged, their ends are inside of a copy, which reads what is inside and fills up with zeros. Rows along K
// must then begin with whole blocks, so the last block is the short one, and every block has bounds.
type copier struct {
	e *emitter
	t tile
	// bytes is the width of a copy, copies the number per thread. Copy i of a thread is in row row0 +
	// i/across*rowStep, at position i%across. Positions are columnStep bytes apart.
	bytes, copies, across, rowStep, columnStep int
	// pointer holds, for each position, the global address of the thread's copies in row 0 of the next block. Row r is
	// r·rowBytes further on. Rows across K are clamped to lastRow, counted from the matrix's first.
	pointer                 []ptx.Operand
	row0, rowBytes, lastRow ptx.Operand
	// column is the thread's first column in the tile.
	column ptx.Operand
	// offset is the place of copies in a stage, by row modulo 8: rows that differ by 8 have the same swizzle.
	offset [8]ptx.Operand
	// edge is how many bytes of the copies at each position are inside the matrix, for ragged rows across K.
	edge []ptx.Operand
	// nested is what replaces pointers and rows if elements are looked up.
	nested lookup
	// active says whether the thread has a copy at all. It is invalid if all threads have.
	active ptx.Operand
}

// newCopier emits the set-up. first and limit are the CTA's first index and the matrix's size across K.
func (e *emitter) newCopier(t tile, first, limit ptx.Operand) *copier {
	e.Comment(fmt.Sprintf("copies of %s: %d rows of %d B, %d B at a time", t.name, t.rows, t.rowBytes(), t.align))
	c := &copier{e: e, t: t, bytes: t.align}
	threads, perRow := e.g.threads, t.rowBytes()/c.bytes
	c.across, c.rowStep, c.columnStep = max(1, perRow/threads), max(1, threads/perRow), threads*c.bytes
	c.copies = t.copies(threads)

	// The thread's first row, and its first byte in it.
	var byte0 ptx.Operand
	if perRow >= threads {
		c.row0 = e.MovB32(e.B32(), ptx.Int(0))
		byte0 = e.Shl(e.Thread, asm.Log2(c.bytes))
	} else {
		c.row0 = e.Shr(e.Thread, asm.Log2(perRow))
		byte0 = e.Shl(e.And(e.Thread, perRow-1), asm.Log2(c.bytes))
	}
	size := asm.Log2(t.size)
	c.column = e.Shr(byte0, size)
	if t.rows < c.rowStep {
		c.active = e.SetpLtS32(e.Pred(), c.row0, ptx.Int(t.rows))
	}

	// The places in a stage.
	shift, mask, left := t.swizzle()
	for i := 0; i*c.rowStep < t.rows && i < 8; i++ {
		residue := i * c.rowStep % 8
		if c.offset[residue] != (ptx.Operand{}) {
			continue
		}
		row := e.Add(c.row0, ptx.Int(residue))
		swizzled := e.XorB32(e.B32(), byte0, e.Shl(e.And(e.Shr(row, shift), mask), asm.Log2(chunkBytes)+left))
		c.offset[residue] = e.Mad(row, t.rowBytes(), swizzled)
	}

	if e.s.Nested {
		c.lookUp(first, limit)
		return c
	}

	// The global addresses: base + size·(batch·stride + row·ld + column).
	ld64, start := e.Param64("ld"+t.name), e.Pointer(t.name)
	index := e.MulLoS64(e.B64(), e.Wide(e.Special(ptx.CtaidZ)), e.Param64("stride_"+t.name))
	c.rowBytes = e.CvtU32U64(e.B32(), ld64)
	e.ShlB32(c.rowBytes, c.rowBytes, ptx.Int(size))
	switch split := e.FirstK != (ptx.Operand{}); {
	case split && t.kRows:
		e.MadLoS64(index, e.Wide(e.FirstK), ld64, index)
	case split:
		e.AddS64(index, index, e.Wide(e.FirstK))
	}
	if !t.kRows {
		c.lastRow = e.Add(limit, ptx.Int(-1))
		c.row0 = e.Add(c.row0, first)
	}
	for i := range c.across {
		column := e.Add(c.column, ptx.Int(i*c.columnStep/t.size))
		if t.kRows {
			e.AddS32(column, column, first)
			if t.ragged {
				c.edge = append(c.edge, c.inside(column, limit))
			} else {
				e.MinS32(column, column, e.Add(limit, ptx.Int(-c.bytes/t.size)))
			}
		}
		p := e.AddS64(e.B64(), index, e.Wide(column))
		e.ShlB64(p, p, ptx.Int(size))
		e.AddS64(p, p, start)
		c.pointer = append(c.pointer, p)
	}
	return c
}

// inside returns how many bytes of a copy at an index are below a limit.
func (c *copier) inside(index, limit ptx.Operand) ptx.Operand {
	e := c.e
	size := e.Sub(limit, index)
	e.ShlB32(size, size, ptx.Int(asm.Log2(c.t.size)))
	e.MaxS32(size, size, ptx.Int(0))
	e.MinS32(size, size, ptx.Int(c.bytes))
	return size
}

// whole is the bytes of a copy at a position, in a row that is inside the matrix.
func (c *copier) whole(position int) ptx.Operand {
	if c.edge != nil {
		return c.edge[position]
	}
	return ptx.Int(c.bytes)
}

// below returns the sizes of the copies of a block of which only k indices along K are inside the matrix.
func (c *copier) below(k ptx.Operand) copySize {
	e := c.e
	within := func(index ptx.Operand, position int) ptx.Operand {
		if !c.t.kRows && c.t.ragged {
			return c.inside(index, k)
		}
		return e.SelpB32(e.B32(), c.whole(position), ptx.Int(0), e.SetpLtS32(e.Pred(), index, k))
	}
	if c.t.kRows {
		return within
	}
	var sizes []ptx.Operand // of the across positions; they are the same in all rows
	for i := range c.across {
		sizes = append(sizes, within(e.Add(c.column, ptx.Int(i*c.columnStep/c.t.size)), i))
	}
	return func(_ ptx.Operand, position int) ptx.Operand { return sizes[position] }
}

// first emits the copies of the first block, of which only k indices are inside the matrix, and moves on to the next.
func (c *copier) first(k ptx.Operand) {
	e := c.e
	c.emit(c.row0, c.active, c.below(k))
	if e.shortLast {
		k = ptx.Operand{}
	}
	c.advance(k)
}

// advance moves on by k indices along K, or by a whole block if k is invalid.
func (c *copier) advance(k ptx.Operand) {
	e, block := c.e, c.e.s.Config.BlockK
	if e.s.Nested {
		c.advanceNested(k)
		return
	}
	for _, p := range c.pointer {
		switch whole := k == (ptx.Operand{}); {
		case whole && c.t.kRows:
			e.MadWideU32(p, c.rowBytes, ptx.Int(block), p)
		case whole:
			e.AddS64(p, p, ptx.Int(c.t.size*block))
		case c.t.kRows:
			e.MadWideU32(p, c.rowBytes, k, p)
		default:
			e.MadWideU32(p, k, ptx.Int(c.t.size), p)
		}
	}
}

// next emits the copies of the next block, if more is true, and moves on.
func (c *copier) next(more ptx.Operand) {
	e, guard := c.e, c.e.Both(c.active, more)
	// The rows are the same for every block, and the assembler keeps each in a register through the loop, which saves
	// an instruction per copy. If registers are scarce, it must not: the rows then depend on a zero that it cannot
	// see through. toCopy is negative only when there is nothing to copy.
	row0 := c.row0
	if e.tight() {
		row0 = e.Add(row0, e.Shr(e.toCopy, 31))
	}
	var size copySize
	switch {
	case e.shortLast:
		size = c.below(e.left)
	case c.edge != nil:
		size = func(_ ptx.Operand, position int) ptx.Operand { return c.edge[position] }
	}
	c.emit(row0, guard, size)
	c.advance(ptx.Operand{})
}

// copySize returns how many bytes to read for the copy in a row, counted as row0 is, and a position. nil is all bytes.
type copySize func(row ptx.Operand, position int) ptx.Operand

// emit emits the copies of a block from row0 on, if the guard is true or invalid.
func (c *copier) emit(row0, guard ptx.Operand, size copySize) {
	e := c.e
	var to [8]ptx.Operand
	for residue, offset := range c.offset {
		if offset != (ptx.Operand{}) {
			to[residue] = e.Add(e.writeStage, offset)
		}
	}
	turn := c.t.unrolled(e.g.threads)
	if c.copies <= turn {
		c.copy(row0, to, c.copies, guard, size)
		return
	}
	e.loops++
	row := e.MovB32(e.B32(), row0)
	left := e.MovB32(e.B32(), ptx.Int(c.copies/turn))
	e.Repeat(fmt.Sprintf("copy_%s_%d", c.t.name, e.loops), left, func() {
		c.copy(row, to, turn, guard, size)
		e.AddS32(row, row, ptx.Int(8*c.rowStep))
		for _, address := range to {
			if address != (ptx.Operand{}) {
				e.AddS32(address, address, ptx.Int(8*c.rowStep*c.t.rowBytes()))
			}
		}
	})
}

// inRows returns the address of a copy in a row and at a position.
func (c *copier) inRows(at ptx.Operand, _, position int) ptx.Operand {
	return c.e.MadWideU32(c.e.B64(), at, c.rowBytes, c.pointer[position])
}

// copy emits n copies from row0 on.
func (c *copier) copy(
	row0 ptx.Operand, to [8]ptx.Operand, n int, guard ptx.Operand, size copySize,
) {
	e := c.e
	type element struct{ to, value ptx.Operand }
	var loaded []element // without cp.async, all are loaded before the first is stored
	source := c.inRows
	if e.s.Nested {
		source = c.nestedSource(row0)
	}
	for i := range n {
		row, position := i/c.across*c.rowStep, i%c.across
		target := ptx.Shared(to[row%8], c.t.at+row/8*8*c.t.rowBytes()+position*c.columnStep)
		at := e.Add(row0, ptx.Int(row))
		var bytes ptx.Operand
		if size != nil {
			bytes = size(at, position)
		}
		if !c.t.kRows {
			e.MinU32(at, at, c.lastRow)
		}
		source := ptx.Global(source(at, row, position), 0)
		if c.bytes >= AsyncBytes {
			e.CopyAsync(c.bytes, target, source, bytes, guard)
			continue
		}
		read := guard
		v := e.MovB16(e.B16(), ptx.Int(0))
		if size != nil {
			read = e.SetpGtS32(e.Pred(), bytes, ptx.Int(0))
			if guard != (ptx.Operand{}) {
				e.AndPred(read, read, guard)
			}
		}
		if c.bytes == 1 {
			e.When(read).LdGlobalB8(v, source)
		} else {
			e.When(read).LdGlobalB16(v, source)
		}
		loaded = append(loaded, element{target, v})
	}
	for _, l := range loaded {
		if c.bytes == 1 {
			e.When(guard).StSharedB8(l.to, l.value)
		} else {
			e.When(guard).StSharedB16(l.to, l.value)
		}
	}
}
