package gpu

import "github.com/origami-gemm/origami/plugins/nvidia/gpu/target"

// SM100 is the SM of compute capability 10.0: B200. Its fastest matrix instruction is tcgen05, which no kernel here
// uses, and wgmma is gone.
//
// Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (residency) and Compute
// Capability 10.0 (schedulers); CUDA 13.0 documentation, Blackwell Tuning Guide (shared memory of the system); Nsight
// Compute's occupancy calculator (256 registers per warp); PTX ISA, "cp.async", "stmatrix".
var SM100 = &SM{
	ID:              "sm100",
	Generation:      "blackwell",
	Target:          target.Target{CC: 100},
	Threads:         2048,
	CTAs:            32,
	ThreadsPerCTA:   1024,
	RegisterGranule: 8,
	SharedReserved:  1024,
	Schedulers:      4,
	LoadStoreUnits:  32,
	LoadStoreSource: "assumed: as sm90, the data center part before it",
	CopyMin:         4,
	CopyMax:         16,
	StMatrix:        true,
	MMAShare:        0.31,
	MMAShareSource: "assumed, since no figure of this part is published: mma.sync is taken to do as much per cycle " +
		"as on sm90, 0.62 of 4096 FLOP, of the 8192 that tcgen05 does",
	FMAShare:       0.8,
	FMAShareSource: "assumed: as sm90, the data center part before it",
}
