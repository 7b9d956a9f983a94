package mma

import (
	"slices"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// stepBytes is the extent along K of a matrix instruction in bytes of an operand: 16 elements of 16 bits, 32 of 8 bits,
// 8 of 32 bits. It is the same for all types, and so is the place of every byte in the fragments (PTX ISA, "Matrix
// Fragments for mma.m16n8k16 / m16n8k32 / m16n8k8").
const stepBytes = 32

// chunkBytes is a row of the matrices that ldmatrix reads, and the widest copy. A step has two chunks.
const chunkBytes = 16

// instruction is how the products of one element type are summed.
type instruction struct {
	// name is the instruction's in messages. needs is the lowest target that has it.
	name  string
	needs target.Target
	// integer says that sums are int32, not fp32.
	integer bool
	// round says that operands in memory are fp32 and are rounded when they are read.
	round bool
	// emit returns the matrix instruction. It is nil for fp32, whose products are summed by FMA.
	emit matrixInstruction
	// widen returns the instruction that converts two fp8 numbers to fp16. It is nil for other types.
	widen func(b asm.Builder) func(d, a ptx.Operand)
}

// matrixInstruction returns a matrix instruction of a builder.
type matrixInstruction func(b asm.Builder) func(d, a, b, c ptx.Operand)

// The matrix instructions.
var (
	mmaFP16   = matrixInstruction(func(b asm.Builder) func(d, a, b, c ptx.Operand) { return b.MmaSyncM16N8K16F32F16 })
	mmaBF16   = matrixInstruction(func(b asm.Builder) func(d, a, b, c ptx.Operand) { return b.MmaSyncM16N8K16F32BF16 })
	mmaE4M3   = matrixInstruction(func(b asm.Builder) func(d, a, b, c ptx.Operand) { return b.MmaSyncM16N8K32F32E4M3 })
	mmaE5M2   = matrixInstruction(func(b asm.Builder) func(d, a, b, c ptx.Operand) { return b.MmaSyncM16N8K32F32E5M2 })
	mmaS8     = matrixInstruction(func(b asm.Builder) func(d, a, b, c ptx.Operand) { return b.MmaSyncM16N8K32S32S8 })
	mmaTF32   = matrixInstruction(func(b asm.Builder) func(d, a, b, c ptx.Operand) { return b.MmaSyncM16N8K8F32TF32 })
	widenE4M3 = func(b asm.Builder) func(d, a ptx.Operand) { return b.CvtF16x2E4M3x2 }
	widenE5M2 = func(b asm.Builder) func(d, a ptx.Operand) { return b.CvtF16x2E5M2x2 }
)

// widened reports whether fp8 operands are converted to fp16 in registers, and multiplied as such.
func (i *instruction) widened(t target.Target) bool { return i.widen != nil && t.EmulatesFP8() }

var sm80, sm89 = target.Target{CC: 80}, target.Target{CC: 89}

// instructions are those of the family, by element type.
var instructions = [...]instruction{
	gemm.FP16:    {name: "mma.sync.m16n8k16", needs: sm80, emit: mmaFP16},
	gemm.BF16:    {name: "mma.sync.m16n8k16", needs: sm80, emit: mmaBF16},
	gemm.FP8:     {name: "mma.sync.m16n8k32", needs: sm89, emit: mmaE4M3, widen: widenE4M3},
	gemm.FP8E5M2: {name: "mma.sync.m16n8k32", needs: sm89, emit: mmaE5M2, widen: widenE5M2},
	gemm.INT8:    {name: "mma.sync.m16n8k32", needs: sm80, emit: mmaS8, integer: true},
	gemm.TF32:    {name: "mma.sync.m16n8k8", needs: sm80, emit: mmaTF32, round: true},
	gemm.FP32:    {name: "fma", needs: sm80},
}

// instructionOf returns the instruction for an element type, or nil if the family does not have the type.
func instructionOf(d gemm.DType) *instruction {
	if int(d) >= len(instructions) || instructions[d].name == "" {
		return nil
	}
	return &instructions[d]
}

// DTypes lists the element types of operands that the family multiplies.
func DTypes() []gemm.DType {
	return slices.DeleteFunc(gemm.DTypes(), func(d gemm.DType) bool { return instructionOf(d) == nil })
}

// sums has the operations on sums, which are fp32 or int32.
type sums struct {
	asm.Builder
	integer bool
}

// register returns a new register for a sum.
func (s sums) register() ptx.Operand {
	if s.integer {
		return s.B32()
	}
	return s.F32()
}

func (s sums) clear(d ptx.Operand) {
	if s.integer {
		s.MovB32(d, ptx.Int(0))
		return
	}
	s.MovF32(d, ptx.Float(0))
}

// move is d = a, if a predicate is true.
func (s sums) move(d, a, predicate ptx.Operand) {
	s.If(predicate)
	if s.integer {
		s.MovB32(d, a)
		return
	}
	s.MovF32(d, a)
}

// add is d += a.
func (s sums) add(d, a ptx.Operand) {
	if s.integer {
		s.AddS32(d, d, a)
		return
	}
	s.AddF32(d, d, a)
}

// scale is d *= factor.
func (s sums) scale(d, factor ptx.Operand) {
	if s.integer {
		s.MulLoS32(d, d, factor)
		return
	}
	s.MulF32(d, d, factor)
}

// addScaled is d += factor * a.
func (s sums) addScaled(d, factor, a ptx.Operand) {
	if s.integer {
		s.MadLoS32(d, factor, a, d)
		return
	}
	s.FmaF32(d, factor, a, d)
}

// isNotZero is p = (a != 0).
func (s sums) isNotZero(p, a ptx.Operand) {
	if s.integer {
		s.SetpNeS32(p, a, ptx.Int(0))
		return
	}
	s.SetpNeuF32(p, a, ptx.Float(0))
}

// param returns a parameter of the type of the sums.
func (s sums) param(p ptx.Operand) ptx.Operand {
	d := s.register()
	if s.integer {
		s.LdParamU32(d, p)
	} else {
		s.LdParamF32(d, p)
	}
	return d
}

// loadShared reads 1, 2 or 4 neighbours.
func (s sums) loadShared(d []ptx.Operand, from ptx.Operand) {
	switch {
	case len(d) == 1 && s.integer:
		s.LdSharedB32(d[0], from)
	case len(d) == 1:
		s.LdSharedF32(d[0], from)
	case len(d) == 2 && s.integer:
		s.LdSharedV2B32(s.Vec(d...), from)
	case len(d) == 2:
		s.LdSharedV2F32(s.Vec(d...), from)
	case s.integer:
		s.LdSharedV4B32(s.Vec(d...), from)
	default:
		s.LdSharedV4F32(s.Vec(d...), from)
	}
}

// storeShared writes 1 or 2 neighbours.
func (s sums) storeShared(to ptx.Operand, a ...ptx.Operand) {
	switch {
	case len(a) == 1 && s.integer:
		s.StSharedB32(to, a[0])
	case len(a) == 1:
		s.StSharedF32(to, a[0])
	case s.integer:
		s.StSharedV2B32(to, s.Vec(a...))
	default:
		s.StSharedV2F32(to, s.Vec(a...))
	}
}

// loadGlobal reads 1, 2 or 4 neighbours.
func (s sums) loadGlobal(d []ptx.Operand, from ptx.Operand) {
	switch {
	case len(d) == 1 && s.integer:
		s.LdGlobalB32(d[0], from)
	case len(d) == 1:
		s.LdGlobalF32(d[0], from)
	case len(d) == 2 && s.integer:
		s.LdGlobalV2B32(s.Vec(d...), from)
	case len(d) == 2:
		s.LdGlobalV2F32(s.Vec(d...), from)
	case s.integer:
		s.LdGlobalV4B32(s.Vec(d...), from)
	default:
		s.LdGlobalV4F32(s.Vec(d...), from)
	}
}

// storeGlobal writes 1, 2 or 4 neighbours.
func (s sums) storeGlobal(to ptx.Operand, a []ptx.Operand) {
	switch {
	case len(a) == 1 && s.integer:
		s.StGlobalB32(to, a[0])
	case len(a) == 1:
		s.StGlobalF32(to, a[0])
	case len(a) == 2 && s.integer:
		s.StGlobalV2B32(to, s.Vec(a...))
	case len(a) == 2:
		s.StGlobalV2F32(to, s.Vec(a...))
	case s.integer:
		s.StGlobalV4B32(to, s.Vec(a...))
	default:
		s.StGlobalV4F32(to, s.Vec(a...))
	}
}
