package wgmma

import (
	"maps"
	"slices"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// element is a sum of a thread and its place in C, counted from the thread's first element.
type element struct {
	sum         ptx.Operand
	row, column int
}

// lines groups the sums of a thread by their rows or columns, and calls f for each group in order. A thread of a
// warpgroup has, of each 64 rows and 8 columns of a multiplication, two neighbours in a row, and the two 8 rows below.
// Source: PTX ISA, the accumulator of wgmma, "D fragment".
func (e *emitter) lines(sums [][]ptx.Operand, number func(element) int, f func(number int, of []element)) {
	all := map[int][]element{}
	for i, tile := range sums {
		for j, sum := range tile {
			x := element{sum, i*tileM + j/2%2*8, j/4*8 + j%2}
			if e.g.turned {
				x.row, x.column = x.column, x.row
			}
			all[number(x)] = append(all[number(x)], x)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(all)) {
		f(n, all[n])
	}
}

func rowOf(x element) int    { return x.row }
func columnOf(x element) int { return x.column }

// first returns the row and column of C of a thread's first element.
func (e *emitter) first(t tile) (row, column ptx.Operand) {
	if e.g.turned {
		row = e.Add(t.m0, e.Shl(e.And(e.thread, 3), 1))
		inTile := e.Mad(e.Shr(e.thread, 5), 16, e.Shr(e.And(e.thread, 31), 2))
		return row, e.Add(t.n0, e.Mad(e.consumer, tileM*e.g.tilesC, inTile))
	}
	lane := e.And(e.thread, 31)
	row = e.Mad(e.Shr(e.thread, 5), 16, e.Shr(lane, 2))
	row = e.Add(t.m0, e.Mad(e.consumer, tileM*e.g.tiles, row))
	return row, e.Add(t.n0, e.Shl(e.And(lane, 3), 1))
}

// writer writes the sums of one thread, or reads the elements of a matrix of the shape of C that belong to them.
type writer struct {
	*emitter
	// pointer is the address of the thread's first element, down the distance to the row 8 below. ldc counts elements.
	pointer, down, ldc ptx.Operand
	// rowsLeft and columnsLeft count from the thread's first element to the end of C.
	rowsLeft, columnsLeft ptx.Operand
}

// newWriter returns the writer of a thread for its part of a tile of a matrix: c, or r, which has the shape of C.
func (e *emitter) newWriter(matrix string, t tile) *writer {
	row, column := e.first(t)
	w := &writer{emitter: e, rowsLeft: e.Sub(e.Param32("m"), row), columnsLeft: e.Sub(e.Param32("n"), column)}
	w.ldc = e.Param64("ldc")
	index := e.MadLoS64(e.B64(), e.Wide(row), w.ldc, e.Wide(column))
	e.MadLoS64(index, e.Wide(t.batch), e.Param64("stride_c"), index)
	e.ShlB64(index, index, ptx.Int(asm.Log2(e.s.Out.Bytes())))
	w.pointer = e.Pointer(matrix)
	e.AddS64(w.pointer, w.pointer, index)
	if !e.g.turned {
		w.down = e.MulLoS64(e.B64(), w.ldc, ptx.Int(8*e.s.Out.Bytes()))
	}
	return w
}

// each calls f for the elements of a thread, row by row: for two neighbours in a row, or, of Cᵀ, for each by itself.
// inside says whether C has the row.
func (w *writer) each(sums [][]ptx.Operand, f func(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand)) {
	at := w.AddS64(w.B64(), w.pointer, ptx.Int(0))
	// The distance to the next row of the thread is in turns one step and seven.
	one, neighbours := w.down, 2
	seven := func() ptx.Operand { return w.MulLoS64(w.B64(), one, ptx.Int(7)) }
	if w.g.turned {
		one, neighbours = w.MulLoS64(w.B64(), w.ldc, ptx.Int(w.s.Out.Bytes())), 1
		all := seven()
		seven = func() ptx.Operand { return all }
	}
	near := true
	w.lines(sums, rowOf, func(row int, of []element) {
		inside := w.SetpGtS32(w.Pred(), w.rowsLeft, ptx.Int(row))
		for some := range slices.Chunk(of, neighbours) {
			var v []ptx.Operand
			for _, x := range some {
				v = append(v, x.sum)
			}
			f(at, some[0].column, inside, v)
		}
		next := one
		if !near {
			next = seven()
		}
		w.AddS64(at, at, next)
		near = !near
	})
}

// reads reports whether a matrix of the shape of C is added: C before the activation, or R behind it.
func (s *Spec) reads() bool { return s.Adds || s.Epilogue.Residual }

// finishes reports whether finish makes elements of C of the sums. Otherwise each does what is stored of it alone.
func (e *emitter) finishes() bool { return e.s.reads() || e.s.Epilogue.Activation.Gated() }

// finish makes elements of C of the sums of a thread, and returns those. Scales and bias have been applied.
func (e *emitter) finish(t tile, sums [][]ptx.Operand) [][]ptx.Operand {
	for _, of := range sums {
		for _, sum := range of {
			if !e.s.scales() {
				e.MulF32(sum, sum, e.alpha)
			}
		}
	}
	if e.s.Epilogue.Activation.Gated() {
		sums = e.gate(sums)
	}
	if e.s.reads() {
		e.newWriter("r", t).add(sums)
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
	var beta ptx.Operand
	if w.s.Adds {
		beta = w.ParamF32("beta")
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
			h := w.Regs(2, w.B16)
			pair := w.MovB32(w.B32(), ptx.Int(0))
			w.If(w.inside(column, inside)).LdGlobalB32(pair, ptx.Global(at, column*w.s.Out.Bytes()))
			for i := range v {
				then(v[i], func() ptx.Operand {
					if i == 0 {
						w.MovB32Unpack(w.Vec(h...), pair)
					}
					return w.ToFloat(h[i], w.s.Out)
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
	return w.AndPred(valid, valid, row)
}

// scales reports whether scale multiplies the sums with alpha.
func (s *Spec) scales() bool { return s.Epilogue.Scales || s.Epilogue.Bias }

// scale makes alpha·scale_a·scale_b·sum + bias of the sums, or what the epilogue has of it.
func (e *emitter) scale(t tile, sums [][]ptx.Operand) {
	row, column := e.first(t)
	if e.s.Epilogue.Scales {
		scale := e.vector("scale_a", gemm.FP32, row, e.Param32("m"), "step_a")
		e.lines(sums, rowOf, func(below int, of []element) {
			factor := scale(0, below)
			e.MulF32(factor, factor, e.alpha)
			for _, x := range of {
				e.MulF32(x.sum, x.sum, factor)
			}
		})
	}
	n := e.Param32("n")
	var scale, bias func(second, behind int) ptx.Operand
	if e.s.Epilogue.Scales {
		scale = e.vector("scale_b", gemm.FP32, column, n, "step_b")
	}
	if e.s.Epilogue.Bias {
		bias = e.vector("bias", e.s.biasType(), column, n, "")
	}
	// The columns of gates, and those that they are multiplied with, are second.
	width := e.g.blockC
	if e.g.turned {
		width = tileM * e.g.tilesC
	}
	e.lines(sums, columnOf, func(behind int, of []element) {
		factor, add := e.alpha, ptx.Operand{}
		if scale != nil {
			factor = scale(behind/width, behind%width)
		}
		if bias != nil {
			add = bias(behind/width, behind%width)
		}
		for _, x := range of {
			if bias == nil {
				e.MulF32(x.sum, x.sum, factor)
				continue
			}
			e.FmaF32(x.sum, x.sum, factor, add)
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

// vector returns a function that loads an element of a vector of size elements: the one that lies behind elements after
// at, or zero outside of the vector. With a gated activation the vector has two halves, for the gates and for the
// columns that they are multiplied with; second chooses the half. stride names the parameter with the step from an
// element to the next, which may be zero: then there is one element for all. Without a name the step is one.
func (e *emitter) vector(
	base string, d gemm.DType, at, size ptx.Operand, stride string,
) func(second, behind int) ptx.Operand {
	left, bytes, step := e.Sub(size, at), d.Bytes(), ptx.Operand{}
	if stride != "" {
		step = e.Param32(stride)
		at = e.Mul(at, step)
	}
	first := [2]ptx.Operand{e.Pointer(base)}
	e.MadWideU32(first[0], at, ptx.Int(bytes), first[0])
	if e.g.blockC < e.s.Config.BlockN {
		if stride != "" {
			size = e.Mul(size, step)
		}
		first[1] = e.At(size, bytes, first[0])
	}
	return func(second, behind int) ptx.Operand {
		inside := e.SetpGtS32(e.Pred(), left, ptx.Int(behind))
		if stride == "" {
			return e.Element(ptx.Global(first[second], behind*bytes), d, inside)
		}
		return e.Element(ptx.Global(e.At(step, behind*bytes, first[second]), 0), d, inside)
	}
}

// value returns what is stored of a sum.
func (e *emitter) value(sum ptx.Operand) ptx.Operand {
	x := e.F32()
	if e.s.scales() || e.finishes() { // scale or finish has multiplied
		e.MovF32(x, sum)
	} else {
		e.MulF32(x, sum, e.alpha)
	}
	if !e.finishes() {
		e.Activate(x, e.s.Epilogue.Activation)
	}
	return x
}

// pair writes two neighbours at once.
func (w *writer) pair(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand) {
	x := []ptx.Operand{w.value(v[0]), w.value(v[1])}
	w.Sums.Write(ptx.Global(at, column*w.s.Out.Bytes()), x, w.s.Out, inside)
}

// single writes neighbours one by one, where C has them.
func (w *writer) single(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand) {
	for i, sum := range v {
		valid := w.inside(column+i, inside)
		w.Sums.Write(ptx.Global(at, (column+i)*w.s.Out.Bytes()), []ptx.Operand{w.value(sum)}, w.s.Out, valid)
	}
}
