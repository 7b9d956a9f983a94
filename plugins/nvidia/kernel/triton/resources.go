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
// docs/model-nvidia-resources.md has their bounds and says how they were found.
const (
	// registersPerAccumulator is above one by what triton's epilogue holds beside an accumulator.
	registersPerAccumulator = 1.12
	// registersPerMask is for each copy that has a mask of its own, in a kernel that masks K. The copies of a thread
	// from an operand that is contiguous along K share their columns, and so one mask; those from another are rows of
	// K apart.
	registersPerMask = 0.8
	// fragmentsHeld is the share of the fragments of two k16 steps, one in use and the next being loaded, that is
	// held at once.
	fragmentsHeld = 0.7
	// registersSqueezed is the share of a need that the assembler's order of the work saves where that lets another
	// CTA onto the SM.
	registersSqueezed = 0.12
	// registersRecomputed is how far above the limit a need can be before anything is spilled: the assembler
	// computes addresses anew instead.
	registersRecomputed = 35
)

// usesWGMMA reports whether Triton multiplies with wgmma: where the SM has it, if the rows of the tile fill the
// instruction and the warps are whole warpgroups. Anything else is mma.sync m16n8k16.
func usesWGMMA(sm *gpu.SM, c *gemm.Config) bool {
	return sm.WGMMA && c.BlockM%gpu.WGMMAM == 0 && c.NumWarps%gpu.WGMMAWarps == 0
}

// warpGrid is how Triton lays the warps over a tile: those of wgmma first fill its rows, 16 each; those of mma.sync
// halve the dimension that has more instructions of 16×8 left, rows first.
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

// Resources implements kernel.Family for fp16 and bf16.
func (Family) Resources(d *gpu.Device, o kernel.Operands, c gemm.Config, masked bool) kernel.Resources {
	threads := 32 * c.NumWarps
	wgmma := usesWGMMA(d.SM, &c)
	buffers := max(c.NumStages-1, 1)
	if wgmma {
		// The instruction still reads a buffer when the copy into the next one begins.
		buffers = max(c.NumStages, 1)
	}
	warpsM, warpsN := warpGrid(&c, wgmma)

	var r kernel.Resources
	a, b := operandBytes(&c)
	pipeline := buffered(d.SM, a, threads, buffers) + buffered(d.SM, b, threads, buffers)
	r.SharedMemory = unit.Bytes(max(pipeline, staging(d.SM, &c, warpsM, warpsN)))

	n := registerNeed{accumulators: c.BlockM * c.BlockN / threads, wgmma: wgmma}
	copiesA, copiesB := max(a/threads/d.SM.CopyMax, 1), max(b/threads/d.SM.CopyMax, 1)
	n.registers = kernel.RegistersFixed + float64(registersPerAccumulator*float64(n.accumulators)) +
		float64(kernel.RegistersPerCopy*float64(copiesA+copiesB))
	if masked {
		if o.AMajor != gemm.MajorK {
			n.registers += float64(registersPerMask * float64(copiesA))
		}
		if o.BMajor != gemm.MajorK {
			n.registers += float64(registersPerMask * float64(copiesB))
		}
	}
	if !wgmma {
		n.fragments = 4*max(c.BlockM/gpu.MMAM/warpsM, 1) + 2*max(c.BlockN/gpu.MMAN/warpsN, 1)
		n.steps = max(c.BlockK/gpu.MMAK, 1)
		n.registers += float64(fragmentsHeld * float64(n.fragments*min(n.steps, 2)))
	}
	r.Registers, r.SpillBytes = n.allocate(d, threads)
	return r
}

// registerNeed is what a thread would like to hold in registers.
type registerNeed struct {
	registers    float64 // all of it
	accumulators int
	wgmma        bool
	// fragments are the operands of one k16 step, and steps how many of these a K step has. With wgmma operands stay in
	// shared memory.
	fragments, steps int
}

// allocate is what the assembler makes of the need: registers, and the bytes that it spills.
func (n *registerNeed) allocate(d *gpu.Device, threads int) (registers, spillBytes int) {
	limit := d.RegisterLimit(threads)
	registers = min(int(math.Round(n.registers)), limit)
	squeezed := d.AllocatedRegisters(int(n.registers / (1 + registersSqueezed)))
	if ctas := d.RegisterFile / (threads * squeezed); ctas > 0 {
		if most := d.RegisterShare(threads * ctas); float64(most)*(1+registersSqueezed) >= n.registers {
			registers = min(registers, most)
		}
	}
	over := n.registers - float64(limit+registersRecomputed)
	if over <= 0 {
		return registers, 0
	}
	words := int(math.Ceil(over))
	if n.accumulators+kernel.RegistersFixed > limit {
		// No order of the work keeps the sums in registers: beside them, wgmma keeps the accumulators of one
		// instruction, and mma.sync spills the fragments of the whole K step, which are loaded before the first is
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
	wordBytes  = 4  // a register
	storeBytes = 16 // the widest store of a thread (PTX ISA, "st")
)

// operandBytes are A's and B's bytes of a K step.
func operandBytes(c *gemm.Config) (a, b int) {
	return c.BlockM * c.BlockK * kernel.ElementBytes, c.BlockK * c.BlockN * kernel.ElementBytes
}

// buffered is the shared memory of an operand: a buffer per K step in flight, but one if the threads' shares are too
// small for asynchronous copies.
func buffered(sm *gpu.SM, bytes, threads, buffers int) int {
	if bytes < sm.CopyMin*threads {
		return bytes
	}
	return bytes * buffers
}

// staging is the shared memory through which the epilogue turns the 16-bit output from the accumulators' layout into
// rows, of which a thread writes up to 16 bytes. The whole tile goes through it at once, less a factor of two for
// each bit of the row number that selects between registers of one thread in both layouts. If neither side can use a
// matrix instruction, stmatrix or ldmatrix, two of those bits serve to widen loads and stores instead.
func staging(sm *gpu.SM, c *gemm.Config, warpsM, warpsN int) int {
	perThread := min(max(c.BlockM*c.BlockN/(32*c.NumWarps), 1), storeBytes/kernel.ElementBytes)
	lanes := min(max(c.BlockN/perThread, 1), 32)
	// The bits of the row number from first up select registers of the output. Of the accumulators, bit 3 does, and
	// those above the rows that the warps cover.
	first, bits := log2(32/lanes)+log2(c.NumWarps), log2(c.BlockM)
	repeats := max(bits-max(first, 4+log2(warpsM)), 0)
	if first <= 3 && 3 < bits {
		repeats++
	}
	matrix := sm.StMatrix || warpsN == 1 && c.BlockN >= 32 || c.BlockN >= 256 && warpsN <= 4
	if !matrix {
		repeats = max(repeats-2, 0)
	}
	return c.BlockM * c.BlockN * kernel.ElementBytes >> repeats
}

// log2 is the exponent of the largest power of two up to v, which is at least one.
func log2(v int) int { return bits.Len(uint(v)) - 1 }
