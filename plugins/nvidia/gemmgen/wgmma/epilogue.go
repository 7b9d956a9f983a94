package wgmma

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// writer writes the sums of one thread.
type writer struct {
	*emitter
	ldc, alpha, beta ptx.Operand
	// pointer is the address of the thread's first element, down the distance to the row 8 below.
	pointer, down ptx.Operand
	// rowsLeft and columnsLeft count from the thread's first element to the end of C.
	rowsLeft, columnsLeft ptx.Operand
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
	x := w.Regs(2, w.F32)
	for i := range x {
		w.MulF32(x[i], v[i], w.alpha)
	}
	to := ptx.Global(at, column*w.s.Out.Bytes())
	if w.s.Out == gemm.FP32 {
		w.If(inside).StGlobalV2F32(to, w.Vec(x...))
		return
	}
	packed := w.pack(x)
	w.If(inside).StGlobalB32(to, packed)
}

// pack returns two sums as elements of C.
func (e *emitter) pack(x []ptx.Operand) ptx.Operand {
	d := e.B32()
	if e.s.Out == gemm.FP16 {
		e.CvtF16x2F32(d, x[1], x[0])
	} else {
		e.CvtBF16x2F32(d, x[1], x[0])
	}
	return d
}

// single writes two neighbours one by one, where C has them, and adds what C holds unless beta is zero.
func (w *writer) single(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand) {
	adds := w.Pred()
	w.SetpNeuF32(adds, w.beta, ptx.Float(0))
	for i := range v {
		valid, reads := w.Pred(), w.Pred()
		w.SetpGtS32(valid, w.columnsLeft, ptx.Int(column+i))
		w.AndPred(valid, valid, inside)
		w.AndPred(reads, valid, adds)
		w.one(ptx.Global(at, (column+i)*w.s.Out.Bytes()), v[i], valid, reads)
	}
}

// one writes an element.
func (w *writer) one(to, v, valid, reads ptx.Operand) {
	x, was := w.F32(), w.F32()
	if w.s.Out == gemm.FP32 {
		w.MovF32(was, ptx.Float(0))
		w.If(reads).LdGlobalF32(was, to)
	} else {
		h := w.B16()
		w.MovB16(h, ptx.Int(0))
		w.If(reads).LdGlobalB16(h, to)
		w.ToFloat(was, h, w.s.Out)
	}
	w.MulF32(x, v, w.alpha)
	w.FmaF32(x, w.beta, was, x)
	if w.s.Out == gemm.FP32 {
		w.If(valid).StGlobalF32(to, x)
		return
	}
	h := w.B16()
	if w.s.Out == gemm.FP16 {
		w.CvtF16F32(h, x)
	} else {
		w.CvtBF16F32(h, x)
	}
	w.If(valid).StGlobalB16(to, h)
}
