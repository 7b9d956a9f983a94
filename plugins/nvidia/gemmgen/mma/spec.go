package mma

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Spec is everything that the text of a kernel depends on. Sizes, leading dimensions, strides, alpha, beta, group_m and
// the number of splits are parameters of the kernel (see gemmgen.Call), so one kernel serves all of them.
type Spec struct {
	// DType is the element type of A and B, Out the element type of C: INT32 if A and B are INT8, else FP16, BF16 or
	// FP32. Sums are FP32, or INT32 for INT8.
	DType, Out gemm.DType
	// AMajor and BMajor say along which dimension A and B are contiguous. C is row-major.
	AMajor, BMajor gemm.Major
	// AlignA, AlignB and AlignC are the bytes (16, 8, 4, 2 or 1) that divide the address and the length of every
	// contiguous row or column of the matrix.
	AlignA, AlignB, AlignC int
	// RaggedA, RaggedB and RaggedC say that only the addresses and distances of these rows are multiples of the alignment,
	// but not their lengths.
	RaggedA, RaggedB, RaggedC bool
	// Nested says that the elements of the matrices are where tables of offsets say (see gemmgen.Offsets). Every copy and
	// store then has one element.
	Nested bool
	// Epilogue is what is done to C before it is stored.
	Epilogue gemm.Epilogue
	// Config is the configuration. GroupM does not change the text, and of SplitK only whether it is above one does.
	Config gemm.Config
}

var _ gemmgen.Program = Spec{}

// SpecFor returns the fastest specification that computes a call with results of type out.
func SpecFor(call gemmgen.Call, out gemm.DType, c gemm.Config) Spec {
	p := call.Problem
	s := Spec{
		DType: p.DType, Out: out, AMajor: p.AMajor, BMajor: p.BMajor, Epilogue: p.Epilogue, Config: c,
	}
	if p.Nest != (gemm.Nest{}) {
		s.Nested, s.AlignA, s.AlignB, s.AlignC = true, p.DType.Bytes(), p.DType.Bytes(), out.Bytes()
		return s
	}
	s.AlignA, s.AlignB, s.AlignC = call.Alignment(out)
	vectorA, vectorB, vectorC := call.Vectors(out)
	if vectorA > s.AlignA && vectorA >= AsyncBytes {
		s.AlignA, s.RaggedA = vectorA, true
	}
	if vectorB > s.AlignB && vectorB >= AsyncBytes {
		s.AlignB, s.RaggedB = vectorB, true
	}
	if vectorC > s.AlignC {
		s.AlignC, s.RaggedC = vectorC, true
	}
	return s
}

// computes reports whether the matrices of a call are aligned as the specification says.
func (s Spec) computes(call gemmgen.Call) bool {
	alignA, alignB, alignC := call.Alignment(s.Out)
	vectorA, vectorB, vectorC := call.Vectors(s.Out)
	suits := func(align, vector, need int, ragged bool) bool { return align >= need || ragged && vector >= need }
	return suits(alignA, vectorA, s.AlignA, s.RaggedA) && suits(alignB, vectorB, s.AlignB, s.RaggedB) &&
		suits(alignC, vectorC, s.AlignC, s.RaggedC)
}

// Key implements gemmgen.Program.
func (s Spec) Key() any { return s.key() }

// key returns the specification without what the text does not depend on.
func (s Spec) key() Spec {
	s.Config.GroupM = 0
	s.Config.SplitK = min(s.Config.SplitK, 2)
	s.Config.Kernel = Name
	if want := choicesOf(&s.Config); want.warpsK == 1 {
		if grid, ok := newWarpGrid(&s.Config, s.step(), choices{warpsM: want.warpsM}); ok && grid.warpsK == 1 {
			s.Config.Axes, _ = s.Config.Axes.With(axisWarpsK, "") // it only becomes shorter
		}
	}
	return s
}

// step is the extent of a matrix instruction along K in elements.
func (s *Spec) step() int { return stepBytes / s.DType.Bytes() }

// The types of C that the epilogue writes.
var (
	floatOutputs   = []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP32}
	integerOutputs = []gemm.DType{gemm.INT32}
)

// outputs returns the types of C for operands of a type of the family.
func outputs(d gemm.DType) []gemm.DType {
	if instructionOf(d).integer {
		return integerOutputs
	}
	return floatOutputs
}

// Resources is what a kernel of the family needs, known before it is compiled.
type Resources struct {
	// Threads is the CTA size.
	Threads int
	// SharedMemory is the dynamic shared memory of one CTA: the pipeline's buffers, or the epilogue's if larger.
	SharedMemory unit.Bytes
	// Accumulators and Fragments are 32-bit registers per thread: the sums of the warp's tile, and the operands of the
	// current step along K and, where there is more than one step, of the next. For targets that multiply fp8 as fp16,
	// Check adds the converted ones.
	Accumulators, Fragments int
	// WarpsM, WarpsN and WarpsK are the warp grid. WarpsK warps share an output tile and split the steps along K of a
	// block.
	WarpsM, WarpsN, WarpsK int
	// CopiesA and CopiesB are the copies of a thread from global to shared memory in each block along K. Each is as wide
	// as the specification's AlignA or AlignB.
	CopiesA, CopiesB int
	// TurnA and TurnB are how many of them are issued one after the other. Narrow copies that are more run in a loop.
	TurnA, TurnB int
}

// AsyncBytes is the least width of a copy that is asynchronous. Narrower ones are loads and stores of a thread.
const AsyncBytes = 4

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
	if i := instructionOf(s.DType); limits.Target != (target.Target{}) && !limits.Target.Covers(i.needs) {
		return r, arch.ReasonAtomShape, fmt.Sprintf("%s for %s needs %s, the device has %s", i.name, s.DType, i.needs,
			limits.Target)
	}
	if instructionOf(s.DType).widened(limits.Target) {
		r.Fragments += 4*g.tilesM + 4 // half of those of A, and one column of tiles of B, as fp16
	}
	available := limits.Registers(r.Threads)
	if need := r.Accumulators + r.Fragments + otherRegisters; need > available {
		return r, arch.ReasonRegisters, fmt.Sprintf(
			"a %dx%d warp tile needs about %d registers per thread (%d accumulators, %d fragments), %d available",
			g.warpM, g.warpN, need, r.Accumulators, r.Fragments, available)
	}
	reason, detail = gemmgen.CheckShared(limits.SharedMemory, r.SharedMemory)
	return r, reason, detail
}

// layout lays out the work of a CTA, and what it needs.
func (s *Spec) layout(g *geometry, r *Resources) (reason arch.Reason, detail string) {
	c := &s.Config
	if reason, detail = s.belongs(); reason != "" {
		return reason, detail
	}
	if !g.lay(s) {
		as := ""
		if c.Axes != (gemm.Axes{}) {
			as = fmt.Sprintf(" with %s", c.Axes)
		}
		return arch.ReasonWarps, fmt.Sprintf(
			"%d warps cannot share a %dx%d tile%s: it has %d warp tiles of 16x8 and %d k%d steps to split",
			c.NumWarps, c.BlockM, c.BlockN, as, c.BlockM/16*c.BlockN/8, c.BlockK/s.step(), s.step())
	}
	if axis := derivedAnyway(c, s.step(), g.warpGrid); axis != "" {
		return arch.ReasonModelRule, fmt.Sprintf("the kernel has that %s without the axis: leave it out", axis)
	}
	*r = Resources{
		Threads: g.threads, SharedMemory: unit.Bytes(g.sharedBytes),
		Accumulators: 4 * g.tilesM * g.tilesN, Fragments: g.fragments,
		WarpsM: g.warpsM, WarpsN: g.warpsN, WarpsK: g.warpsK,
		CopiesA: g.a.copies(g.threads), CopiesB: g.b.copies(g.threads),
		TurnA: g.a.unrolled(g.threads), TurnB: g.b.unrolled(g.threads),
	}
	return "", ""
}

// belongs returns why the types or the configuration are outside the family, or no reason if they are inside.
func (s *Spec) belongs() (reason arch.Reason, detail string) {
	c := &s.Config
	switch {
	case instructionOf(s.DType) == nil:
		return arch.ReasonAtomShape, fmt.Sprintf("the family has no instruction for operands of %s", s.DType)
	case !slices.Contains(outputs(s.DType), s.Out):
		return arch.ReasonAtomShape, fmt.Sprintf("for operands of %s the epilogue writes one of %s, not %s", s.DType,
			gemm.TypeNames(outputs(s.DType)), s.Out)
	case s.DType.Bytes() == 1 && (s.AMajor != gemm.MajorK || s.BMajor != gemm.MajorK):
		return arch.ReasonAtomShape, fmt.Sprintf(
			"A and B of %s must be contiguous along k: ldmatrix transposes only 16-bit elements", s.DType)
	case !slices.Contains(blocksMN, c.BlockM), !slices.Contains(blocksMN, c.BlockN),
		!slices.Contains(blocksK, c.BlockK):
		return arch.ReasonAtomShape, fmt.Sprintf(
			"tile %dx%dx%d: block_m and block_n are a power of two from 16 to 256, block_k from 16 to 128",
			c.BlockM, c.BlockN, c.BlockK)
	case c.BlockK < s.step():
		return arch.ReasonAtomShape, fmt.Sprintf("block_k %d is below the %d of %s", c.BlockK, s.step(),
			instructionOf(s.DType).name)
	case !slices.Contains(warps, c.NumWarps):
		return arch.ReasonWarps, fmt.Sprintf("%d warps: the family has 4 or 8", c.NumWarps)
	case !slices.Contains(stages, c.NumStages):
		return gemmgen.ReasonStages, fmt.Sprintf("%d stages: the family has 2 to 6", c.NumStages)
	case s.Epilogue.Residual || s.Epilogue.Activation.Gated() || s.Epilogue.Scales || s.Epilogue.BiasType != 0:
		return arch.ReasonModelRule, fmt.Sprintf("the family has no %s: wgmma has", s.Epilogue)
	case s.Epilogue != (gemm.Epilogue{}) && s.Out == gemm.INT32:
		return arch.ReasonAtomShape, fmt.Sprintf("the epilogue %s needs floating-point results, not %s", s.Epilogue, s.Out)
	case c.SplitK < 1:
		return arch.ReasonModelRule, fmt.Sprintf("split_k is %d, not at least 1", c.SplitK)
	}
	if c.Axes != (gemm.Axes{}) {
		if err := c.Validate(axes...); err != nil {
			return arch.ReasonModelRule, err.Error()
		}
	}
	return "", ""
}

// name is the kernel's entry point: every field of the specification's key.
func (s Spec) name() string {
	c := s.Config
	name := fmt.Sprintf(Name+"_%dx%dx%d_w%d_s%d_%s_%s_%c%c_a%db%dc%d", c.BlockM, c.BlockN, c.BlockK, c.NumWarps,
		c.NumStages, s.DType, s.Out, s.AMajor, s.BMajor, s.AlignA, s.AlignB, s.AlignC)
	for _, m := range []struct {
		ragged bool
		name   string
	}{{s.RaggedA, "_ragged_a"}, {s.RaggedB, "_ragged_b"}, {s.RaggedC, "_ragged_c"}} {
		if m.ragged {
			name += m.name
		}
	}
	if s.Nested {
		name += "_nested"
	}
	if c.SplitK > 1 {
		name += "_split"
	}
	name += gemmgen.EpilogueSuffix(s.Epilogue)
	for axis, value := range c.Axes.All() {
		name += "_" + axis + value
	}
	return name
}

// Conversions is how many instructions convert a register of operands on a target: two for tf32, a comparison and an
// addition, and one for each half of four fp8 numbers.
func (s *Spec) Conversions(t target.Target) int {
	if i := instructionOf(s.DType); i != nil && (i.round || i.widened(t)) {
		return 2
	}
	return 0
}
