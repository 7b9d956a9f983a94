package amdorigami

import (
	"context"
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// The launch parameters that tritonBLAS uses on AMD. The model ignores them.
const (
	launchWarps  = 8
	launchStages = 2
)

// axes returns the tile sizes that tritonBLAS tries for an element type: 5×5×6 for 16- and 32-bit types. For 8-bit
// types, gfx942 adds 512 to M and N, and gfx950 drops 16. tritonBLAS also repeats the depths 128 and 256 for 8-bit
// types on gfx942. A repeated configuration changes no pick, so this list has no repetitions.
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

// Candidates implements arch.Architecture.
func (a *architecture) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if _, err := a.Description.Kernel(s.Kernel); err != nil {
		return nil, err
	}
	if _, ok := a.kernels[p.DType.CostsLike()]; !ok {
		return nil, a.noInstruction(p.DType)
	}
	m, n, k := a.axes(p.DType)
	all, err := s.Enumerate(arch.Space{
		Kernel: Family, BlockM: m, BlockN: n, BlockK: k,
		NumWarps: []int{launchWarps}, NumStages: []int{launchStages}, SplitK: []int{1},
	})
	if err != nil {
		return nil, err
	}
	out := &arch.Candidates{}
	for position, c := range all {
		need := (c.BlockM + c.BlockN) * c.BlockK * p.DType.Bytes()
		if uint64(need) <= a.ldsBytes {
			out.Configs = append(out.Configs, c)
			continue
		}
		out.Rejected = append(out.Rejected, arch.Rejection{
			Config: c, Position: position, Reason: arch.ReasonSharedMemory,
			Detail: fmt.Sprintf("needs %d B of LDS for one tile of A and B, %d B available", need, a.ldsBytes),
		})
	}
	return out, nil
}
