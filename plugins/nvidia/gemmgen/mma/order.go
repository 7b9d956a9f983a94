package mma

import "github.com/origami-gemm/origami/core/arch"

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
