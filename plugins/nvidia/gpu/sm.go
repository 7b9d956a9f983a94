// Package gpu describes NVIDIA GPUs to kernel families and models. SM has the properties that an architecture fixes,
// a row per architecture. Device has the hardware parameters of a device, from its file or its driver.
//
// No other package compares compute capabilities. Families and models ask SM and Device for properties instead.
package gpu

import (
	"github.com/origami-gemm/origami/core/gemm"
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
// its rows, the warps that issue it together, and the fp32 registers per thread of the largest form, m64n256k16 over
// 128 threads.
const (
	WGMMAM            = 64
	WGMMAWarps        = 4
	WGMMAAccumulators = 128
)

// The matrix instruction tcgen05.mma of one CTA, which reads its operands from shared memory and keeps its sums in
// tensor memory (PTX ISA, "tcgen05.mma" and "Tensor Memory"): its most rows and columns, which are also the lanes of
// tensor memory, and the least columns that a CTA allocates. Of columns it allocates a power of two.
const (
	TensorRows      = 128
	TensorColumns   = 256
	TensorAllocated = 32
)

// StepBytes is the extent along K of a matrix instruction in bytes of an operand: 16 elements of 16 bits, 32 of 8 bits,
// 8 of 32 bits (PTX ISA, "Matrix Fragments" of mma.sync, and "wgmma.mma_async").
const StepBytes = 32

// LineBytes is the size of a cache line (CUDA C++ Programming Guide, Device Memory Accesses).
const LineBytes = 128

// SM is the streaming multiprocessor of an architecture: the properties that all of its devices share and that no
// device file has. Architectures without kernels that origami generates or Triton compiles have ID, Generation and
// Target alone.
type SM struct {
	// ID is the architecture in device files: "sm90".
	ID string
	// Generation names the architectures whose SMs are alike: "hopper". Consumer parts are a generation of their own.
	Generation string
	// EvictMeasured says that timing_evict, the rate at which dirty lines leave the L2, was measured on the generation.
	EvictMeasured bool
	// Target is the target of kernels.
	Target target.Target
	// Threads and CTAs are the limits of resident threads and CTAs. ThreadsPerCTA is the limit of one CTA.
	Threads, CTAs, ThreadsPerCTA int
	// RegisterGranule is the step in which the registers of a thread are allocated.
	RegisterGranule int
	// SharedReserved is the shared memory that the system takes per CTA, in addition to that of the CTA.
	SharedReserved unit.Bytes
	// Schedulers is the number of warp instructions issued per cycle.
	Schedulers int
	// LoadStoreUnits is the lanes of load and store instructions that the SM takes per cycle. LoadStoreSource is its
	// source.
	LoadStoreUnits  int
	LoadStoreSource string
	// A cp.async copies CopyMin to CopyMax bytes per thread.
	CopyMin, CopyMax int
	// StMatrix: warps can store matrix fragments to shared memory with one instruction.
	StMatrix bool
	// WGMMA: warpgroups have the matrix instruction wgmma.
	WGMMA bool
	// TensorMemory is the columns of tensor memory, which the matrix instruction tcgen05.mma has its sums in; 0 without
	// it.
	TensorMemory int
	// EnergyShare is the energy of a FLOP of the fastest matrix instruction ÷ that of sm90. EnergyShareSource is its
	// source.
	EnergyShare       float64
	EnergyShareSource string
	// MMAShare is the rate of mma.sync ÷ the rate of the fastest matrix instruction. MMAShareSource is its source.
	MMAShare       float64
	MMAShareSource string
	// FMAShare is the share of the fp32 rate that FMA instructions on different registers reach. FMAShareSource is its
	// source.
	FMAShare       float64
	FMAShareSource string
}

// Multiplies returns the type of the operands that mma.sync multiplies for a type of matrices: fp16 where 8-bit floats
// are converted in registers.
func (s *SM) Multiplies(t gemm.DType) gemm.DType {
	if t.CostsLike() == gemm.FP8 && s.Target.EmulatesFP8() {
		return gemm.FP16
	}
	return t
}

// native is the source of MMAShare where mma.sync is the fastest matrix instruction.
const native = "mma.sync is the native instruction"
