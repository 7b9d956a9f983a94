package library

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

// kernels are those of the library for a generation.
type kernels struct {
	sides []int // of tiles
	// finer are the sides of tiles for 16 bits and fp8.
	finer []int
	// A tile has at least one side of at least leastSide, and at most mostSums sums.
	leastSide, mostSums int
	splits              []int
	// unsplit lists the types without kernels that split K.
	unsplit []gemm.DType
	// oneRow lists the types with kernels without tiles, for one row of A.
	oneRow []gemm.DType
}

// kernelsOf returns the kernels of a generation for a scheme of scales.
func kernelsOf(g terms.Generation, scheme string) kernels {
	k := kernels{
		sides: []int{16, 32, 64, 128, 256}, leastSide: 64, mostSums: 128 * 256,
		splits: []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64},
	}
	plain := scheme == perTensor || scheme == perTensor+quantises
	switch g {
	case terms.GCN5, terms.Vega20: // a split adds up in C, and these units add no fp16 to memory
		k.unsplit = []gemm.DType{gemm.FP16, gemm.BF16}
	case terms.CDNA1, terms.CDNA2, terms.CDNA3, terms.CDNA4: // 512 registers per lane, half of them for sums
		k.mostSums = 256 * 256
	case terms.Hopper: // cuBLAS, as measured
		k.unsplit = []gemm.DType{gemm.INT8}
		if plain {
			k.finer = []int{16, 32, 64, 96, 128, 160, 192, 256}
		}
	case terms.Blackwell, terms.BlackwellConsumer: // TensorRT-LLM; cuDNN splits K on GeForce cards
		if g == terms.Blackwell || strings.HasSuffix(scheme, quantises) {
			k.unsplit = []gemm.DType{gemm.FP4}
		}
	default:
	}
	switch g { // cuBLAS, as published
	case terms.Hopper, terms.Blackwell:
		k.oneRow = []gemm.DType{gemm.TF32, gemm.FP32}
	case terms.Ampere, terms.Ada, terms.BlackwellConsumer:
		k.oneRow = []gemm.DType{gemm.FP16, gemm.BF16, gemm.TF32, gemm.FP32}
		if plain {
			k.oneRow = append(k.oneRow, gemm.FP8, gemm.FP8E5M2, gemm.INT8)
		}
	default:
	}
	if scheme == perMX || strings.TrimSuffix(scheme, quantises) == "block128" { // CUTLASS, DeepGEMM, Composable Kernel
		k.unsplit = append(slices.Clone(k.unsplit), gemm.FP8, gemm.FP8E5M2)
	}
	return k
}

// of returns the kernels for a type.
func (k *kernels) of(t gemm.DType) kernels {
	out := *k
	if slices.Contains(k.unsplit, t) {
		out.splits = k.splits[:1]
	}
	if k.finer != nil && slices.Contains([]gemm.DType{gemm.FP16, gemm.BF16, gemm.FP8, gemm.FP8E5M2}, t) {
		out.sides = k.finer
	}
	return out
}

// depthBytes is the extent of a K step in bytes of an operand: a cache line.
const depthBytes = 128

// reject returns why the library has no such kernel.
func (k *kernels) reject(c *gemm.Config) arch.Reason {
	switch {
	case c.SplitK > 1 && len(k.splits) == 1:
		return arch.ReasonModelRule
	case c.BlockM*c.BlockN > k.mostSums:
		return arch.ReasonRegisters
	case c.BlockM < k.leastSide && c.BlockN < k.leastSide:
		return arch.ReasonModelRule
	}
	return ""
}

// Detail implements model.Evaluation.
func (e *evaluation) Detail(c *gemm.Config, reason arch.Reason) string {
	switch {
	case c.SplitK > 1 && len(e.kernels.splits) == 1:
		return "no kernel splits K for this type and these scales"
	case reason == arch.ReasonRegisters:
		return fmt.Sprintf("tiles of libraries have at most %d sums", e.kernels.mostSums)
	}
	return fmt.Sprintf("tiles of libraries have a side of at least %d", e.kernels.leastSide)
}

// space are the library's tiles and splits of K.
func (m *Model) space(_ string, t gemm.DType) arch.Space {
	k := m.kernels.of(t)
	return arch.Space{
		Kernel: Family, BlockM: k.sides, BlockN: k.sides, BlockK: []int{depthBytes * 8 / t.Bits()},
		NumWarps: arch.Unknown, NumStages: arch.Unknown, SplitK: k.splits,
	}
}
