package mma

import (
	"fmt"

	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// copier moves one operand's tiles from global to shared memory. A copy is as wide as the alignment allows: cp.async of
// 16, 8 or 4 bytes, or plain loads and stores of single elements. Thread t makes copies t, t + threads, … of the tile
// counted along its rows. The edges of the matrix are multiples of a copy's width.
//
// Only the first tile along K may be short; what it lacks is filled with zeros. Across K, copies beyond the edge repeat the
// last row or column, whose products end in parts of C that are not written. So copies in the loop need no bounds.
type copier struct {
	e *emitter
	t tile
	// bytes is the width of a copy, copies the number per thread. A thread's copy i is in row row0 + i/across*rowStep, at
	// across positions columnStep bytes apart.
	bytes, copies, across, rowStep, columnStep int
	// pointer holds, for each position, the global address of the thread's copies in row 0 of the next tile. Row r is at
	// r·rowBytes from there; rows across K are clamped to lastRow, counted from the matrix's first.
	pointer                 []ptx.Operand
	row0, rowBytes, lastRow ptx.Operand
	// column is the thread's first column in the tile.
	column ptx.Operand
	// offset is where copies go in a stage, by row modulo 8: rows that differ by 8 have the same swizzle.
	offset [8]ptx.Operand
	// active is whether the thread has a copy at all; invalid where all have.
	active ptx.Operand
}

// newCopier emits the set-up. first and limit are the CTA's first index and the matrix's size across K, begin its first
// index along K.
func (e *emitter) newCopier(t tile, base, ld, stride, first, limit, begin ptx.Operand) *copier {
	e.Comment(fmt.Sprintf("copies of %s: %d rows of %d B, %d B at a time", t.name, t.rows, t.rowBytes(), t.align))
	c := &copier{e: e, t: t, bytes: t.align}
	threads, perRow := e.g.threads, t.rowBytes()/c.bytes
	c.across, c.rowStep, c.columnStep = max(1, perRow/threads), max(1, threads/perRow), threads*c.bytes
	c.copies = max(1, t.rows*perRow/threads)

	// The thread's first row, and its first byte in it.
	var byte0 ptx.Operand
	if perRow >= threads {
		c.row0 = e.B32()
		e.MovB32(c.row0, ptx.Int(0))
		byte0 = e.Shl(e.tid, asm.Log2(c.bytes))
	} else {
		c.row0 = e.Shr(e.tid, asm.Log2(perRow))
		byte0 = e.Shl(e.And(e.tid, perRow-1), asm.Log2(c.bytes))
	}
	c.column = e.Shr(byte0, 1)
	if t.rows < c.rowStep {
		c.active = e.Pred()
		e.SetpLtS32(c.active, c.row0, ptx.Int(t.rows))
	}

	// Where copies go.
	shift, mask := t.swizzle()
	for i := 0; i*c.rowStep < t.rows && i < 8; i++ {
		residue := i * c.rowStep % 8
		if c.offset[residue] != (ptx.Operand{}) {
			continue
		}
		row := e.Add(c.row0, ptx.Int(residue))
		swizzled := e.B32()
		e.XorB32(swizzled, byte0, e.Shl(e.And(e.Shr(row, shift), mask), 4))
		c.offset[residue] = e.Mad(row, t.rowBytes(), swizzled)
	}

	// Where they come from: base + 2·(batch·stride + row·ld + column).
	ld64, index, start := e.Param64(ld), e.B64(), e.B64()
	e.CvtaToGlobalU64(start, e.Param64(base))
	e.MulLoS64(index, e.Wide(e.Special(ptx.CtaidZ)), e.Param64(stride))
	c.rowBytes = e.B32()
	e.CvtU32U64(c.rowBytes, ld64)
	e.ShlB32(c.rowBytes, c.rowBytes, ptx.Int(1))
	if t.kRows && begin != (ptx.Operand{}) {
		e.MadLoS64(index, e.Wide(begin), ld64, index)
	} else if begin != (ptx.Operand{}) {
		e.AddS64(index, index, e.Wide(begin))
	}
	if !t.kRows {
		c.lastRow = e.Add(limit, ptx.Int(-1))
		c.row0 = e.Add(c.row0, first)
	}
	for i := range c.across {
		column := e.Add(c.column, ptx.Int(i*c.columnStep/2))
		if t.kRows {
			e.AddS32(column, column, first)
			e.MinS32(column, column, e.Add(limit, ptx.Int(-c.bytes/2)))
		}
		p := e.B64()
		e.AddS64(p, index, e.Wide(column))
		e.ShlB64(p, p, ptx.Int(1))
		e.AddS64(p, p, start)
		c.pointer = append(c.pointer, p)
	}
	return c
}

// first emits the copies of the first tile, of which only k indices are inside the matrix, and moves on to the next.
func (c *copier) first(k ptx.Operand) {
	e := c.e
	inside := func(index ptx.Operand) ptx.Operand {
		p, size := e.Pred(), e.B32()
		e.SetpLtS32(p, index, k)
		e.SelpB32(size, ptx.Int(c.bytes), ptx.Int(0), p)
		return size
	}
	if c.t.kRows {
		c.emit(c.row0, c.active, func(row ptx.Operand, _ int) ptx.Operand { return inside(row) })
	} else {
		var sizes []ptx.Operand // of the across positions; they are the same in all rows
		for i := range c.across {
			sizes = append(sizes, inside(e.Add(c.column, ptx.Int(i*c.columnStep/2))))
		}
		c.emit(c.row0, c.active, func(_ ptx.Operand, position int) ptx.Operand { return sizes[position] })
	}
	for _, p := range c.pointer {
		if c.t.kRows {
			e.MadWideU32(p, c.rowBytes, k, p)
		} else {
			e.MadWideU32(p, k, ptx.Int(2), p)
		}
	}
}

// next emits the copies of the next tile, if more is true, and moves on.
func (c *copier) next(more ptx.Operand) {
	e, guard := c.e, more
	if c.active != (ptx.Operand{}) {
		guard = e.Pred()
		e.AndPred(guard, c.active, more)
	}
	// The rows are the same for every tile, and the assembler keeps each in a register through the loop, which saves an
	// instruction per copy. Where there are too few registers for that, a zero is added that it cannot know to be one:
	// toCopy is negative only when there is nothing to copy.
	row0 := c.row0
	if e.tight() {
		row0 = e.Add(row0, e.Shr(e.toCopy, 31))
	}
	c.emit(row0, guard, nil)
	for _, p := range c.pointer {
		if c.t.kRows {
			e.MadWideU32(p, c.rowBytes, ptx.Int(e.s.Config.BlockK), p)
		} else {
			e.AddS64(p, p, ptx.Int(2*e.s.Config.BlockK))
		}
	}
}

// unrolledCopies is up to how many narrow copies are unrolled; more run in a loop. Copies of 16 bytes always are.
const unrolledCopies = 8

// emit emits the copies of a tile from row0 on where the guard is true, everywhere if it is invalid. size gives the bytes to read of the
// copy in a row, counted as row0 is, and position; without it all are read.
func (c *copier) emit(row0, guard ptx.Operand, size func(row ptx.Operand, position int) ptx.Operand) {
	e := c.e
	var to [8]ptx.Operand
	for residue, offset := range c.offset {
		if offset != (ptx.Operand{}) {
			to[residue] = e.Add(e.writeStage, offset)
		}
	}
	turn := 8 * c.across // copies that end where the swizzle repeats
	if c.bytes == 16 || c.copies <= max(unrolledCopies, turn) {
		c.copy(row0, to, c.copies, guard, size)
		return
	}
	e.loops++
	again, loop, row, left := e.Pred(), e.Label(fmt.Sprintf("copy_%s_%d", c.t.name, e.loops)), e.B32(), e.B32()
	e.MovB32(row, row0)
	e.MovB32(left, ptx.Int(c.copies/turn))
	e.Place(loop)
	c.copy(row, to, turn, guard, size)
	e.AddS32(row, row, ptx.Int(8*c.rowStep))
	for _, address := range to {
		if address != (ptx.Operand{}) {
			e.AddS32(address, address, ptx.Int(8*c.rowStep*c.t.rowBytes()))
		}
	}
	e.AddS32(left, left, ptx.Int(-1))
	e.SetpGtS32(again, left, ptx.Int(0))
	e.If(again).BraUni(loop)
}

// copy emits n copies from row0 on.
func (c *copier) copy(row0 ptx.Operand, to [8]ptx.Operand, n int, guard ptx.Operand, size func(row ptx.Operand, position int) ptx.Operand) {
	e := c.e
	where := func(p ptx.Operand) {
		if p != (ptx.Operand{}) {
			e.If(p)
		}
	}
	type element struct{ to, value ptx.Operand }
	var loaded []element // of the element-wise path: all are loaded before the first is stored
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
		from := e.B64()
		e.MadWideU32(from, at, c.rowBytes, c.pointer[position])
		source := ptx.Global(from, 0)
		switch {
		case c.bytes == 2:
			v, read := e.B16(), guard
			e.MovB16(v, ptx.Int(0))
			if size != nil {
				read = e.Pred()
				e.SetpGtS32(read, bytes, ptx.Int(0))
				if guard != (ptx.Operand{}) {
					e.AndPred(read, read, guard)
				}
			}
			where(read)
			e.LdGlobalB16(v, source)
			loaded = append(loaded, element{target, v})
		case c.bytes == 4 && size != nil:
			where(guard)
			e.CpAsyncCaSharedGlobal4Size(target, source, bytes)
		case c.bytes == 4:
			where(guard)
			e.CpAsyncCaSharedGlobal4(target, source)
		case c.bytes == 8 && size != nil:
			where(guard)
			e.CpAsyncCaSharedGlobal8Size(target, source, bytes)
		case c.bytes == 8:
			where(guard)
			e.CpAsyncCaSharedGlobal8(target, source)
		case size != nil:
			where(guard)
			e.CpAsyncCgSharedGlobalL2128B16Size(target, source, bytes)
		default:
			where(guard)
			e.CpAsyncCgSharedGlobalL2128B16(target, source)
		}
	}
	for _, l := range loaded {
		where(guard)
		e.StSharedB16(l.to, l.value)
	}
}

// fragments reads one operand's matrix fragments from shared memory with ldmatrix.
//
// A fragment covers 16 rows or columns of the warp's tile and 16 along K as four 8×8 matrices, of which lane l addresses
// row l mod 8 of matrix l/8. The order of the matrices is that of the registers of mma.m16n8k16: A wants (m, k), (m+8, k),
// (m, k+8), (m+8, k+8); B, two n8 tiles at once, wants (n, k), (n, k+8), (n+8, k), (n+8, k+8). Where rows of the shared
// tile run along K the matrices are transposed on the way.
type fragments struct {
	e *emitter
	t tile
	// offset holds the lane's place in a stage for up to four positions along the rows, 32 bytes apart: positions differ in
	// bits that the swizzle changes. Those four further on are 128 bytes away.
	offset []ptx.Operand
}

// newFragments emits the set-up for the warp's place (its index and the size of its tile across K). rowsFirst says that
// matrices 0 and 1 differ in their rows in shared memory, 0 and 2 in their chunk; otherwise it is the other way around.
func (e *emitter) newFragments(t tile, warp ptx.Operand, size int, rowsFirst bool) *fragments {
	e.Comment("fragments of " + t.name)
	f := &fragments{e: e, t: t}
	var row, chunk ptx.Operand
	if rowsFirst {
		row, chunk = e.And(e.lane, 15), e.Shr(e.lane, 4)
	} else {
		row = e.Mad(e.Shr(e.lane, 4), 8, e.And(e.lane, 7))
		chunk = e.And(e.Shr(e.lane, 3), 1)
	}
	positions := e.g.steps
	if t.kRows {
		positions = (size + 15) / 16
		chunk = e.Mad(warp, size/8, chunk)
		row = e.Mad(e.warpK, e.g.steps*16, row)
	} else {
		chunk = e.Mad(e.warpK, e.g.steps*2, chunk)
		row = e.Mad(warp, size, row)
	}
	shift, mask := t.swizzle()
	swizzled := e.B32()
	e.XorB32(swizzled, chunk, e.And(e.Shr(row, shift), mask))
	offset := e.Mad(row, t.rowBytes(), e.Shl(swizzled, 4))
	for i := range min(positions, 4) {
		o := e.B32()
		e.XorB32(o, offset, ptx.Int(32*i))
		f.offset = append(f.offset, o)
	}
	return f
}

// load reads the fragment of a k16 step at 16·i across K into two or four registers.
func (f *fragments) load(step, i int, d []ptx.Operand) {
	e := f.e
	position, rows := step, 16*i
	if f.t.kRows {
		position, rows = i, 16*step
	}
	from := ptx.Shared(e.Add(f.offset[position%4], e.readStage), f.t.at+rows*f.t.rowBytes()+position/4*128)
	switch {
	case len(d) == 2 && f.t.kRows:
		e.LdmatrixX2Trans(e.Vec(d...), from)
	case len(d) == 2:
		e.LdmatrixX2(e.Vec(d...), from)
	case f.t.kRows:
		e.LdmatrixX4Trans(e.Vec(d...), from)
	default:
		e.LdmatrixX4(e.Vec(d...), from)
	}
}
