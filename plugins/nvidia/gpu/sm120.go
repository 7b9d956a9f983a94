package gpu

import "github.com/origami-gemm/origami/plugins/nvidia/gpu/target"

// SM120 is the SM of compute capability 12.0: GeForce RTX 50, RTX PRO Blackwell. It has neither wgmma nor tcgen05.
//
// Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (residency) and Compute
// Capability 12.0 (schedulers, shared memory of the system); NVIDIA/cccl, cuda/__device/arch_traits.h (the same
// limits); Nsight Compute's occupancy calculator (256 registers per warp); PTX ISA, "cp.async", "stmatrix".
var SM120 = blackwellConsumer("sm120", 120)

// SM121 is the SM of compute capability 12.1: GB10. The same tables have one column for both.
var SM121 = blackwellConsumer("sm121", 121)

func blackwellConsumer(id string, capability int) *SM {
	return &SM{
		ID:              id,
		Generation:      "blackwell-consumer",
		Target:          target.Target{CC: capability},
		Threads:         1536,
		CTAs:            24,
		ThreadsPerCTA:   1024,
		RegisterGranule: 8,
		SharedReserved:  1024,
		Schedulers:      4,
		LoadStoreUnits:  16,
		LoadStoreSource: "NVIDIA RTX Blackwell GPU Architecture whitepaper, SM: 4 load/store units in each of 4 partitions",
		CopyMin:         4,
		CopyMax:         16,
		StMatrix:        true,
		MMAShare:        1,
		MMAShareSource:  native,
		FMAShare:        0.62,
		FMAShareSource:  "assumed: as sm86, since integers use the same lanes",
	}
}
