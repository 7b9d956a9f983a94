package mma

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Name is the family's name in gemm.Config.Kernel.
const Name = "mma"

// Family is the kernel family.
type Family struct{}

var _ gemmgen.Family = Family{}

// Name implements gemmgen.Family.
func (Family) Name() string { return Name }

// Target implements gemmgen.Family: cp.async and mma.sync.m16n8k16 came with sm_80.
func (Family) Target() target.Target { return target.Target{CC: 80} }

// Axes implements gemmgen.Family. The result is shared.
func (Family) Axes() []gemm.Axis { return axes }

// The numbers of the family's space.
var (
	blocksMN = []int{16, 32, 64, 128, 256}
	blocksK  = []int{16, 32, 64, 128}
	warps    = []int{4, 8}
	stages   = []int{2, 3, 4, 5, 6}
)

// Space implements gemmgen.Family.
func (Family) Space() arch.Space {
	return arch.Space{
		Kernel: Name, BlockM: blocksMN, BlockN: blocksMN, BlockK: blocksK,
		NumWarps: warps, NumStages: stages, SplitK: []int{1},
	}
}

// Program implements gemmgen.Family.
func (Family) Program(
	call gemmgen.Call, out gemm.DType, c gemm.Config, limits gemmgen.Limits,
) (gemmgen.Program, arch.Reason, string) {
	s := SpecFor(call, out, c)
	_, reason, detail := s.Check(limits)
	return s, reason, detail
}
