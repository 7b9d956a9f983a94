package mma

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// fragments reads one operand's matrix fragments from shared memory with ldmatrix.
//
// A fragment covers 16 rows or columns of the warp's tile and 16 along K, as four 8×8 matrices. Lane l addresses row
// l mod 8 of matrix l/8. The matrices have the order of the registers of mma.m16n8k16: (m, k), (m+8, k), (m, k+8),
// (m+8, k+8) for A, and (n, k), (n, k+8), (n+8, k), (n+8, k+8), two n8 tiles at once, for B. If rows of the shared
// tile run along K, the matrices are transposed on the way.
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
