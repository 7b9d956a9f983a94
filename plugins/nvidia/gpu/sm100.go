package gpu

import "github.com/origami-gemm/origami/plugins/nvidia/gpu/target"

// SM100 is the SM of compute capability 10.0: B200. Its fastest matrix instruction is tcgen05.mma, and wgmma is gone.
//
// Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (residency) and Compute
// Capability 10.0 (schedulers); CUDA 13.0 documentation, Blackwell Tuning Guide (shared memory of the system); Nsight
// Compute's occupancy calculator (256 registers per warp); PTX ISA, "cp.async", "stmatrix", "Tensor Memory".
var SM100 = blackwell("sm100", 100)

// SM103 is the SM of compute capability 10.3: B300. The same tables have one column for 10.x.
var SM103 = blackwell("sm103", 103)

func blackwell(id string, capability int) *SM {
	return &SM{
		ID:              id,
		Generation:      "blackwell",
		Target:          target.Target{CC: capability},
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
		TensorMemory:    512,
		MMAShare:        0.31,
		MMAShareSource: "assumed, since no figure of this part is published: mma.sync is taken to do as much per cycle " +
			"as on sm90, 0.62 of 4096 FLOP, of the 8192 that tcgen05 does",
		FMAShare:       0.8,
		FMAShareSource: "assumed: as sm90, the data center part before it",
		EnergyShare:    0.74,
		EnergyShareSource: "energy_16 of the model library, fitted to published times: 0.742 pJ on this generation ÷ " +
			"1.008 pJ on Hopper",
	}
}
