package gpu

import "github.com/origami-gemm/origami/plugins/nvidia/gpu/target"

// SM89 is the SM of compute capability 8.9: GeForce RTX 40, L40.
//
// Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (residency) and Compute
// Capability 8.x (schedulers, shared memory of the system); Nsight Compute's occupancy calculator (256 registers
// per warp); PTX ISA, "cp.async".
var SM89 = &SM{
	ID:              "sm89",
	Generation:      "ada",
	Target:          target.Target{CC: 89},
	Threads:         1536,
	CTAs:            24,
	ThreadsPerCTA:   1024,
	RegisterGranule: 8,
	SharedReserved:  1024,
	Schedulers:      4,
	LoadStoreUnits:  16,
	LoadStoreSource: "NVIDIA Ada GPU Architecture whitepaper, SM: 4 load/store units in each of 4 partitions; " +
		"RRZE-HPC/gpu-benches@1038c5d, gpu-cache, l40: 22621 GB/s from L1, 64 B per cycle and SM",
	CopyMin:        4,
	CopyMax:        16,
	MMAShare:       1,
	MMAShareSource: native,
	FMAShare:       0.62,
	FMAShareSource: "assumed: as sm86, which has the same lanes",
}
