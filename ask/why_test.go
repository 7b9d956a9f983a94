package ask

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// A device of 100 SMs at 1 GHz, 1000 TFLOP/s and 4 TB/s.
func whyOf(p gemm.Problem, block int, e arch.Estimate, terms map[string]float64) string {
	d := &arch.Description{
		Units: 100, UnitName: "SM", Clock: 1e9,
		Peak: []arch.PeakRate{{DType: gemm.FP16, Rate: 1e15}, {DType: gemm.INT8, Rate: 2e15}},
	}
	entry := Entry{
		Config:   gemm.Config{BlockM: block, BlockN: block, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1},
		Estimate: e,
	}
	for name, v := range terms {
		d.Terms = append(d.Terms, arch.Term{Name: name, Common: name})
		entry.Terms = append(entry.Terms, v)
	}
	return (&Ranking{Arch: d, Problem: p, DRAMPeak: 4e12}).Why(&entry)
}

func TestWhy(t *testing.T) {
	square, decode := gemm.New(4096, 4096, 4096), gemm.New(1, 8192, 8192)
	integers := square
	integers.DType = gemm.INT8
	known := map[string]float64{arch.CommonCTAsPerUnit: 2, arch.CommonWaves: 5.12, arch.CommonDRAMTotal: 2e8}
	cycles := func(us float64, b arch.Bound) arch.Estimate {
		return arch.Estimate{Cycles: unit.Cycles(us * 1e3), Bound: b}
	}
	for _, c := range []struct{ got, want string }{
		{
			whyOf(square, 128, cycles(200, arch.BoundCompute), known),
			"compute-bound: 687 TFLOP/s, 68.7 % of the fp16 peak (1.00 PFLOP/s); 25.0 % of DRAM's 4.00 TB/s; " +
				"5.12 waves of 2 CTAs per SM; 1365 FLOP/B",
		},
		{ // no terms: the operands and the output once, and tiles by SMs
			whyOf(square, 128, cycles(200, arch.BoundL2), nil),
			"L2-bound: 687 TFLOP/s, 68.7 % of the fp16 peak (1.00 PFLOP/s); 12.6 % of DRAM's 4.00 TB/s; 10.2 waves; " +
				"1365 FLOP/B",
		},
		{
			whyOf(integers, 128, cycles(100, arch.BoundCompute), nil),
			"compute-bound: 1.37 POPS, 68.7 % of the int8 peak (2.00); 25.2 % of DRAM's 4.00 TB/s; 10.2 waves; 1365 OPS/B",
		},
		{ // a part of the operands is in a cache
			whyOf(decode, 16, cycles(40, arch.BoundDRAM), map[string]float64{arch.CommonDRAMTotal: 64e6}),
			"DRAM-bound: 1.60 TB/s, 40.0 % of DRAM's 4.00 TB/s; 3.36 TFLOP/s, 0.336 % of the fp16 peak (1.00 PFLOP/s); " +
				"5.12 waves; 1 FLOP/B; 93.8 % padding",
		},
		{ // far from the roof that the model names
			whyOf(decode, 16, cycles(400, arch.BoundDRAM), nil),
			"waits for DRAM: 336 GB/s, 8.39 % of DRAM's 4.00 TB/s; 336 GFLOP/s, 0.034 % of the fp16 peak (1.00 PFLOP/s); " +
				"5.12 waves; 1 FLOP/B; 93.8 % padding",
		},
		{
			whyOf(square, 128, cycles(2000, arch.BoundCompute), nil),
			"waits for arithmetic: 68.7 TFLOP/s, 6.87 % of the fp16 peak (1.00 PFLOP/s); 1.26 % of DRAM's 4.00 TB/s; " +
				"10.2 waves; 1365 FLOP/B",
		},
		{whyOf(square, 128, arch.Estimate{Reject: arch.ReasonRegisters}, nil), ""},
	} {
		must.Equal(t, c.got, c.want)
	}
}
