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

// Sums says which kernels add up an element of C in an order that does not depend on M.
//
// A warp adds one step of 32 bytes along K after another to the accumulators of its tile, all with the instruction of
// the type, in the order of K. Two things add up more than one sum of an element: a split of K, and warps that divide
// the steps of a block (warp_count_k). How many do that is derived from the tile if the axis is 0, so it is fixed at
// 1.
//
// block_k is the same for all M: the block that is not full comes first, filled up with zeros, so that it decides which
// indices along K one instruction adds. With rows along K that no copy ends with, it comes last; that depends on the
// matrices' rows, and not on M.
func (Family) Sums() arch.SumOrder {
	return arch.SumOrder{
		Values: []arch.AxisValues{
			{Name: "split_k", Values: []string{"1"}}, {Name: axisWarpsK, Values: []string{"1"}},
		},
		Same: []string{"block_k"},
	}
}

// The names of the axes.
const (
	axisWarpsM = "warp_count_m"
	axisWarpsK = "warp_count_k"
)

// axes are what the family's configurations have beyond the numbers of every configuration.
var axes = []gemm.Axis{
	{
		Name: axisWarpsM, Type: gemm.Integer, Values: []string{"0", "1", "2", "4", "8"}, Default: "0", Unit: "warp",
		Doc: "warps that divide the rows of a tile; 0: as makes their parts most square",
	},
	{
		Name: axisWarpsK, Type: gemm.Integer, Values: []string{"0", "1", "2", "4", "8"}, Default: "0", Unit: "warp",
		Doc: "warps that share a part of a tile and divide its steps along K (LocalSplitU); 0: as few as can be",
	},
}

// choices are the numbers of a configuration on the axes.
type choices struct{ warpsM, warpsK int }

func choicesOf(c *gemm.Config) (o choices) {
	if c.Axes == (gemm.Axes{}) { // the fast path: models ask for thousands
		return o
	}
	return choices{warpsM: axes[0].Number(c.Axes), warpsK: axes[1].Number(c.Axes)}
}
