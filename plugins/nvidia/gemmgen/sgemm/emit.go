package sgemm

import (
	"slices"

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
	b := asm.New(s.name())
	e := &emitter{CTA: asm.CTA{Builder: b, Sums: b.Sums(false)}, s: s, g: g}
	e.kernel()
	r := g.resources()
	k := gemmgen.Kernel{Key: s, Threads: r.Threads, SharedMemory: r.SharedMemory}
	if s.converts() {
		var err error
		if k.Before, err = s.conversion(t); err != nil {
			return nil, err
		}
		k.Rounds = gemm.FP16
	}
	return gemmgen.Assemble(b.Builder, t, s.Config, k)
}

// emitter builds one kernel. Its fields are the values that more than one pass needs.
type emitter struct {
	asm.CTA
	s Spec
	g geometry

	row, column ptx.Operand     // the thread's first row and column in the CTA's tile
	stages      *stages         // of operands in shared memory
	blocks      ptx.Operand     // blocks along K that are not yet multiplied
	acc         [][]ptx.Operand // the sums of the thread's rows
}

// kernel emits the whole kernel.
func (e *emitter) kernel() {
	e.Header("C = alpha * A * B + beta * C, kernel family %s: A %c-contiguous, B %c-contiguous, C fp32", Name, e.s.AMajor,
		e.s.BMajor)
	e.Header("%s", e.s.Config)
	e.Begin(e.g.threads, e.g.resources().CTAs)
	e.Exit = e.Label("end")
	if e.g.math == mathWMMA {
		e.Emit(e.params, e.walk, e.tensorCores, e.End)
		return
	}
	e.Emit(
		e.params,
		e.walk,
		asm.Only(e.s.splits(), e.part),
		e.place,
		asm.Only(e.g.staging == stagingNone, e.directLoop),
		asm.Only(e.g.staging != stagingNone, e.stage),
		asm.Only(e.g.staging != stagingNone, e.stagedLoop),
		asm.Only(e.s.splits(), e.reduceSplits),
		e.epilogue,
		e.End,
	)
}

func (e *emitter) params() {
	e.Params(ptx.U64, "a", "b", "c")
	e.Params(ptx.S64, "lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c")
	e.Params(ptx.S32, "m", "n", "k")
	e.Params(ptx.U32, "tiles_m", "tiles_n", "group_m")
	e.Params(ptx.F32, "alpha", "beta")
	if e.s.splits() {
		e.Params(ptx.U64, "partials", "counters")
		e.Params(ptx.S32, "k_per_split")
	}
}

// walk finds the CTA's output tile.
func (e *emitter) walk() {
	e.Comment("output tile")
	e.M, e.N, e.K = e.Param32("m"), e.Param32("n"), e.Param32("k")
	e.Walk(e.g.blockM, e.g.blockN)
}

// part finds this split's part of K. Splits that have none multiply a block of zeros.
func (e *emitter) part() {
	e.PartOfK()
	e.MaxS32(e.K, e.K, ptx.Int(0))
}

// place finds the thread's part of the tile, and clears its sums.
func (e *emitter) place() {
	e.Thread = e.Special(ptx.TidX)
	e.row, e.column = rowAndColumn(e.Builder, &e.g, e.Thread)
	for range e.g.threadM {
		e.acc = append(e.acc, e.Sums.Zeros(e.g.threadN))
	}
}

// matrix returns the address of the CTA's matrix of the batch, in the global window, and the distance of its lines in
// bytes.
func (e *emitter) matrix(name string, bytes int) (address, line ptx.Operand) {
	address = e.Pointer(name)
	offset := e.MulLoS64(e.B64(), e.Wide(e.Special(ptx.CtaidZ)), e.Param64("stride_"+name))
	e.MadLoS64(address, offset, ptx.Int(bytes), address)
	return address, e.MulLoS64(e.B64(), e.Param64("ld"+name), ptx.Int(bytes))
}

// multiply adds the products of operands at one index along K.
func (e *emitter) multiply(a, b []ptx.Operand) {
	for i, x := range a {
		for j := range b {
			if i%2 == 1 { // back along the row, so that neighbours in the order share an operand
				j = len(b) - 1 - j
			}
			e.FmaF32(e.acc[i][j], x, b[j], e.acc[i][j])
		}
	}
}

// reduceSplits sums over the splits of K, in groups as wide as a thread stores at once.
func (e *emitter) reduceSplits() {
	sums := slices.Concat(e.acc...)
	groups := slices.Collect(slices.Chunk(sums, min(widest/wordBytes, len(sums))))
	e.AddSplits(asm.Splits{Threads: e.g.threads, SumBytes: e.g.blockM * e.g.blockN * wordBytes}, groups)
}

// epilogue writes C = alpha·sums + beta·C. C is not read when beta is zero.
func (e *emitter) epilogue() {
	e.Comment("epilogue")
	base, line := e.matrix("c", wordBytes)
	row, column := e.Add(e.M0, e.row), e.Add(e.N0, e.column)
	w := &writer{emitter: e, line: line, rowsLeft: e.Sub(e.M, row), columnsLeft: e.Sub(e.N, column)}
	w.at = e.MadLoS64(e.B64(), e.Wide(row), line, base)
	e.MadLoS64(w.at, e.Wide(column), ptx.Int(wordBytes), w.at)
	w.alpha, w.beta = e.ParamF32("alpha"), e.ParamF32("beta")
	for j := 0; j < e.g.threadN; j += e.g.storeC {
		w.inColumns = append(w.inColumns, e.SetpGtS32(e.Pred(), w.columnsLeft, ptx.Int(e.g.columnAt(j))))
	}
	withC := e.Label("with_c")
	e.If(e.SetpNeuF32(e.Pred(), w.beta, ptx.Float(0))).BraUni(withC)
	w.rows(false)
	e.BraUni(e.Exit)
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
	for i, sums := range w.acc {
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
	v := make([]ptx.Operand, len(sums))
	for i, sum := range sums {
		v[i] = w.MulF32(w.F32(), sum, w.alpha)
	}
	if adds {
		for i, was := range w.Sums.Read(to, len(v), gemm.FP32, valid) {
			w.FmaF32(v[i], was, w.beta, v[i])
		}
	}
	w.Sums.Write(to, v, gemm.FP32, valid)
}
