// Package device has the hardware parameters of AMD GPUs, the levels of their memory that some of these state, and how
// parameters change with an override.
package device

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// Levels are the memory of an AMD GPU. Some have no MALL, but AMD's library gives all of them the bandwidth of one.
var Levels = []arch.Level{
	{
		Name: "L2", Bound: arch.BoundL2, Bandwidth: arch.Bandwidth{Linear: true},
		Names: arch.LevelNames{Capacity: "l2_bytes", Partitions: "num_xcds", Bandwidth: "mem1_perf_ratio"},
	},
	{
		Name: "MALL", Bound: arch.BoundMALL, Names: arch.LevelNames{
			Capacity: "mall_bytes", Bandwidth: "mem2_perf_ratio", C0: "bw_c0", C1: "bw_c1", C2: "bw_c2",
		},
	},
	{
		Name: "HBM", Bound: arch.BoundDRAM, Names: arch.LevelNames{
			Latency: "hbm_latency", Bandwidth: "mem3_perf_ratio", DataSheet: "dram_bandwidth",
			C0: "bw_c0", C1: "bw_c1", C2: "bw_c2",
		},
	},
}

// Memory returns the levels of a device.
func Memory(params hw.Set) []arch.Level { return arch.Hierarchy(Levels, params, params.Int("num_cus")) }

// Specs are the hardware parameters of an AMD GPU.
var Specs = arch.WithPeaks([]hw.Spec{
	{Name: "num_cus", Unit: "1", Integer: true, Doc: "compute units"},
	{Name: "num_xcds", Unit: "1", Integer: true, Doc: "dies, each with some of the compute units and an L2 cache"},
	{Name: "lds_bytes", Unit: "B", Integer: true, Doc: "local memory (LDS) that one workgroup can use"},
	{Name: "l2_bytes", Unit: "B", Integer: true, Doc: "L2 cache of one die"},
	{
		Name: "mall_bytes", Unit: "B", Integer: true, AllowZero: true,
		Doc: "Infinity Cache (MALL); the model ignores its size",
	},
	{Name: "registers_per_cu", Unit: "1", Integer: true, Doc: "32-bit vector registers of one compute unit"},
	{
		Name: "registers_per_thread", Unit: "1", Integer: true,
		Doc: "32-bit vector registers that one lane can address",
	},
	{Name: "clock", Unit: "Hz", Doc: "clock of the compute units, HIP's clockRate"},
	{Name: "memory_clock", Unit: "Hz", Doc: "memory clock, HIP's memoryClockRate"},
	{
		Name: "parallel_mi", Unit: "1", Integer: true,
		Doc: "matrix instructions that a compute unit runs at the same time",
	},
	{
		Name: "mem1_perf_ratio", Unit: "B/cycle", Calibrates: true,
		Doc: "bandwidth of L2 with all compute units active",
	},
	{Name: "mem2_perf_ratio", Unit: "B/cycle", Calibrates: true, Doc: "bandwidth of MALL, saturated"},
	{Name: "mem3_perf_ratio", Unit: "B/cycle", Calibrates: true, Doc: "bandwidth of HBM, saturated"},
	{
		Name: "bw_c0", Unit: "1", AllowZero: true, Calibrates: true,
		Doc: "quadratic coefficient of the fraction of MALL and HBM bandwidth that active compute units reach",
	},
	{Name: "bw_c1", Unit: "1", AllowZero: true, Calibrates: true, Doc: "linear coefficient of that fraction"},
	{Name: "bw_c2", Unit: "1", AllowZero: true, Calibrates: true, Doc: "constant coefficient of that fraction"},
	{
		Name: "hbm_latency", Unit: "cycles", AllowZero: true,
		Doc: "latency of HBM, which AMD's library adds to every transfer, even an empty one",
	},
	{Name: "dram_bandwidth", Unit: "B/s", Doc: "bandwidth of HBM in the data sheet"},
	{Name: "peak_fp16", Unit: "FLOP/s", AllowZero: true, Doc: "dense matrix peak, fp16"},
	{Name: "peak_bf16", Unit: "FLOP/s", AllowZero: true, Doc: "dense matrix peak, bf16"},
	{Name: "peak_fp32", Unit: "FLOP/s", AllowZero: true, Doc: "dense matrix peak, fp32"},
	{Name: "peak_tf32", Unit: "FLOP/s", AllowZero: true, Doc: "dense matrix peak, tf32 (XF32)"},
	{Name: "peak_fp8", Unit: "FLOP/s", AllowZero: true, Doc: "dense matrix peak, fp8"},
	{Name: "peak_int8", Unit: "FLOP/s", AllowZero: true, Doc: "dense matrix peak, int8"},
	{Name: "peak_fp4", Unit: "FLOP/s", Optional: true, Doc: "dense matrix peak, fp4 with block scales (MXFP4)"},
	{Name: "tdp", Unit: "W", Doc: "board power"},
})

// Description returns the part of a description that does not depend on a model.
func Description(sheet *hw.Sheet, params hw.Set) arch.Description {
	return arch.Description{
		Arch: sheet.Arch, Vendor: sheet.Vendor, Device: sheet.Device, DeviceName: sheet.Name, Aliases: sheet.Aliases,
		UnitName: "CU", Units: params.Int("num_cus"), Partitions: params.Int("num_xcds"),
		Clock: unit.Hertz(params.Get("clock")), SharedMemory: unit.Bytes(params.Get("lds_bytes")),
		RegisterFile: params.Int("registers_per_cu"), RegistersPerThread: params.Int("registers_per_thread"),
		Params: params, Peak: arch.PeakRates(params),
	}
}
