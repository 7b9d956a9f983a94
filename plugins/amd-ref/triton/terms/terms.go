// Package terms is the model of Triton's kernels on CDNA 3 and 4 as a table: a row per term, with the formula that
// computes it, and its empirical numbers. internal/gen turns the formulas into Go.
package terms

import (
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
)

// DataSet is what the quantities were fitted to: testdata/README.md.
const DataSet = "amd-triton"

// Page documents the terms.
const Page = "docs/model-triton-amd.md"

const (
	one    = "1"
	bytes  = "B"
	cycles = "cycles"
)

// OfConfig are the terms that the model's own code sets.
const OfConfig = "config"

const kernel, problem = "from the configuration", "from the problem"

var row, input = model.Row, model.Input

// Terms is the model, in the order in which it computes.
var Terms = model.Table(kernelTerms, stepTerms, gridTerms, wave("full", "workgroups_per_cu", "num_cus"),
	wave("tail", "tail_count", "tail_cus"), totalTerms)

// What fits on a CU: registers and LDS limit the work-groups.
var kernelTerms = []model.Term{
	input("rate", "FLOP/cycle", OfConfig, "peak rate of the type ÷ (num_cus * clock), of the data sheet",
		"peak of one CU"),
	input("rows", one, OfConfig, problem, "rows of an expert that gets any, on average; m for one matrix"),
	input("matrices", one, OfConfig, problem, "experts that get rows, or the batch"),
	input("tiles_m", one, OfConfig, "tiles of block_m rows, of which none has rows of two matrices",
		"rows of output tiles").As(arch.CommonTilesM),
	input("instruction", one, OfConfig, "from the axis matrix_instr_nonkdim; if Triton chooses, 32 for tiles with sides "+
		"from 32 on, else 16", "rows and columns of the matrix instruction"),
	input("kpack", one, OfConfig, "from the axis kpack; 2 on CDNA 4, where Triton ignores it",
		"operands of so many instructions are read of LDS at once"),
	input("waves_per_eu", one, OfConfig, kernel, "waves of a SIMD that the compiler makes room for, 0 for its own choice"),
	input("waves_m", one, OfConfig, kernel, "waves along the rows of a tile, as Triton lays them out"),
	input("waves_n", one, OfConfig, kernel, "waves along its columns"),
	input("scale_block", one, OfConfig, "from the kernel family",
		"elements along K and along N that have a scale in common, 0 for all"),
	input("top_k", one, OfConfig, "from the axis top_k", "experts of a token in a first product, 0 in a second one"),
	row("wave_m", one, "max(block_m / waves_m, instruction)", "rows of a wave; waves beyond the tile repeat others"),
	row("wave_n", one, "max(block_n / waves_n, instruction)", "columns of a wave"),
	row("tile_bytes", bytes, "(block_m + block_n) * block_k * element_bytes",
		"operands of a step").As(arch.CommonLoadPerUnit),
	row("registers", one, `wave_m * wave_n / wave_lanes * when(scale_block > 0, 2, 1)
			+ tile_bytes / (4 * wave_lanes * num_warps)
			+ (wave_m + wave_n) * kpack * instruction_bytes / (4 * wave_lanes) + base_registers`,
		"registers of a lane: sums, with scales per block twice; operands on their way to LDS; operands from LDS; "+
			"addresses").As(arch.CommonRegisters),
	row("register_limit", one, `when(waves_per_eu > 0,
			min(registers_per_thread, floor(registers_per_cu / (simds * wave_lanes) / waves_per_eu)), registers_per_thread)`,
		"registers of a lane that the compiler may use"),
	row("spill_bytes", bytes, "max(0, registers - register_limit) * 4",
		"registers of a lane that do not fit").As(arch.CommonSpills),
	row("buffers", one, "max(1, num_stages - 1)", "operand tiles in LDS: one step more is in registers"),
	row("workgroups_per_cu", one, `max(1, min(floor(lds_bytes / (buffers * tile_bytes)),
			floor(simds * min(waves_limit, floor(registers_per_cu / (simds * wave_lanes)
				/ (ceil(min(registers, register_limit) / register_granule) * register_granule))) / num_warps),
			workgroups_limit))`, "work-groups that fit on a CU").As(arch.CommonCTAsPerUnit),
}

// One step of one work-group, at each resource of its CU.
var stepTerms = []model.Term{
	row("matrix_step", cycles, `2 * wave_m * wave_n * block_k * simds
			/ (rate * when(instruction > 16, wide_share, narrow_share))`, "matrix instructions of a wave, on its SIMD").
		As(arch.CommonComputeStep).Step(),
	row("scale_step", cycles, "when(scale_block > 0, scale_cycles * wave_m * wave_n / wave_lanes, 0)",
		"scaling and adding the sums of a wave, by its SIMD's vector unit"),
	row("lds_step", cycles, `num_warps * (wave_m + wave_n) * block_k * element_bytes / lds_read_rate
				* when(kpack > 1, 1, narrow_reads)
			+ tile_bytes / lds_write_rate`, "LDS: operands out to the waves, and in"),
	row("line_traffic", bytes, `line_bytes * (
			when(trans_a > 0, block_k * ceil(block_m * element_bytes / line_bytes),
				block_m * ceil(block_k * element_bytes / line_bytes))
			+ when(trans_b > 0, block_n * ceil(block_k * element_bytes / line_bytes),
				block_k * ceil(block_n * element_bytes / line_bytes)))`, "cache lines that the operands of a step touch"),
	row("load_step", cycles, "(line_traffic + 2 * spill_bytes * wave_lanes * num_warps) / load_rate",
		"L1 cache, through which spilled registers go out and in"),
	row("serial_step", cycles, "matrix_step + scale_step + lds_step", "from the operands in registers to the sums"),
	row("chain_step", cycles, `when(num_stages > 1, max(load_latency + load_step, serial_step),
			load_latency + load_step + serial_step) + step_latency`,
		"one work-group alone: the next step's operands arrive in registers while one is computed, however many stages "+
			"there are, then all waves meet"),
}

// The grid, the waves in which the CUs compute it, and what the caches load. Work-groups go round robin to the dies, so
// that a die has every num_xcds-th tile of the launch order. What it works on at a time is a rectangle of tiles, of
// which its L2 loads each row from A and each column from B once.
var gridTerms = []model.Term{
	row("tiles_n", one, "cdiv(n, block_n)", "columns of output tiles").As(arch.CommonTilesN),
	row("workgroups", one, "tiles_m * tiles_n", "work-groups of the launch"),
	row("steps", one, "cdiv(k, block_k)", "steps of a work-group"),
	row("waves", one, "workgroups / (workgroups_per_cu * num_cus)",
		"work-groups ÷ those that fit on the device").As(arch.CommonWaves),
	row("full_waves", one, "floor(waves)", "waves that fill the device"),
	row("rest", one, "workgroups - full_waves * workgroups_per_cu * num_cus",
		"work-groups of the last wave, if it does not fill the device"),
	row("tail_count", one, "max(1, ceil(rest / num_cus))", "of them on the busiest CU"),
	row("tail_cus", one, "max(1, min(rest, num_cus))", "CUs that work on them"),
	row("active", one, "min(workgroups, num_cus)", "CUs at work in the first wave").As(arch.CommonActiveUnits),
	row("group", one, "min(when(group_m > 0, group_m, default_group), cdiv(rows, block_m))",
		"rows of tiles that are walked before the next column (GROUP_SIZE_M)"),
	row("die_rows", one, "max(1, group / num_xcds)", "rows of tiles of the rectangle"),
	row("die_columns", one, `min(tiles_n, max(1,
			min(workgroups, workgroups_per_cu * num_cus) / num_xcds / die_rows))`, "columns of tiles of the rectangle"),
	row("l2_misses", bytes, "workgroups * (block_m / die_columns + block_n / die_rows) * k * element_bytes",
		"operands that the L2 caches load"),
	row("far_rate", "B/cycle", "mall_rate * num_xcds * mall_share", "what the L2 caches of all dies get of the MALL"),
	row("operands", bytes, "matrices * (rows * k + n * k) * element_bytes", "operands, each once"),
	row("dram_total", bytes, `operands + matrices * rows * n * output_bytes
			+ max(0, l2_misses - operands) * max(0, 1 - mall_bytes / operands)`,
		"operands and output once, and again what the MALL does not keep").As(arch.CommonDRAMTotal),
	row("dram", cycles, "dram_total / (dram_bandwidth * dram_share) * clock", "HBM for them"),
}

// waveTerms are those of one wave. wave_ stands for its name.
var waveTerms = []model.Term{
	row("wave_step", cycles, `max(chain_step, sqrt(sqrt(pow(max(1, wave_count * num_warps / simds)
				* (matrix_step + scale_step), 4) + pow(wave_count * lds_step, 4) + pow(wave_count * load_step, 4)
			+ pow(wave_count * wave_cus * line_traffic / (l2_rate * num_xcds * l2_share), 4))))`,
		"a step: SIMDs, LDS, L1 and L2 as the fourth root of the sum of fourth powers"),
	row("wave_end", cycles, `prologue_cycles + load_latency + block_m * block_n * output_bytes
			* max(wave_count / store_rate, wave_count * wave_cus / far_rate)`, "start and output of the work-groups"),
}

// wave returns the terms of a wave with count work-groups on each of cus CUs.
func wave(name, count, cus string) []model.Term {
	out := make([]model.Term, len(waveTerms))
	replace := strings.NewReplacer("wave_count", count, "wave_cus", cus, "wave_step", name+"_step", "wave_end",
		name+"_end")
	for i, t := range waveTerms {
		t.Name, t.Formula, t.Doc = replace.Replace(t.Name), replace.Replace(t.Formula), t.Doc+", "+name+" wave"
		if t.Name == "full_step" {
			t.Kind, t.Common = arch.KindStep, arch.CommonKStep
		}
		out[i] = t
	}
	return out
}

var totalTerms = []model.Term{
	row("steps_time", cycles, "steps * (full_waves * full_step + when(rest > 0, tail_step, 0))", "steps of all waves"),
	row("loop", cycles, "sqrt(sqrt(pow(steps_time, 4) + pow(l2_misses / far_rate, 4) + pow(dram, 4)))",
		"steps, with what the L2 caches wait for").Share(),
	row("launch", cycles, "launch_seconds * clock", "launch of the kernel").Share(),
	row("fill", cycles, "full_waves * full_end + when(rest > 0, tail_end, 0)", "starts and outputs of all waves").Share(),
	row("elementwise_pass", cycles, `when(top_k > 0, elementwise * output_bytes * rows * matrices
			* (1.5 * n + k + k / top_k) / dram_bandwidth * clock, 0)`,
		"gated activation, and sum over a token's experts: what they read and write once, at a share of HBM's peak").
		Share(),
	row("other_kernels", cycles, "when(top_k > 0, other_kernels_seconds * clock, 0)",
		"sorting the rows by expert").Share(),
	row("told_apart", one, "least_gain", "least time of a kernel ÷ that of another from which on the other is known to "+
		"be faster").As(arch.CommonToldApart),
	row("requested", bytes, "workgroups * (steps * tile_bytes + block_m * block_n * output_bytes)",
		"what CUs ask global memory for").As(arch.CommonRequested),
	row("l2_total", bytes, "workgroups * (steps * line_traffic + block_m * block_n * output_bytes)",
		"through the L2 caches, in whole cache lines").As(arch.CommonL2Total),
	row("lds_total", bytes, "workgroups * steps * num_warps * (wave_m + wave_n) * block_k * element_bytes",
		"that waves read of LDS").As(arch.CommonSharedTotal),
	row("total", cycles, "launch + loop + fill + elementwise_pass + other_kernels", "predicted total").Total(),
}

const (
	winners = "fitted on half of the winners of vLLM's tables for an MI300X and the level of AITER's times there " +
		"(testdata/README.md); no times of these kernels are published"
	assumed = "assumed, as vLLM's layers of experts take on NVIDIA's devices (fused_moe)"
	isa     = "AMD Instinct MI300 instruction set"
	white   = "AMD CDNA 3 architecture white paper (2023)"
)

func fitted(name, unit string, value, low, high float64, doc string) model.Quantity {
	return model.Bounded(name, unit, value, low, high, doc).From(DataSet, winners)
}

// Quantities are the fitted numbers, each with its bounds. Those of CDNA 3 are assumed for CDNA 4.
var Quantities = []model.Quantity{
	fitted("narrow_share", one, 0.45, 0.4, 0.55, "rate of 16x16 matrix instructions ÷ peak"),
	fitted("wide_share", one, 0.4447, 0.3, 0.55, "the same of 32x32"),
	fitted("scale_cycles", cycles, 15.09, 0.1, 200, "scaling and adding 64 sums of a wave"),
	fitted("lds_read_rate", "B/cycle", 128, 40, 128, "what waves read of the LDS of a CU, which has 128 B per cycle"),
	fitted("lds_write_rate", "B/cycle", 74.95, 20, 128, "what waves write to it"),
	fitted("narrow_reads", one, 1.05, 1.05, 2, "time to read LDS with kpack 1 ÷ time with 2"),
	fitted("load_rate", "B/cycle", 64, 8, 64, "what the L1 of a CU delivers; its peak is 64"),
	fitted("load_latency", cycles, 483.6, 300, 3000, "from a load to its operands"),
	fitted("step_latency", cycles, 294.2, 50, 1500, "barriers and waits of a step"),
	fitted("base_registers", one, 10.22, 10, 120, "registers of a lane for addresses and counters"),
	fitted("l2_share", one, 0.3631, 0.05, 1, "share of l2_rate that is reached"),
	fitted("mall_share", one, 1, 0.05, 1, "share of mall_rate that is reached"),
	fitted("dram_share", one, 0.7063, 0.4, 0.85, "share of dram_bandwidth that is reached"),
	fitted("prologue_cycles", cycles, 100, 100, 4000, "start of a work-group"),
	fitted("store_rate", "B/cycle", 18.23, 4, 64, "output of a CU"),
}

// Constants are the published, chosen and assumed numbers.
var Constants = []arch.Constant{
	{Name: "launch_seconds", Value: 3.15e-6, Unit: "s", Doc: "launch of a kernel",
		Source: "as of Tensile's kernels (tensile), fitted on AMD's recorded speeds of gfx942"},
	{Name: "l2_rate", Value: 16 * 128, Unit: "B/cycle", Doc: "what the L2 of one die delivers",
		Source: white + ": 16 channels of 128 B"},
	{Name: "mall_rate", Value: 1024, Unit: "B/cycle", Doc: "what the MALL delivers to one die",
		Source: white + ": 17.2 TB/s at 2.1 GHz for 8 dies"},
	{Name: "line_bytes", Value: 128, Unit: bytes, Doc: "cache line of L1 and L2", Source: white},
	{Name: "simds", Value: 4, Unit: one, Doc: "SIMDs of a CU", Source: isa},
	{Name: "wave_lanes", Value: 64, Unit: one, Doc: "lanes of a wave", Source: isa},
	{Name: "waves_limit", Value: 8, Unit: one, Doc: "waves of a SIMD", Source: isa},
	{Name: "register_granule", Value: 8, Unit: one, Doc: "registers of a lane are allocated in eights", Source: isa},
	{Name: "instruction_bytes", Value: 32, Unit: bytes, Doc: "depth of a matrix instruction with 16 rows",
		Source: isa + ": 16 of fp16, 32 of fp8"},
	{Name: "workgroups_limit", Value: 16, Unit: one, Doc: "work-groups of several waves on a CU", Source: isa},
	{Name: "default_group", Value: DefaultGroup, Unit: one, Doc: "GROUP_SIZE_M of a configuration that has none yet",
		Source: "Triton's tutorial Matrix Multiplication"},
	{Name: "elementwise", Value: 1.8, Unit: one,
		Doc: "time of the elementwise kernels ÷ that of their bytes at HBM's peak", Source: assumed},
	{Name: "other_kernels_seconds", Value: 13.68e-6, Unit: "s", Doc: "kernels that sort the rows by expert",
		Source: assumed},
	{Name: "least_gain", Value: 1.05, Unit: one, Doc: "told_apart",
		Source: "of winners that were kept back, three of four are predicted to lose less (testdata/README.md)"},
}

// DefaultGroup is the constant default_group.
const DefaultGroup = 8
