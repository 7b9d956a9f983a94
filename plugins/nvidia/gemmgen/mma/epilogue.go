package mma

import (
	"fmt"

	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// reduceWarps adds the sums of the warps that share an output tile to the sums of K slice 0, in the order of the
// slices. Slices 1 and up pass their sums through shared memory, each register of a slice's threads side by side.
func (e *emitter) reduceWarps() {
	g := e.g
	e.Comment("sum over the K slices of the warps")
	slice := 32 * g.warpsM * g.warpsN // threads
	receive, received := e.Label("receive"), e.Label("received")
	isFirst := e.SetpEqS32(e.Pred(), e.warpK, ptx.Int(0))
	at := e.Mad(e.And(e.Thread, slice-1), 4, e.Smem)
	e.If(isFirst).Bra(receive)
	registers := 4 * len(e.acc)
	to := e.Mad(e.warpK, registers*slice*4, at)
	for i := range registers {
		e.Store(ptx.Shared(to, (i-registers)*slice*4), e.acc[i/4][i%4:][:1])
	}
	e.Place(receive)
	e.BarSync(ptx.Int(0))
	e.IfNot(isFirst).Bra(received)
	x := []ptx.Operand{e.Sums.Register()}
	for s := range g.warpsK - 1 {
		for i := range registers {
			sum := e.acc[i/4][i%4]
			e.Load(x, ptx.Shared(at, (s*registers+i)*slice*4))
			e.Sums.Add(sum, sum, x[0])
		}
	}
	e.Place(received)
	e.BarSync(ptx.Int(0))
}

// reduceSplits sums over the splits of K. The four sums of an mma tile are a group.
func (e *emitter) reduceSplits() {
	g := e.g
	splits := asm.Splits{Threads: 32 * g.warpsM * g.warpsN, SumBytes: 4 * e.s.Config.BlockM * e.s.Config.BlockN}
	if g.warpsK > 1 {
		splits.Slice = e.warpK
	}
	e.AddSplits(splits, e.acc)
}

// epilogue writes C = activation(alpha·sums + beta·C + bias). C is not read when beta is zero.
func (e *emitter) epilogue() {
	e.Comment("epilogue")
	if e.g.warpsK > 1 {
		e.If(e.SetpNeS32(e.Pred(), e.warpK, ptx.Int(0))).Bra(e.Exit)
	}
	w := e.newWriter()
	alpha, beta, withC := e.Sums.Param("alpha"), e.Sums.Param("beta"), e.Label("with_c")
	e.If(e.Sums.Differ(e.Pred(), beta, e.Sums.Zero)).BraUni(withC)
	w.tile("", alpha, ptx.Operand{})
	e.BraUni(e.Exit)
	e.Place(withC)
	w.tile("c_", alpha, beta)
}

// writer writes a warp's tile of C. Each warp passes its tile through a part of shared memory that no other warp
// uses, 16 rows at a time. That way each lane has neighbours in a row, which it writes at once, and the lanes of a row
// write side by side.
type writer struct {
	*emitter
	// width is the elements of a store, across the stores of a lane in a row, rowStep the rows that a warp stores at
	// once.
	width, across, rowStep int
	// scatter is the shared address where a lane puts its sums, gather where it reads rows.
	scatter, gather ptx.Operand
	// pointer is the lane's address in C, rowStride the bytes to its next row.
	pointer, rowStride ptx.Operand
	// nested is what replaces pointer and rowStride if elements are looked up.
	nested nestedWriter
	// rowsLeft are the rows from the lane's to the last of C. inRow says for each store whether its columns are inside.
	rowsLeft ptx.Operand
	inRow    []ptx.Operand
	// columnsLeft are the columns from the lane's first to the last of C, atEdge says for each store whether C ends
	// inside of it. They are for ragged rows.
	columnsLeft ptx.Operand
	atEdge      []ptx.Operand
	// bias are the elements of the bias for those that a lane stores in a row.
	bias [][]ptx.Operand
}

// newWriter emits the set-up.
func (e *emitter) newWriter() *writer {
	g := e.g
	w := &writer{emitter: e, width: min(e.s.AlignC, 16) / e.s.Out.Bytes()}
	perRow := g.warpN / w.width // stores per row
	w.across, w.rowStep = max(1, perRow/32), max(1, 32/perRow)

	// Sums 0 and 1 of a lane lie in row lane/4, columns 2·(lane mod 4) and the next, sums 2 and 3 eight rows below.
	base := e.Mad(e.warp, g.stagingBytes, e.Smem)
	w.scatter = e.Mad(e.Shr(e.lane, 2), g.stagingStride*4, base)
	w.scatter = e.Mad(e.And(e.lane, 3), 8, w.scatter)

	// The lane's first row and column in the staging area.
	var row, column ptx.Operand
	if width := asm.Log2(w.width); perRow >= 32 {
		row, column = e.MovB32(e.B32(), ptx.Int(0)), e.Shl(e.lane, width)
	} else {
		row, column = e.Shr(e.lane, asm.Log2(perRow)), e.Shl(e.And(e.lane, perRow-1), width)
	}
	staged, active := row, ptx.Operand{}
	if w.rowStep > 16 {
		active = e.SetpLtS32(e.Pred(), row, ptx.Int(16))
		staged = e.And(row, 15) // idle lanes read too, and the last warp's part is the end of shared memory
	}
	w.gather = e.Mad(staged, g.stagingStride*4, base)
	w.gather = e.Mad(column, 4, w.gather)

	row = e.Mad(e.warpM, g.warpM, e.Add(row, e.M0))
	column = e.Mad(e.warpN, g.warpN, e.Add(column, e.N0))
	w.bound(row, column, active)
	if w.s.Epilogue.Bias {
		w.loadBias(column)
	}
	if w.s.Nested {
		w.lookUp(row, column)
	} else {
		w.point(row, column)
	}
	return w
}

// bound finds which stores of a lane lie inside C, from its first row and column on. Inactive lanes store nothing.
func (w *writer) bound(row, column, active ptx.Operand) {
	w.rowsLeft, w.columnsLeft = w.Sub(w.M, row), w.Sub(w.N, column)
	above := func(columns int) ptx.Operand {
		p := w.SetpGtS32(w.Pred(), w.columnsLeft, ptx.Int(columns))
		if active != (ptx.Operand{}) {
			w.AndPred(p, p, active)
		}
		return p
	}
	for i := range w.across {
		first, last := 32*i*w.width, 32*i*w.width+w.width-1
		if !w.s.RaggedC {
			w.inRow = append(w.inRow, above(first))
			continue
		}
		w.inRow = append(w.inRow, above(last))
		begun := above(first)
		ended := w.SetpLtS32(w.Pred(), w.columnsLeft, ptx.Int(last+1))
		w.atEdge = append(w.atEdge, w.AndPred(ended, ended, begun))
	}
}

// loadBias reads the lane's part of the bias: at most 8 elements, as a lane has the same columns in all rows.
func (w *writer) loadBias(column ptx.Operand) {
	first := w.Pointer("bias")
	w.AddS64(first, first, w.ShlB64(w.B64(), w.Wide(column), ptx.Int(asm.Log2(w.s.Out.Bytes()))))
	for i := range w.across {
		v := w.Regs(w.width, w.F32)
		for j, x := range v {
			place := 32*i*w.width + j
			inside := w.SetpGtS32(w.Pred(), w.columnsLeft, ptx.Int(place))
			w.MovF32(x, ptx.Float(0))
			w.AddElement(x, ptx.Global(first, place*w.s.Out.Bytes()), w.s.Out, inside)
		}
		w.bias = append(w.bias, v)
	}
}

// point finds the address of an element of C.
func (w *writer) point(row, column ptx.Operand) {
	size := w.s.Out.Bytes()
	ldc := w.Param64("ldc")
	index := w.MadLoS64(w.B64(), w.Wide(row), ldc, w.Wide(column))
	w.MadLoS64(index, w.Wide(w.Special(ptx.CtaidZ)), w.Param64("stride_c"), index)
	w.ShlB64(index, index, ptx.Int(asm.Log2(size)))
	w.pointer = w.Pointer("c")
	w.AddS64(w.pointer, w.pointer, index)
	w.rowStride = w.MulLoS64(w.B64(), ldc, ptx.Int(size*min(w.rowStep, 16)))
}

// unrolledStores is the most stores of an mma tile's rows that are unrolled. Narrower stores run in a loop.
const unrolledStores = 8

// tile writes the warp's tile. The tag makes labels unique. beta is invalid if C is not read.
func (w *writer) tile(tag string, alpha, beta ptx.Operand) {
	g := w.g
	passes, counter, from := max(1, 16/w.rowStep), w.B32(), w.B32()
	for m := range g.tilesM {
		w.BarWarpSync(ptx.Int(-1))
		for n := range g.tilesN {
			acc := w.acc[m*g.tilesN+n]
			w.Store(ptx.Shared(w.scatter, 32*n), acc[:2])
			w.Store(ptx.Shared(w.scatter, 32*n+8*g.stagingStride*4), acc[2:])
		}
		w.BarWarpSync(ptx.Int(-1))
		w.MovB32(from, w.gather)
		if passes*w.across <= unrolledStores {
			for range passes {
				w.pass(from, alpha, beta)
			}
			continue
		}
		w.MovB32(counter, ptx.Int(passes))
		w.Repeat(fmt.Sprintf("rows_%s%d", tag, m), counter, func() { w.pass(from, alpha, beta) })
	}
}

// pass writes as many rows as the warp stores at once, and moves on.
func (w *writer) pass(from, alpha, beta ptx.Operand) {
	inside := w.SetpGtS32(w.Pred(), w.rowsLeft, ptx.Int(0))
	if w.s.Nested {
		w.lookUpRow()
	}
	for i := range w.across {
		valid := w.AndPred(w.Pred(), inside, w.inRow[i])
		w.store(place{i, valid, w.elementsAtEdge(i, inside)}, from, alpha, beta)
	}
	if !w.s.Nested {
		w.AddS64(w.pointer, w.pointer, w.rowStride)
	}
	w.AddS32(w.rowsLeft, w.rowsLeft, ptx.Int(-min(w.rowStep, 16)))
	w.AddS32(from, from, ptx.Int(min(w.rowStep, 16)*w.g.stagingStride*4))
}

// place is where a store of a row goes: which of the lane's, whether it is inside C as a whole, and, if C may end
// inside of it, which of its elements to store by themselves.
type place struct {
	store    int
	valid    ptx.Operand
	elements []ptx.Operand
}

// elementsAtEdge says for each element of a store whether it is inside C, if C ends inside of the store.
func (w *writer) elementsAtEdge(store int, inside ptx.Operand) (elements []ptx.Operand) {
	if !w.s.RaggedC {
		return nil
	}
	ended := w.AndPred(w.Pred(), inside, w.atEdge[store])
	for j := range w.width {
		p := w.SetpGtS32(w.Pred(), w.columnsLeft, ptx.Int(32*store*w.width+j))
		elements = append(elements, w.AndPred(p, p, ended))
	}
	return elements
}

// at is the address of an element of a store in C.
func (w *writer) at(store, element int) ptx.Operand {
	if w.s.Nested {
		return ptx.Global(w.nested.places[store], 0) // a store has one element
	}
	return ptx.Global(w.pointer, (32*store*w.width+element)*w.s.Out.Bytes())
}

// store writes neighbours of a row of C, from the sums in shared memory. beta is invalid if C is not read.
func (w *writer) store(p place, from, alpha, beta ptx.Operand) {
	width := w.width
	v := w.Regs(width, w.Sums.Register)
	for i := 0; i < width; i += 4 {
		w.Load(v[i:min(i+4, width)], ptx.Shared(from, 32*p.store*width*4+4*i))
	}
	for _, x := range v {
		w.Sums.Multiply(x, x, alpha)
	}
	if beta != (ptx.Operand{}) {
		was := w.Sums.Read(w.at(p.store, 0), width, w.s.Out, p.valid)
		for j, inside := range p.elements {
			v := w.Sums.Read(w.at(p.store, j), 1, w.s.Out, inside)
			w.If(inside)
			w.Sums.Move(was[j], v[0])
		}
		for i, x := range was {
			w.Sums.MultiplyAdd(v[i], beta, x, v[i])
		}
	}
	for j, x := range v {
		if w.bias != nil {
			w.AddF32(x, x, w.bias[p.store][j])
		}
		w.Activate(x, w.s.Epilogue.Activation)
	}
	w.Sums.Write(w.at(p.store, 0), v, w.s.Out, p.valid)
	for j, inside := range p.elements {
		w.Sums.Write(w.at(p.store, j), v[j:j+1], w.s.Out, inside)
	}
}
