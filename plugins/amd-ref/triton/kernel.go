package triton

import (
	"fmt"
	"math/bits"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// The kernel families: the GEMM of Triton's tutorial, the rows of each expert by its weights as vLLM and SGLang
// multiply them, and their fp8 with a scale per 128 elements of a row of A and per 128x128 of B.
const (
	Family  = "triton"
	Experts = "fused_moe"
	Blocks  = "block_fp8"
)

// scaleBlock is how many elements have a scale in common along K and N, where they have one per block.
const scaleBlock = 128

// The axes that AMD's backend of Triton adds, and topK, which the kernels of experts have on every device.
var (
	wavesPerEU = gemm.Axis{Name: "waves_per_eu", Type: gemm.Integer, Default: "0",
		Values: []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"},
		Doc:    "waves of a SIMD that the compiler makes room for in the registers; 0 leaves it the choice"}
	instruction = gemm.Axis{Name: "matrix_instr_nonkdim", Type: gemm.Integer, Default: "0",
		Values: []string{"0", "16", "32"}, Doc: "rows and columns of the matrix instruction; 0 leaves Triton the choice"}
	kpack = gemm.Axis{Name: "kpack", Type: gemm.Integer, Default: "1", Values: []string{"1", "2"},
		Doc: "operands of so many matrix instructions are read of LDS at once; CDNA 4 ignores it"}
	topK = gemm.Axis{Name: "top_k", Type: gemm.Integer, Default: "0",
		Doc: "experts of a token, in the first product of a layer, whose time then has the layer's other kernels; 0 in " +
			"the second product"}
	axes = []gemm.Axis{wavesPerEU, instruction, kpack}
)

// families are the families with what they multiply.
var families = []arch.Family{
	{Name: Family, Axes: axes, Types: gemm.Plain(gemm.FP16, gemm.BF16, gemm.FP8, gemm.INT8),
		Doc: "Triton's tutorial Matrix Multiplication on AMD"},
	{Name: Experts, Axes: append(axes[:len(axes):len(axes)], topK), Groups: true,
		Types: []gemm.Types{{In: gemm.BF16, Out: gemm.BF16}, {In: gemm.FP8, Out: gemm.BF16}},
		Doc:   "fused_moe of vLLM and SGLang on AMD: the rows of each expert by its weights"},
	{Name: Blocks, Axes: append(axes[:len(axes):len(axes)], topK), Groups: true,
		Types: []gemm.Types{{In: gemm.FP8, Out: gemm.BF16}},
		Doc: "fp8 of vLLM and SGLang with a scale per 128 elements of a row of A and per 128x128 of B, on AMD: fused_moe " +
			"for groups, w8a8_block_fp8 for one matrix"},
}

// spaceOf has the configurations among which vLLM's tuner searches on ROCm (benchmarks/kernels/benchmark_moe.py), but
// for waves_per_eu: all winners for an MI300X and an MI325X have 0, and those for an MI308X every value alike. CDNA 4
// has no kpack. With scales per block, tiles of fewer than 32 columns are in no table.
func spaceOf(family string, cdna4 bool) arch.Space {
	s := arch.Space{Kernel: family, BlockM: []int{16, 32, 64, 128, 256}, BlockN: []int{16, 32, 64, 128, 256},
		BlockK: []int{32, 64, 128, 256}, NumWarps: []int{1, 2, 4, 8}, NumStages: []int{2}, SplitK: []int{1},
		Axes: []arch.AxisValues{{Name: wavesPerEU.Name, Values: []string{"0"}},
			{Name: instruction.Name, Values: []string{"16", "32"}}, {Name: kpack.Name, Values: []string{"1", "2"}}}}
	if family == Blocks {
		s.BlockN, s.BlockK = s.BlockN[1:], []int{64, scaleBlock}
	}
	if cdna4 {
		s.Axes[2].Values = []string{"1"}
	}
	return s
}

const (
	leastBlock = 16   // rows and columns of an operand of tl.dot
	leastBytes = 32   // of it along K
	mostLanes  = 1024 // of a work-group
	waveLanes  = 64
)

// missing returns why Triton has no such kernel, or nothing.
func missing(family string, c *gemm.Config, elementBytes, instruction int) (reason arch.Reason, detail string) {
	power := func(n int) bool { return bits.OnesCount(uint(n)) == 1 }
	switch {
	case min(c.BlockM, c.BlockN) < leastBlock || c.BlockK*elementBytes < leastBytes ||
		!power(c.BlockM) || !power(c.BlockN) || !power(c.BlockK):
		return arch.ReasonAtomShape, fmt.Sprintf("tile %dx%dx%d: tl.dot takes powers of two from %d, and from %d bytes "+
			"along K", c.BlockM, c.BlockN, c.BlockK, leastBlock, leastBytes)
	case min(c.BlockM, c.BlockN) < instruction:
		return arch.ReasonAtomShape, fmt.Sprintf("tile %dx%d has no room for a matrix instruction of %dx%d", c.BlockM,
			c.BlockN, instruction, instruction)
	case !power(c.NumWarps) || c.NumWarps*waveLanes > mostLanes:
		return arch.ReasonWarps, fmt.Sprintf("%d waves: Triton launches a power of two, up to %d", c.NumWarps,
			mostLanes/waveLanes)
	case c.SplitK != 1:
		return arch.ReasonModelRule, "the kernels split no K"
	case family == Blocks && c.BlockK > scaleBlock:
		return arch.ReasonModelRule, fmt.Sprintf("a K step of %d has several scales, and the kernel reads one per %d",
			c.BlockK, scaleBlock)
	}
	return "", ""
}

// chosen are the sides of the matrix instruction that Triton takes for a tile if it is not told
// (chooseMfmaInstruction of its AMD backend).
func chosen(c *gemm.Config) int {
	if min(c.BlockM, c.BlockN) >= 32 {
		return 32
	}
	return 16
}

// wavesOf returns how Triton lays out the waves of a work-group over its tile (warpsPerTile of its AMD backend): along
// the side with more instructions left, of M only while it has twice as many.
func wavesOf(c *gemm.Config, instruction int) (m, n int) {
	rows, columns := c.BlockM/instruction, c.BlockN/instruction
	for m, n = 1, 1; m*n < c.NumWarps; {
		tall := rows/2/m >= columns/n
		if tall && m < rows || !tall && n >= columns {
			m *= 2
		} else {
			n *= 2
		}
	}
	return m, n
}
