package gpu

import "github.com/origami-gemm/origami/plugins/nvidia/gpu/target"

// SM86 is the SM of compute capability 8.6: GeForce RTX 30, A40.
//
// Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (residency) and Compute
// Capability 8.x (schedulers, shared memory of the system); Nsight Compute's occupancy calculator (256 registers
// per warp); PTX ISA, "cp.async".
var SM86 = &SM{
	ID:              "sm86",
	Generation:      "ampere-consumer",
	Target:          target.Target{CC: 86},
	Threads:         1536,
	CTAs:            16,
	ThreadsPerCTA:   1024,
	RegisterGranule: 8,
	SharedReserved:  1024,
	Schedulers:      4,
	LoadStoreUnits:  16,
	LoadStoreSource: "NVIDIA Ampere GA102 GPU Architecture whitepaper, SM: 4 load/store units in each of 4 partitions; " +
		"RRZE-HPC/gpu-benches@1038c5d, gpu-cache, a40: 9352 GB/s from L1, 64 B per cycle and SM",
	CopyMin:        4,
	CopyMax:        16,
	MMAShare:       1,
	MMAShareSource: native,
	FMAShare:       0.62,
	FMAShareSource: "chosen on the ladder of an RTX A6000 (siboehm/SGEMM_CUDA@60cba6f) at 4096x4096x4096: half of the " +
		"lanes are those of integers too, and clocks below that of the device file count as well",
}
