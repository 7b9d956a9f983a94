package triton

import (
	"strconv"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// Sums implements kernel.Family.
//
// tl.dot adds a block of block_k indices to the sums of a tile, block after block in the order of K, and no warps
// divide K. A split of K adds up more than one sum of an element. block_k is the same for all M, because the last
// block is filled up with zeros, and because it is tl.dot's business how it orders a block.
//
// Where Triton has two instructions, mma.sync and wgmma or tcgen05.mma, it takes the latter from 64 rows on. Whether
// both add 32 bytes along K in the same way is not documented, so that there block_m is at least 64. Its warps have to
// be whole warpgroups.
func (tiles) Sums(sm *gpu.SM) arch.SumOrder {
	order := arch.SumOrder{
		Values: []arch.AxisValues{{Name: "split_k", Values: []string{"1"}}}, Same: []string{"block_k"},
	}
	if !sm.WGMMA && sm.TensorMemory == 0 {
		return order
	}
	full := arch.AxisValues{Name: "block_m"}
	for _, m := range blocksMN {
		if m%gpu.WGMMAM == 0 {
			full.Values = append(full.Values, strconv.Itoa(m))
		}
	}
	whole := arch.AxisValues{Name: "num_warps", Values: []string{"4", "8"}}
	order.Values = append(order.Values, full, whole)
	return order
}
