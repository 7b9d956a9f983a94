package gpu

import "github.com/origami-gemm/origami/plugins/nvidia/gpu/target"

// SM80 is the SM of compute capability 8.0: A100.
//
// Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (residency) and Compute
// Capability 8.x (schedulers, shared memory of the system); Nsight Compute's occupancy calculator (256 registers
// per warp); PTX ISA, "cp.async".
var SM80 = &SM{
	ID:              "sm80",
	Generation:      "ampere",
	Target:          target.Target{CC: 80},
	Threads:         2048,
	CTAs:            32,
	ThreadsPerCTA:   1024,
	RegisterGranule: 8,
	SharedReserved:  1024,
	Schedulers:      4,
	LoadStoreUnits:  32,
	LoadStoreSource: "NVIDIA A100 Tensor Core GPU Architecture whitepaper, SM: 8 load/store units in each of 4 partitions",
	CopyMin:         4,
	CopyMax:         16,
	MMAShare:        1,
	MMAShareSource:  native,
	FMAShare:        0.8,
	FMAShareSource:  "assumed: as sm90, since integers have lanes of their own",
}
