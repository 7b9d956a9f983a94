package library

import (
	"context"
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
	// A tile has at least one side of at least leastSide, and at most mostSums sums.
	leastSide, mostSums int
	splits              []int
	// whole are the types for which no kernel splits K.
	whole []gemm.DType
}

// kernelsOf returns the kernels of a generation for a scheme of scales.
func kernelsOf(g terms.Generation, scheme string) kernels {
	k := kernels{
		sides: []int{16, 32, 64, 128, 256}, leastSide: 64, mostSums: 128 * 256,
		splits: []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64},
		whole:  []gemm.DType{gemm.INT8, gemm.FP4}, // cuBLAS; TensorRT-LLM
	}
	switch g {
	case terms.CDNA1, terms.CDNA2, terms.CDNA3, terms.CDNA4: // 512 registers per lane, half of them for sums
		k.mostSums = 256 * 256
		k.whole = nil
	case terms.GCN5:
		k.whole = nil
	default:
	}
	if strings.TrimSuffix(scheme, quantises) == "block128" { // DeepGEMM, TensorRT-LLM, Composable Kernel
		k.whole = append(slices.Clone(k.whole), gemm.FP8, gemm.FP8E5M2)
	}
	return k
}

// of returns the kernels for a type.
func (k *kernels) of(t gemm.DType) kernels {
	out := *k
	if slices.Contains(k.whole, t) {
		out.splits = k.splits[:1]
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

func (k *kernels) detail(reason arch.Reason, c *gemm.Config) string {
	switch {
	case c.SplitK > 1 && len(k.splits) == 1:
		return "no kernel splits K for this type and these scales"
	case reason == arch.ReasonRegisters:
		return fmt.Sprintf("tiles of libraries have at most %d sums", k.mostSums)
	}
	return fmt.Sprintf("tiles of libraries have a side of at least %d", k.leastSide)
}

// Candidates implements arch.Architecture: the library's tiles and splits of K, block_m slowest.
func (m *Model) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if _, err := m.description.Kernel(s.Kernel); err != nil {
		return nil, err
	}
	if err := m.description.SupportsTypes(Family, &p); err != nil {
		return nil, err
	}
	k := m.kernels.of(p.DType)
	all, err := s.Enumerate(arch.Space{
		Kernel: Family, BlockM: k.sides, BlockN: k.sides, BlockK: []int{depthBytes * 8 / p.DType.Bits()},
		NumWarps: arch.Unknown, NumStages: arch.Unknown, SplitK: k.splits,
	})
	if err != nil {
		return nil, err
	}
	out := &arch.Candidates{}
	for position, c := range all {
		if reason := k.reject(&c); reason != "" {
			out.Rejected = append(out.Rejected,
				arch.Rejection{Config: c, Position: position, Reason: reason, Detail: k.detail(reason, &c)})
		} else {
			out.Configs = append(out.Configs, c)
		}
	}
	return out, nil
}
