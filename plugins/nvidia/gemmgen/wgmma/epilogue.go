package wgmma

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// writer writes the sums of one thread.
type writer struct {
	*emitter
	alpha, beta ptx.Operand
	// pointer is the address of the thread's first element, down the distance to the row 8 below. ldc counts elements.
	pointer, down, ldc ptx.Operand
	// rowsLeft and columnsLeft count from the thread's first element to the end of C.
	rowsLeft, columnsLeft ptx.Operand
}

// newWriter returns the writer of a thread for a tile.
func (e *emitter) newWriter(t tile, thread, consumer, alpha ptx.Operand) *writer {
	lane := e.And(thread, 31)
	row := e.Mad(e.Shr(thread, 5), 16, e.Shr(lane, 2))
	row = e.Add(t.m0, e.Mad(consumer, tileM*e.g.tiles, row))
	column := e.Add(t.n0, e.Shl(e.And(lane, 3), 1))
	w := e.newWriterAt(t, row, column, alpha)
	e.MulLoS64(w.down, w.ldc, ptx.Int(8*e.s.Out.Bytes()))
	return w
}

// newWriterAt returns the writer of a thread whose first element is in this row and column.
func (e *emitter) newWriterAt(t tile, row, column, alpha ptx.Operand) *writer {
	w := &writer{emitter: e, alpha: alpha, pointer: e.B64(), down: e.B64(),
		rowsLeft: e.Sub(e.Param32(e.p.m), row), columnsLeft: e.Sub(e.Param32(e.p.n), column)}
	if e.s.Adds {
		w.beta = e.F32()
		e.LdParamF32(w.beta, e.p.beta)
	}
	index := e.B64()
	w.ldc = e.Param64(e.p.ldc)
	e.MadLoS64(index, e.Wide(row), w.ldc, e.Wide(column))
	e.MadLoS64(index, e.Wide(t.batch), e.Param64(e.p.strideC), index)
	e.ShlB64(index, index, ptx.Int(asm.Log2(e.s.Out.Bytes())))
	e.CvtaToGlobalU64(w.pointer, e.Param64(e.p.c))
	e.AddS64(w.pointer, w.pointer, index)
	return w
}

// addBias makes alpha·sum + bias of the sums. A thread has two columns of each 8, the same in all of its rows.
func (e *emitter) addBias(t tile, thread ptx.Operand, sums [][]ptx.Operand, alpha ptx.Operand) {
	bias := e.biases(e.Add(t.n0, e.Shl(e.And(thread, 3), 1)))
	for j := 0; j < e.s.Config.BlockN; j += 8 {
		for i := range 2 {
			x := bias(j + i)
			for _, of := range sums {
				for half := range 2 {
					sum := of[j/2+2*half+i]
					e.FmaF32(sum, sum, alpha, x)
				}
			}
		}
	}
}

// biases returns what loads the bias of the column that is so many behind the given one, zero outside of C.
func (e *emitter) biases(column ptx.Operand) func(behind int) ptx.Operand {
	size := e.s.Out.Bytes()
	left := e.Sub(e.Param32(e.p.n), column)
	first := e.B64()
	e.CvtaToGlobalU64(first, e.Param64(e.p.bias))
	e.MadWideU32(first, column, ptx.Int(size), first)
	return func(behind int) ptx.Operand {
		inside, bias := e.Pred(), e.F32()
		e.SetpGtS32(inside, left, ptx.Int(behind))
		e.MovF32(bias, ptx.Float(0))
		e.AddElement(bias, ptx.Global(first, behind*size), e.s.Out, inside)
		return bias
	}
}

// value returns what a sum becomes in C, without what C held before: then the activation is for after that.
func (e *emitter) value(sum, alpha ptx.Operand) ptx.Operand {
	x := e.F32()
	if e.s.Epilogue.Bias { // addBias has multiplied
		e.MovF32(x, sum)
	} else {
		e.MulF32(x, sum, alpha)
	}
	if !e.s.Adds {
		e.Activate(x, e.s.Epilogue.Activation)
	}
	return x
}

// rows calls write for each pair of neighbours, row by row.
func (w *writer) rows(
	sums [][]ptx.Operand, write func(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand),
) {
	at := w.B64()
	w.AddS64(at, w.pointer, ptx.Int(0))
	for i := range sums {
		for half := range 2 {
			inside := w.Pred()
			w.SetpGtS32(inside, w.rowsLeft, ptx.Int(i*tileM+half*8))
			for j := 0; j < len(sums[i]); j += 4 {
				write(at, 2*j, inside, sums[i][j+2*half:j+2*half+2])
			}
			next := w.down
			if half == 1 { // from row 8 to row 64
				next = w.B64()
				w.MulLoS64(next, w.down, ptx.Int((tileM-8)/8))
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
		valid := w.Pred()
		w.SetpGtS32(valid, w.columnsLeft, ptx.Int(column+i))
		w.AndPred(valid, valid, inside)
		w.one(ptx.Global(at, (column+i)*w.s.Out.Bytes()), v[i], valid)
	}
}

// one writes an element.
func (w *writer) one(to, v, valid ptx.Operand) {
	x := w.value(v, w.alpha)
	if w.s.Adds {
		w.FmaF32(x, w.beta, w.Element(to, w.s.Out, valid), x)
		w.Activate(x, w.s.Epilogue.Activation)
	}
	if w.s.Out == gemm.FP32 {
		w.If(valid).StGlobalF32(to, x)
		return
	}
	h := w.Half(x, w.s.Out)
	w.If(valid).StGlobalB16(to, h)
}
