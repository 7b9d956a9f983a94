package gemmgen

import (
	"fmt"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// copier moves one operand's tiles from global to shared memory. A copy is as wide as the alignment of the rows allows:
// cp.async of 16, 8 or 4 bytes, or plain loads and stores of single elements. Thread t makes copies t, t + threads, … of
// the tile counted along its rows. What lies outside the matrix, along K or across it, is filled with zeros and not read.
type copier struct {
	e *emitter
	t tile
	// bytes is the width of a copy; perRow copies make a row; copies is the number per thread. A thread's copy i is in row
	// row0 + i/across*rowStep, at across positions columnStep bytes apart.
	bytes, copies, across, rowStep, columnStep int
	// pointer is the global address of the thread's first copy of the next tile; rowStride the bytes from one of its rows
	// to the next, tileStride those from tile to tile.
	pointer, rowStride, tileStride ptx.Operand
	// offset is where copies go in a stage, by row modulo 8: rows that differ by 8 have the same swizzle.
	offset map[int]ptx.Operand
	row0   ptx.Operand
	// rowsLeft counts the matrix rows from row0 on if rows run across K, column0 is the thread's first column if columns run along K.
	rowsLeft, column0 ptx.Operand
	// size is the bytes of each of the across positions that lie inside the matrix.
	size []ptx.Operand
	// active is whether the thread has a copy at all; invalid where all have.
	active  ptx.Operand
	partial bool
}

// newCopier emits the set-up. first and limit are the CTA's first index and the matrix's size across K, begin its first
// index along K.
func (e *emitter) newCopier(t tile, base, ld, stride, first, limit, begin ptx.Operand) *copier {
	e.Comment(fmt.Sprintf("copies of %s: %d rows of %d B, %d B at a time", t.name, t.rows, t.rowBytes(), t.align))
	c := &copier{e: e, t: t, bytes: t.align, offset: map[int]ptx.Operand{}}
	threads, perRow := e.g.threads, t.rowBytes()/c.bytes
	c.across, c.rowStep, c.columnStep = max(1, perRow/threads), max(1, threads/perRow), threads*c.bytes
	c.copies = max(1, t.rows*perRow/threads)

	// The thread's first row, and its first byte in it.
	byte0 := ptx.Operand{}
	if perRow >= threads {
		c.row0 = e.B32()
		e.MovB32(c.row0, ptx.Int(0))
		byte0 = e.shl(e.tid, log2(c.bytes))
	} else {
		c.row0 = e.shr(e.tid, log2(perRow))
		byte0 = e.shl(e.and(e.tid, perRow-1), log2(c.bytes))
	}
	if t.rows < c.rowStep {
		c.partial, c.active = true, e.Pred()
		e.SetpLtS32(c.active, c.row0, ptx.Int(t.rows))
	}
	column := e.shr(byte0, 1)

	// Where copies go. Copies of one thread lie rowStep rows apart.
	shift, mask := t.swizzle()
	for i := 0; i*c.rowStep < t.rows && i < 8; i++ {
		residue := i * c.rowStep % 8
		if _, done := c.offset[residue]; done {
			continue
		}
		row := e.add(c.row0, ptx.Int(residue))
		swizzled := e.B32()
		e.XorB32(swizzled, byte0, e.shl(e.and(e.shr(row, shift), mask), 4))
		c.offset[residue] = e.mad(row, t.rowBytes(), swizzled)
	}

	// Where they come from: base + 2·(batch·stride + row·ld + column).
	var row64, column64 ptx.Operand
	if t.kRows {
		row64, column64 = e.wide(e.add(c.row0, begin)), e.wide(e.add(column, first))
		c.sizes(e.sub(limit, e.add(column, first)))
	} else {
		row64, column64 = e.wide(e.add(c.row0, first)), e.wide(e.add(column, begin))
		c.rowsLeft, c.column0 = e.sub(limit, e.add(c.row0, first)), column
	}
	ld64 := e.param64(ld)
	index := e.B64()
	e.MadLoS64(index, row64, ld64, column64)
	e.MadLoS64(index, e.wide(e.special(ptx.CtaidZ)), e.param64(stride), index)
	e.ShlB64(index, index, ptx.Int(1))
	c.pointer = e.B64()
	e.CvtaToGlobalU64(c.pointer, e.param64(base))
	e.AddS64(c.pointer, c.pointer, index)
	c.rowStride = e.B64()
	e.MulLoS64(c.rowStride, ld64, ptx.Int(2*c.rowStep))
	c.tileStride = ptx.Int(2 * e.s.Config.BlockK)
	if t.kRows {
		c.tileStride = e.B64()
		e.MulLoS64(c.tileStride, ld64, ptx.Int(2*e.s.Config.BlockK))
	}
	return c
}

// sizes computes size from the number of elements from the thread's first column to the edge of the matrix.
func (c *copier) sizes(left ptx.Operand) {
	e := c.e
	c.size = c.size[:0]
	for i := range c.across {
		s := e.B32()
		e.AddS32(s, left, ptx.Int(-i*c.columnStep/2))
		e.MinS32(s, s, ptx.Int(c.bytes/2))
		e.MaxS32(s, s, ptx.Int(0))
		e.ShlB32(s, s, ptx.Int(1))
		c.size = append(c.size, s)
	}
}

// tile emits what all copies of the next tile share and returns the copies.
func (c *copier) tile() []func() {
	e := c.e
	rowsLeft := c.rowsLeft
	if c.t.kRows {
		rowsLeft = e.sub(e.kLeft, c.row0)
	} else {
		c.sizes(e.sub(e.kLeft, c.column0))
	}
	guard := e.more
	if c.partial {
		guard = e.Pred()
		e.AndPred(guard, c.active, e.more)
	}
	to := map[int]ptx.Operand{}
	for residue := range 8 { // in order, so that the text does not depend on the map's
		if offset, ok := c.offset[residue]; ok {
			to[residue] = e.add(e.writeStage, offset)
		}
	}
	size := c.size
	var chunks []func()
	pointer := c.pointer
	for first := 0; first < c.copies; first += copiesPerChunk {
		last := min(first+copiesPerChunk, c.copies)
		chunks = append(chunks, func() {
			var stores []func()
			for i := first; i < last; i++ {
				row, position := i/c.across*c.rowStep, i%c.across
				if position == 0 && row > 0 {
					next := e.B64()
					e.AddS64(next, pointer, c.rowStride)
					pointer = next
				}
				inside := e.Pred()
				e.SetpGtS32(inside, rowsLeft, ptx.Int(row))
				n := e.B32()
				e.SelpB32(n, size[position], ptx.Int(0), inside)
				source := ptx.Global(pointer, position*c.columnStep)
				target := ptx.Shared(to[row%8], c.t.at+row/8*8*c.t.rowBytes()+position*c.columnStep)
				switch c.bytes {
				case 16:
					e.If(guard).CpAsyncCgSharedGlobalL2128B16(target, source, n)
				case 8:
					e.If(guard).CpAsyncCaSharedGlobal8(target, source, n)
				case 4:
					e.If(guard).CpAsyncCaSharedGlobal4(target, source, n)
				default:
					read, v := e.Pred(), e.B16()
					e.SetpGtS32(read, n, ptx.Int(0))
					e.AndPred(read, read, guard)
					e.MovB16(v, ptx.Int(0))
					e.If(read).LdGlobalB16(v, source)
					stores = append(stores, func() { e.If(guard).StSharedB16(target, v) })
				}
			}
			for _, store := range stores {
				store()
			}
		})
	}
	return chunks
}

// copiesPerChunk is how many copies are issued together: few enough to spread between matrix instructions, and for the
// element-wise path the number of loads in flight before the first store.
const copiesPerChunk = 2

// advance moves to the next tile along K.
func (c *copier) advance() { c.e.AddS64(c.pointer, c.pointer, c.tileStride) }

// fragments reads one operand's matrix fragments from shared memory with ldmatrix.
//
// A fragment covers 16 rows or columns of the warp's tile and 16 along K as four 8×8 matrices, of which lane l addresses
// row l mod 8 of matrix l/8. The order of the matrices is that of the registers of mma.m16n8k16: A wants (m, k), (m+8, k),
// (m, k+8), (m+8, k+8); B, two n8 tiles at once, wants (n, k), (n, k+8), (n+8, k), (n+8, k+8). Where rows of the shared
// tile run along K the matrices are transposed on the way.
type fragments struct {
	e *emitter
	t tile
	// address holds the lane's address for up to four positions along the rows, 32 bytes apart: positions differ in bits
	// that the swizzle changes. Those four further on are 128 bytes away.
	address []ptx.Operand
}

// newFragments emits the set-up for the warp's place (its index and the size of its tile across K). rowsFirst says that
// matrices 0 and 1 differ in their rows in shared memory, 0 and 2 in their chunk; otherwise it is the other way around.
func (e *emitter) newFragments(t tile, warp ptx.Operand, size int, rowsFirst bool) *fragments {
	e.Comment("fragments of " + t.name)
	f := &fragments{e: e, t: t}
	row, chunk := ptx.Operand{}, ptx.Operand{}
	if rowsFirst {
		row, chunk = e.and(e.lane, 15), e.shr(e.lane, 4)
	} else {
		row = e.mad(e.shr(e.lane, 4), 8, e.and(e.lane, 7))
		chunk = e.and(e.shr(e.lane, 3), 1)
	}
	positions := e.g.steps
	if t.kRows {
		positions = (size + 15) / 16
		chunk = e.mad(warp, size/8, chunk)
		row = e.mad(e.warpK, e.g.steps*16, row)
	} else {
		chunk = e.mad(e.warpK, e.g.steps*2, chunk)
		row = e.mad(warp, size, row)
	}
	shift, mask := t.swizzle()
	swizzled := e.B32()
	e.XorB32(swizzled, chunk, e.and(e.shr(row, shift), mask))
	offset := e.mad(row, t.rowBytes(), e.shl(swizzled, 4))
	for i := range min(positions, 4) {
		address := e.B32()
		e.XorB32(address, offset, ptx.Int(32*i))
		e.AddS32(address, address, e.smem)
		f.address = append(f.address, address)
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
	from := ptx.Shared(f.address[position%4], f.t.at+rows*f.t.rowBytes()+position/4*128)
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
