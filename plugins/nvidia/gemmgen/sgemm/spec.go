package sgemm

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// Spec is everything that the text of a kernel depends on. Sizes, leading dimensions, strides, alpha, beta, group_m and
// how many splits K has are parameters of the kernel (see gemmgen.Call), so one kernel serves all of them.
type Spec struct {
	// DType is the type of A and B: FP32, or FP16 for math=wmma without a conversion. C is FP32.
	DType gemm.DType
	// AMajor and BMajor say along which dimension A and B are contiguous. C is row-major.
	AMajor, BMajor gemm.Major
	// AlignA, AlignB and AlignC are the bytes (16, 8 or 4) that divide the address and the length of every contiguous
	// row or column of the matrix.
	AlignA, AlignB, AlignC int
	// Config is the configuration. GroupM does not change the text.
	Config gemm.Config
}

// SpecFor returns the specification that computes a call.
func SpecFor(call gemmgen.Call, c gemm.Config) Spec {
	p := call.Problem
	s := Spec{DType: p.DType, AMajor: p.AMajor, BMajor: p.BMajor, Config: c}
	s.AlignA, s.AlignB, s.AlignC = call.Alignment(gemm.FP32)
	return s
}

// Key implements gemmgen.Program.
func (s Spec) Key() any { return s.key() }

// key returns the specification without what the text does not depend on.
func (s Spec) key() Spec {
	s.Config.GroupM, s.Config.SplitK, s.Config.Kernel = 0, min(s.Config.SplitK, 2), Name
	if choicesOf(&s.Config).math == mathWMMA { // the guard has the alignments
		s.AlignA, s.AlignB, s.AlignC = widest, widest, widest
	}
	return s
}

// Resources is what a kernel needs, known before it is compiled.
type Resources struct {
	// Threads is the CTA size.
	Threads int
	// SharedMemory is the shared memory of a CTA.
	SharedMemory unit.Bytes
	// Accumulators and Operands are 32-bit registers per thread: the sums, and the operands of the current and the next
	// step along K. Prefetch are those of copies that wait for their store to shared memory.
	Accumulators, Operands, Prefetch int
	// Registers is the expected number of registers per thread. CTAs is how many CTAs of an SM can have as many: the
	// kernel says so, and the assembler keeps to it.
	Registers, CTAs int
	// ThreadM and ThreadN are the rows and columns of a thread, WarpM and WarpN the rows and columns of a warp.
	ThreadM, ThreadN, WarpM, WarpN int
}

// Resources returns what a kernel needs on any device. If the configuration does not belong to the family, the reason
// says why and the detail puts it in numbers.
func (s *Spec) Resources() (r Resources, reason arch.Reason, detail string) {
	var g geometry
	if reason, detail = s.layout(&g); reason != "" {
		return r, reason, detail
	}
	return g.resources(), "", ""
}

// Check returns what Resources returns, and also rejects kernels that exceed the limits of a device.
func (s *Spec) Check(limits gemmgen.Limits) (r Resources, reason arch.Reason, detail string) {
	if r, reason, detail = s.Resources(); reason != "" {
		return r, reason, detail
	}
	if available := limits.Registers(r.Threads); r.Registers > available {
		return r, arch.ReasonRegisters, fmt.Sprintf(
			"%dx%d elements of C per thread need about %d registers (%d sums, %d operands, %d loaded ahead), "+
				"%d available", r.ThreadM, r.ThreadN, r.Registers, r.Accumulators, r.Operands, r.Prefetch, available)
	}
	reason, detail = gemmgen.CheckShared(limits.SharedMemory, r.SharedMemory)
	return r, reason, detail
}

// The numbers of the family.
var (
	blocksMN = []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
	blocksK  = []int{1, 2, 4, 8, 16, 32, 64}
	warps    = []int{1, 2, 4, 8, 16, 32}
)

// layout lays out the work of a CTA, or returns why there is no such kernel.
func (s *Spec) layout(g *geometry) (reason arch.Reason, detail string) {
	c := &s.Config
	switch {
	case !slices.Contains(blocksMN, c.BlockM), !slices.Contains(blocksMN, c.BlockN),
		!slices.Contains(blocksK, c.BlockK):
		return arch.ReasonAtomShape, fmt.Sprintf(
			"tile %dx%dx%d: block_m and block_n are a power of two up to 512, block_k up to 64",
			c.BlockM, c.BlockN, c.BlockK)
	case !slices.Contains(warps, c.NumWarps):
		return arch.ReasonWarps, fmt.Sprintf("%d warps: the family has a power of two up to 32", c.NumWarps)
	}
	g.choices = choicesOf(c)
	if reason, detail = s.belongs(g.choices); reason != "" {
		return reason, detail
	}
	if g.math == mathWMMA {
		return s.layWMMA(g)
	}
	return s.layFMA(g)
}

// belongs returns why the types or the values on the axes do not go together, or no reason.
func (s *Spec) belongs(o choices) (reason arch.Reason, detail string) {
	c := &s.Config
	if want := gemm.FP32; s.DType != want && (s.DType != gemm.FP16 || o.math != mathWMMA) {
		return arch.ReasonAtomShape, fmt.Sprintf("math=%s multiplies no operands of %s", o.math, s.DType)
	}
	if o.staging == stagingNone && s.splits() {
		return arch.ReasonModelRule, fmt.Sprintf("split_k %d: kernels with staging=none do not split K", c.SplitK)
	}
	stages := [2]int{2, 6}
	switch o.staging {
	case stagingRegisters:
		stages = [2]int{1, 2}
	case stagingNone:
		stages = [2]int{1, 1}
	}
	if c.NumStages < stages[0] || c.NumStages > stages[1] {
		return gemmgen.ReasonStages, fmt.Sprintf("%d stages: staging=%s has %d to %d", c.NumStages, o.staging,
			stages[0], stages[1])
	}
	if idle := o.idle(); idle != "" {
		return arch.ReasonModelRule, fmt.Sprintf("%s has no meaning with staging=%s and math=%s: leave it out", idle,
			o.staging, o.math)
	}
	return "", ""
}

// splits says that several CTAs share an output tile. How many is not in the text.
func (s *Spec) splits() bool { return s.Config.SplitK > 1 }

// name is the kernel's entry point: every field of the specification's key.
func (s Spec) name() string {
	c, o := s.Config, choicesOf(&s.Config)
	name := fmt.Sprintf(Name+"_%dx%dx%d_w%d_s%d_%s_%c%c", c.BlockM, c.BlockN, c.BlockK, c.NumWarps, c.NumStages,
		o.staging, s.AMajor, s.BMajor)
	if s.splits() {
		name += "_split"
	}
	if o.math == mathWMMA {
		return fmt.Sprintf("%s_wmma_%s", name, s.DType)
	}
	return name + fmt.Sprintf("_t%d_l%d%s_a%sp%d_%d_c%dr%d_%d_align%d_%d_%d", o.threadM, o.lanesM, o.laneMap, o.sharedA,
		o.padA, o.padB, o.copyWidth, o.widthA, o.widthB, s.AlignA, s.AlignB, s.AlignC)
}

var _ gemmgen.Program = Spec{}
