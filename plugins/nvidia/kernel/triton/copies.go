package triton

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// divisor is what Triton checks the integers and addresses of a launch for, the latter in bytes: it compiles one kernel
// for multiples and one for all other numbers. The value 1 is a constant, and no multiple.
const divisor = 16

// Width implements kernel.Family: the widest access, or one element. Triton widens accesses to a matrix if 16 divides
// its address, its leading dimension and the length of its rows. The kernel masks loads by that length if it is K, and
// wraps around it otherwise; stores are masked. Triton checks for no smaller divisor, so a leading dimension of 1000
// costs as much as one of 1001.
func (tiles) Width(p gemm.Problem, o gemm.Operand) int {
	_, row := p.Rows(o)
	if row%divisor != 0 || p.LD(o)%divisor != 0 || p.Align(o) < divisor {
		return p.Type(o).Bytes()
	}
	return gemm.MaxVector
}

// Copies implements kernel.Family.
func (tiles) Copies(d *gpu.Device, o kernel.Operands, c gemm.Config) kernel.Copies {
	return copiesOf(d.SM, &o, &c, usesWGMMA(d.SM, o.DType, &c) || tensorColumns(d.SM, o.DType, &c) > 0)
}

// copiesOf describes the loads of a K step. shared: the instruction has its operands in shared memory.
func copiesOf(sm *gpu.SM, o *kernel.Operands, c *gemm.Config, shared bool) (k kernel.Copies) {
	a, b := operandBytes(o.DType, c)
	threads := 32 * c.NumWarps
	k.CountA, k.BytesA, k.AsyncA = copies(sm, o.DType, a/threads, o.WidthA, o.AMajor == gemm.MajorK, shared)
	k.CountB, k.BytesB, k.AsyncB = copies(sm, o.DType, b/threads, o.WidthB, o.BMajor == gemm.MajorK, shared)
	transposed := shared && o.DType.Bytes() > matrixBytes
	k.TransposedA, k.TransposedB = transposed && o.AMajor != gemm.MajorK, transposed && o.BMajor != gemm.MajorK
	return k
}

// transposedElements are the elements side by side of an 8-bit operand in shared memory that mma.sync reads against
// their order.
const transposedElements = 8

// copies describes the copies of one operand: share is a thread's bytes of it.
//
// wgmma reads only 16-bit operands against their order in shared memory, and tcgen05.mma only those of 8 and 16 bits.
// Others that are not contiguous along K are transposed on the way: 32-bit elements by asynchronous copies of one
// element each, 8-bit ones through registers.
func copies(sm *gpu.SM, t gemm.DType, share, width int, alongK, shared bool) (count, bytes int, async bool) {
	size := t.Bytes()
	if bytes = sm.CopyMax; width != 0 {
		bytes = min(bytes, width)
	}
	transposed := shared && !alongK && size != matrixBytes && (sm.TensorMemory == 0 || size > matrixBytes)
	switch {
	case transposed && size > matrixBytes:
		bytes = size
	case !shared && !alongK && size < matrixBytes:
		bytes = min(bytes, transposedElements*size)
	}
	bytes = min(bytes, max(share, size))
	return max(share/bytes, 1), bytes, bytes >= sm.CopyMin && (!transposed || size >= matrixBytes)
}

// Reduction implements kernel.Family. Each CTA that shares a tile writes its sums to a matrix of its own, and a second
// kernel adds the matrices up.
func (tiles) Reduction(p gemm.Problem, c gemm.Config) kernel.Reduction {
	if c.SplitK <= 1 {
		return kernel.Reduction{}
	}
	return kernel.Reduction{Workspace: unit.Bytes(sumBytes*c.SplitK*p.Batch) * unit.Bytes(p.M*p.N), Launches: 1}
}

const sumBytes = 4 // fp32 or int32
