package mma

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// reader reads one operand's matrix fragments from shared memory.
type reader interface {
	// load reads the fragment of a step at 16·i across K into two or four registers.
	load(step, i int, d []ptx.Operand)
}

// readers emits the set-up for the fragments of A and B. fp32 has none: FMA takes single elements.
func (e *emitter) readers() (a, b reader) {
	if instructionOf(e.s.DType).emit == nil {
		return nil, nil
	}
	g := e.g
	if g.a.byElement() {
		a = e.newElements(g.a, e.warpM, g.warpM, e.And(e.lane, 3), e.Shr(e.lane, 2), true)
	} else {
		a = e.newFragments(g.a, e.warpM, g.warpM, !g.a.kRows)
	}
	if g.b.byElement() {
		b = e.newElements(g.b, e.warpN, g.warpN, e.And(e.lane, 3), e.Shr(e.lane, 2), false)
	} else {
		b = e.newFragments(g.b, e.warpN, g.warpN, g.b.kRows)
	}
	return a, b
}

// fragments reads with ldmatrix.
//
// A fragment covers 16 rows or columns of the warp's tile and 32 bytes along K, as four matrices of 8 rows of 16 bytes.
// Lane l addresses row l mod 8 of matrix l/8. The matrices have the order of the registers of the matrix instruction:
// (m, k), (m+8, k), (m, k+16 B), (m+8, k+16 B) for A, and (n, k), (n, k+16 B), (n+8, k), (n+8, k+16 B), two n8 tiles at
// once, for B. If rows of the shared tile run along K, the matrices, of 16-bit elements, are transposed on the way.
type fragments struct {
	e *emitter
	t tile
	// offset holds the lane's place in a stage for up to four positions along the rows, 32 bytes apart. These differ
	// in bits that the swizzle changes. Positions four further on are 128 bytes away.
	offset []ptx.Operand
}

// newFragments emits the set-up for a warp, given by its index and the size of its tile across K. rowsFirst says that
// matrices 0 and 1 differ in their rows in shared memory, 0 and 2 in their chunk. Otherwise it is the other way around.
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
	shift, mask, _ := t.swizzle()
	swizzled := e.XorB32(e.B32(), chunk, e.And(e.Shr(row, shift), mask))
	offset := e.Mad(row, t.rowBytes(), e.Shl(swizzled, 4))
	f.offset = e.positions(offset, min(positions, 4))
	return f
}

// positions returns the places of n positions of 32 bytes along a row of a shared tile, n at most 4. offset is that of
// position 0, whose address ends in zeros where these positions differ.
func (e *emitter) positions(offset ptx.Operand, n int) []ptx.Operand {
	places := make([]ptx.Operand, n)
	for i := range places {
		places[i] = e.B32()
		e.XorB32(places[i], offset, ptx.Int(32*i))
	}
	return places
}

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

// elements reads elements of 32 bits from a shared tile whose rows run along K.
type elements struct {
	e *emitter
	t tile
	// offset holds the lane's place in a stage for the positions along the rows, 8 elements apart, that the swizzle
	// exchanges. Positions four further on are 128 bytes away.
	offset []ptx.Operand
	// acrossFirst says that registers 0 and 1 of a fragment differ across K, 0 and 2 along K: the order for A. That
	// for B is the other way around.
	acrossFirst bool
}

// newElements emits the set-up for a warp, given by its index and the size of its tile across K. The lane reads from
// the given row and column of the warp's part on. An invalid row is 0, otherwise it is at most 3.
func (e *emitter) newElements(t tile, warp ptx.Operand, size int, row, column ptx.Operand, acrossFirst bool) *elements {
	e.Comment("elements of " + t.name)
	first := e.g.steps * stepBytes / t.size
	if row == (ptx.Operand{}) {
		row = e.MulLoS32(e.B32(), e.warpK, ptx.Int(first))
	} else {
		row = e.Mad(e.warpK, first, row)
	}
	column = e.Mad(warp, size, column)
	shift, mask, left := t.swizzle()
	offset, swizzle := e.Shl(column, asm.Log2(t.size)), e.And(e.Shr(row, shift), mask)
	offset = e.XorB32(e.B32(), offset, e.Shl(swizzle, asm.Log2(chunkBytes)+left))
	offset = e.Mad(row, t.rowBytes(), offset)
	return &elements{e: e, t: t, offset: e.positions(offset, mask+1), acrossFirst: acrossFirst}
}

// at is the address of the lane's element in a row further along K and a position of 8 elements. The row is a multiple
// of 4, unless the lane's own row is 0.
func (f *elements) at(row, position int) ptx.Operand {
	e := f.e
	swizzled := position%4 ^ f.t.swizzled(row)/2
	return ptx.Shared(e.Add(f.offset[swizzled], e.readStage), f.t.at+row*f.t.rowBytes()+position/4*128)
}

func (f *elements) load(step, i int, d []ptx.Operand) {
	for j, r := range d {
		across, along := j/2, j%2
		if f.acrossFirst {
			across, along = along, across
		}
		f.e.LdSharedB32(r, f.at(8*step+4*along, 2*i+across))
	}
}
