package gpu

import "github.com/origami-gemm/origami/plugins/nvidia/gpu/target"

// SM90 is the SM of compute capability 9.0: H100, H200.
//
// Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (residency) and Compute
// Capability 9.0 (schedulers, shared memory of the system); Nsight Compute's occupancy calculator (256 registers
// per warp); PTX ISA, "cp.async", "stmatrix", "wgmma.mma_async".
var SM90 = &SM{
	ID:              "sm90",
	Generation:      "hopper",
	EvictMeasured:   true,
	Target:          target.Target{CC: 90},
	Threads:         2048,
	CTAs:            32,
	ThreadsPerCTA:   1024,
	RegisterGranule: 8,
	SharedReserved:  1024,
	Schedulers:      4,
	LoadStoreUnits:  32,
	LoadStoreSource: "NVIDIA H100 Tensor Core GPU Architecture whitepaper, SM: eight load/store units in each of four " +
		"partitions; origami calibrate on an H200: 1.00 loads of a warp per cycle and SM, of L1 and of shared memory",
	CopyMin:  4,
	CopyMax:  16,
	StMatrix: true,
	WGMMA:    true,
	MMAShare: 0.62,
	MMAShareSource: "assumed, since no figure of this part is published; the register-only kernel of " +
		"experiments/mma-on-h200 reaches 572 TFLOP/s, 0.53 of tensor_rate at 1.98 GHz and more at the clocks " +
		"that the power limit leaves",
	FMAShare: 0.8,
	FMAShareSource: "chosen on an H200 (plugins/nvidia/data/h200-sgemm) at 4096x4096x4096: the fastest kernels and " +
		"cuBLAS reach 0.76 of the peak at its clock, other instructions included. On one register FMA reaches 0.99",
}
