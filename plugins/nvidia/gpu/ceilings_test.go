package gpu_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// Numbers of the data sheet are limits. Measured numbers were reached, at the clock that they were measured at.
func TestCeilings(t *testing.T) {
	number := func(name string, v float64, unitName string, m hw.Method, clock unit.Hertz) hw.Param {
		tier := hw.Derived
		if m == hw.Microbenchmark {
			tier = hw.Calibrated
		}
		return hw.Param{Name: name, Tier: tier,
			Number: hw.Number{Value: v, Unit: unitName, Source: "of " + name, Method: m, Clock: clock}}
	}
	params := hw.Set{
		number("num_sms", 100, "1", hw.Datasheet, 0), number("clock", 1e9, "Hz", hw.Datasheet, 0),
		number("shared_memory_bytes", 1e5, "B", hw.Datasheet, 0), number("register_file", 65536, "1", hw.Datasheet, 0),
		number("registers_per_thread", 255, "1", hw.Datasheet, 0),
		number("dram_bandwidth", 2e12, "B/s", hw.Datasheet, 0), number("peak_fp16", 400e12, "FLOP/s", hw.Datasheet, 0),
		number("peak_fp32", 20e12, "FLOP/s", hw.Datasheet, 0),
		number("l2_perf_ratio", 5000, "B/cycle", hw.Microbenchmark, 0),
	}
	check := func(want ...arch.Ceiling) {
		t.Helper()
		d := gpu.NewDevice(&gpu.SM{RegisterGranule: 8}, &hw.Sheet{Header: hw.Header{Name: "Made-up"}}, params).Description()
		must.Need(t, len(d.Ceilings) == len(want), "%+v", d.Ceilings)
		for i, c := range d.Ceilings {
			if c != want[i] {
				t.Errorf("%+v, want %+v", c, want[i])
			}
		}
	}
	l2 := arch.Ceiling{Name: "L2", Level: arch.AtL2, Reached: 5e12, Source: "of l2_perf_ratio"}
	check(arch.Ceiling{Name: "FMA", DType: gemm.FP32, Limit: 20e12, Source: "of peak_fp32"}, l2,
		arch.Ceiling{Name: "DRAM", Level: arch.AtDRAM, Limit: 2e12, Source: "limit: of dram_bandwidth"})
	params = append(params, number("mma_rate_fp16", 2000, "FLOP/cycle", hw.Microbenchmark, 0.8e9),
		number("wgmma_rate_fp16", 4100, "FLOP/cycle", hw.Microbenchmark, 0.8e9),
		number("fma_rate", 250, "FLOP/cycle", hw.Microbenchmark, 0),
		number("shared_bandwidth", 120, "B/cycle", hw.Microbenchmark, 0),
		number("dram_read", 1.9e12, "B/s", hw.Microbenchmark, 0), number("dram_triad", 1.8e12, "B/s", hw.Microbenchmark, 0))
	check(arch.Ceiling{Name: "wgmma", DType: gemm.FP16, Limit: 410e12, Reached: 328e12,
		Source: "limit: of peak_fp16; reached: of wgmma_rate_fp16"},
		arch.Ceiling{Name: "mma.sync", DType: gemm.FP16, Limit: 400e12, Reached: 160e12,
			Source: "limit: of peak_fp16; reached: of mma_rate_fp16"},
		arch.Ceiling{Name: "FMA", DType: gemm.FP32, Limit: 25e12, Reached: 25e12,
			Source: "limit: of peak_fp32; reached: of fma_rate"},
		arch.Ceiling{Name: "shared memory", Level: arch.AtShared, Reached: 12e12, Source: "of shared_bandwidth"}, l2,
		arch.Ceiling{Name: "DRAM", Level: arch.AtDRAM, Limit: 2e12, Reached: 1.9e12,
			Source: "limit: of dram_bandwidth; reached: of dram_read"})
}
