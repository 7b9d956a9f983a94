package mma

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// fmaUnroll is how many indices along K are read at once.
const fmaUnroll = 2

// turnOfFMA is a turn of the loop for fp32. The lanes of a warp hold the sums that they hold after a matrix
// instruction: of each tile of 16×8, lane l has rows l/4 and l/4 + 8, columns 2·(l mod 4) and the next. For each index
// along K a lane reads the elements of its rows and columns, and multiplies each with each.
func (e *emitter) turnOfFMA(loop ptx.Operand) {
	g := e.g
	group, inGroup := e.Shr(e.lane, 2), e.Shl(e.And(e.lane, 3), 1)
	a, b := e.newVectorA(group), e.newVectorB(inGroup)
	av, bv := e.fmaRegisters(2*g.tilesM), e.fmaRegisters(2*g.tilesN)
	e.Place(loop)
	e.ready()
	e.copyBlock()
	for k := 0; k < g.steps*stepBytes/g.a.size; k += fmaUnroll {
		a(k, av)
		b(k, bv)
		for i := range fmaUnroll {
			e.multiplyElements(av, bv, i)
		}
	}
	e.nextStage(e.readStage)
}

// fmaRegisters returns registers for n rows or columns at the indices along K that are read at once.
func (e *emitter) fmaRegisters(n int) [][]ptx.Operand {
	v := make([][]ptx.Operand, n)
	for i := range v {
		v[i] = e.Regs(fmaUnroll, e.F32)
	}
	return v
}

// vector reads the elements of a lane's rows or columns at k and the next index along K.
type vector func(k int, to [][]ptx.Operand)

// newVectorA emits the set-up for A. The lane's rows are 8 apart.
func (e *emitter) newVectorA(row ptx.Operand) vector {
	t := e.g.a
	if t.kRows {
		f := e.newElements(t, e.warpM, e.g.warpM, ptx.Operand{}, row, false)
		return func(k int, to [][]ptx.Operand) {
			for i := range fmaUnroll {
				for j := range to {
					e.LdSharedF32(to[j][i], f.at(k+i, j))
				}
			}
		}
	}
	read := e.newRow(t, e.Mad(e.warpM, e.g.warpM, row))
	return func(k int, to [][]ptx.Operand) {
		for j := range to {
			read(k, 8*j, to[j])
		}
	}
}

// newVectorB emits the set-up for B. The lane's columns are pairs, 8 apart.
func (e *emitter) newVectorB(column ptx.Operand) vector {
	t := e.g.b
	if t.kRows {
		f := e.newElements(t, e.warpN, e.g.warpN, ptx.Operand{}, column, false)
		return func(k int, to [][]ptx.Operand) {
			for i := range fmaUnroll {
				for j := 0; j < len(to); j += 2 {
					e.LdSharedV2F32(e.Vec(to[j][i], to[j+1][i]), f.at(k+i, j/2))
				}
			}
		}
	}
	column = e.Mad(e.warpN, e.g.warpN, column)
	even, odd := e.newRow(t, column), e.newRow(t, e.Add(column, ptx.Int(1)))
	return func(k int, to [][]ptx.Operand) {
		for j := 0; j < len(to); j += 2 {
			even(k, 4*j, to[j])
			odd(k, 4*j, to[j+1])
		}
	}
}

// newRow emits the set-up for reading rows of a shared tile that are contiguous along K. The function that it returns
// reads two elements from k on, in a row further on by a multiple of 8, which has the same swizzle.
func (e *emitter) newRow(t tile, row ptx.Operand) func(k, rows int, to []ptx.Operand) {
	shift, mask, _ := t.swizzle()
	chunk := e.MulLoS32(e.B32(), e.warpK, ptx.Int(2*e.g.steps))
	offset := e.XorB32(e.B32(), chunk, e.And(e.Shr(row, shift), mask))
	offset = e.Mad(row, t.rowBytes(), e.Shl(offset, 4))
	return func(k, rows int, to []ptx.Operand) {
		chunk, within := k*t.size/chunkBytes, k*t.size%chunkBytes
		at := e.XorB32(e.B32(), offset, ptx.Int(chunk%8*chunkBytes))
		from := ptx.Shared(e.Add(at, e.readStage), t.at+rows*t.rowBytes()+chunk/8*128+within)
		e.LdSharedV2F32(e.Vec(to...), from)
	}
}

// multiplyElements adds the products at one of the indices along K that were read.
func (e *emitter) multiplyElements(a, b [][]ptx.Operand, i int) {
	for n := range e.g.tilesN {
		for m := range e.g.tilesM {
			acc := e.acc[m*e.g.tilesN+n]
			for j, sum := range acc {
				e.FmaF32(sum, a[2*m+j/2][i], b[2*n+j%2][i], sum)
			}
		}
	}
}
