package amdref

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// specs are the hardware parameters that the model needs. A parameter comes after those it is derived from.
var specs = arch.WithPeaks([]hw.Spec{
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
	{Name: "mem1_bandwidth", Unit: "TB/s", Doc: "L2 bandwidth in AMD's library"},
	{Name: "mem2_bandwidth", Unit: "TB/s", Doc: "MALL bandwidth in AMD's library"},
	{Name: "mem3_bandwidth", Unit: "TB/s", Doc: "HBM bandwidth in AMD's library"},
	{Name: "mem2_clock_ratio", Unit: "1", Doc: "MALL clock ÷ memory clock"},
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

// derive computes the bandwidths per cycle that a device file leaves out. The library divides terabytes per second by
// kilohertz, hence the factor 1e9. Devices that only other models know have no figures of the library.
func derive(name string, known hw.Set) (hw.Number, bool) {
	for _, r := range perfRatios {
		bandwidth, has := known.Lookup(r.bandwidth)
		if r.name == name && has {
			cycles := known.Get(r.clock) / 1e3
			if r.ratio != "" {
				cycles *= known.Get(r.ratio)
			}
			return hw.Number{
				Value: 1e9 * bandwidth.Value / cycles, Unit: "B/cycle", Source: r.formula, Method: hw.Formula,
				Date: formulaDate,
			}, true
		}
	}
	return hw.Number{}, false
}

// perfRatios are the bandwidths per cycle, and what each is computed from.
var perfRatios = []struct{ name, bandwidth, clock, ratio, formula string }{
	{"mem1_perf_ratio", "mem1_bandwidth", "clock", "", "1e9*mem1_bandwidth/(clock/1e3)"},
	{
		"mem2_perf_ratio", "mem2_bandwidth", "memory_clock", "mem2_clock_ratio",
		"1e9*mem2_bandwidth/(memory_clock/1e3*mem2_clock_ratio)",
	},
	{"mem3_perf_ratio", "mem3_bandwidth", "memory_clock", "", "1e9*mem3_bandwidth/(memory_clock/1e3)"},
}

// formulaDate is the date of the library whose formulas derive reproduces.
const formulaDate = "2026-01-16"

// atomTypes maps an element type to the operand type of its matrix instruction.
var atomTypes = map[gemm.DType]string{
	gemm.FP16: "fp16", gemm.BF16: "bf16", gemm.FP32: "fp32", gemm.TF32: "xf32", gemm.FP8: "fp8", gemm.INT8: "int8",
}

// newMachine builds the device from its resolved parameters.
func newMachine(sheet *hw.Sheet, params hw.Set, o options) (*machine, error) {
	get := func(name string) uint64 { return uint64(params.Get(name)) }
	m := &machine{
		cus: get("num_cus"), xcds: get("num_xcds"), parallelMI: get("parallel_mi"),
		ldsBytes: get("lds_bytes"), l2Bytes: get("l2_bytes"),
		// gfx950 has no XF32 instructions. The library emulates TF32 with BF16 products and models their cost.
		emulatesXF32: sheet.Arch == "gfx950",
		gridMode:     o.grid, occupancy: o.occupancy, februaryMapping: o.februaryMapping,
	}
	if m.xcds > m.cus {
		return nil, diag.Inputf("num_xcds is %d, which is more than num_cus (%d)", m.xcds, m.cus).
			Do("give each die at least one compute unit")
	}
	shared := func(peak string) arch.Bandwidth {
		return arch.Bandwidth{
			Peak: unit.BytesPerCycle(params.Get(peak)), Units: int(m.cus),
			C0: params.Get("bw_c0"), C1: params.Get("bw_c1"), C2: params.Get("bw_c2"),
		}
	}
	m.l2Bandwidth = arch.Bandwidth{
		Peak: unit.BytesPerCycle(params.Get("mem1_perf_ratio")), Units: int(m.cus), Linear: true,
	}
	m.mallBandwidth, m.hbmBandwidth = shared("mem2_perf_ratio"), shared("mem3_perf_ratio")
	if !(m.hbmBandwidth.Fraction(1) > 0) {
		return nil, diag.Inputf("bw_c0, bw_c1 and bw_c2 are all zero, which leaves no bandwidth").
			Do("set at least one to a positive value")
	}
	m.assumedWGM = ceilSqrt(m.cus / m.xcds)
	return m, nil
}

// missingMICycles is the latency that the library assumes for an instruction that its table lacks.
const missingMICycles = 32

// miLatency returns the cycles of a matrix instruction with all matrix cores of a compute unit busy, rounded down.
func (m *machine) miLatency(atoms []hw.Atom, atomType string, s shape) uint64 {
	cycles := uint64(missingMICycles)
	for _, a := range atoms {
		if a.Type == atomType && (shape{a.M, a.N, a.K}) == s {
			cycles = uint64(a.Cycles)
		}
	}
	return cycles / m.parallelMI
}
