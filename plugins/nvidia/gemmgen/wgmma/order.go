package wgmma

import "github.com/origami-gemm/origami/core/arch"

// Sums says which kernels add up an element of C in an order that does not depend on M.
//
// The sums of an element stay in the accumulators of one wgmma after another, each of which adds 32 bytes along K.
// Nothing else adds to them, or what is promoted: the sums of each 128 products of fp8. The order of the blocks along K
// is that in which the producer copies them (alongK), so what could change it with M is
//   - a split of K, and tiles that CTAs share along K: the parts are added up, and where they end depends on the grid;
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
		Same: []string{"block_k", AxisPromote},
	}
}
