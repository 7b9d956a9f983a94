package amdref

import (
	"context"
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// The launch parameters that tritonBLAS uses on AMD. The model's numbers do not depend on them.
const (
	launchWarps  = 8
	launchStages = 2
)

// axes returns tritonBLAS's candidate tiles for a type: 5×5×6 of them for 16- and 32-bit types. For 8-bit types gfx942 adds
// 512 to M and N, and gfx950 leaves out 16. (tritonBLAS also repeats the depths 128 and 256 for 8-bit types on gfx942. A repeated
// configuration changes no pick, so the list here has each one once.)
func (a *architecture) axes(t gemm.DType) (m, n, k []int) {
	m = []int{16, 32, 64, 128, 256}
	k = []int{16, 32, 64, 128, 256, 512}
	if t.Bits() == 8 {
		switch a.sheet.Arch {
		case "gfx942":
			m = append(m, 512)
		case "gfx950":
			m = m[1:]
		}
	}
	return m, m, k
}

// Candidates implements arch.Architecture. The order is block_m, block_n, block_k, warps, stages, split, outermost first.
func (a *architecture) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if s.Kernel != "" && s.Kernel != kernelFamily {
		return nil, unknownKernel(s.Kernel)
	}
	if p.DType < gemm.FP16 || p.DType > gemm.INT8 || !a.kernels[p.DType].ok {
		return nil, a.noInstruction(p.DType)
	}
	m, n, k := a.axes(p.DType)
	axes := [...]struct {
		name  string
		asked []int
		own   []int
	}{
		{"block_m", s.BlockM, m}, {"block_n", s.BlockN, n}, {"block_k", s.BlockK, k},
		{"num_warps", s.NumWarps, []int{launchWarps}}, {"num_stages", s.NumStages, []int{launchStages}}, {"split_k", s.SplitK, []int{1}},
	}
	total := 1
	for i := range axes {
		axis := &axes[i]
		if len(axis.asked) > 0 {
			axis.own = axis.asked
		}
		if j := slices.IndexFunc(axis.own, func(v int) bool { return v < 1 || v > maxBlock }); j >= 0 {
			return nil, diag.Inputf("%s of %d is outside 1 to %d", axis.name, axis.own[j], maxBlock).At("the configuration space").Do("give values in that range")
		}
		total *= len(axis.own)
	}

	out := &arch.Candidates{Configs: make([]gemm.Config, 0, total)}
	position := 0
	for _, bm := range axes[0].own {
		for _, bn := range axes[1].own {
			for _, bk := range axes[2].own {
				need := (bm + bn) * bk * p.DType.Bytes()
				for _, warps := range axes[3].own {
					for _, stages := range axes[4].own {
						for _, split := range axes[5].own {
							c := gemm.Config{BlockM: bm, BlockN: bn, BlockK: bk, NumWarps: warps, NumStages: stages, SplitK: split, Kernel: kernelFamily}
							if uint64(need) <= a.ldsBytes {
								out.Configs = append(out.Configs, c)
							} else {
								out.Rejected = append(out.Rejected, arch.Rejection{Config: c, Position: position, Reason: arch.ReasonSharedMemory,
									Detail: fmt.Sprintf("needs %d B of LDS for one tile of A and B, %d B available", need, a.ldsBytes)})
							}
							position++
						}
					}
				}
			}
		}
	}
	return out, nil
}
