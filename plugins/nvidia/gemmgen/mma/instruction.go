package mma

import (
	"slices"

	"github.com/origami-gemm/origami/core/gemm"
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
	// emit is the matrix instruction. It is nil for fp32, whose products are summed by FMA.
	emit func(k *ptx.Builder, d, a, b, c ptx.Operand) ptx.Operand
	// widen is the instruction that converts two fp8 numbers to fp16. It is nil for other types.
	widen func(k *ptx.Builder, d, a ptx.Operand) ptx.Operand
}

// widened reports whether fp8 operands are converted to fp16 in registers, and multiplied as such.
func (i *instruction) widened(t target.Target) bool { return i.widen != nil && t.EmulatesFP8() }

var sm80, sm89 = target.Target{CC: 80}, target.Target{CC: 89}

// instructions are those of the family, by element type.
var instructions = [...]instruction{
	gemm.FP16: {name: "mma.sync.m16n8k16", needs: sm80, emit: (*ptx.Builder).MmaSyncM16N8K16F32F16},
	gemm.BF16: {name: "mma.sync.m16n8k16", needs: sm80, emit: (*ptx.Builder).MmaSyncM16N8K16F32BF16},
	gemm.FP8: {name: "mma.sync.m16n8k32", needs: sm89, emit: (*ptx.Builder).MmaSyncM16N8K32F32E4M3,
		widen: (*ptx.Builder).CvtF16x2E4M3x2},
	gemm.FP8E5M2: {name: "mma.sync.m16n8k32", needs: sm89, emit: (*ptx.Builder).MmaSyncM16N8K32F32E5M2,
		widen: (*ptx.Builder).CvtF16x2E5M2x2},
	gemm.INT8: {name: "mma.sync.m16n8k32", needs: sm80, integer: true,
		emit: (*ptx.Builder).MmaSyncM16N8K32S32S8},
	gemm.TF32: {name: "mma.sync.m16n8k8", needs: sm80, round: true,
		emit: (*ptx.Builder).MmaSyncM16N8K8F32TF32},
	gemm.FP32: {name: "fma", needs: sm80},
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
