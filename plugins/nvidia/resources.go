package nvidia

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// resources is what a kernel needs of an SM, as the model predicts it.
type resources struct {
	// Registers is per thread, as the assembler reports them: at most maxRegisters.
	Registers int
	// SpillBytes is the local memory of a thread that holds what does not fit into registers; zero is no spill.
	SpillBytes int
	// SharedMemory is per CTA.
	SharedMemory unit.Bytes
	// WGMMA says that the matrix instruction is wgmma, with its operands in shared memory, and not mma.sync.
	WGMMA bool
	// Buffers is how many K steps of both operands shared memory holds.
	Buffers int
}

// The constants of the register model of triton. docs/model-nvidia-resources.md derives them and gives their bounds.
const (
	maxRegisters    = 255 // CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"
	registerGranule = 8   // registers are allocated per thread in eights; CUDA Occupancy Calculator
	copyBytes       = 16  // of one cp.async per thread; PTX ISA, cp.async
	minCopyBytes    = 4   // the least that cp.async copies; below it a tile goes through registers, with one buffer

	wgmmaFixed, mmaFixed             = 19.0, 28.0
	wgmmaAccumulator, mmaAccumulator = 1.14, 1.33
	wgmmaCopy, mmaCopy               = 2.45, 2.7
	maskedCopy                       = 0.5
	spillPerRegister                 = 9.0 // bytes
)

// tritonWGMMA reports whether Triton uses wgmma: sm90, and a tile whose rows fill the instruction's 64.
func tritonWGMMA(c *gemm.Config, target int) bool {
	return target >= 90 && c.BlockM%64 == 0 && c.NumWarps%4 == 0
}

// tritonResources predicts what a kernel of triton needs on a target (80, 86, 89 or 90). masked is the kernel for a K that
// block_k does not divide.
func tritonResources(c *gemm.Config, t gemm.DType, target int, masked bool) resources {
	r := resources{WGMMA: tritonWGMMA(c, target)}
	threads := 32 * c.NumWarps
	// wgmma reads a buffer while the next is written, so it takes one more.
	r.Buffers = max(1, c.NumStages-1)
	fixed, accumulator, perCopy := mmaFixed, mmaAccumulator, mmaCopy
	if r.WGMMA {
		r.Buffers = max(1, c.NumStages)
		fixed, accumulator, perCopy = wgmmaFixed, wgmmaAccumulator, wgmmaCopy
	}
	a, b := c.BlockM*c.BlockK*t.Bytes(), c.BlockK*c.BlockN*t.Bytes()
	pipeline := 0
	for _, bytes := range [2]int{a, b} {
		if bytes < minCopyBytes*threads {
			pipeline += bytes
		} else {
			pipeline += bytes * r.Buffers
		}
	}
	r.SharedMemory = unit.Bytes(pipeline)

	copies := float64(max(1, a/(copyBytes*threads)) + max(1, b/(copyBytes*threads)))
	if masked {
		perCopy += maskedCopy
	}
	need := fixed + float64(accumulator*float64(c.BlockM*c.BlockN)/float64(threads)) + float64(perCopy*copies)
	if need > maxRegisters {
		r.SpillBytes = int(spillPerRegister * (need - maxRegisters))
		need = maxRegisters
	}
	r.Registers = int(need)
	return r
}
