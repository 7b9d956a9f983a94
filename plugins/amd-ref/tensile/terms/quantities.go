package terms

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
)

// Parameters are the numbers of the device file that the formulas use.
var Parameters = []string{
	"num_cus", "num_xcds", "lds_bytes", "registers_per_cu", "clock", "dram_bandwidth", "tdp",
}

// Generation is a line of CUs that share constants and fitted numbers.
type Generation struct {
	Name string
	// FMA: the kernels have no matrix instructions.
	FMA bool
	// LineBytes is the cache line, L2Rate what the L2 of one die delivers, MALLRate what the MALL delivers to one die, in
	// bytes per cycle; 0 without one.
	LineBytes, L2Rate, MALLRate float64
	// Buffers are the operand tiles in LDS.
	Buffers int
	// Sides are the sides of the tiles that the libraries have.
	Sides []int
	// StepsAhead is how many steps loads run ahead.
	StepsAhead float64
	// Source is where these come from.
	Source string
}

// The generations.
var (
	Vega = &Generation{
		Name: "gfx900", FMA: true, LineBytes: 64, L2Rate: 16 * 64, Buffers: 2, StepsAhead: 1,
		Sides:  []int{8, 16, 32, 64, 128},
		Source: "AMD Vega architecture white paper (2017): 16 channels of 64 B per cycle; Tensile's kernels have two buffers",
	}
	CDNA2 = &Generation{
		Name: "gfx90a", LineBytes: 128, L2Rate: 32 * 128, Buffers: 1, StepsAhead: 2,
		Sides:  []int{16, 32, 64, 96, 128, 144, 160, 192, 256},
		Source: "AMD CDNA 2 architecture white paper (2021): 32 channels of 128 B per cycle",
	}
	CDNA3 = &Generation{
		Name: "gfx942", LineBytes: 128, L2Rate: 16 * 128, MALLRate: 1024, Buffers: 1, StepsAhead: 2,
		Sides: []int{16, 32, 48, 64, 96, 112, 128, 160, 176, 192, 208, 224, 240, 256},
		Source: "AMD CDNA 3 architecture white paper (2023): 16 channels of 128 B per cycle and die; " +
			"MALL 17.2 TB/s at 2.1 GHz for 8 dies",
	}
)

// Generations are the architectures that the model knows, with their line of CUs.
var Generations = map[string]*Generation{
	"gfx900": Vega, "gfx90a": CDNA2, "gfx942": CDNA3, "gfx950": CDNA3,
}

// Constants returns the published and assumed numbers of the model for a generation.
func (g *Generation) Constants() []arch.Constant {
	fma := 0.0
	if g.FMA {
		fma = 1
	}
	of := func(name string, value float64, unit, doc, source string) arch.Constant {
		return arch.Constant{Name: name, Value: value, Unit: unit, Doc: doc, Source: source}
	}
	return []arch.Constant{
		of("fma", fma, one, "1 for FMA instead of matrix instructions", "instruction set"),
		of("line_bytes", g.LineBytes, bytes, "cache line of L1 and L2", g.Source),
		of("l2_rate", g.L2Rate, "B/cycle", "what the L2 of one die delivers", g.Source),
		of("mall_rate", g.MALLRate, "B/cycle", "what the MALL delivers to one die; 0 without one", g.Source),
		of("lds_width", 128, "B/cycle", "LDS of a CU: 32 banks of 4 B", "CDNA 3 instruction set, LDS"),
		of("steps_ahead", g.StepsAhead, one, "steps that loads run ahead", "Tensile's kernels, PrefetchGlobalRead"),
		of("simds", 4, one, "SIMDs of a CU", "instruction set"),
		of("wave_lanes", 64, one, "lanes of a wave", "instruction set"),
		of("register_granule", 8, one, "registers of a lane are allocated in eights", "instruction set"),
		of("accumulator_bytes", 4, bytes, "a sum", "instruction set: fp32 or int32"),
		of("instruction_bytes", 32, bytes, "depth of a matrix instruction with 16 rows",
			"instruction set: 16 of fp16, 32 of fp8"),
		of("base_registers", 40, one, "registers of a lane for addresses and counters", "assumed"),
		of("workgroups_limit", 8, one, "work-groups of a CU that the model counts on", "assumed"),
		of("default_group", DefaultGroup, one, "work-group mapping of a configuration that has none yet",
			"Tensile's default, WorkGroupMapping"),
	}
}

// DefaultGroup is the constant default_group.
const DefaultGroup = 8

// DataSet names the sizes with AMD's choices and speeds. The binary does not contain them.
const DataSet = "amd-ref/data"

// Quantities are the fitted numbers, each with its bounds and its values for gfx900, gfx90a and gfx942. Shares end at
// 1, and rates at what the hardware has: 128 B per cycle of the LDS and 64 of the L1 (instruction sets), the rest of a
// bound is a factor of ten or so around what the recorded times of all generations say.
var Quantities = []model.Quantity{
	fitted("launch_seconds", "s", "launch of a kernel", 2.5e-6, 6e-6, 6e-06, 6e-06, 3.15e-06),
	fitted("compute_share", one, "rate of the matrix cores, or of FMA, ÷ peak", 0.5, 1, 0.7832, 0.7766, 1),
	fitted("lds_read_rate", "B/cycle", "what waves read of the LDS of a CU, which has 128 B per cycle", 20, 128,
		128, 56.6, 128),
	fitted("lds_write_rate", "B/cycle", "what waves write to it", 20, 128, 128, 128, 55.07),
	fitted("load_rate", "B/cycle", "what the L1 of a CU delivers; its peak is 64", 10, 64, 10.63, 35.11, 40.9),
	fitted("step_latency", cycles, "barriers and waits of a step", 30, 1000, 30, 53.82, 30),
	fitted("fma_latency", cycles, "what a wave waits for its operands, per index along K", 1, 100, 12.27, 1, 1),
	fitted("l2_share", one, "share of l2_rate that is reached", 0.1, 1, 1, 1, 0.4653),
	fitted("mall_share", one, "share of mall_rate that is reached", 0.1, 1, 1, 0.4105, 1),
	fitted("dram_share", one, "share of dram_bandwidth that is reached", 0.3, 1, 1, 1, 0.5452),
	fitted("load_latency", cycles, "from a load to its operands", 300, 3000, 300, 518.8, 300),
	fitted("prologue_cycles", cycles, "start of a work-group", 100, 2000, 1451, 176.3, 100),
	fitted("store_rate", "B/cycle", "output of a CU", 2, 64, 64, 64, 48.99),
	fitted("store_share", one, "share of far_rate that the output of all CUs reaches", 0.05, 1, 1, 0.3022, 0.1113),
	fitted("epilogue_latency", cycles, "end of a work-group", 100, 2000, 1451, 176.3, 100),
	fitted("end_overlap", one, "share of starts and outputs that other work-groups of the CU hide if there are many",
		0.01, 1, 1, 0.1018, 0.5196),
	fitted("fixup_cycles", cycles, "sums of tiles that CUs share in stream-K", 500, 30000, 2000, 2338, 8574),
	fitted("reduce_seconds", "s", "launch that adds up the parts of a split K", 0.5e-6, 1e-5,
		5e-07, 4.372e-06, 5.456e-06),
	fitted("energy_per_flop", "J", "of a 16-bit FLOP", 0.1e-12, 3e-12, 1e-12, 9.059e-13, 1.328e-12),
	fitted("energy_per_byte", "J", "of an operand from the L2 to the LDS", 1e-13, 1e-10, 1e-12, 1e-13, 2.675e-11),
}

func fitted(name, unit, doc string, low, high float64, gfx900, gfx90a, gfx942 float64) model.Quantity {
	q := model.Bounded(name, unit, 0, low, high, doc)
	for i, value := range []float64{gfx900, gfx90a, gfx942} {
		g := []*Generation{Vega, CDNA2, CDNA3}[i].Name
		q.Rungs = append(q.Rungs, model.Value{Of: g, Value: value, DataSet: DataSet,
			Source: "fitted on the recorded choices and speeds of " + g + " in plugins/amd-ref/data, 2026-11-22"})
	}
	return q
}
