package wgmma

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Name is the family's name in gemm.Config.Kernel.
const Name = "wgmma"

// Family is the kernel family.
type Family struct{}

var _ gemmgen.Family = Family{}

// Name implements gemmgen.Family.
func (Family) Name() string { return Name }

// Target implements gemmgen.Family: only sm_90a has wgmma.
func (Family) Target() target.Target { return target.Target{CC: 90, Suffix: target.ArchFeatures} }

// The numbers and the axes of the family's space. Kernels can have all multiples of blockStep, and all numbers of
// stages up to mostStages.
var (
	blocksM   = slices.Concat(multiples(8, 120), multiples(16, 256)[7:])
	blocksN   = multiples(16, 256)
	blocksK   = []int{64, 128}
	warps     = []int{8, 12, 16}
	stages    = []int{2, 3, 4, 5, 6, 7, 8, 10, 12, 16}
	clusters  = []string{"1", "2", "4", "2x2", "2x4", "4x2"}
	clustersN = []string{"1", "2", "4"}
	// The values of AxisStreamK, AxisSkew and AxisPromote.
	streams    = []string{"0", "1"}
	skews      = []string{"0", "1"}
	promotions = []string{"0", "1"}
	// The values of AxisTree.
	trees = []string{"1", "2", "4", "8"}
)

const (
	blockStep, mostBlock    = 8, 256
	leastStages, mostStages = 2, 16
	// The CTAs of a cluster wait for each other at each stage. With two of them, a cluster of eight took twice as long as
	// one CTA (160x256x128, an H100, 2026-11-27); with four, clusters of four and eight are as predicted.
	leastStagesOfCluster = 4
)

// multiples returns the multiples of a step up to a number.
func multiples(step, most int) (list []int) {
	for n := step; n <= most; n += step {
		list = append(list, n)
	}
	return list
}

// AxisCluster is the name of the axis for the CTAs of a cluster along M, or along M and along N. Those along M need the
// same B, of which each copies a part for all of them, and those along N the same A.
const AxisCluster = "cluster"

// AxisClusterN is that for the CTAs of a cluster along N alone.
const AxisClusterN = "cluster_n"

// AxisStreamK is the name of the axis for how the CTAs share the tiles behind the last full wave: each is one CTA's, or
// all CTAs have an equal part of them along K.
const AxisStreamK = "stream_k"

// AxisSkew is the name of the axis for where tiles begin along K (see skew): all at the first block, so that the
// order of sums does not depend on where an element's tile lies, or apart where that is faster. It changes the launch
// alone.
const AxisSkew = "skew"

// AxisPromote is the name of the axis for who adds the products of fp8 up: the tensor cores alone, whose sums have
// about 13 bits, or, after each block along K, an addition in fp32. cuBLAS does the latter unless it is asked for fast
// accumulation.
const AxisPromote = "promote"

// AxisTree is the name of the axis for the leaves of K: equal parts, each of which is summed in the order of K, and
// whose sums are added in a binary tree. split_k is how many CTAs share the leaves of a tile, and does not change a
// bit.
const AxisTree = "tree"

// Axes implements gemmgen.Family.
func (Family) Axes() []gemm.Axis {
	return []gemm.Axis{{
		Name: AxisCluster, Type: gemm.Enumeration, Values: clusters, Default: "1",
		Doc: "CTAs of a cluster along M, which share the copies of B, or along M x along N, which share those of A too",
	}, {
		Name: AxisClusterN, Type: gemm.Integer, Values: clustersN, Default: "1", Unit: "CTA",
		Doc: "CTAs of a cluster along N alone, which share the copies of A",
	}, {
		Name: AxisStreamK, Type: gemm.Integer, Values: streams, Default: "0",
		Doc: "1: all CTAs share the tiles that fill no wave, along K",
	}, {
		Name: AxisSkew, Type: gemm.Integer, Values: skews, Default: "1",
		Doc: "1: in a single row or column, tiles begin at different places along K; 0: all begin at the first",
	}, {
		Name: AxisPromote, Type: gemm.Integer, Values: promotions, Default: "0",
		Doc: "1: sums of fp8 are added in fp32 after each block along K; 0: in the tensor cores, with fewer bits",
	}, {
		Name: AxisTree, Type: gemm.Integer, Values: trees, Default: "1", Unit: "leaf",
		Doc: "equal parts of K, multiples of block_k, whose sums are added in a binary tree; split_k CTAs share them",
	}}
}

// Space implements gemmgen.Family.
func (Family) Space() arch.Space {
	return arch.Space{
		Kernel: Name, BlockM: blocksM, BlockN: blocksN, BlockK: blocksK,
		NumWarps: warps, NumStages: stages, SplitK: []int{1},
		Axes: []arch.AxisValues{
			{Name: AxisCluster, Values: []string{"1", "2", "2x2", "2x4"}}, {Name: AxisStreamK, Values: streams},
		},
	}
}

// Program implements gemmgen.Family.
func (Family) Program(
	call gemmgen.Call, out gemm.DType, c gemm.Config, limits gemmgen.Limits,
) (gemmgen.Program, arch.Reason, string) {
	if call.Problem.Nest != (gemm.Nest{}) {
		return nil, arch.ReasonModelRule, "copies of tensor tiles need matrices, and the problem has nested indices"
	}
	s := SpecFor(call, out, c)
	s.Processors = limits.Processors
	reason, detail := s.Check(limits)
	return s, reason, detail
}

// Sums says which kernels add up an element of C in an order that does not depend on M.
//
// The sums of an element stay in the accumulators of one wgmma after another, each of which adds 32 bytes along K.
// Nothing else adds to them, or what is promoted: the sums of each 128 products of fp8. The order of the blocks along K
// is that in which the producer copies them (alongK), so what could change it with M is
//   - a split of K, and tiles that CTAs share along K: the parts are added up, and where they end depends on the grid.
//     With a tree, a split is some of its leaves, and the parts are added as the tree says;
//   - a skew: where a tile begins depends on its place, and whether there is one on the number of rows of tiles.
//
// With neither, each element is the sum of the blocks in the order of K, whatever the tile, the warps, the stages and
// the clusters. Promotion is the same for all M, and so is block_k, because the last block is filled up with zeros: how
// many of those are added depends on it. That the instruction adds its 32 bytes in the same way for all its widths, and
// for Cᵀ, is not documented; on an H200 and an H100 the bits of products for M from 1 to 4,096 agreed wherever nothing
// was skewed, in 16-bit types, and on an H100 in fp8.
func (Family) Sums() arch.SumOrder {
	return arch.SumOrder{
		Values: []arch.AxisValues{
			{Name: "split_k", Values: []string{"1"}}, {Name: AxisStreamK, Values: streams[:1]},
			{Name: AxisSkew, Values: skews[:1]},
		},
		Same: []string{"block_k", AxisPromote, AxisTree}, Leaves: AxisTree,
	}
}
