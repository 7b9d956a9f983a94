package mma

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// fmaUnroll is how many indices along K are read at once.
const fmaUnroll = 2

// turnOfFMA returns a turn of the loop for fp32. The lanes of a warp hold the sums that they hold after a matrix
// instruction: of each tile of 16×8, lane l has rows l/4 and l/4 + 8, columns 2·(l mod 4) and the next. For each index
// along K a lane reads the elements of its rows and columns, and multiplies each with each.
func (e *emitter) turnOfFMA() func() {
	g := e.g
	group, inGroup := e.Shr(e.lane, 2), e.Shl(e.And(e.lane, 3), 1)
	a, b := e.newVector(g.a, e.warpM, g.warpM, group, 1), e.newVector(g.b, e.warpN, g.warpN, inGroup, 2)
	av, bv := e.fmaRegisters(2*g.tilesM), e.fmaRegisters(2*g.tilesN)
	return func() {
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
}

// fmaRegisters returns registers for n rows or columns at the indices along K that are read at once.
func (e *emitter) fmaRegisters(n int) [][]ptx.Operand {
	v := make([][]ptx.Operand, n)
	for i := range v {
		v[i] = e.Regs(fmaUnroll, e.F32)
	}
	return v
}

// newVector emits the set-up for reading a lane's rows of A or columns of B: so many neighbours from the first on, and
// again 8 further on. The function that it returns reads their elements at k and the next index along K.
func (e *emitter) newVector(
	t tile, warp ptx.Operand, size int, first ptx.Operand, neighbours int,
) func(k int, to [][]ptx.Operand) {
	if t.kRows {
		f := e.newElements(t, warp, size, ptx.Operand{}, first, false)
		return func(k int, to [][]ptx.Operand) {
			for i := range fmaUnroll {
				for j := 0; j < len(to); j += neighbours {
					v := make([]ptx.Operand, neighbours)
					for n := range v {
						v[n] = to[j+n][i]
					}
					e.Load(v, f.at(k+i, j/neighbours))
				}
			}
		}
	}
	first = e.Mad(warp, size, first)
	read := []func(k, rows int, to []ptx.Operand){e.newRow(t, first)}
	for n := 1; n < neighbours; n++ {
		read = append(read, e.newRow(t, e.Add(first, ptx.Int(n))))
	}
	return func(k int, to [][]ptx.Operand) {
		for j, v := range to {
			read[j%neighbours](k, 8*(j/neighbours), v)
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
		e.Load(to, from)
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
