package mma

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// Spec is everything that the text of a kernel depends on. Sizes, leading dimensions, strides, alpha, beta, group_m and
// the number of splits are parameters of the kernel (see gemmgen.Call), so one kernel serves all of them.
type Spec struct {
	// DType is the element type of A and B, FP16 or BF16. Out is that of C: FP16, BF16 or FP32. Accumulation is in
	// FP32.
	DType, Out gemm.DType
	// AMajor and BMajor say along which dimension A and B are contiguous. C is row-major.
	AMajor, BMajor gemm.Major
	// AlignA, AlignB and AlignC are the bytes (16, 8, 4 or 2) that divide the address and the length of every
	// contiguous row or column of the matrix.
	AlignA, AlignB, AlignC int
	// Config is the configuration. GroupM does not change the text, and of SplitK only whether it is above one does.
	Config gemm.Config
}

var _ gemmgen.Program = Spec{}

// SpecFor returns the fastest specification that computes a call with results of type out.
func SpecFor(call gemmgen.Call, out gemm.DType, c gemm.Config) Spec {
	p := call.Problem
	s := Spec{DType: p.DType, Out: out, AMajor: p.AMajor, BMajor: p.BMajor, Config: c}
	s.AlignA, s.AlignB, s.AlignC = call.Alignment(out)
	return s
}

// Key implements gemmgen.Program.
func (s Spec) Key() any { return s.key() }

// key returns the specification without what the text does not depend on.
func (s Spec) key() Spec {
	s.Config.GroupM = 0
	s.Config.SplitK = min(s.Config.SplitK, 2)
	s.Config.Kernel = Name
	return s
}

// Resources is what a kernel of the family needs, known before it is compiled.
type Resources struct {
	// Threads is the CTA size.
	Threads int
	// SharedMemory is the dynamic shared memory of one CTA: the pipeline's buffers, or the epilogue's if larger.
	SharedMemory unit.Bytes
	// Accumulators and Fragments are 32-bit registers per thread: the fp32 sums of the warp's tile, and the operands of
	// the current k16 step and, where there is more than one step, of the next.
	Accumulators, Fragments int
	// WarpsM, WarpsN and WarpsK are the warp grid. WarpsK warps share an output tile and split the k16 steps of a
	// block.
	WarpsM, WarpsN, WarpsK int
}

// otherRegisters is an allowance for addresses, pointers, counters and predicates, in 32-bit registers per thread. With
// it, ptxas 13.0 and 13.5 spill at most a few words in a handful of kernels with 20 or more copies per thread.
const otherRegisters = 36

// Resources returns what a kernel needs on any device. If the configuration does not belong to the family, the reason
// says why and the detail puts it in numbers.
func (s Spec) Resources() (r Resources, reason arch.Reason, detail string) {
	var g geometry
	reason, detail = s.layout(&g, &r)
	return r, reason, detail
}

// Check returns what Resources returns, and also rejects kernels that exceed the limits of a device.
func (s *Spec) Check(limits gemmgen.Limits) (r Resources, reason arch.Reason, detail string) {
	var g geometry
	if reason, detail = s.layout(&g, &r); reason != "" {
		return r, reason, detail
	}
	available := limits.Registers(r.Threads)
	if need := r.Accumulators + r.Fragments + otherRegisters; need > available {
		return r, arch.ReasonRegisters, fmt.Sprintf(
			"a %dx%d warp tile needs about %d registers per thread (%d accumulators, %d fragments), %d available",
			g.warpM, g.warpN, need, r.Accumulators, r.Fragments, available)
	}
	if r.SharedMemory > limits.SharedMemory {
		return r, arch.ReasonSharedMemory, fmt.Sprintf("needs %d B of shared memory, %d B available",
			int64(r.SharedMemory), int64(limits.SharedMemory))
	}
	return r, "", ""
}

// layout lays out the work of a CTA, and what it needs.
func (s *Spec) layout(g *geometry, r *Resources) (reason arch.Reason, detail string) {
	c := &s.Config
	if reason, detail = s.belongs(); reason != "" {
		return reason, detail
	}
	if !g.lay(s) {
		return arch.ReasonWarps, fmt.Sprintf(
			"%d warps cannot share a %dx%d tile: it has %d warp tiles of 16x8 and %d k16 steps to split",
			c.NumWarps, c.BlockM, c.BlockN, c.BlockM/16*c.BlockN/8, c.BlockK/16)
	}
	*r = Resources{
		Threads: g.threads, SharedMemory: unit.Bytes(g.sharedBytes),
		Accumulators: 4 * g.tilesM * g.tilesN, Fragments: g.buffers * (4*g.tilesM + 2*g.tilesN),
		WarpsM: g.warpsM, WarpsN: g.warpsN, WarpsK: g.warpsK,
	}
	return "", ""
}

// belongs returns why the types or the configuration are outside the family, or no reason if they are inside.
func (s *Spec) belongs() (reason arch.Reason, detail string) {
	c := &s.Config
	switch {
	case s.DType != gemm.FP16 && s.DType != gemm.BF16:
		return arch.ReasonAtomShape, fmt.Sprintf("mma.sync.m16n8k16 takes fp16 or bf16, not %s", s.DType)
	case s.Out != gemm.FP16 && s.Out != gemm.BF16 && s.Out != gemm.FP32:
		return arch.ReasonAtomShape, fmt.Sprintf("the epilogue writes fp16, bf16 or fp32, not %s", s.Out)
	case !slices.Contains(blocksMN, c.BlockM), !slices.Contains(blocksMN, c.BlockN),
		!slices.Contains(blocksK, c.BlockK):
		return arch.ReasonAtomShape, fmt.Sprintf(
			"tile %dx%dx%d: block_m and block_n are a power of two from 16 to 256, block_k from 16 to 128",
			c.BlockM, c.BlockN, c.BlockK)
	case !slices.Contains(warps, c.NumWarps):
		return arch.ReasonWarps, fmt.Sprintf("%d warps: the family has 4 or 8", c.NumWarps)
	case !slices.Contains(stages, c.NumStages):
		return gemmgen.ReasonStages, fmt.Sprintf("%d stages: the family has 2 to 6", c.NumStages)
	case c.SplitK < 1:
		return arch.ReasonModelRule, fmt.Sprintf("split_k is %d, not at least 1", c.SplitK)
	case c.Axes != (gemm.Axes{}):
		return arch.ReasonModelRule, fmt.Sprintf("the family has no axes, but the configuration sets %s", c.Axes)
	}
	return "", ""
}

// name is the kernel's entry point: every field of the specification's key.
func (s Spec) name() string {
	c := s.Config
	name := fmt.Sprintf("mma_%dx%dx%d_w%d_s%d_%s_%s_%c%c_a%db%dc%d", c.BlockM, c.BlockN, c.BlockK, c.NumWarps,
		c.NumStages, s.DType, s.Out, s.AMajor, s.BMajor, s.AlignA, s.AlignB, s.AlignC)
	if c.SplitK > 1 {
		name += "_split"
	}
	return name
}
