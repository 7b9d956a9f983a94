// Package gpu describes NVIDIA GPUs to kernel families and models: one file per architecture for what its SM fixes
// (SM), and the hardware numbers of a device, which come from its file or its driver (Device).
//
// No other package compares compute capabilities. Families and models ask an SM what it has, and a Device how much of
// it there is.
package gpu

import (
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// The matrix instruction mma.sync.m16n8k16, which every architecture here has for fp16 and bf16 (PTX ISA, "Matrix
// multiply-accumulate operation using mma instruction").
const (
	MMAM = 16
	MMAN = 8
	MMAK = 16
)

// The matrix instruction wgmma.m64nNk16, which reads its operands from shared memory (PTX ISA, "wgmma.mma_async"):
// its rows, the warps that issue it together, and the fp32 registers per thread of the largest, m64n256k16 over 128
// threads.
const (
	WGMMAM            = 64
	WGMMAWarps        = 4
	WGMMAAccumulators = 128
)

// LineBytes is a cache line (CUDA C++ Programming Guide, Device Memory Accesses).
const LineBytes = 128

// SM is the streaming multiprocessor of an architecture: what is the same on all of its devices and no device file
// says.
type SM struct {
	// ID is the architecture in device files: "sm90".
	ID string
	// Target is what kernels are compiled for.
	Target target.Target
	// Threads and CTAs can be resident at once; a CTA has at most ThreadsPerCTA.
	Threads, CTAs, ThreadsPerCTA int
	// RegisterGranule is the step in which registers of a thread are allocated.
	RegisterGranule int
	// SharedReserved is the shared memory that the system takes of each CTA, beyond what the CTA may use.
	SharedReserved unit.Bytes
	// Schedulers is the number of warp instructions issued per cycle.
	Schedulers int
	// A cp.async copies CopyMin to CopyMax bytes per thread.
	CopyMin, CopyMax int
	// StMatrix says that warps can store matrix fragments to shared memory with one instruction.
	StMatrix bool
	// WGMMA says that warpgroups have a matrix instruction, wgmma.
	WGMMA bool
	// MMAShare is the rate of mma.sync ÷ the rate of the fastest matrix instruction, and MMAShareSource where that is
	// from.
	MMAShare       float64
	MMAShareSource string
}

// native is the source of the rate of mma.sync where it is the fastest matrix instruction.
const native = "mma.sync is the native instruction"
