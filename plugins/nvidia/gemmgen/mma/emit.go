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
	for _, m := range []struct {
		name  string
		dtype gemm.DType
		align int
	}{{"A", s.DType, s.AlignA}, {"B", s.DType, s.AlignB}, {"C", s.Out, s.AlignC}} {
		if m.align < 1 || m.align > gemm.MaxVector || m.align&(m.align-1) != 0 {
			return nil, diag.Inputf("alignment of %d bytes", m.align).Do("use 16, 8, 4, 2 or 1")
		}
		if m.align < m.dtype.Bytes() {
			return nil, diag.Inputf("%s of %s aligned to %d bytes", m.name, m.dtype, m.align).
				Do("align %s to its elements", m.name)
		}
	}
	b := asm.New(s.name())
	e := &emitter{CTA: asm.CTA{Builder: b, Sums: b.Sums(instructionOf(s.DType).integer)}, s: s, g: g,
		widened:   instructionOf(s.DType).widened(t),
		shortLast: g.a.ragged && !g.a.kRows || g.b.ragged && !g.b.kRows}
	e.kernel()
	return gemmgen.Assemble(b.Builder, t, s.Config, gemmgen.Kernel{
		Key: s, Threads: r.Threads, SharedMemory: r.SharedMemory,
	})
}

// emitter builds one kernel. Its fields are the values that more than one pass needs.
type emitter struct {
	asm.CTA
	// widened says that fp8 operands are multiplied as fp16.
	widened bool
	// shortLast says that the last block along K is the short one, because rows along K are ragged.
	shortLast bool
	s         Spec
	g         geometry

	lane, warp            ptx.Operand // thread in the warp; warp in the CTA
	warpM, warpN, warpK   ptx.Operand // the warp's place in the warp grid
	writeStage, readStage ptx.Operand // addresses of the stages that copies write and fragments come from
	stagesEnd             ptx.Operand // address behind the last stage
	toCopy                ptx.Operand // blocks along K that are not yet copied
	left                  ptx.Operand // indices along K that are not yet copied, if the last block is the short one

	copyA, copyB *copier
	fragA, fragB reader
	loops        int             // labels of copy loops so far
	acc          [][]ptx.Operand // the sums of tile [m*tilesN+n]
	accVec       []ptx.Operand
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
	e.Exit = e.Label("end")
	e.Emit(
		e.params,
		e.identify,
		e.walk,
		asm.Only(c.SplitK > 1, e.PartOfK),
		e.stage,
		e.fragments,
		e.mainLoop,
		e.identify,
		asm.Only(e.g.warpsK > 1, e.reduceWarps),
		asm.Only(c.SplitK > 1, e.reduceSplits),
		e.epilogue,
		e.End,
	)
}

func (e *emitter) params() {
	e.Params(ptx.U64, "a", "b", "c", "partials", "counters")
	if e.s.Nested {
		e.Params(ptx.U64, "a_m", "a_k", "a_batch", "b_n", "b_k", "b_batch", "c_m", "c_n", "c_batch")
	} else {
		e.Params(ptx.S64, "lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c")
	}
	e.Params(ptx.S32, "m", "n", "k")
	e.Params(ptx.U32, "tiles_m", "tiles_n", "group_m")
	e.Params(ptx.S32, "k_per_split")
	scalar := ptx.F32
	if e.Sums.Integer {
		scalar = ptx.S32
	}
	e.Params(scalar, "alpha", "beta")
	if e.s.Epilogue.Bias {
		e.Params(ptx.U64, "bias")
	}
}

// identify finds which thread this is. It is repeated after the K loop, so that its results take no registers there.
func (e *emitter) identify() {
	e.Comment("thread and warp")
	e.Thread, e.lane = e.Special(ptx.TidX), e.Special(ptx.LaneID)
	e.warp = e.Shr(e.Thread, 5)
	e.warpM = e.And(e.warp, e.g.warpsM-1)
	e.warpN = e.And(e.Shr(e.warp, asm.Log2(e.g.warpsM)), e.g.warpsN-1)
	e.warpK = e.Shr(e.warp, asm.Log2(e.g.warpsM*e.g.warpsN))
}

// walk finds the CTA's output tile.
func (e *emitter) walk() {
	e.Comment("output tile")
	e.M, e.N = e.Param32("m"), e.Param32("n")
	e.Walk(e.s.Config.BlockM, e.s.Config.BlockN)
	e.K = e.Param32("k")
}

// stage prepares the copies of operands to shared memory.
func (e *emitter) stage() {
	e.Smem = e.MovU32(e.B32(), e.DynamicShared("smem", 128))
	e.copyA = e.newCopier(e.g.a, e.M0, e.M)
	e.copyB = e.newCopier(e.g.b, e.N0, e.N)
}

// fragments prepares the reads of operands from shared memory, and the sums.
func (e *emitter) fragments() {
	e.fragA, e.fragB = e.readers()
	for range e.g.tilesM * e.g.tilesN {
		acc := e.Sums.Zeros(4)
		e.acc, e.accVec = append(e.acc, acc), append(e.accVec, e.Vec(acc...))
	}
}
