package sgemm

import (
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// convertThreads is the CTA size of the kernel that rounds A and B to fp16. Each thread rounds two neighbours.
const convertThreads = 256

// maxConverted is the most elements of a matrix that it counts.
const maxConverted = 1 << 31

// converts reports whether a kernel runs before this one that rounds A and B to fp16.
func (s *Spec) converts() bool { return s.DType == gemm.FP32 && choicesOf(&s.Config).math == mathWMMA }

// Scratch implements gemmgen.Scratcher: A and B in fp16, without gaps.
func (s Spec) Scratch(p gemm.Problem) unit.Bytes {
	if !s.converts() {
		return 0
	}
	return unit.Bytes(2 * p.K * (p.M + p.N) * p.Batch)
}

// conversion generates the kernel that rounds A and B. CTAs with y = 0 have A, those with y = 1 have B, z is the
// matrix of the batch. lines are the contiguous lines of a matrix, length is the length of each, which is even.
func (s Spec) conversion(t target.Target) (*gemmgen.Kernel, error) {
	const name = Name + "_convert_fp16"
	e := asm.New(name)
	e.Header("A and B of fp32, rounded to fp16 and packed, for kernel family %s", Name)
	e.Begin(convertThreads, 1)
	for _, m := range []string{"a", "b"} {
		e.Params(ptx.U64, m, m+"_to")
		e.Params(ptx.S64, "ld"+m, "stride_"+m)
		e.Params(ptx.U32, "lines_"+m, "length_"+m)
	}
	end, second := e.Label("end"), e.Label("second")
	e.If(e.SetpNeS32(e.Pred(), e.Special(ptx.CtaidY), ptx.Int(0))).BraUni(second)
	convert := func(m string) {
		i := e.Shl(e.Mad(e.Special(ptx.CtaidX), convertThreads, e.Special(ptx.TidX)), 1)
		length := e.Param32("length_" + m)
		line := e.DivU32(e.B32(), i, length)
		element := e.Mul(line, length)
		e.SubS32(element, i, element)
		lines := e.Param32("lines_" + m)
		e.If(e.SetpGeU32(e.Pred(), line, lines)).Bra(end)
		batch := e.Special(ptx.CtaidZ)
		offset := e.MulLoS64(e.B64(), e.Unsigned(line), e.Param64("ld"+m))
		e.MadLoS64(offset, e.Unsigned(batch), e.Param64("stride_"+m), offset)
		e.AddS64(offset, offset, e.Unsigned(element))
		from := e.Pointer(m)
		e.MadLoS64(from, offset, ptx.Int(wordBytes), from)
		to := e.Pointer(m + "_to")
		matrixElements := e.MulWideU32(e.B64(), lines, length)
		e.MulLoS64(matrixElements, matrixElements, e.Unsigned(batch))
		e.AddS64(matrixElements, matrixElements, e.Unsigned(i))
		e.MadLoS64(to, matrixElements, ptx.Int(2), to)
		x, y := e.LdGlobalF32(e.F32(), ptx.Global(from, 0)), e.LdGlobalF32(e.F32(), ptx.Global(from, wordBytes))
		e.StGlobalB32(ptx.Global(to, 0), e.CvtF16x2F32(e.B32(), y, x))
	}
	convert("a")
	e.BraUni(end)
	e.Place(second)
	convert("b")
	e.Place(end)
	e.Ret()
	return gemmgen.Assemble(e.Builder, t, s.Config, gemmgen.Kernel{Key: name, Threads: convertThreads})
}

// convert returns the launch of the conversion, and the matrices that it writes.
func convert(k *gemmgen.Kernel, call gemmgen.Call) (l gemmgen.Launch, a, b gemmgen.Matrix, err *diag.Error) {
	p := call.Problem
	linesA, lengthA := p.M, p.K
	if p.TransA() {
		linesA, lengthA = p.K, p.M
	}
	linesB, lengthB := p.K, p.N
	if p.TransB() {
		linesB, lengthB = p.N, p.K
	}
	most := p.K * max(p.M, p.N)
	if most > maxConverted {
		return l, a, b, diag.Inputf("a matrix of %d elements is rounded to fp16 first", most).Do("split the problem")
	}
	if call.Scratch == 0 {
		return l, a, b, diag.Inputf("A and B are rounded to fp16 first, and the call has no memory for that").
			Do("allocate what Scratch says")
	}
	a = gemmgen.Matrix{Address: call.Scratch, LD: lengthA, Stride: linesA * lengthA}
	b = gemmgen.Matrix{Address: call.Scratch + uint64(2*p.M*p.K*p.Batch), LD: lengthB, Stride: linesB * lengthB}
	const perCTA = 2 * convertThreads
	return gemmgen.Launch{
		GridX: (most + perCTA - 1) / perCTA, GridY: 2, GridZ: p.Batch, Threads: convertThreads,
		Params: gemmgen.Pack(k.Kernel, map[string]uint64{
			"a": call.A.Address, "lda": uint64(call.A.LD), "stride_a": uint64(call.A.Stride), "a_to": a.Address,
			"lines_a": uint64(linesA), "length_a": uint64(lengthA),
			"b": call.B.Address, "ldb": uint64(call.B.LD), "stride_b": uint64(call.B.Stride), "b_to": b.Address,
			"lines_b": uint64(linesB), "length_b": uint64(lengthB),
		}),
	}, a, b, nil
}

// tensorCores emits a kernel of math=wmma: a warp for each 16×16 elements of C.
func (e *emitter) tensorCores() {
	warp := e.Shr(e.Special(ptx.TidX), 5)
	row := e.Mad(e.Shr(warp, asm.Log2(e.g.tensor.warpsN)), fragment, e.M0)
	column := e.Mad(e.And(warp, e.g.tensor.warpsN-1), fragment, e.N0)
	outside := e.SetpGeU32(e.Pred(), row, e.M)
	e.If(outside).Bra(e.Exit)
	e.SetpGeU32(outside, column, e.N)
	e.If(outside).Bra(e.Exit)

	const bytes = 2
	a, nextA, strideA := e.fragments("a", row, e.s.AMajor == gemm.MajorK, bytes)
	b, nextB, strideB := e.fragments("b", column, e.s.BMajor == gemm.MajorK, bytes)
	sums := e.Sums.Zeros(8)
	av, bv, sum := e.Vec(e.Regs(8, e.B32)...), e.Vec(e.Regs(8, e.B32)...), e.Vec(sums...)
	loadA, loadB, multiply := e.WmmaLoadACol, e.WmmaLoadBRow, e.WmmaMmaColRow
	switch {
	case e.s.AMajor == gemm.MajorK && e.s.BMajor == gemm.MajorK:
		loadA, loadB, multiply = e.WmmaLoadARow, e.WmmaLoadBCol, e.WmmaMmaRowCol
	case e.s.AMajor == gemm.MajorK:
		loadA, multiply = e.WmmaLoadARow, e.WmmaMmaRowRow
	case e.s.BMajor == gemm.MajorK:
		loadB, multiply = e.WmmaLoadBCol, e.WmmaMmaColCol
	}
	e.loopOver("loop", e.Shr(e.K, asm.Log2(fragment)), func() {
		loadA(av, ptx.Global(a, 0), strideA)
		loadB(bv, ptx.Global(b, 0), strideB)
		multiply(sum, av, bv, sum)
		e.AddS64(a, a, nextA)
		e.AddS64(b, b, nextB)
	})

	base, line := e.matrix("c", wordBytes)
	ldc := e.CvtU32U64(e.B32(), e.Param64("ldc"))
	e.MadLoS64(base, e.Wide(row), line, base)
	e.MadLoS64(base, e.Wide(column), ptx.Int(wordBytes), base)
	alpha, beta := e.ParamF32("alpha"), e.ParamF32("beta")
	for _, r := range sums {
		e.MulF32(r, r, alpha)
	}
	store := e.Label("store")
	e.IfNot(e.SetpNeuF32(e.Pred(), beta, ptx.Float(0))).BraUni(store)
	was := e.Regs(8, e.F32)
	e.WmmaLoadCRow(e.Vec(was...), ptx.Global(base, 0), ldc)
	for i, r := range sums {
		e.FmaF32(r, was[i], beta, r)
	}
	e.Place(store)
	e.WmmaStoreDRow(ptx.Global(base, 0), sum, ldc)
}

// fragments returns the address of a warp's first fragment of an operand, the bytes to the next along K, and the
// elements between contiguous lines.
func (e *emitter) fragments(
	name string, across ptx.Operand, alongK bool, bytes int,
) (at, next, stride ptx.Operand) {
	base, line := e.matrix(name, bytes)
	stride = e.CvtU32U64(e.B32(), e.Param64("ld"+name))
	if alongK {
		at = e.MadLoS64(e.B64(), e.Wide(across), line, base)
		return at, e.MovB64(e.B64(), ptx.Int(fragment*bytes)), stride
	}
	at = e.MadLoS64(e.B64(), e.Wide(across), ptx.Int(bytes), base)
	return at, e.MulLoS64(e.B64(), line, ptx.Int(fragment)), stride
}
