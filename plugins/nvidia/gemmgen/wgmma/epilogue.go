package wgmma

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// writer writes the sums of one thread.
type writer struct {
	*emitter
	alpha ptx.Operand
	// pointer is the address of the thread's first element, down the distance to the row 8 below. ldc counts elements.
	pointer, down, ldc ptx.Operand
	// rowsLeft and columnsLeft count from the thread's first element to the end of C.
	rowsLeft, columnsLeft ptx.Operand
}

// newWriter returns the writer of a thread for its part of a tile of the matrix at base, C or one of its shape.
func (e *emitter) newWriter(base ptx.Operand, t tile, thread, consumer, alpha ptx.Operand) *writer {
	row, column := e.first(t, thread, consumer)
	w := e.newWriterAt(base, t, row, column, alpha)
	if !e.g.turned {
		e.MulLoS64(w.down, w.ldc, ptx.Int(8*e.s.Out.Bytes()))
	}
	return w
}

// first returns the first row and column of C that a thread has. Others are 8 and multiples of 64 further on along the
// rows of a multiplication, and the next and multiples of 8 along its columns.
func (e *emitter) first(t tile, thread, consumer ptx.Operand) (row, column ptx.Operand) {
	if e.g.turned {
		row = e.Add(t.m0, e.Shl(e.And(thread, 3), 1))
		inTile := e.Mad(e.Shr(thread, 5), 16, e.Shr(e.And(thread, 31), 2))
		return row, e.Add(t.n0, e.Mad(consumer, tileM*e.g.tilesC, inTile))
	}
	lane := e.And(thread, 31)
	row = e.Mad(e.Shr(thread, 5), 16, e.Shr(lane, 2))
	row = e.Add(t.m0, e.Mad(consumer, tileM*e.g.tiles, row))
	return row, e.Add(t.n0, e.Shl(e.And(lane, 3), 1))
}

// newWriterAt returns the writer of a thread whose first element is in this row and column.
func (e *emitter) newWriterAt(base ptx.Operand, t tile, row, column, alpha ptx.Operand) *writer {
	w := &writer{emitter: e, alpha: alpha, pointer: e.B64(), down: e.B64(),
		rowsLeft: e.Sub(e.Param32(e.p.m), row), columnsLeft: e.Sub(e.Param32(e.p.n), column)}
	w.ldc = e.Param64(e.p.ldc)
	index := e.MadLoS64(e.B64(), e.Wide(row), w.ldc, e.Wide(column))
	e.MadLoS64(index, e.Wide(t.batch), e.Param64(e.p.strideC), index)
	e.ShlB64(index, index, ptx.Int(asm.Log2(e.s.Out.Bytes())))
	e.CvtaToGlobalU64(w.pointer, e.Param64(base))
	e.AddS64(w.pointer, w.pointer, index)
	return w
}

// reads reports whether a matrix of the shape of C is added: C before the activation, or R behind it.
func (s *Spec) reads() bool { return s.Adds || s.Epilogue.Residual }

// finishes reports whether finish makes elements of C of the sums. Otherwise each does what is stored of it alone.
func (e *emitter) finishes() bool { return e.s.reads() || e.s.Epilogue.Activation.Gated() }

// finish makes elements of C of the sums of a thread, and returns those. Scales and bias have been applied.
func (e *emitter) finish(t tile, thread, consumer, alpha ptx.Operand, sums [][]ptx.Operand) [][]ptx.Operand {
	for _, of := range sums {
		for _, sum := range of {
			if !e.s.scales() {
				e.MulF32(sum, sum, alpha)
			}
		}
	}
	if e.s.Epilogue.Activation.Gated() {
		sums = e.gate(sums)
	}
	if e.s.reads() {
		e.newWriter(e.p.r, t, thread, consumer, alpha).add(sums)
	}
	return sums
}

// gate multiplies the activations of gates with the sums of the columns that belong to them. A thread has both: they
// lie half a tile apart along the columns of A·B, which are the rows of Cᵀ.
func (e *emitter) gate(sums [][]ptx.Operand) [][]ptx.Operand {
	gates, ups := sums[:e.g.tilesC], sums[e.g.tilesC:]
	if !e.g.turned {
		gates, ups = make([][]ptx.Operand, len(sums)), make([][]ptx.Operand, len(sums))
		for i, of := range sums {
			gates[i], ups[i] = of[:len(of)/2], of[len(of)/2:]
		}
	}
	for i := range gates {
		for j, gate := range gates[i] {
			e.Activate(gate, e.s.Epilogue.Activation)
			e.MulF32(gate, gate, ups[i][j])
		}
	}
	return gates
}

// add adds beta times C, and applies the activation then, or adds R. It loads as many elements as there are registers
// for before it adds one: each load waits for the L2 or DRAM.
func (w *writer) add(sums [][]ptx.Operand) {
	beta := w.F32()
	if w.s.Adds {
		w.LdParamF32(beta, w.p.beta)
	}
	var waiting []func()
	flush := func() {
		for _, f := range waiting {
			f()
		}
		waiting = waiting[:0]
	}
	then := func(sum ptx.Operand, x func() ptx.Operand) {
		waiting = append(waiting, func() {
			a := w.s.Epilogue.Activation
			if w.s.Adds {
				w.FmaF32(sum, beta, x(), sum)
			}
			if !a.Gated() {
				w.Activate(sum, a)
			}
			if !w.s.Adds {
				w.AddF32(sum, sum, x())
			}
		})
		if len(waiting) >= w.g.loads {
			flush()
		}
	}
	w.each(sums, func(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand) {
		if w.s.TilesC && len(v) == 2 { // N is even
			h := []ptx.Operand{w.B16(), w.B16()}
			pair := w.MovB32(w.B32(), ptx.Int(0))
			w.If(w.inside(column, inside)).LdGlobalB32(pair, ptx.Global(at, column*w.s.Out.Bytes()))
			for i := range v {
				then(v[i], func() ptx.Operand {
					if i == 0 {
						w.MovB32Unpack(w.Vec(h...), pair)
					}
					x := w.F32()
					w.ToFloat(x, h[i], w.s.Out)
					return x
				})
			}
			return
		}
		for i := range v {
			x := w.Element(ptx.Global(at, (column+i)*w.s.Out.Bytes()), w.s.Out, w.inside(column+i, inside))
			then(v[i], func() ptx.Operand { return x })
		}
	})
	flush()
}

// inside returns whether a column is in C, and a row of which that is known.
func (w *writer) inside(column int, row ptx.Operand) ptx.Operand {
	valid := w.SetpGtS32(w.Pred(), w.columnsLeft, ptx.Int(column))
	w.AndPred(valid, valid, row)
	return valid
}

// each calls f for the elements of a thread, row by row: for neighbours along a row, or, of Cᵀ, for each by itself.
func (w *writer) each(sums [][]ptx.Operand, f func(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand)) {
	if w.g.turned {
		w.rowsTurned(sums, f)
		return
	}
	w.rows(sums, f)
}

// scales reports whether scale multiplies the sums with alpha.
func (s *Spec) scales() bool { return s.Epilogue.Scales || s.Epilogue.Bias }

// scale makes alpha·scale_a·scale_b·sum + bias of the sums, or what the epilogue has of it.
func (e *emitter) scale(t tile, thread, consumer ptx.Operand, sums [][]ptx.Operand, alpha ptx.Operand) {
	row, column := e.first(t, thread, consumer)
	if e.s.Epilogue.Scales {
		scale := e.vector(e.p.scaleA, gemm.FP32, row, e.Param32(e.p.m), e.p.stepA)
		e.eachRow(sums, func(below int, of []ptx.Operand) {
			factor := scale(0, below)
			e.MulF32(factor, factor, alpha)
			for _, sum := range of {
				e.MulF32(sum, sum, factor)
			}
		})
	}
	n := e.Param32(e.p.n)
	var scale, bias func(second, behind int) ptx.Operand
	if e.s.Epilogue.Scales {
		scale = e.vector(e.p.scaleB, gemm.FP32, column, n, e.p.stepB)
	}
	if e.s.Epilogue.Bias {
		bias = e.vector(e.p.bias, e.s.biasType(), column, n, ptx.Operand{})
	}
	e.eachColumn(sums, func(second, behind int, of []ptx.Operand) {
		factor, add := alpha, ptx.Operand{}
		if scale != nil {
			factor = scale(second, behind)
		}
		if bias != nil {
			add = bias(second, behind)
		}
		for _, sum := range of {
			if bias == nil {
				e.MulF32(sum, sum, factor)
				continue
			}
			e.FmaF32(sum, sum, factor, add)
		}
	})
}

// biasType is the type of the elements of the bias.
func (s *Spec) biasType() gemm.DType {
	if s.Epilogue.BiasType != 0 {
		return s.Epilogue.BiasType
	}
	return s.Out
}

// eachRow calls f for the sums of each row of C that a thread has, so many rows below its first.
func (e *emitter) eachRow(sums [][]ptx.Operand, f func(below int, of []ptx.Operand)) {
	if e.g.turned {
		for row := 0; row < e.s.Config.BlockM; row += 8 {
			for i := range 2 {
				var of []ptx.Operand
				for _, tile := range sums {
					of = append(of, tile[row/2+i], tile[row/2+2+i])
				}
				f(row+i, of)
			}
		}
		return
	}
	for i, tile := range sums {
		for half := range 2 {
			var of []ptx.Operand
			for j := 2 * half; j < len(tile); j += 4 {
				of = append(of, tile[j], tile[j+1])
			}
			f(i*tileM+8*half, of)
		}
	}
}

// eachColumn calls f for the sums of each column that a thread has, so many columns behind its first. second is 1 for
// what gates are multiplied with.
func (e *emitter) eachColumn(sums [][]ptx.Operand, f func(second, behind int, of []ptx.Operand)) {
	if e.g.turned {
		for j, tile := range sums {
			for half := range 2 {
				var of []ptx.Operand
				for row := 0; row < e.s.Config.BlockM; row += 8 {
					of = append(of, tile[row/2+2*half], tile[row/2+2*half+1])
				}
				f(j/e.g.tilesC, j%e.g.tilesC*tileM+8*half, of)
			}
		}
		return
	}
	for j := 0; j < e.s.Config.BlockN; j += 8 {
		for i := range 2 {
			var of []ptx.Operand
			for _, tile := range sums {
				of = append(of, tile[j/2+i], tile[j/2+2+i])
			}
			f(j/e.g.blockC, j%e.g.blockC+i, of)
		}
	}
}

// vector returns a function that loads an element of a vector of size elements: the one that lies behind elements after
// at, or zero outside of the vector. With a gated activation the vector has two halves, for the gates and for the
// columns that they are multiplied with; second chooses the half. If a step is given and zero, there is one element for
// all.
func (e *emitter) vector(
	base ptx.Operand, d gemm.DType, at, size, step ptx.Operand,
) func(second, behind int) ptx.Operand {
	left, bytes := e.Sub(size, at), d.Bytes()
	if step != (ptx.Operand{}) {
		step = e.Param32(step)
		place := e.MulLoS32(e.B32(), at, step)
		at = place
	}
	var first [2]ptx.Operand
	for second := range e.s.Config.BlockN / e.g.blockC {
		first[second] = e.B64()
		if second == 0 {
			e.CvtaToGlobalU64(first[0], e.Param64(base))
			e.MadWideU32(first[0], at, ptx.Int(bytes), first[0])
			continue
		}
		distance := size
		if step != (ptx.Operand{}) {
			distance = e.MulLoS32(e.B32(), size, step)
		}
		e.MadWideU32(first[1], distance, ptx.Int(bytes), first[0])
	}
	return func(second, behind int) ptx.Operand {
		inside := e.SetpGtS32(e.Pred(), left, ptx.Int(behind))
		if step == (ptx.Operand{}) {
			return e.Element(ptx.Global(first[second], behind*bytes), d, inside)
		}
		to := e.MadWideU32(e.B64(), step, ptx.Int(behind*bytes), first[second])
		return e.Element(ptx.Global(to, 0), d, inside)
	}
}

// value returns what is stored of a sum.
func (e *emitter) value(sum, alpha ptx.Operand) ptx.Operand {
	x := e.F32()
	if e.s.scales() || e.finishes() { // scale or finish has multiplied
		e.MovF32(x, sum)
	} else {
		e.MulF32(x, sum, alpha)
	}
	if !e.finishes() {
		e.Activate(x, e.s.Epilogue.Activation)
	}
	return x
}

// rows calls write for each pair of neighbours, row by row.
func (w *writer) rows(
	sums [][]ptx.Operand, write func(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand),
) {
	at := w.AddS64(w.B64(), w.pointer, ptx.Int(0))
	for i := range sums {
		for half := range 2 {
			inside := w.SetpGtS32(w.Pred(), w.rowsLeft, ptx.Int(i*tileM+half*8))
			for j := 0; j < len(sums[i]); j += 4 {
				write(at, 2*j, inside, sums[i][j+2*half:j+2*half+2])
			}
			next := w.down
			if half == 1 { // from row 8 to row 64
				next = w.MulLoS64(w.B64(), w.down, ptx.Int((tileM-8)/8))
			}
			w.AddS64(at, at, next)
		}
	}
}

// pair writes two neighbours at once.
func (w *writer) pair(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand) {
	x := []ptx.Operand{w.value(v[0], w.alpha), w.value(v[1], w.alpha)}
	if w.s.Out != gemm.FP32 {
		x = []ptx.Operand{w.Halves(x[0], x[1], w.s.Out)}
	}
	w.If(inside).Store(ptx.Global(at, column*w.s.Out.Bytes()), x)
}

// single writes two neighbours one by one, where C has them.
func (w *writer) single(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand) {
	for i := range v {
		w.one(ptx.Global(at, (column+i)*w.s.Out.Bytes()), v[i], w.inside(column+i, inside))
	}
}

// one writes an element.
func (w *writer) one(to, v, valid ptx.Operand) {
	x := w.value(v, w.alpha)
	if w.s.Out == gemm.FP32 {
		w.If(valid).StGlobalF32(to, x)
		return
	}
	h := w.Half(x, w.s.Out)
	w.If(valid).StGlobalB16(to, h)
}
