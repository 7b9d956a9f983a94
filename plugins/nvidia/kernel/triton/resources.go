package triton

import (
	"math"
	"math/bits"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// The constants of the register model, the same for all targets and both matrix instructions.
// docs/model-nvidia-resources.md has their bounds and derivation.
const (
	// registersPerAccumulator is above one because the epilogue holds more than the accumulator.
	registersPerAccumulator = 1.12
	// registersPerMask are the registers for each copy with a separate mask, in a kernel that masks K. A thread's
	// copies from an operand that is contiguous along K have the same columns and share one mask. Copies from another
	// operand are in different rows of K.
	registersPerMask = 0.8
	// fragmentsHeld is the share of the fragments of two k16 steps that is held at once. One step is in use while the
	// next is loaded.
	fragmentsHeld = 0.7
	// registersSqueezed is the share of the needed registers that the assembler saves by reordering, if one more CTA
	// then fits on the SM.
	registersSqueezed = 0.12
	// narrowSqueezed is the same of kernels that load element by element through registers: they may take turns.
	narrowSqueezed = 0.15
	// narrowMask is registersPerMask of an operand that is contiguous along K and loaded element by element: copies that
	// lie below one another share a mask.
	narrowMask = 0.44
	// registersRecomputed is how far the need may exceed the limit before registers are spilled: the assembler
	// recomputes addresses instead.
	registersRecomputed = 35
)

// usesWGMMA reports whether Triton uses wgmma: the SM has it, the rows of the tile fill the instruction, and the
// warps are whole warpgroups. Otherwise Triton uses tcgen05.mma, mma.sync, and FMA for fp32.
func usesWGMMA(sm *gpu.SM, t gemm.DType, c *gemm.Config) bool {
	return sm.WGMMA && t != gemm.FP32 && c.BlockM%gpu.WGMMAM == 0 && c.NumWarps%gpu.WGMMAWarps == 0
}

// tensorColumns is the columns of tensor memory that a CTA has for its sums, 0 if Triton does not use tcgen05.mma. It
// uses it where the SM has it, in tiles of at least 64 rows, with one or two warpgroups, and not for integers.
func tensorColumns(sm *gpu.SM, t gemm.DType, c *gemm.Config) int {
	if sm.TensorMemory == 0 || t == gemm.FP32 || t == gemm.INT8 || c.BlockM < leastTensorRows ||
		c.NumWarps != gpu.WGMMAWarps && c.NumWarps != 2*gpu.WGMMAWarps {
		return 0
	}
	return max(c.BlockN*max(c.BlockM/gpu.TensorRows, 1), gpu.TensorAllocated)
}

// leastTensorRows is the least rows of a tcgen05.mma of one CTA (PTX ISA, "tcgen05.mma").
const leastTensorRows = 64

// warpGrid is Triton's layout of the warps over a tile. With wgmma the warps first fill its rows, 16 each. With
// mma.sync they halve the dimension that has more instructions of 16×8 left, rows first.
func warpGrid(c *gemm.Config, wgmma bool) (m, n int) {
	m, n = 1, 1
	for left, right := c.BlockM/gpu.MMAM, c.BlockN/gpu.MMAN; m*n < c.NumWarps; {
		if wgmma && left > 1 || !wgmma && (left >= right || right <= 1) {
			m, left = 2*m, left/2
		} else {
			n, right = 2*n, right/2
		}
	}
	return m, n
}

// sharedMemory is the shared memory of a CTA in bytes: the copies in flight and the output that is being stored, which
// take turns. In a flattened kernel, which begins a tile while it stores the one before, both are there at once.
func sharedMemory(sm *gpu.SM, o *kernel.Operands, c *gemm.Config, copies kernel.Copies) int {
	wgmma, tensor := usesWGMMA(sm, o.DType, c), tensorColumns(sm, o.DType, c) > 0
	buffers, sync := max(c.NumStages-1, 1), 1
	if wgmma || tensor {
		// The instruction still reads a buffer when the copy into the next buffer begins.
		buffers = max(c.NumStages, 1)
	}
	barriers, staged := 0, 0
	switch {
	case tensor:
		// One instruction may be on its way while the operands of the next are stored.
		sync = min(buffers, 2)
		barriers = barrierBytes * sync
		if flattened(c) {
			staged = tensorStaging(o.Out, c)
		}
	default:
		warpsM, warpsN := warpGrid(c, wgmma)
		staged = staging(sm, o.Out, c, warpsM, warpsN)
	}
	a, b := operandBytes(o.DType, c)
	pipeline := buffered(a, copies.AsyncA, buffers, sync) + buffered(b, copies.AsyncB, buffers, sync)
	if flattened(c) {
		return pipeline + barriers + staged
	}
	return max(pipeline, staged) + barriers
}

// Resources implements kernel.Family. Its constants were chosen for 16-bit operands.
func (tiles) Resources(d *gpu.Device, o kernel.Operands, c gemm.Config, masked bool) kernel.Resources {
	threads := 32 * c.NumWarps
	wgmma, tensor := usesWGMMA(d.SM, o.DType, &c), tensorColumns(d.SM, o.DType, &c)
	warpsM, warpsN := warpGrid(&c, wgmma)

	var r kernel.Resources
	copies := copiesOf(d.SM, &o, &c, wgmma || tensor > 0)
	r.SharedMemory = unit.Bytes(sharedMemory(d.SM, &o, &c, copies))

	if tensor > 0 {
		n := registerNeed{
			registers: tensorRegisters(o.Out, c.BlockM*c.BlockN/threads, copies), squeezed: registersSqueezed,
		}
		r.Registers, r.SpillBytes = n.allocate(d, threads)
		return r
	}
	n := registerNeed{accumulators: c.BlockM * c.BlockN / threads, wgmma: wgmma, squeezed: registersSqueezed}
	copiesA, copiesB := copies.CountA, copies.CountB
	n.registers = kernel.RegistersFixed + float64(registersPerAccumulator*float64(n.accumulators)) +
		float64(kernel.RegistersPerCopy*float64(copiesA+copiesB))
	if masked {
		n.registers += float64(maskRegisters(o.AMajor, o.WidthA, copies.AsyncA) * float64(copiesA))
		n.registers += float64(maskRegisters(o.BMajor, o.WidthB, copies.AsyncB) * float64(copiesB))
	}
	if o.Narrow() && (!copies.AsyncA || !copies.AsyncB) {
		n.squeezed = narrowSqueezed
	}
	if !wgmma {
		n.fragments = 4*max(c.BlockM/gpu.MMAM/warpsM, 1) + 2*max(c.BlockN/gpu.MMAN/warpsN, 1)
		n.steps = max(c.BlockK*o.DType.Bytes()/gpu.StepBytes, 1)
		n.registers += float64(fragmentsHeld * float64(n.fragments*min(n.steps, 2)))
	}
	r.Registers, r.SpillBytes = n.allocate(d, threads)
	return r
}

// tensorRegisters are the registers that a thread needs if its sums are in tensor memory. The K loop holds the copies,
// and the epilogue the sums: all of them up to heldSums, and otherwise a piece of them beside the converted others.
func tensorRegisters(out gemm.DType, sums int, copies kernel.Copies) float64 {
	held := float64(registersPerAccumulator * float64(sums))
	if sums > heldSums {
		held = float64(sums*out.Bytes()/wordBytes + heldSums/2)
	}
	return kernel.RegistersFixed + max(held, float64(kernel.RegistersPerCopy*float64(copies.CountA+copies.CountB)))
}

// heldSums are the most sums that a thread reads of tensor memory at once (tcgen05.ld.32x32b.x128).
const heldSums = 128

// maskRegisters are the registers of masks for each copy of an operand.
func maskRegisters(major gemm.Major, width int, async bool) float64 {
	switch {
	case major != gemm.MajorK || kernel.IsNarrow(width) && async:
		return registersPerMask
	case kernel.IsNarrow(width):
		return narrowMask
	default:
		return 0
	}
}

// registerNeed has the registers that a thread needs without a limit.
type registerNeed struct {
	registers    float64 // the total
	squeezed     float64 // registersSqueezed or narrowSqueezed
	accumulators int
	wgmma        bool
	// fragments are the operands of one k16 step. steps is the number of k16 steps in a K step. With wgmma operands
	// stay in shared memory.
	fragments, steps int
}

// allocate predicts the assembler's result for a need: registers, and spilled bytes.
func (n *registerNeed) allocate(d *gpu.Device, threads int) (registers, spillBytes int) {
	limit := d.RegisterLimit(threads)
	registers = min(int(math.Round(n.registers)), limit)
	squeezed := d.AllocatedRegisters(int(n.registers / (1 + n.squeezed)))
	if ctas := d.RegisterFile / (threads * squeezed); ctas > 0 {
		if most := d.RegisterShare(threads * ctas); float64(most)*(1+n.squeezed) >= n.registers {
			registers = min(registers, most)
		}
	}
	over := n.registers - float64(limit+registersRecomputed)
	if over <= 0 {
		return registers, 0
	}
	words := int(math.Ceil(over))
	if n.accumulators+kernel.RegistersFixed > limit {
		// The accumulators do not fit into the registers in any order. Besides them, wgmma keeps the accumulators of
		// one instruction. mma.sync spills the fragments of the whole K step, which are loaded before the first is
		// used.
		if n.wgmma {
			words += max(n.accumulators-gpu.WGMMAAccumulators, 0)
		} else {
			words += n.fragments * n.steps
		}
	}
	return registers, wordBytes * words
}

const (
	wordBytes    = 4  // a register
	storeBytes   = 16 // the widest store of a thread (PTX ISA, "st")
	matrixBytes  = 2  // an element of stmatrix and ldmatrix
	barrierBytes = 8  // an mbarrier (PTX ISA)
	mmaColumns   = 2  // the accumulators of a thread that are side by side (PTX ISA, fragments of mma.m16n8k16)
)

// operandBytes are A's and B's bytes of a K step.
func operandBytes(t gemm.DType, c *gemm.Config) (a, b int) {
	size := t.Bytes()
	return c.BlockM * c.BlockK * size, c.BlockK * c.BlockN * size
}

// buffered is the shared memory of an operand: one buffer per K step in flight, or so many as sync says without
// asynchronous copies.
func buffered(bytes int, async bool, buffers, sync int) int {
	if !async {
		buffers = sync
	}
	return bytes * buffers
}

// staging is the shared memory in which the epilogue converts the output from the layout of the accumulators to rows. A
// thread then writes up to 16 bytes of a row. Its size is the whole tile, halved for each bit of the row number that
// selects between registers of one thread in both layouts. If neither side can use stmatrix or ldmatrix, which move
// 16-bit elements, some of those bits widen loads and stores instead: from two columns of the accumulators to 16 bytes.
func staging(sm *gpu.SM, out gemm.DType, c *gemm.Config, warpsM, warpsN int) int {
	size := out.Bytes()
	perThread := min(max(c.BlockM*c.BlockN/(32*c.NumWarps), 1), storeBytes/size)
	lanes := min(max(c.BlockN/perThread, 1), 32)
	// In the output, the bits of the row number from first up select registers. In the accumulators, bit 3 does, and
	// so do the bits above the rows that the warps cover.
	first, bits := log2(32/lanes)+log2(c.NumWarps), log2(c.BlockM)
	repeats := max(bits-max(first, 4+log2(warpsM)), 0)
	if first <= 3 && 3 < bits {
		repeats++
	}
	matrix := sm.StMatrix || warpsN == 1 && c.BlockN >= 32 || c.BlockN >= 256 && warpsN <= 4
	if !matrix || size != matrixBytes {
		repeats = max(repeats-log2(storeBytes/size/mmaColumns), 0)
	}
	return c.BlockM * c.BlockN * size >> repeats
}

// tensorStaging is staging of sums that come from tensor memory, a row per thread, at most: a quarter of the tile, or
// all of it for few sums per thread and narrow tiles, and half of that if threads have two rows. Found in what Triton
// 3.7 says of flattened kernels (testdata/flattened.csv).
func tensorStaging(out gemm.DType, c *gemm.Config) int {
	staged := c.BlockM * c.BlockN * out.Bytes()
	if c.BlockM*c.BlockN >= 32*32*c.NumWarps && c.BlockN >= 32 {
		staged /= 4
	}
	if c.BlockM > 32*c.NumWarps {
		staged /= 2
	}
	return staged
}

// log2 is the exponent of the largest power of two up to v, which is at least one.
func log2(v int) int { return bits.Len(uint(v)) - 1 }
