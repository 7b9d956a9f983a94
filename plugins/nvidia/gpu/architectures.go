package gpu

import "github.com/origami-gemm/origami/plugins/nvidia/gpu/target"

// The SMs that kernels run on.
//
// Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (residency; one column
// for 10.x, one for 12.x) and the section of each compute capability (schedulers, shared memory of the system); CUDA
// 13.0 documentation, Blackwell Tuning Guide (that of 10.x); NVIDIA/cccl, cuda/__device/arch_traits.h (that of 12.x);
// Nsight Compute's occupancy calculator (256 registers per warp); PTX ISA, "cp.async", "stmatrix", "wgmma.mma_async",
// "Tensor Memory".
var (
	// SM80 is the SM of compute capability 8.0: A100.
	SM80 = with(&SM{
		ID: "sm80", Generation: "ampere", Target: target.Target{CC: 80}, Threads: 2048, CTAs: 32,
		LoadStoreUnits: 32,
		LoadStoreSource: "NVIDIA A100 Tensor Core GPU Architecture whitepaper, SM: 8 load/store units in each of 4 " +
			"partitions",
		MMAShare: 1, MMAShareSource: native,
		FMAShare: 0.8, FMAShareSource: "assumed: as sm90, since integers have lanes of their own",
	})
	// SM86 is the SM of compute capability 8.6: GeForce RTX 30, A40.
	SM86 = with(&SM{
		ID: "sm86", Generation: "ampere-consumer", Target: target.Target{CC: 86}, Threads: 1536, CTAs: 16,
		LoadStoreUnits: 16,
		LoadStoreSource: "NVIDIA Ampere GA102 GPU Architecture whitepaper, SM: 4 load/store units in each of 4 " +
			"partitions; RRZE-HPC/gpu-benches@1038c5d, gpu-cache, a40: 9352 GB/s from L1, 64 B per cycle and SM",
		MMAShare: 1, MMAShareSource: native,
		FMAShare: 0.62,
		FMAShareSource: "chosen on the ladder of an RTX A6000 (siboehm/SGEMM_CUDA@60cba6f) at 4096x4096x4096: half of " +
			"the lanes are those of integers too, and clocks below that of the device file count as well",
	})
	// SM89 is the SM of compute capability 8.9: GeForce RTX 40, L40.
	SM89 = with(&SM{
		ID: "sm89", Generation: "ada", Target: target.Target{CC: 89}, Threads: 1536, CTAs: 24,
		LoadStoreUnits: 16,
		LoadStoreSource: "NVIDIA Ada GPU Architecture whitepaper, SM: 4 load/store units in each of 4 partitions; " +
			"RRZE-HPC/gpu-benches@1038c5d, gpu-cache, l40: 22621 GB/s from L1, 64 B per cycle and SM",
		MMAShare: 1, MMAShareSource: native,
		FMAShare: 0.62, FMAShareSource: "assumed: as sm86, which has the same lanes",
	})
	// SM90 is the SM of compute capability 9.0: H100, H200.
	SM90 = with(&SM{
		ID: "sm90", Generation: "hopper", EvictMeasured: true, Target: target.Target{CC: 90}, Threads: 2048, CTAs: 32,
		LoadStoreUnits: 32,
		LoadStoreSource: "NVIDIA H100 Tensor Core GPU Architecture whitepaper, SM: eight load/store units in each of " +
			"four partitions; origami calibrate on an H200: 1.00 loads of a warp per cycle and SM, of L1 and of shared " +
			"memory",
		StMatrix: true, WGMMA: true,
		MMAShare: 0.62,
		MMAShareSource: "assumed, since no figure of this part is published; the register-only kernel of " +
			"experiments/mma-on-h200 reaches 572 TFLOP/s, 0.53 of tensor_rate at 1.98 GHz and more at the clocks " +
			"that the power limit leaves",
		FMAShare: 0.8,
		FMAShareSource: "chosen on an H200 (plugins/nvidia/data/h200-sgemm) at 4096x4096x4096: the fastest kernels and " +
			"cuBLAS reach 0.76 of the peak at its clock, other instructions included. On one register FMA reaches 0.99",
	})
	// SM100 is the SM of compute capability 10.0: B200. Its fastest matrix instruction is tcgen05.mma, and wgmma is
	// gone.
	SM100 = blackwell("sm100", 100)
	// SM103 is the SM of compute capability 10.3: B300.
	SM103 = blackwell("sm103", 103)
	// SM120 is the SM of compute capability 12.0: GeForce RTX 50, RTX PRO Blackwell. It has neither wgmma nor tcgen05.
	SM120 = blackwellConsumer("sm120", 120)
	// SM121 is the SM of compute capability 12.1: GB10.
	SM121 = blackwellConsumer("sm121", 121)
)

// The SMs of architectures for which only the kernels of vendor libraries are modelled.
var (
	// SM70 is the SM of compute capability 7.0: V100.
	SM70 = &SM{ID: "sm70", Generation: "volta", Target: target.Target{CC: 70}}
	// SM75 is the SM of compute capability 7.5: T4, GeForce RTX 20.
	SM75 = &SM{ID: "sm75", Generation: "turing", Target: target.Target{CC: 75}}
)

// with fills in what is the same on every SM that kernels run on.
func with(s *SM) *SM {
	s.ThreadsPerCTA, s.RegisterGranule, s.SharedReserved, s.Schedulers = 1024, target.RegisterGranule, 1024, 4
	s.CopyMin, s.CopyMax = 4, 16
	return s
}

func blackwell(id string, capability int) *SM {
	return with(&SM{
		ID: id, Generation: "blackwell", Target: target.Target{CC: capability}, Threads: 2048, CTAs: 32,
		LoadStoreUnits: 32, LoadStoreSource: "assumed: as sm90, the data center part before it",
		StMatrix: true, TensorMemory: 512,
		MMAShare: 0.31,
		MMAShareSource: "assumed, since no figure of this part is published: mma.sync is taken to do as much per cycle " +
			"as on sm90, 0.62 of 4096 FLOP, of the 8192 that tcgen05 does",
		FMAShare: 0.8, FMAShareSource: "assumed: as sm90, the data center part before it",
		EnergyShare: 0.74,
		EnergyShareSource: "energy_16 of the model library, fitted to published times: 0.742 pJ on this generation ÷ " +
			"1.008 pJ on Hopper",
	})
}

func blackwellConsumer(id string, capability int) *SM {
	return with(&SM{
		ID: id, Generation: "blackwell-consumer", Target: target.Target{CC: capability}, Threads: 1536, CTAs: 24,
		LoadStoreUnits:  16,
		LoadStoreSource: "NVIDIA RTX Blackwell GPU Architecture whitepaper, SM: 4 load/store units in each of 4 partitions",
		StMatrix:        true,
		MMAShare:        1, MMAShareSource: native,
		FMAShare: 0.62, FMAShareSource: "assumed: as sm86, since integers use the same lanes",
	})
}
