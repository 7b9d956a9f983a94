package sgemm

import (
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Emit implements gemmgen.Program. Whether the kernel fits a device is for Check to say.
func (s Spec) Emit(t target.Target) (*gemmgen.Kernel, error) {
	s = s.key()
	var g geometry
	if reason, detail := s.layout(&g); reason != "" {
		return nil, gemmgen.Refused(s.Config, reason, detail)
	}
	for _, align := range []int{s.AlignA, s.AlignB, s.AlignC} {
		if align < s.DType.Bytes() || align > widest || align&(align-1) != 0 {
			return nil, diag.Inputf("alignment of %d bytes", align).Do("use 4, 8 or 16")
		}
	}
	e := &emitter{Builder: asm.New(s.name()), s: s, g: g}
	e.kernel()
	k, err := e.Build(t)
	if err != nil {
		return nil, gemmgen.Wrong(s.Config, err)
	}
	r := g.resources()
	kernel := &gemmgen.Kernel{Kernel: k, Key: s, Threads: r.Threads, SharedMemory: r.SharedMemory}
	if s.converts() {
		kernel.Rounds = gemm.FP16
		if kernel.Before, err = emitConversion(t); err != nil {
			return nil, err
		}
	}
	return kernel, nil
}

// emitter builds one kernel. Its fields are the values that more than one part of the kernel needs.
type emitter struct {
	asm.Builder
	s Spec
	g geometry
	p params

	thread      ptx.Operand // in the CTA
	row, column ptx.Operand // the thread's first row and column in the CTA's tile
	m, n, k     ptx.Operand // the problem's size
	m0, n0      ptx.Operand // the CTA's first row and column of C
	begin       ptx.Operand // this split's first index along K, invalid if K is not split
	blocks      ptx.Operand // blocks along K that are not yet multiplied
	smem        ptx.Operand // address of the shared memory
	exit        ptx.Operand // label of the end of the kernel
	sums        [][]ptx.Operand
}

// params are the kernel's parameters.
type params struct {
	a, b, c                matrixParams
	m, n, k                ptx.Operand
	tilesM, tilesN, groupM ptx.Operand
	alpha, beta            ptx.Operand
	// These are of kernels that split K.
	partials, counters, kPerSplit ptx.Operand
}

// matrixParams are the parameters of one matrix.
type matrixParams struct{ address, ld, stride ptx.Operand }

// kernel emits the whole kernel.
func (e *emitter) kernel() {
	c := e.s.Config
	e.Header("C = alpha * A * B + beta * C, kernel family %s: A %c-contiguous, B %c-contiguous, C fp32", Name, e.s.AMajor,
		e.s.BMajor)
	e.Header("%s", c)
	e.Begin(e.g.threads, e.g.resources().CTAs)
	e.exit = e.Label("end")
	e.p = e.params()
	e.place()
	switch {
	case e.g.math == mathWMMA:
		e.tensorCores()
	case e.g.staging == stagingNone:
		e.clearSums()
		e.directLoop()
		e.epilogue()
	default:
		e.clearSums()
		e.stagedLoop()
		if e.s.splits() {
			e.reduceSplits()
		}
		e.epilogue()
	}
	e.Place(e.exit)
	e.Ret()
}

func (e *emitter) params() params {
	var p params
	p.a.address, p.b.address, p.c.address = e.Param("a", ptx.U64), e.Param("b", ptx.U64), e.Param("c", ptx.U64)
	p.a.ld, p.b.ld, p.c.ld = e.Param("lda", ptx.S64), e.Param("ldb", ptx.S64), e.Param("ldc", ptx.S64)
	p.a.stride, p.b.stride = e.Param("stride_a", ptx.S64), e.Param("stride_b", ptx.S64)
	p.c.stride = e.Param("stride_c", ptx.S64)
	p.m, p.n, p.k = e.Param("m", ptx.S32), e.Param("n", ptx.S32), e.Param("k", ptx.S32)
	p.tilesM, p.tilesN = e.Param("tiles_m", ptx.U32), e.Param("tiles_n", ptx.U32)
	p.groupM = e.Param("group_m", ptx.U32)
	p.alpha, p.beta = e.Param("alpha", ptx.F32), e.Param("beta", ptx.F32)
	if e.s.splits() {
		p.partials, p.counters = e.Param("partials", ptx.U64), e.Param("counters", ptx.U64)
		p.kPerSplit = e.Param("k_per_split", ptx.S32)
	}
	return p
}

// place finds the CTA's tile and the thread's part of it.
func (e *emitter) place() {
	e.Comment("output tile")
	e.m, e.n, e.k = e.Param32(e.p.m), e.Param32(e.p.n), e.Param32(e.p.k)
	tilesM, tilesN, groupM := e.Param32(e.p.tilesM), e.Param32(e.p.tilesN), e.Param32(e.p.groupM)
	row, column := e.Grouped(e.Special(ptx.CtaidX), tilesM, tilesN, groupM)
	e.m0, e.n0 = e.Shl(row, asm.Log2(e.g.blockM)), e.Shl(column, asm.Log2(e.g.blockN))
	if e.s.splits() {
		e.part()
	}
	e.thread = e.Special(ptx.TidX)
	if e.g.math == mathFMA {
		e.row, e.column = rowAndColumn(e.Builder, &e.g, e.thread)
	}
}

// clearSums makes the registers of the sums.
func (e *emitter) clearSums() {
	for range e.g.threadM {
		sums := e.Regs(e.g.threadN, e.F32)
		for _, r := range sums {
			e.MovF32(r, ptx.Float(0))
		}
		e.sums = append(e.sums, sums)
	}
}

// matrix returns the address of the CTA's matrix of the batch, in the global window, and the distance of its lines in
// bytes.
func (e *emitter) matrix(p matrixParams, bytes int) (address, line ptx.Operand) {
	address = e.CvtaToGlobalU64(e.B64(), e.Param64(p.address))
	offset := e.MulLoS64(e.B64(), e.Wide(e.Special(ptx.CtaidZ)), e.Param64(p.stride))
	e.MadLoS64(address, offset, ptx.Int(bytes), address)
	line = e.MulLoS64(e.B64(), e.Param64(p.ld), ptx.Int(bytes))
	return address, line
}

// multiply adds the products of operands at one index along K.
func (e *emitter) multiply(a, b []ptx.Operand) {
	for i, x := range a {
		for j := range b {
			if i%2 == 1 { // back along the row, so that neighbours in the order share an operand
				j = len(b) - 1 - j
			}
			e.FmaF32(e.sums[i][j], x, b[j], e.sums[i][j])
		}
	}
}

// epilogue writes C = alpha·sums + beta·C. C is not read when beta is zero.
func (e *emitter) epilogue() {
	e.Comment("epilogue")
	base, line := e.matrix(e.p.c, wordBytes)
	row, column := e.Add(e.m0, e.row), e.Add(e.n0, e.column)
	w := &writer{
		emitter: e, line: line, rowsLeft: e.Sub(e.m, row), columnsLeft: e.Sub(e.n, column), at: e.B64(),
		alpha: e.F32(), beta: e.F32(),
	}
	e.MadLoS64(w.at, e.Wide(row), line, base)
	e.MadLoS64(w.at, e.Wide(column), ptx.Int(wordBytes), w.at)
	e.LdParamF32(w.alpha, e.p.alpha)
	e.LdParamF32(w.beta, e.p.beta)
	for j := 0; j < e.g.threadN; j += e.g.storeC {
		inside := e.SetpGtS32(e.Pred(), w.columnsLeft, ptx.Int(e.g.columnAt(j)))
		w.inColumns = append(w.inColumns, inside)
	}
	withC := e.Label("with_c")
	e.If(e.SetpNeuF32(e.Pred(), w.beta, ptx.Float(0))).BraUni(withC)
	w.rows(false)
	e.BraUni(e.exit)
	e.Place(withC)
	w.rows(true)
}

// writer writes a thread's part of C.
type writer struct {
	*emitter
	// at is the address of the thread's first element, line the bytes from a row to the next.
	at, line              ptx.Operand
	rowsLeft, columnsLeft ptx.Operand
	alpha, beta           ptx.Operand
	// inColumns says for each store of a row whether it is inside C.
	inColumns []ptx.Operand
}

// rows writes the rows of the thread, and adds to C if it is to.
func (w *writer) rows(adds bool) {
	for i, sums := range w.sums {
		row := w.MadLoS64(w.B64(), w.line, ptx.Int(w.g.rowAt(i)), w.at)
		inside := w.SetpGtS32(w.Pred(), w.rowsLeft, ptx.Int(w.g.rowAt(i)))
		for j, inColumns := range w.inColumns {
			valid := w.AndPred(w.Pred(), inside, inColumns)
			first := j * w.g.storeC
			w.store(ptx.Global(row, w.g.columnAt(first)*wordBytes), sums[first:first+w.g.storeC], valid, adds)
		}
	}
}

// store writes neighbours, if they are valid.
func (w *writer) store(to ptx.Operand, sums []ptx.Operand, valid ptx.Operand, adds bool) {
	v := w.Regs(len(sums), w.F32)
	for i, x := range v {
		w.MulF32(x, sums[i], w.alpha)
	}
	if adds {
		was := w.Regs(len(v), w.F32)
		for _, x := range was {
			w.MovF32(x, ptx.Float(0))
		}
		w.If(valid).Load(was, to)
		for i, x := range v {
			w.FmaF32(x, was[i], w.beta, x)
		}
	}
	w.If(valid).Store(to, v)
}
