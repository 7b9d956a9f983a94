// Package terms is AMD's Origami GEMM model as a table: a row per term, with the formula that computes it. The rows are
// the columns of AMD's breakdown and the values between them. internal/gen turns the formulas into Go, and
// `origami explain` prints them.
package terms

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
)

// Sources of the equations and of their constants.
const (
	origami      = "AMD Origami (ROCm rocm-libraries, shared/origami, January 2026), "
	fromGEMM     = origami + "gemm.cpp"
	fromStreamK  = origami + "streamk.cpp"
	fromHardware = origami + "hardware.hpp"
	fromProblem  = "the problem"
	fromOption   = "the option of that name"
)

// Units.
const one, inBytes, cycles = "1", "B", "cycles"

// The constants that the model's own code uses.
const (
	OverflowHitRate     = 0.1
	GlobalCapacityScale = 1024
	Granule             = 128
	OccupancyBase       = 0.95
	SmallTileFactor     = 10
	SkinnyRatio         = 5
	MissingCycles       = 32
)

// Constants are the model's empirical numbers. Formulas refer to them by name.
var Constants = []arch.Constant{
	constant("prologue_factor", 1.5, one, fromGEMM, "prologue ÷ memory latency of one K step"),
	constant("epilogue_factor", 2, one, fromGEMM, "number of times the epilogue counts"),
	constant("setup_latency", 1, cycles, fromGEMM, "fixed cost of a tile"),
	constant("step_overhead", 500, cycles, fromGEMM, "fixed cost of a K step"),
	constant("k_padding_penalty", 50000, cycles, fromGEMM,
		"multiplied by (K mod block_k)/K if block_k does not divide K"),
	constant("reduction_latency", 10000, cycles, fromGEMM, "fixed cost of reducing split tiles"),
	constant("reduction_rate", 64, one, fromGEMM, "elements that a compute unit reduces per cycle"),
	constant("empty_hit_rate", 0.5, one, fromGEMM, "replaces an L2 hit rate of exactly zero"),
	constant("overflow_hit_rate", OverflowHitRate, one, fromGEMM,
		"global L2 hit rate of a working set above the capacity"),
	constant("global_capacity_scale", GlobalCapacityScale, one, fromGEMM+" (a size in bytes is multiplied by 1024)",
		"L2 capacities that the global working set is compared with"),
	constant("load_granule", Granule, inBytes, fromGEMM,
		"granule to which the contiguous dimension of a load is rounded up"),
	constant("min_utilization", 1e-9, one, fromGEMM, "utilisation at or below which the penalty is 1"),
	constant("occupancy_base", OccupancyBase, one, fromGEMM,
		"factor on prologue and epilogue for each workgroup on a compute unit"),
	constant("small_tile_factor", SmallTileFactor, one, fromGEMM,
		"multiplies the total of the tile 64x32x32 with 16-bit types and K-contiguous B"),
	constant("skinny_ratio", SkinnyRatio, one, fromGEMM,
		"N/M or M/N above which the hint rule drops a tile that covers half of the short side"),
	constant("mi_missing_cycles", MissingCycles, cycles, fromHardware,
		"latency of a matrix instruction that is missing from the library's table"),
}

func constant(name string, value float64, unit, source, doc string) arch.Constant {
	return arch.Constant{Name: name, Value: value, Unit: unit, Source: source, Doc: doc}
}

// What the model's own code computes: of the problem, of the launch, and of the whole configuration.
const (
	OfProblem = "problem"
	OfLaunch  = "launch"
	OfConfig  = "config"
)

var row, input = model.Row, model.Input

// share turns a part of one tile's latency into a part of the total.
func share(name, formula, doc string) model.Term {
	return row(name, cycles, "("+formula+")*timesteps*heuristic_factor", doc+", over all timesteps").Share()
}

// gridFormula is the number of workgroups of the default grid: one per output tile, times the configuration's split.
const gridFormula = "tiles_m*tiles_n*batch*max(split_k, 1)"

// Terms is the model. Each term follows from the terms above it.
var Terms = slices.Concat(
	model.From(fromGEMM,
		// The grid.
		row("tiles_m", one, "cdiv(m, block_m)", "output tiles along M"),
		row("tiles_n", one, "cdiv(n, block_n)", "output tiles along N"),
	),
	model.From(fromStreamK,
		row("num_wgs", one, gridFormula, "workgroups").Exactly(OfLaunch),
		row("active_cus", one, "min(num_wgs, num_cus)", "compute units at work").Exactly(OfLaunch).As(arch.CommonActiveUnits),
		row("timesteps", one, "cdiv(max(num_wgs, tiles_m*tiles_n*batch), num_cus)",
			"rounds over the device, with one workgroup per compute unit").Exactly(OfLaunch),
		row("split", one, "cdiv(num_wgs, tiles_m*tiles_n*batch)", "workgroups that share an output tile's K steps").
			Exactly(OfLaunch),
	),
	model.From(fromProblem,
		// Rejection.
		input("a_k_contiguous", one, OfProblem, "1 if A is contiguous along K (AMD's letter T), 0 if along M", "layout of A"),
		input("b_k_contiguous", one, OfProblem, "1 if B is contiguous along K (AMD's letter N), 0 if along N", "layout of B"),
	),
	model.From(fromGEMM,
		row("lds_ok", one, "when((block_m + block_n)*block_k*element_bytes <= lds_bytes, 1, 0)",
			"one tile of A and B fits local memory"),
		input("rejected", one, OfConfig,
			"1 if the model drops the tile: (a) a batch, M and N up to 256, K below 1024 and a tile smaller "+
				"than the problem; (b) the instruction 1x1x64 with M above 2; (c) K and block_k multiples of 128 B, "+
				"and M at most 2*block_m with K-contiguous B and floor(N/M) above skinny_ratio, or N at most "+
				"2*block_n with K-contiguous A and floor(M/N) above skinny_ratio",
			"dropped by a rule of the model"),
	),
	model.From(fromHardware,
		// Compute.
		input("mi_m", one, OfProblem, "rows of the matrix instruction in use", "rows of the matrix instruction"),
		input("mi_n", one, OfProblem, "columns of the matrix instruction in use", "columns of the matrix instruction"),
		input("mi_k", one, OfProblem, "depth of the matrix instruction in use", "depth of the matrix instruction"),
		input("mi_latency", cycles, OfProblem, "cycles of the matrix instruction over parallel_mi, rounded down",
			"one matrix instruction, with all matrix cores busy"),
	),
	model.From(fromGEMM,
		row("l_compute", cycles, "mi_latency*cdiv(block_m, mi_m)*cdiv(block_n, mi_n)*cdiv(block_k, mi_k)",
			"matrix instructions of one K step").Step().As(arch.CommonComputeStep),
		// Hit rates.
		input("wgm", one, OfProblem, "1 with a batch, else the square root of floor(num_cus/num_xcds), rounded up",
			"workgroup mapping (WGM) that the hit rates assume; the launch's mapping is chosen later"),
		input("l2_tile_m", one, OfConfig,
			"rows of the die's super-tile: its tiles cdiv(cdiv(min(tiles_m*tiles_n, num_cus), split*batch), "+
				"num_xcds) in min(wgm, tiles_n) columns, wrapped and clamped to the grid, then the longer side one "+
				"shorter at a time until A and B of it fit l2_bytes",
			"tiles that share one die's L2, along M"),
		input("l2_tile_n", one, OfConfig, "columns of the die's super-tile, see l2_tile_m",
			"tiles that share one die's L2, along N"),
		row("l2_hit", one, "1 - (l2_tile_m*block_m + l2_tile_n*block_n)/(l2_tile_m*l2_tile_n*(block_m + block_n))",
			"share of one die's loads that hit data already loaded by another tile of the die").Exactly(OfConfig),
		row("l2_hit_global", one,
			"when((tiles_m*block_m + tiles_n*block_n)*block_k*element_bytes > l2_bytes*global_capacity_scale, "+
				"overflow_hit_rate, 1 - (tiles_m*block_m + tiles_n*block_n)/(tiles_m*tiles_n*(block_m + block_n)))",
			"l2_hit if all tiles of the problem shared one cache; a cap on the hit rate").Exactly(OfConfig),
		row("h_mem1", one, "when(min(l2_hit, l2_hit_global) == 0, empty_hit_rate, min(l2_hit, l2_hit_global))",
			"L2 hit rate").As(arch.CommonL2Hit),
		row("mall_tile_m", one, "max(min(cdiv(active_cus, wgm), tiles_m), 1)", "tiles that share the MALL, along M").
			Exactly(OfLaunch),
		row("mall_tile_n", one,
			"max(min(min(wgm, tiles_n) + when(cdiv(active_cus, wgm) > tiles_m, floor(cdiv(active_cus, "+
				"wgm)/tiles_m)*wgm, 0), tiles_n), 1)",
			"tiles that share the MALL, along N").Exactly(OfLaunch),
		row("mall_hit", one,
			"1 - (mall_tile_m*block_m + mall_tile_n*block_n)/(mall_tile_m*mall_tile_n*(block_m + block_n))",
			"MALL hit rate of the tiles of one timestep; the model ignores the MALL's capacity").
			Exactly(OfLaunch).As(arch.CommonMALLHit),
		// Memory latency of one K step.
		row("load_bytes_per_cu", inBytes,
			"when(a_k_contiguous == 1, block_m*cdiv(block_k*element_bytes, load_granule), "+
				"block_k*cdiv(block_m*element_bytes, load_granule))*load_granule + when(b_k_contiguous == 1, "+
				"block_n*cdiv(block_k*element_bytes, load_granule), block_k*cdiv(block_n*element_bytes, "+
				"load_granule))*load_granule",
			"bytes of A and B loaded in one K step, with contiguous runs rounded up").As(arch.CommonLoadPerUnit),
		row("min_load", inBytes,
			"(mall_tile_m*block_m + mall_tile_n*block_n)*block_k*element_bytes*min(batch, "+
				"max(active_cus/(tiles_m*tiles_n), 1))",
			"least MALL and HBM traffic: each byte of the device's super-tile once"),
		row("l2_traffic", inBytes, "load_bytes_per_cu*active_cus", "bytes that L2 delivers in one K step"),
		row("mall_traffic", inBytes, "max((1 - h_mem1)*l2_traffic, min_load)", "bytes that MALL delivers in one K step"),
		row("hbm_traffic", inBytes, "max((1 - mall_hit)*((1 - h_mem1)*l2_traffic), min_load)",
			"bytes that HBM delivers in one K step").As(arch.CommonDRAMTraffic),
		row("bw_limited", one,
			"when(active_cus > num_cus, 1, min(bw_c0*active_cus*active_cus + bw_c1*active_cus + bw_c2, 1))",
			"share of MALL and HBM bandwidth that the active compute units reach").As(arch.CommonDRAMFraction),
		row("l_mem1", cycles, "l2_traffic/(mem1_perf_ratio*(active_cus/num_cus))",
			"time of one K step's L2 traffic").Step().As(arch.CommonL2Step),
		row("l_mem2", cycles, "mall_traffic/(mem2_perf_ratio*bw_limited)",
			"time of one K step's MALL traffic").Step().As(arch.CommonMALLStep),
		row("l_mem3", cycles, "hbm_traffic/(mem3_perf_ratio*bw_limited) + hbm_latency",
			"time of one K step's HBM traffic, plus latency").Step().As(arch.CommonDRAMStep),
		row("l_mem", cycles, "max(l_mem1, l_mem2, l_mem3)", "memory latency of one K step").As(arch.CommonMemoryStep),
		// One tile.
		row("utilization", one, "m*n*k/(tiles_m*block_m*tiles_n*block_n*cdiv(k, block_k)*block_k)",
			"useful share of the padded volume").Exactly(OfConfig),
		row("utilization_penalty", one, "when(utilization > min_utilization, 1/utilization, 1)",
			"cost of padding").As(arch.CommonPenalty),
	),
	model.From(fromOption,
		input("occupancy", one, OfProblem, "the option occ", "workgroups that may share a compute unit"),
	),
	model.From(fromGEMM,
		row("real_occupancy", one, "min(max(occupancy, 1), cdiv(tiles_m*tiles_n*batch*split, num_cus))",
			"workgroups that actually share a compute unit"),
		input("occupancy_discount", one, OfLaunch, "occupancy_base to the power of real_occupancy",
			"share of prologue and epilogue that other workgroups on the compute unit do not hide"),
		row("l_prologue", cycles, "prologue_factor*l_mem*occupancy_discount*utilization_penalty", "filling the pipeline"),
		row("l_store", cycles,
			"floor(active_cus/split)*cdiv(block_m*element_bytes, "+
				"load_granule)*load_granule/element_bytes*block_n*output_bytes/(mem3_perf_ratio*bw_limited)",
			"storing C; its rows are rounded up like a load of A"),
		row("l_reduction", cycles,
			"when(split > 1, tiles_m*tiles_n*split*cdiv(block_m*element_bytes, "+
				"load_granule)*load_granule/element_bytes*block_n*output_bytes/(mem3_perf_ratio*bw_limited) + "+
				"block_m*block_n*split/reduction_rate + reduction_latency, 0)",
			"reduction of split tiles"),
		row("l_k_padding", cycles, "mod(k, block_k)/k*k_padding_penalty", "penalty for a partial last K step"),
		row("l_epilogue", cycles,
			"(l_store + l_compute*utilization_penalty)*occupancy_discount + l_reduction + l_k_padding",
			"last step and store, before it is counted twice"),
		input("l_conversion", cycles, OfConfig,
			"time that splitting TF32 operands into BF16 adds to a K step on gfx950; else 0",
			"conversion of emulated TF32"),
		row("l_tile_single", cycles, "max(l_compute, l_mem)*utilization_penalty + l_conversion",
			"one K step").As(arch.CommonKStep),
		row("num_iter", one, "max(cdiv(cdiv(k, split), block_k) - 1, 1)", "K steps after the first, at least one"),
		row("tile_latency", cycles,
			"l_tile_single*num_iter + l_prologue + l_epilogue*epilogue_factor + setup_latency + step_overhead*num_iter",
			"one output tile").As(arch.CommonWave),
		input("heuristic_factor", one, OfConfig,
			"small_tile_factor for the tile 64x32x32 with 16-bit types and K-contiguous B; on gfx950 with tf32, "+
				"hand-made factors between 0.4 and 0.8; else 1",
			"hand-made corrections"),
		// The parts of the total.
		share("steady_state", "l_tile_single*num_iter", "K steps"),
		share("prologue", "l_prologue", "filling the pipeline"),
		share("epilogue", "(l_store + l_compute*utilization_penalty)*occupancy_discount*epilogue_factor",
			"last step and store"),
		share("reduction", "l_reduction*epilogue_factor", "reduction of split tiles"),
		share("k_padding", "l_k_padding*epilogue_factor", "penalty for a partial last K step"),
		share("setup", "setup_latency", "fixed cost per tile"),
		share("loop_overhead", "step_overhead*num_iter", "fixed cost per K step"),
		row("total_latency", cycles, "tile_latency*timesteps*heuristic_factor",
			"the prediction, for kernels of one size: M = 1 costs 6 to 14 times M = 16; the largest float64 if the model "+
				"drops the tile").Total(),
	),
)

// Schema describes the terms for a rule for the number of workgroups, which the model's own code computes.
func Schema(rule string, byDefault bool) []arch.Term {
	schema := model.Schema(Terms, "")
	for i := range schema {
		if schema[i].Formula == gridFormula && !byDefault {
			schema[i].Formula = "rule: grid=" + rule + ", see docs/model-amd-origami.md; with split_k above 1 " + gridFormula
		}
	}
	return schema
}
