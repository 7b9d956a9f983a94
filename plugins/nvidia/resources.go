package nvidia

import (
	"math"
	"math/bits"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// resources is what a kernel needs of an SM, as the model predicts it.
type resources struct {
	// Registers is per thread, as the assembler reports them; an SM allocates them in eights.
	Registers int
	// SpillBytes is the local memory of a thread that holds what does not fit into registers; zero is no spill.
	SpillBytes int
	// SharedMemory is per CTA.
	SharedMemory unit.Bytes
	// WGMMA says that the matrix instruction is wgmma, with its operands in shared memory, and not mma.sync.
	WGMMA bool
	// Buffers is how many K steps shared memory holds.
	Buffers int
}

// The constants of the register model, the same for all targets and, in triton's kernels, both matrix instructions.
// docs/model-nvidia-resources.md has their bounds and how they were found.
const (
	// registersFixed are the registers of a thread that do not depend on the tile: sizes, strides, counters, base addresses.
	registersFixed = 22
	// registersPerAccumulator is above one by what triton's epilogue holds beside an accumulator.
	registersPerAccumulator = 1.12
	// registersPerCopy is for each copy of 16 bytes from global memory that a thread does per K step: a 64-bit pointer, and
	// a share of the offsets in shared memory.
	registersPerCopy = 2.4
	// registersPerMask is for each copy that has a mask of its own, in a kernel that masks K. The copies of a thread from an
	// operand that is contiguous along K share their columns, and so one mask; those from another are rows of K apart.
	registersPerMask = 0.8
	// fragmentsHeld is the share of the fragments of two k16 steps, one in use and the next being loaded, that is held at once.
	fragmentsHeld = 0.7
	// registersPerFragment is the same for mma, whose kernels hold the fragments of both steps: above one by addresses in shared
	// memory.
	registersPerFragment = 1.1
	// registersSqueezed is the share of a need that the assembler's order of the work saves where that lets another CTA onto
	// the SM.
	registersSqueezed = 0.12
	// registersRecomputed is how far above the registers there are a need can be before anything is spilled: the assembler
	// computes addresses anew instead.
	registersRecomputed = 35
)

const (
	// maxRegisters is the limit of the instruction encoding, and registerFile what the threads of an SM share, allocated in
	// granules per thread. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"; Nsight
	// Compute's occupancy calculator (256 registers per warp).
	maxRegisters    = 255
	registerFile    = 65536
	registerGranule = 8
	// A cp.async copies 4 to 16 bytes per thread. Source: PTX ISA, "cp.async".
	minCopyBytes = 4
	maxCopyBytes = 16
	// wgmmaAccumulators are the registers per thread that the largest tile of one wgmma takes, 64×256 in fp32 over a warpgroup.
	// Source: PTX ISA, "wgmma.mma_async".
	wgmmaAccumulators = 128
)

// tritonWGMMA reports whether Triton multiplies with wgmma: on sm90, if the rows of the tile fill the instruction's 64 and
// the warps are whole warpgroups of four. Anything else is mma.sync m16n8k16.
func tritonWGMMA(c *gemm.Config, target int) bool {
	return target >= 90 && c.BlockM%64 == 0 && c.NumWarps%4 == 0
}

// tritonWarps is how Triton lays the warps over a tile: those of wgmma first fill its rows, 16 each; those of mma.sync halve
// the dimension that has more instructions of 16×8 left, rows first.
func tritonWarps(c *gemm.Config, wgmma bool) (m, n int) {
	m, n = 1, 1
	for left, right := c.BlockM/16, c.BlockN/8; m*n < c.NumWarps; {
		if wgmma && left > 1 || !wgmma && (left >= right || right <= 1) {
			m, left = 2*m, left/2
		} else {
			n, right = 2*n, right/2
		}
	}
	return m, n
}

// tritonResources predicts what the kernel of triton for a problem, fp16 or bf16, needs on a target: 80, 86, 89 or 90. Of the
// problem, the layouts matter, and whether block_k divides K: if not, loads are masked. The kernel cannot be launched where a
// CTA may not use as much shared memory.
func tritonResources(p *gemm.Problem, c *gemm.Config, target int) resources {
	threads := 32 * c.NumWarps
	r := resources{WGMMA: tritonWGMMA(c, target), Buffers: max(c.NumStages-1, 1)}
	if r.WGMMA {
		// The instruction still reads a buffer when the copy into the next one begins.
		r.Buffers = max(c.NumStages, 1)
	}
	warpsM, warpsN := tritonWarps(c, r.WGMMA)

	a, b := c.BlockM*c.BlockK*elementBytes, c.BlockK*c.BlockN*elementBytes
	pipeline := buffered(a, threads, r.Buffers) + buffered(b, threads, r.Buffers)
	r.SharedMemory = unit.Bytes(max(pipeline, tritonStaging(c, target, warpsM, warpsN)))

	accumulators := c.BlockM * c.BlockN / threads
	copiesA, copiesB := max(a/threads/maxCopyBytes, 1), max(b/threads/maxCopyBytes, 1)
	need := registersFixed + float64(registersPerAccumulator*float64(accumulators)) + float64(registersPerCopy*float64(copiesA+copiesB))
	if p.K%c.BlockK != 0 {
		if p.AMajor != gemm.MajorK {
			need += float64(registersPerMask * float64(copiesA))
		}
		if p.BMajor != gemm.MajorK {
			need += float64(registersPerMask * float64(copiesB))
		}
	}
	fragments, steps := 0, 0 // of one k16 step, in registers; wgmma has its operands in shared memory
	if !r.WGMMA {
		fragments = 4*max(c.BlockM/16/warpsM, 1) + 2*max(c.BlockN/8/warpsN, 1)
		steps = max(c.BlockK/mmaK, 1)
		need += float64(fragmentsHeld * float64(fragments*min(steps, 2)))
	}

	limit := min(maxRegisters, registerFile/threads&^(registerGranule-1))
	r.Registers = min(int(math.Round(need)), limit)
	if ctas := registerFile / (threads * roundUp(int(need/(1+registersSqueezed)), registerGranule)); ctas > 0 {
		if most := registerFile / (threads * ctas) &^ (registerGranule - 1); float64(most)*(1+registersSqueezed) >= need {
			r.Registers = min(r.Registers, most)
		}
	}
	if over := need - float64(limit+registersRecomputed); over > 0 {
		words := int(math.Ceil(over))
		if accumulators+registersFixed > limit {
			// No order of the work keeps the sums in registers: beside them, wgmma keeps the accumulators of one instruction, and
			// mma.sync spills the fragments of the whole K step, which are loaded before the first is used.
			if r.WGMMA {
				words += max(accumulators-wgmmaAccumulators, 0)
			} else {
				words += fragments * steps
			}
		}
		r.SpillBytes = 4 * words
	}
	return r
}

// mmaResources predicts what a kernel of mma needs. There is no spill term: gemmgen does not build what could spill.
func mmaResources(p *gemm.Problem, c *gemm.Config) resources {
	k, _, _ := mmaSpec(p, c).Resources()
	r := resources{SharedMemory: k.SharedMemory, Buffers: c.NumStages}
	if k.Threads == 0 {
		return r // not a kernel of the family
	}
	copies := max(c.BlockM*c.BlockK*elementBytes/k.Threads/maxCopyBytes, 1) + max(c.BlockK*c.BlockN*elementBytes/k.Threads/maxCopyBytes, 1)
	need := registersFixed + float64(k.Accumulators) + float64(registersPerFragment*float64(k.Fragments)) + float64(registersPerCopy*float64(copies))
	r.Registers = min(int(math.Round(need)), maxRegisters)
	return r
}

// buffered is the shared memory of an operand: a buffer per K step in flight, but one if the threads' shares are too small
// for asynchronous copies.
func buffered(bytes, threads, buffers int) int {
	if bytes < minCopyBytes*threads {
		return bytes
	}
	return bytes * buffers
}

// tritonStaging is the shared memory through which the epilogue turns the 16-bit output from the accumulators' layout into
// rows, of which a thread writes up to 16 bytes. The whole tile goes through it at once, less a factor of two for
// each bit of the row number that selects between registers of one thread in both layouts. If neither side can use a
// matrix instruction, stmatrix (sm90) or ldmatrix, two of those bits serve to widen loads and stores instead.
func tritonStaging(c *gemm.Config, target, warpsM, warpsN int) int {
	perThread := min(max(c.BlockM*c.BlockN/(32*c.NumWarps), 1), maxCopyBytes/elementBytes)
	lanes := min(max(c.BlockN/perThread, 1), 32)
	// The bits of the row number from first up select registers of the output. Of the accumulators, bit 3 does, and those
	// above the rows that the warps cover.
	first, bits := log2(32/lanes)+log2(c.NumWarps), log2(c.BlockM)
	repeats := max(bits-max(first, 4+log2(warpsM)), 0)
	if first <= 3 && 3 < bits {
		repeats++
	}
	matrix := target >= 90 || warpsN == 1 && c.BlockN >= 32 || c.BlockN >= 256 && warpsN <= 4
	if !matrix {
		repeats = max(repeats-2, 0)
	}
	return c.BlockM * c.BlockN * elementBytes >> repeats
}

// roundUp returns the least multiple of a step, at least one step, that is not below v.
func roundUp(v, step int) int { return max(cdiv(v, step), 1) * step }

// log2 is the exponent of the largest power of two up to v, which is at least one.
func log2(v int) int { return bits.Len(uint(v)) - 1 }
