package amdorigami

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/tabled"
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

// constants are the model's empirical numbers. Formulas refer to them by name.
var constants = []arch.Constant{
	constant("prologue_factor", prologueFactor, one, fromGEMM, "prologue ÷ memory latency of one K step"),
	constant("epilogue_factor", epilogueFactor, one, fromGEMM, "number of times the epilogue counts"),
	constant("setup_latency", setupLatency, cycles, fromGEMM, "fixed cost of a tile"),
	constant("step_overhead", stepOverhead, cycles, fromGEMM, "fixed cost of a K step"),
	constant("k_padding_penalty", kPaddingPenalty, cycles, fromGEMM,
		"multiplied by (K mod block_k)/K if block_k does not divide K"),
	constant("reduction_latency", reductionLatency, cycles, fromGEMM, "fixed cost of reducing split tiles"),
	constant("reduction_rate", reductionRate, one, fromGEMM, "elements that a compute unit reduces per cycle"),
	constant("empty_hit_rate", emptyHitRate, one, fromGEMM, "replaces an L2 hit rate of exactly zero"),
	constant("overflow_hit_rate", overflowHitRate, one, fromGEMM,
		"global L2 hit rate of a working set above the capacity"),
	constant("global_capacity_scale", globalCapacityScale, one, fromGEMM+" (a size in bytes is multiplied by 1024)",
		"L2 capacities that the global working set is compared with"),
	constant("load_granule", roundBits/8, inBytes, fromGEMM,
		"granule to which the contiguous dimension of a load is rounded up"),
	constant("min_utilization", minUtilization, one, fromGEMM, "utilisation at or below which the penalty is 1"),
	constant("occupancy_base", occupancyBase, one, fromGEMM,
		"factor on prologue and epilogue for each workgroup on a compute unit"),
	constant("small_tile_factor", smallTilePenalty, one, fromGEMM,
		"multiplies the total of the tile 64x32x32 with 16-bit types and K-contiguous B"),
	constant("skinny_ratio", skinnyRatio, one, fromGEMM,
		"N/M or M/N above which the hint rule drops a tile that covers half of the short side"),
	constant("mi_missing_cycles", missingMICycles, cycles, fromHardware,
		"latency of a matrix instruction that is missing from the library's table"),
}

func constant(name string, value float64, unit, source, doc string) arch.Constant {
	return arch.Constant{Name: name, Value: value, Unit: unit, Source: source, Doc: doc}
}

var row = tabled.Row

// input is a term that no formula computes.
func input(name, unit, rule, doc string) tabled.Term {
	return tabled.Input(name, unit, "code", rule, doc)
}

// share turns a part of one tile's latency into a part of the total.
func share(name, formula, doc string) tabled.Term {
	return row(name, cycles, "("+formula+")*timesteps*heuristic_factor", doc+", over all timesteps").Share()
}

// gridFormula is the number of workgroups of the default grid: one per output tile, times the configuration's split.
const gridFormula = "tiles_m*tiles_n*batch*max(split_k, 1)"

// terms is the schema: the columns of AMD's breakdown and the intermediate values between them. Each term follows from
// the terms above it. values has their values.
var terms = slices.Concat(
	tabled.Schema([]tabled.Term{
		// The grid.
		row("tiles_m", one, "cdiv(m, block_m)", "output tiles along M"),
		row("tiles_n", one, "cdiv(n, block_n)", "output tiles along N"),
	}, fromGEMM),
	tabled.Schema([]tabled.Term{
		row("num_wgs", one, gridFormula, "workgroups"),
		row("active_cus", one, "min(num_wgs, num_cus)", "compute units at work").As(arch.CommonActiveUnits),
		row("timesteps", one, "cdiv(max(num_wgs, tiles_m*tiles_n*batch), num_cus)",
			"rounds over the device, with one workgroup per compute unit"),
		row("split", one, "cdiv(num_wgs, tiles_m*tiles_n*batch)", "workgroups that share an output tile's K steps"),
	}, fromStreamK),
	tabled.Schema([]tabled.Term{
		// Rejection.
		input("a_k_contiguous", one, "1 if A is contiguous along K (AMD's letter T), 0 if along M", "layout of A"),
		input("b_k_contiguous", one, "1 if B is contiguous along K (AMD's letter N), 0 if along N", "layout of B"),
	}, fromProblem),
	tabled.Schema([]tabled.Term{
		row("lds_ok", one, "when((block_m + block_n)*block_k*element_bytes <= lds_bytes, 1, 0)",
			"one tile of A and B fits local memory"),
		input("rejected", one,
			"1 if the model drops the tile: (a) a batch, M and N up to 256, K below 1024 and a tile smaller "+
				"than the problem; (b) the instruction 1x1x64 with M above 2; (c) K and block_k multiples of 128 B, "+
				"and M at most 2*block_m with K-contiguous B and floor(N/M) above skinny_ratio, or N at most "+
				"2*block_n with K-contiguous A and floor(M/N) above skinny_ratio",
			"dropped by a rule of the model"),
	}, fromGEMM),
	tabled.Schema([]tabled.Term{
		// Compute.
		input("mi_m", one, "rows of the matrix instruction in use", "rows of the matrix instruction"),
		input("mi_n", one, "columns of the matrix instruction in use", "columns of the matrix instruction"),
		input("mi_k", one, "depth of the matrix instruction in use", "depth of the matrix instruction"),
		input("mi_latency", cycles, "cycles of the matrix instruction over parallel_mi, rounded down",
			"one matrix instruction, with all matrix cores busy"),
	}, fromHardware),
	tabled.Schema([]tabled.Term{
		row("l_compute", cycles, "mi_latency*cdiv(block_m, mi_m)*cdiv(block_n, mi_n)*cdiv(block_k, mi_k)",
			"matrix instructions of one K step").Step().As(arch.CommonComputeStep),
		// Hit rates.
		input("wgm", one, "1 with a batch, else the square root of floor(num_cus/num_xcds), rounded up",
			"workgroup mapping (WGM) that the hit rates assume; the launch's mapping is chosen later"),
		input("l2_tile_m", one,
			"rows of the die's super-tile: its tiles cdiv(cdiv(min(tiles_m*tiles_n, num_cus), split*batch), "+
				"num_xcds) in min(wgm, tiles_n) columns, wrapped and clamped to the grid, then the longer side one "+
				"shorter at a time until A and B of it fit l2_bytes",
			"tiles that share one die's L2, along M"),
		input("l2_tile_n", one, "columns of the die's super-tile, see l2_tile_m",
			"tiles that share one die's L2, along N"),
		row("l2_hit", one, "1 - (l2_tile_m*block_m + l2_tile_n*block_n)/(l2_tile_m*l2_tile_n*(block_m + block_n))",
			"share of one die's loads that hit data already loaded by another tile of the die"),
		row("l2_hit_global", one,
			"when((tiles_m*block_m + tiles_n*block_n)*block_k*element_bytes > l2_bytes*global_capacity_scale, "+
				"overflow_hit_rate, 1 - (tiles_m*block_m + tiles_n*block_n)/(tiles_m*tiles_n*(block_m + block_n)))",
			"l2_hit if all tiles of the problem shared one cache; a cap on the hit rate"),
		row("h_mem1", one, "when(min(l2_hit, l2_hit_global) == 0, empty_hit_rate, min(l2_hit, l2_hit_global))",
			"L2 hit rate").As(arch.CommonL2Hit),
		row("mall_tile_m", one, "max(min(cdiv(active_cus, wgm), tiles_m), 1)", "tiles that share the MALL, along M"),
		row("mall_tile_n", one,
			"max(min(min(wgm, tiles_n) + when(cdiv(active_cus, wgm) > tiles_m, floor(cdiv(active_cus, "+
				"wgm)/tiles_m)*wgm, 0), tiles_n), 1)",
			"tiles that share the MALL, along N"),
		row("mall_hit", one,
			"1 - (mall_tile_m*block_m + mall_tile_n*block_n)/(mall_tile_m*mall_tile_n*(block_m + block_n))",
			"MALL hit rate of the tiles of one timestep; the model ignores the MALL's capacity").As(arch.CommonMALLHit),
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
			"useful share of the padded volume"),
		row("utilization_penalty", one, "when(utilization > min_utilization, 1/utilization, 1)",
			"cost of padding").As(arch.CommonPenalty),
	}, fromGEMM),
	tabled.Schema([]tabled.Term{
		input("occupancy", one, "the option occ", "workgroups that may share a compute unit"),
	}, fromOption),
	tabled.Schema([]tabled.Term{
		row("real_occupancy", one, "min(max(occupancy, 1), cdiv(tiles_m*tiles_n*batch*split, num_cus))",
			"workgroups that actually share a compute unit"),
		input("occupancy_discount", one, "occupancy_base to the power of real_occupancy",
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
		input("l_conversion", cycles, "time that splitting TF32 operands into BF16 adds to a K step on gfx950; else 0",
			"conversion of emulated TF32"),
		row("l_tile_single", cycles, "max(l_compute, l_mem)*utilization_penalty + l_conversion",
			"one K step").As(arch.CommonKStep),
		row("num_iter", one, "max(cdiv(cdiv(k, split), block_k) - 1, 1)", "K steps after the first, at least one"),
		row("tile_latency", cycles,
			"l_tile_single*num_iter + l_prologue + l_epilogue*epilogue_factor + setup_latency + step_overhead*num_iter",
			"one output tile").As(arch.CommonWave),
		input("heuristic_factor", one,
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
			"the prediction; the largest float64 if the model drops the tile").Total(),
	}, fromGEMM),
)

// Row implements tabled.Evaluation.
func (e *evaluation) Row(dst []float64) {
	e.score(e.splitK)
	e.values(dst)
}

// values writes the values of terms, in their order.
func (e *evaluation) values(dst []float64) {
	d, total := e.current(), e.total
	if e.rejected() {
		total = arch.RejectedTotal
	}
	n := copy(dst, []float64{
		f(e.gm), f(e.gn), f(e.workgroups), e.active, f(e.timesteps), f(e.split), tabled.One(e.transA),
		tabled.One(!e.transB), tabled.One(e.fits()), tabled.One(e.rejected()), f(e.mi.m), f(e.mi.n), f(e.mi.k),
		f(e.mi.latency), e.computeCycles, f(e.wgm), f(e.tileM), f(e.tileN), e.l2Hit, e.globalHit,
		l2HitRate(e.l2Hit, e.globalHit), f(e.mallM), f(e.mallN), e.mallHit, e.loadBytes, e.minLoad, e.fromL2,
		e.fromMALL, e.fromHBM, e.bwLimited, e.l2Cycles, e.mallCycles, e.hbmCycles, e.memoryCycles, e.utilization,
		e.penalty, f(e.occupancy), f(e.occupied), e.discount, e.prologue, e.store, e.reduction, d.kPadding,
		e.epilogue, e.conversion, e.single, e.numIter, e.tileLatency, e.factor,
	})
	for _, part := range []float64{
		e.single * e.numIter, e.prologue, e.storePart * epilogueFactor, e.reduction * epilogueFactor,
		d.kPadding * epilogueFactor, setupLatency, stepOverhead * e.numIter,
	} {
		dst[n] = part * f(e.timesteps) * e.factor
		n++
	}
	dst[n] = total
}

// termSchema returns the schema for a grid mode.
func termSchema(mode gridMode) []arch.Term {
	schema := slices.Clone(terms)
	for i := range schema {
		if schema[i].Formula == gridFormula && mode != dataParallel {
			schema[i].Formula = "rule: grid=" + gridModes[mode] + ", see docs/model-amd-origami.md;" +
				" with split_k above 1 " + gridFormula
		}
	}
	return schema
}
