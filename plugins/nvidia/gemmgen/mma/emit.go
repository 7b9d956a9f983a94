package mma

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
	var (
		g geometry
		r Resources
	)
	if reason, detail := s.layout(&g, &r); reason != "" {
		return nil, gemmgen.Refused(s.Config, reason, detail)
	}
	for _, align := range []int{s.AlignA, s.AlignB, s.AlignC} {
		if align != 1 && align != 2 && align != 4 && align != 8 && align != 16 {
			return nil, diag.Inputf("alignment of %d bytes", align).Do("use 16, 8, 4, 2 or 1")
		}
	}
	for _, m := range []struct {
		name  string
		dtype gemm.DType
		align int
	}{{"A", s.DType, s.AlignA}, {"B", s.DType, s.AlignB}, {"C", s.Out, s.AlignC}} {
		if m.align < m.dtype.Bytes() {
			return nil, diag.Inputf("%s of %s aligned to %d bytes", m.name, m.dtype, m.align).
				Do("align %s to its elements", m.name)
		}
	}
	b := asm.New(s.name())
	e := &emitter{Builder: b, sums: newSums(b, instructionOf(s.DType).integer), s: s, g: g,
		widened:   instructionOf(s.DType).widened(t),
		shortLast: g.a.ragged && !g.a.kRows || g.b.ragged && !g.b.kRows}
	e.kernel()
	k, err := e.Build(t)
	if err != nil {
		return nil, gemmgen.Wrong(s.Config, err)
	}
	return &gemmgen.Kernel{Kernel: k, Key: s, Threads: r.Threads, SharedMemory: r.SharedMemory}, nil
}

// emitter builds one kernel. Its fields are the values that more than one part of the kernel needs.
type emitter struct {
	asm.Builder
	sums sums
	// widened says that fp8 operands are multiplied as fp16.
	widened bool
	// shortLast says that the last block along K is the short one, because rows along K are ragged.
	shortLast bool
	s         Spec
	g         geometry
	p         params

	tid, lane, warp       ptx.Operand // thread in the CTA, in the warp; warp in the CTA
	warpM, warpN, warpK   ptx.Operand // the warp's place in the warp grid
	m, n                  ptx.Operand // the problem's size
	m0, n0                ptx.Operand // the CTA's first row and column of C
	k                     ptx.Operand // indices along K that this CTA sums over
	smem                  ptx.Operand // address of the dynamic shared memory
	writeStage, readStage ptx.Operand // addresses of the stages that copies write and fragments come from
	stagesEnd             ptx.Operand // address behind the last stage
	toCopy                ptx.Operand // blocks along K that are not yet copied
	left                  ptx.Operand // indices along K that are not yet copied, if the last block is the short one
	exit                  ptx.Operand // label of the end of the kernel

	copyA, copyB *copier
	fragA, fragB reader
	loops        int             // labels of copy loops so far
	acc          [][]ptx.Operand // the sums of tile [m*tilesN+n]
	accVec       []ptx.Operand
}

// params are the kernel's parameters.
type params struct {
	a, b, c                matrixParams
	partials, counters     ptx.Operand
	m, n, k                ptx.Operand
	tilesM, tilesN, groupM ptx.Operand
	kPerSplit              ptx.Operand
	alpha, beta            ptx.Operand
	bias                   ptx.Operand // only of kernels that add one
}

// matrixParams are the parameters of one matrix.
type matrixParams struct {
	address, ld, stride ptx.Operand
	// tables has offsets in their place if elements are looked up.
	tables tables
}

// kernel emits the whole kernel.
func (e *emitter) kernel() {
	c := e.s.Config
	split := ""
	if c.SplitK > 1 {
		split = ", split K"
	}
	e.Header("%s, kernel family %s: %s x %s -> %s, A %c-contiguous, B %c-contiguous%s",
		gemmgen.Formula(e.s.Epilogue), Name, e.s.DType, e.s.DType, e.s.Out, e.s.AMajor, e.s.BMajor, split)
	e.Header("tile %dx%dx%d, %d warps as %dx%dx%d (m, n, k), warp tile %dx%d, %d stages of %d B",
		c.BlockM, c.BlockN, c.BlockK, c.NumWarps, e.g.warpsM, e.g.warpsN, e.g.warpsK, e.g.warpM, e.g.warpN,
		c.NumStages, e.g.stageBytes)
	e.Begin(e.g.threads, 1)
	e.exit = e.Label("end")
	e.p = e.params()
	e.identify()
	e.place()
	e.setup()
	e.mainLoop()
	e.identify()
	if e.g.warpsK > 1 {
		e.reduceWarps()
	}
	if c.SplitK > 1 {
		e.reduceSplits()
	}
	e.epilogue()
}

func (e *emitter) params() params {
	var p params
	p.a.address, p.b.address, p.c.address = e.Param("a", ptx.U64), e.Param("b", ptx.U64), e.Param("c", ptx.U64)
	p.partials, p.counters = e.Param("partials", ptx.U64), e.Param("counters", ptx.U64)
	if e.s.Nested {
		e.nestedParams(&p)
	} else {
		p.a.ld, p.b.ld, p.c.ld = e.Param("lda", ptx.S64), e.Param("ldb", ptx.S64), e.Param("ldc", ptx.S64)
		p.a.stride, p.b.stride = e.Param("stride_a", ptx.S64), e.Param("stride_b", ptx.S64)
		p.c.stride = e.Param("stride_c", ptx.S64)
	}
	p.m, p.n, p.k = e.Param("m", ptx.S32), e.Param("n", ptx.S32), e.Param("k", ptx.S32)
	p.tilesM, p.tilesN = e.Param("tiles_m", ptx.U32), e.Param("tiles_n", ptx.U32)
	p.groupM = e.Param("group_m", ptx.U32)
	p.kPerSplit = e.Param("k_per_split", ptx.S32)
	scalar := ptx.F32
	if e.sums.integer {
		scalar = ptx.S32
	}
	p.alpha, p.beta = e.Param("alpha", scalar), e.Param("beta", scalar)
	if e.s.Epilogue.Bias {
		p.bias = e.Param("bias", ptx.U64)
	}
	return p
}

// identify finds which thread this is. It is repeated after the K loop, so that its results take no registers there.
func (e *emitter) identify() {
	e.Comment("thread and warp")
	e.tid, e.lane = e.Special(ptx.TidX), e.Special(ptx.LaneID)
	e.warp = e.Shr(e.tid, 5)
	e.warpM = e.And(e.warp, e.g.warpsM-1)
	e.warpN = e.And(e.Shr(e.warp, asm.Log2(e.g.warpsM)), e.g.warpsN-1)
	e.warpK = e.Shr(e.warp, asm.Log2(e.g.warpsM*e.g.warpsN))
}

// place finds the CTA's output tile.
func (e *emitter) place() {
	e.Comment("output tile")
	e.m, e.n = e.Param32(e.p.m), e.Param32(e.p.n)
	tilesM, tilesN, groupM := e.Param32(e.p.tilesM), e.Param32(e.p.tilesN), e.Param32(e.p.groupM)
	cta := e.Special(ptx.CtaidX)

	row, column := e.Grouped(cta, tilesM, tilesN, groupM)
	e.m0, e.n0 = e.Shl(row, asm.Log2(e.s.Config.BlockM)), e.Shl(column, asm.Log2(e.s.Config.BlockN))

	e.k = e.Param32(e.p.k)
}

// setup computes what the K loop uses.
func (e *emitter) setup() {
	g := e.g
	begin := ptx.Operand{}
	if e.s.Config.SplitK > 1 {
		e.Comment("this split's part of K")
		per := e.Param32(e.p.kPerSplit)
		begin = e.MulLoS32(e.B32(), e.Special(ptx.CtaidY), per)
		e.SubS32(e.k, e.k, begin)
		e.MinS32(e.k, e.k, per)
	}
	e.smem = e.MovU32(e.B32(), e.DynamicShared("smem", 128))
	e.copyA = e.newCopier(g.a, e.p.a, e.m0, e.m, begin)
	e.copyB = e.newCopier(g.b, e.p.b, e.n0, e.n, begin)
	e.fragA, e.fragB = e.readers()
	e.acc, e.accVec = make([][]ptx.Operand, g.tilesM*g.tilesN), make([]ptx.Operand, g.tilesM*g.tilesN)
	for i := range e.acc {
		e.acc[i] = e.Regs(4, e.sums.register)
		e.accVec[i] = e.Vec(e.acc[i]...)
		for _, r := range e.acc[i] {
			e.sums.clear(r)
		}
	}
}
