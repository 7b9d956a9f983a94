package terms

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// Parameters are the numbers of the device file that formulas and constants use.
var Parameters = []string{
	"num_sms", "clock", "l2_bytes", "l2_perf_ratio", "dram_perf_ratio", "hbm_latency_penalty", "peak_fp16", "peak_fp32",
	"register_file", "shared_memory_bytes",
}

// globalLoadShare is a number that was fitted (docs/ladder.md), as gpu.SM.FMAShare was.
const globalLoadShare = 0.9

const (
	fit = "chosen on the ladders of an RTX A6000 (siboehm/SGEMM_CUDA@60cba6f) and an RTX 3060 Laptop " +
		"(LessUp/sgemm-optimization@4b39e85) at 4096x4096x4096; those of an H100 and an RTX PRO 6000 are held out"
	sweep = "fitted on an H100 (plugins/nvidia/data/sweeps/sgemm: 26 sizes, 218 kernels) together with its ladder, for " +
		"the order of kernels near the fastest"
	technical = "CUDA C++ Programming Guide, Technical Specifications per Compute Capability"
)

// Constants returns the numbers of the model that no device file has.
func Constants(g *gpu.Device) []arch.Constant {
	return []arch.Constant{
		{Name: "load_store_units", Value: float64(g.SM.LoadStoreUnits), Unit: one, Source: g.SM.LoadStoreSource,
			Doc: "lanes of loads and stores that an SM takes per cycle"},
		{Name: "fma_lanes", Value: g.FlopsPerCycle("peak_fp32") / 2, Unit: one,
			Doc:    "lanes of fp32 FMA of an SM: the power of two next to peak_fp32 / (2 * num_sms * clock)",
			Source: "device file"},
		{Name: "tensor_rate", Value: g.FlopsPerCycle("peak_fp16"), Unit: "FLOP/cycle",
			Doc: "of one SM: the power of two next to peak_fp16 / (num_sms * clock)", Source: "device file"},
		{Name: "mma_sync_share", Value: g.SM.MMAShare, Unit: one, Doc: "rate of mma.sync ÷ tensor_rate",
			Source: g.SM.MMAShareSource},
		{Name: "schedulers", Value: float64(g.SM.Schedulers), Unit: one, Source: technical,
			Doc: "warp instructions that an SM issues per cycle"},
		{Name: "shared_reserved", Value: float64(g.SM.SharedReserved), Unit: inBytes, Source: technical,
			Doc: "shared memory of a CTA that the system takes"},
		{Name: "threads_per_sm", Value: float64(g.SM.Threads), Unit: one, Source: technical,
			Doc: "resident threads of an SM"},
		{Name: "ctas_limit", Value: float64(g.SM.CTAs), Unit: one, Doc: "resident CTAs of an SM", Source: technical},
		{Name: "register_granule", Value: float64(g.SM.RegisterGranule), Unit: one,
			Doc: "registers of a thread are allocated in eights", Source: "Nsight Compute occupancy calculator"},
		{Name: "l2_usable_share", Value: 0.7, Unit: one, Doc: "share of l2_bytes within which the L2 is uniformly fast",
			Source: "RRZE-HPC/gpu-benches@1038c5d, gpu-l2-cache, h200: 44 of 62.9 MB"},
		latencyOf(g),
		{Name: "barrier_latency", Value: 150, Unit: cycles,
			Doc: "from the last warp's arrival at a barrier to the first FMA on what it published", Source: sweep},
		{Name: "prologue_cycles", Value: 291.6, Unit: cycles, Doc: "start of a CTA up to its first load",
			Source: "as in the model pipelined, fitted on h200-triton"},
		{Name: "loop_slots", Value: 10, Unit: one, Doc: "instructions of a warp per K step besides loads and FMA",
			Source: "assumed: a counter, a branch, and pointers of two operands, each with its carry"},
		{Name: "launch_seconds", Value: 4.5e-6, Unit: "s", Source: sweep,
			Doc: "launch of a kernel between events, with its instructions in DRAM"},
		{Name: "next_launch_seconds", Value: 1e-6, Unit: "s", Doc: "launch of a kernel behind another",
			Source: "assumed: what the device takes from one kernel of a stream to the next"},
		{Name: "copy_slots", Value: 3, Unit: one, Doc: "instructions of a warp for the address of a copy from global memory",
			Source: sweep},
		{Name: "async_slots", Value: 14, Unit: one, Doc: "issue slots that a warp's cp.async takes beyond those of a load",
			Source: sweep},
		{Name: "handover_cycles", Value: 900, Unit: cycles, Source: sweep,
			Doc: "from the last sum that a split of K writes to the first that is added"},
		{Name: "sm_l2_rate", Value: 32, Unit: "B/cycle", Source: sweep,
			Doc: "sums of the other splits that an SM reads from the L2 and adds"},
		{Name: "wide_slots", Value: 2, Unit: one, Doc: "issue of an access of 16 bytes per lane ÷ that of one of 4",
			Source: "assumed: between 1, for addresses alone, and 4, for four times the data; on the H100's sweep 2 orders " +
				"kernels better than 1.5, and 2.5 better still, but not the ladder"},
		{Name: "global_load_share", Value: globalLoadShare, Unit: one, Source: fit,
			Doc: "rate of loads through L1 ÷ that of load_store_units, which loads from shared memory reach"},
		{Name: "warp_fma_cycles", Value: 2, Unit: cycles, Doc: "from one FMA of a warp to the next",
			Source: "chosen on an H200 (plugins/nvidia/data/h200-sgemm) at 1024x1024x1024: a CTA of four warps alone on an " +
				"SM takes 2.2 cycles per FMA of a warp, and one of eight warps 1.4 per FMA of a scheduler. That is a datapath " +
				"of 16 lanes (NVIDIA H100 whitepaper: 32 lanes of fp32 in each of four partitions)"},
		{Name: "fma_share", Value: g.SM.FMAShare, Unit: one, Source: g.SM.FMAShareSource,
			Doc: "rate of FMA ÷ its peak: operands that are in the same bank of the register file, and clocks below " +
				"that of the device file"},
	}
}

// latencyOf is the latency of the L2: that of the device file if it was measured.
func latencyOf(g *gpu.Device) arch.Constant {
	c := arch.Constant{Name: "l2_latency_cycles", Value: 260, Unit: cycles, Doc: "latency of a load that the L2 serves",
		Source: "assumed where the device file has no l2_latency: RRZE-HPC/gpu-benches@1038c5d, gpu-latency, has 250 " +
			"cycles on an A40 and 274 on an L40, origami calibrate 275 on an H200"}
	if l2 := arch.LevelOf(g.Memory, arch.BoundL2); l2.Latency > 0 {
		c.Value, c.Source = float64(l2.Latency), "device file"
	}
	return c
}
