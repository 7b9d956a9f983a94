package gpu

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
)

// Levels are the memory of an NVIDIA GPU. Of several dies, the halves of the L2 are one cache.
var Levels = []arch.Level{
	{
		Name: "L2", Bound: arch.BoundL2, Bandwidth: arch.Bandwidth{Linear: true},
		Names: arch.LevelNames{Capacity: "l2_bytes", Latency: "l2_latency", Bandwidth: "l2_perf_ratio"},
	},
	{
		Name: "DRAM", Bound: arch.BoundDRAM, Names: arch.LevelNames{
			Latency: "hbm_latency_penalty", Bandwidth: "dram_perf_ratio", DataSheet: "dram_bandwidth", C1: "dram_bw_coeff",
		},
	},
}

// Specs are the hardware numbers of an NVIDIA GPU.
var Specs = arch.WithPeaks([]hw.Spec{
	{Name: "num_sms", Unit: "1", Integer: true, Max: 1 << 14, Doc: "streaming multiprocessors"},
	{
		Name: "dies", Unit: "1", Integer: true, Max: 1 << 4, Optional: true,
		Doc: "dies, each with its share of the SMs and of the L2; one where it is not given",
	},
	{Name: "clock", Unit: "Hz", Doc: "SM boost clock"},
	{Name: "l2_bytes", Unit: "B", Integer: true, Doc: "L2 capacity"},
	{Name: "shared_memory_bytes", Unit: "B", Integer: true, Doc: "shared memory one CTA may opt in to"},
	{Name: "register_file", Unit: "1", Integer: true, Doc: "32-bit registers per SM"},
	{Name: "registers_per_thread", Unit: "1", Integer: true, Doc: "register cap of one thread"},
	{Name: "tensor_cores_per_sm", Unit: "1", Integer: true, Max: 1 << 10, Doc: "tensor cores per SM"},
	{Name: "dram_bandwidth", Unit: "B/s", Doc: "peak DRAM bandwidth"},
	{
		Name: "dram_ecc", Unit: "1", Integer: true, Max: 1, AllowZero: true, Optional: true,
		Doc: "1 if DRAM keeps its error correction among the data; 0 where it is not given",
	},
	{
		Name: "clock_loaded", Unit: "Hz", Optional: true,
		Doc: "SM clock under load, of cards that exceed their boost clock",
	},
	{Name: "tdp", Unit: "W", Optional: true, Doc: "board power limit"},
	{Name: "peak_fp16", Unit: "FLOP/s", Doc: "dense matrix rate, fp16 with fp32 accumulation"},
	{Name: "peak_bf16", Unit: "FLOP/s", Doc: "dense matrix rate, bf16 with fp32 accumulation"},
	{Name: "peak_tf32", Unit: "FLOP/s", Optional: true, Doc: "dense matrix rate, tf32"},
	{Name: "peak_fp32", Unit: "FLOP/s", Optional: true, Doc: "fp32 rate outside the tensor cores"},
	{Name: "peak_fp8", Unit: "FLOP/s", Optional: true, Doc: "dense matrix rate, fp8 with fp32 accumulation"},
	{Name: "peak_int8", Unit: "FLOP/s", Optional: true, Doc: "dense matrix rate, int8 (operations per second)"},
	{Name: "peak_fp4", Unit: "FLOP/s", Optional: true, Doc: "dense matrix rate, fp4 with block scales"},
	{Name: "mma_latency", Unit: "cycles", Calibrates: true, Doc: "latency of one mma.sync m16n8k16"},
	{Name: "l2_perf_ratio", Unit: "B/cycle", Calibrates: true, Doc: "aggregate L2 bandwidth ÷ SM clock"},
	{Name: "dram_perf_ratio", Unit: "B/cycle", Calibrates: true, Doc: "aggregate DRAM bandwidth ÷ SM clock"},
	{Name: "dram_bw_coeff", Unit: "1", Calibrates: true, Doc: "share of the DRAM bandwidth that one active SM reaches"},
	{Name: "hbm_latency_penalty", Unit: "cycles", AllowZero: true, Calibrates: true, Doc: "DRAM access latency"},
	measured("clock_matrix", "Hz", "SM clock while all SMs issue matrix instructions of fp16"),
	measured("l2_knee", "B", "data set from which on the L2 does not hold all of it"),
	measured("l2_latency", "cycles", "L2 access latency"),
	measured("l1_latency", "cycles", "L1 access latency"),
	measured("shared_bandwidth", "B/cycle", "shared-memory bandwidth of an SM"),
	measured("l1_bandwidth", "B/cycle", "L1 bandwidth of an SM"),
	measured("dram_read", "B/s", "DRAM bandwidth of one pass of reads"),
	measured("dram_triad", "B/s", "DRAM bandwidth of two reads and a write"),
	measured("launch_overhead", "s", "time of an empty kernel"),
	measured("fma_rate", "FLOP/cycle", "fp32 rate of an SM outside the tensor cores"),
	measured("mma_rate_fp16", "FLOP/cycle", "mma.sync rate of an SM, fp16"),
	measured("mma_rate_bf16", "FLOP/cycle", "mma.sync rate of an SM, bf16"),
	measured("mma_rate_tf32", "FLOP/cycle", "mma.sync rate of an SM, tf32"),
	measured("mma_rate_fp8", "FLOP/cycle", "mma.sync rate of an SM, fp8"),
	measured("mma_rate_int8", "FLOP/cycle", "mma.sync rate of an SM, int8"),
	measured("wgmma_rate_fp16", "FLOP/cycle", "wgmma rate of an SM, fp16"),
	measured("wgmma_rate_bf16", "FLOP/cycle", "wgmma rate of an SM, bf16"),
	measured("wgmma_rate_tf32", "FLOP/cycle", "wgmma rate of an SM, tf32"),
	measured("wgmma_rate_fp8", "FLOP/cycle", "wgmma rate of an SM, fp8"),
	measured("wgmma_rate_int8", "FLOP/cycle", "wgmma rate of an SM, int8"),
})

// measured is a parameter that only microbenchmarks give and that no model needs.
func measured(name, unitName, doc string) hw.Spec {
	return hw.Spec{Name: name, Unit: unitName, Optional: true, Doc: doc}
}

// Derive gives the tier-one parameters that follow from others.
func Derive(name string, known hw.Set) (hw.Number, bool) {
	switch name {
	case "dram_perf_ratio":
		return hw.Number{
			Value: known.Get("dram_bandwidth") / known.Get("clock"), Unit: "B/cycle",
			Source: "dram_bandwidth / clock", Method: hw.Formula,
		}, true
	case "l2_perf_ratio":
		return hw.Number{
			Value: known.Get("num_sms") * 64, Unit: "B/cycle", Source: l2PortSource, Method: hw.Assumed,
		}, true
	}
	return hw.Number{}, false
}

const l2PortSource = "num_sms * 64 B/cycle, assumed for the port of an SM: above what any microbenchmark of configs/ " +
	"shows, so that the L2 as a whole is not the limit where it was not measured"
