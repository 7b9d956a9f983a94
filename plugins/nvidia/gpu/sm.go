// Package gpu describes NVIDIA GPUs to kernel families and models. An SM has the properties of an architecture, in one
// file per architecture. A Device adds the hardware numbers of one GPU, from its device file or its driver.
//
// No other package compares compute capabilities. Families and models read features from the SM and limits from the
// Device.
package gpu

import (
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// The shape of the matrix instruction mma.sync.m16n8k16. Every architecture here has it for fp16 and bf16 (PTX ISA,
// "Matrix multiply-accumulate operation using mma instruction").
const (
	MMAM = 16
	MMAN = 8
	MMAK = 16
)

// The matrix instruction wgmma.m64nNk16, which reads its operands from shared memory (PTX ISA, "wgmma.mma_async"):
// rows, warps that issue it together, and fp32 accumulators per thread of the largest shape, m64n256k16 over 128
// threads.
const (
	WGMMAM            = 64
	WGMMAWarps        = 4
	WGMMAAccumulators = 128
)

// LineBytes is the size of a cache line (CUDA C++ Programming Guide, Device Memory Accesses).
const LineBytes = 128

// SM describes the streaming multiprocessor of an architecture. These properties are the same on all of its devices, so
// device files do not have them.
type SM struct {
	// ID is the architecture in device files: "sm90".
	ID string
	// Target is what kernels are compiled for.
	Target target.Target
	// Threads and CTAs are how many can be resident at once. ThreadsPerCTA is the largest CTA.
	Threads, CTAs, ThreadsPerCTA int
	// RegisterGranule is the granularity in which registers are allocated to a thread.
	RegisterGranule int
	// SharedReserved is the shared memory per CTA that the system takes in addition to the CTA's.
	SharedReserved unit.Bytes
	// Schedulers is the number of warp instructions issued per cycle.
	Schedulers int
	// A cp.async copies CopyMin to CopyMax bytes per thread.
	CopyMin, CopyMax int
	// StMatrix says that warps can store matrix fragments to shared memory with one instruction.
	StMatrix bool
	// WGMMA says that warpgroups have a matrix instruction, wgmma.
	WGMMA bool
	// MMAShare is the rate of mma.sync ÷ the rate of the fastest matrix instruction. MMAShareSource is its source.
	MMAShare       float64
	MMAShareSource string
}

// native is the source of the rate of mma.sync where it is the fastest matrix instruction.
const native = "mma.sync is the native instruction"
