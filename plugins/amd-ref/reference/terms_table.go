package reference

import "github.com/origami-gemm/origami/core/arch"

// constants are the model's empirical numbers. Formulas refer to them by name.
var constants = []arch.Constant{
	{
		Name: "hbm_latency", Value: hbmLatency, Unit: "cycles",
		Source: fromGEMM,
		Doc:    "added to every transfer from HBM, even an empty one",
	},
	{
		Name: "prologue_factor", Value: prologueFactor, Unit: "1",
		Source: fromGEMM,
		Doc:    "prologue ÷ memory latency of one K step",
	},
	{
		Name: "epilogue_factor", Value: epilogueFactor, Unit: "1",
		Source: fromGEMM,
		Doc:    "number of times the epilogue counts",
	},
	{
		Name: "setup_latency", Value: setupLatency, Unit: "cycles",
		Source: fromGEMM,
		Doc:    "fixed cost of a tile",
	},
	{
		Name: "step_overhead", Value: stepOverhead, Unit: "cycles",
		Source: fromGEMM,
		Doc:    "fixed cost of a K step",
	},
	{
		Name: "k_padding_penalty", Value: kPaddingPenalty, Unit: "cycles",
		Source: fromGEMM,
		Doc:    "multiplied by (K mod block_k)/K if block_k does not divide K",
	},
	{
		Name: "reduction_latency", Value: reductionLatency, Unit: "cycles",
		Source: fromGEMM,
		Doc:    "fixed cost of reducing split tiles",
	},
	{
		Name: "reduction_rate", Value: reductionRate, Unit: "1",
		Source: fromGEMM,
		Doc:    "elements that a compute unit reduces per cycle",
	},
	{
		Name: "empty_hit_rate", Value: emptyHitRate, Unit: "1",
		Source: fromGEMM,
		Doc:    "replaces an L2 hit rate of exactly zero",
	},
	{
		Name: "overflow_hit_rate", Value: overflowHitRate, Unit: "1",
		Source: fromGEMM,
		Doc:    "global L2 hit rate of a working set above the capacity",
	},
	{
		Name: "global_capacity_scale", Value: globalCapacityScale, Unit: "1",
		Source: fromGEMM + " (a size in bytes is multiplied by 1024)",
		Doc:    "L2 capacities that the global working set is compared with",
	},
	{
		Name: "load_granule", Value: roundBits / 8, Unit: "B",
		Source: fromGEMM,
		Doc:    "granule to which the contiguous dimension of a load is rounded up",
	},
	{
		Name: "min_utilization", Value: minUtilization, Unit: "1",
		Source: fromGEMM,
		Doc:    "utilisation at or below which the penalty is 1",
	},
	{
		Name: "occupancy_base", Value: occupancyBase, Unit: "1",
		Source: fromGEMM,
		Doc:    "factor on prologue and epilogue for each workgroup on a compute unit",
	},
	{
		Name: "small_tile_factor", Value: smallTilePenalty, Unit: "1",
		Source: fromGEMM,
		Doc:    "multiplies the total of the tile 64x32x32 with 16-bit types and K-contiguous B",
	},
	{
		Name: "skinny_ratio", Value: skinnyRatio, Unit: "1",
		Source: fromGEMM,
		Doc:    "N/M or M/N above which the hint rule drops a tile that covers half of the short side",
	},
	{
		Name: "mi_missing_cycles", Value: missingMICycles, Unit: "cycles",
		Source: fromHardware,
		Doc:    "latency of a matrix instruction that is missing from the library's table",
	},
}

// gridFormula is the number of workgroups of the default grid: one per output tile, times the configuration's split.
const gridFormula = "tiles_m*tiles_n*batch*max(split_k, 1)"

// terms is the schema: the columns of AMD's breakdown and the intermediate values between them. Each term follows from
// the terms above it.
var terms = []term{
	// The grid.
	column("tiles_m", "1", fromGEMM,
		"cdiv(m, block_m)",
		"output tiles along M",
		func(e *evaluation) float64 { return f(e.gm) }),
	column("tiles_n", "1", fromGEMM,
		"cdiv(n, block_n)",
		"output tiles along N",
		func(e *evaluation) float64 { return f(e.gn) }),
	column("num_wgs", "1", fromStreamK,
		gridFormula,
		"workgroups",
		func(e *evaluation) float64 { return f(e.workgroups) }),
	column("active_cus", "1", fromStreamK,
		"min(num_wgs, num_cus)",
		"compute units at work",
		func(e *evaluation) float64 { return e.active }),
	column("timesteps", "1", fromStreamK,
		"cdiv(max(num_wgs, tiles_m*tiles_n*batch), num_cus)",
		"rounds over the device, with one workgroup per compute unit",
		func(e *evaluation) float64 { return f(e.timesteps) }),
	column("split", "1", fromStreamK,
		"cdiv(num_wgs, tiles_m*tiles_n*batch)",
		"workgroups that share an output tile's K steps",
		func(e *evaluation) float64 { return f(e.split) }),

	// Rejection.
	column("a_k_contiguous", "1", fromProblem,
		"rule: 1 if A is contiguous along K (AMD's letter T), 0 if along M",
		"layout of A",
		func(e *evaluation) float64 { return flag(e.transA) }),
	column("b_k_contiguous", "1", fromProblem,
		"rule: 1 if B is contiguous along K (AMD's letter N), 0 if along N",
		"layout of B",
		func(e *evaluation) float64 { return flag(!e.transB) }),
	column("lds_ok", "1", fromGEMM,
		"when((block_m + block_n)*block_k*element_bytes <= lds_bytes, 1, 0)",
		"one tile of A and B fits local memory",
		func(e *evaluation) float64 { return flag(e.fits()) }),
	column("rejected", "1", fromGEMM,
		"rule: 1 if the model drops the tile: (a) a batch, M and N up to 256, K below 1024 and a tile"+
			" smaller than the problem; (b) the instruction 1x1x64 with M above 2; (c) K and block_k multiples"+
			" of 128 B, and M at most 2*block_m with K-contiguous B and floor(N/M) above skinny_ratio, or N at"+
			" most 2*block_n with K-contiguous A and floor(M/N) above skinny_ratio",
		"dropped by a rule of the model",
		func(e *evaluation) float64 { return flag(e.rejected()) }),

	// Compute.
	column("mi_m", "1", fromHardware,
		"rule: rows of the matrix instruction in use",
		"rows of the matrix instruction",
		func(e *evaluation) float64 { return f(e.mi.m) }),
	column("mi_n", "1", fromHardware,
		"rule: columns of the matrix instruction in use",
		"columns of the matrix instruction",
		func(e *evaluation) float64 { return f(e.mi.n) }),
	column("mi_k", "1", fromHardware,
		"rule: depth of the matrix instruction in use",
		"depth of the matrix instruction",
		func(e *evaluation) float64 { return f(e.mi.k) }),
	column("mi_latency", "cycles", fromHardware,
		"rule: cycles of the matrix instruction over parallel_mi, rounded down",
		"one matrix instruction, with all matrix cores busy",
		func(e *evaluation) float64 { return f(e.mi.latency) }),
	step("l_compute",
		"mi_latency*cdiv(block_m, mi_m)*cdiv(block_n, mi_n)*cdiv(block_k, mi_k)",
		"matrix instructions of one K step",
		func(e *evaluation) float64 { return e.computeCycles }),

	// Hit rates.
	column("wgm", "1", fromGEMM,
		"rule: 1 with a batch, else the square root of floor(num_cus/num_xcds), rounded up",
		"workgroup mapping (WGM) that the hit rates assume; the launch's mapping is chosen later",
		func(e *evaluation) float64 { return f(e.wgm) }),
	column("l2_tile_m", "1", fromGEMM,
		"rule: rows of the die's super-tile: its tiles cdiv(cdiv(min(tiles_m*tiles_n, num_cus),"+
			" split*batch), num_xcds) in min(wgm, tiles_n) columns, wrapped and clamped to the grid, then the"+
			" longer side one shorter at a time until A and B of it fit l2_bytes",
		"tiles that share one die's L2, along M",
		func(e *evaluation) float64 { return f(e.tileM) }),
	column("l2_tile_n", "1", fromGEMM,
		"rule: columns of the die's super-tile, see l2_tile_m",
		"tiles that share one die's L2, along N",
		func(e *evaluation) float64 { return f(e.tileN) }),
	column("l2_hit", "1", fromGEMM,
		"1 - (l2_tile_m*block_m + l2_tile_n*block_n)/(l2_tile_m*l2_tile_n*(block_m + block_n))",
		"share of one die's loads that hit data already loaded by another tile of the die",
		func(e *evaluation) float64 { return e.l2Hit }),
	column("l2_hit_global", "1", fromGEMM,
		"when((tiles_m*block_m + tiles_n*block_n)*block_k*element_bytes > l2_bytes*global_capacity_scale,"+
			" overflow_hit_rate, 1 - (tiles_m*block_m + tiles_n*block_n)/(tiles_m*tiles_n*(block_m + block_n)))",
		"l2_hit if all tiles of the problem shared one cache; a cap on the hit rate",
		func(e *evaluation) float64 { return e.globalHit }),
	column("h_mem1", "1", fromGEMM,
		"when(min(l2_hit, l2_hit_global) == 0, empty_hit_rate, min(l2_hit, l2_hit_global))",
		"L2 hit rate",
		func(e *evaluation) float64 { return l2HitRate(e.l2Hit, e.globalHit) }),
	column("mall_tile_m", "1", fromGEMM,
		"max(min(cdiv(active_cus, wgm), tiles_m), 1)",
		"tiles that share the MALL, along M",
		func(e *evaluation) float64 { return f(e.mallM) }),
	column("mall_tile_n", "1", fromGEMM,
		"max(min(min(wgm, tiles_n) +"+
			" when(cdiv(active_cus, wgm) > tiles_m, floor(cdiv(active_cus, wgm)/tiles_m)*wgm, 0), tiles_n), 1)",
		"tiles that share the MALL, along N",
		func(e *evaluation) float64 { return f(e.mallN) }),
	column("mall_hit", "1", fromGEMM,
		"1 - (mall_tile_m*block_m + mall_tile_n*block_n)/(mall_tile_m*mall_tile_n*(block_m + block_n))",
		"MALL hit rate of the tiles of one timestep; the model ignores the MALL's capacity",
		func(e *evaluation) float64 { return e.mallHit }),

	// Memory latency of one K step.
	column("load_bytes_per_cu", "B", fromGEMM,
		"when(a_k_contiguous == 1, block_m*cdiv(block_k*element_bytes, load_granule),"+
			" block_k*cdiv(block_m*element_bytes, load_granule))*load_granule +"+
			" when(b_k_contiguous == 1, block_n*cdiv(block_k*element_bytes, load_granule),"+
			" block_k*cdiv(block_n*element_bytes, load_granule))*load_granule",
		"bytes of A and B loaded in one K step, with contiguous runs rounded up",
		func(e *evaluation) float64 { return e.loadBytes }),
	column("min_load", "B", fromGEMM,
		"(mall_tile_m*block_m + mall_tile_n*block_n)*block_k*element_bytes"+
			"*min(batch, max(active_cus/(tiles_m*tiles_n), 1))",
		"least MALL and HBM traffic: each byte of the device's super-tile once",
		func(e *evaluation) float64 { return e.minLoad }),
	column("l2_traffic", "B", fromGEMM,
		"load_bytes_per_cu*active_cus",
		"bytes that L2 delivers in one K step",
		func(e *evaluation) float64 { return e.fromL2 }),
	column("mall_traffic", "B", fromGEMM,
		"max((1 - h_mem1)*l2_traffic, min_load)",
		"bytes that MALL delivers in one K step",
		func(e *evaluation) float64 { return e.fromMALL }),
	column("hbm_traffic", "B", fromGEMM,
		"max((1 - mall_hit)*((1 - h_mem1)*l2_traffic), min_load)",
		"bytes that HBM delivers in one K step",
		func(e *evaluation) float64 { return e.fromHBM }),
	column("bw_limited", "1", fromGEMM,
		"when(active_cus > num_cus, 1, min(bw_c0*active_cus*active_cus + bw_c1*active_cus + bw_c2, 1))",
		"share of MALL and HBM bandwidth that the active compute units reach",
		func(e *evaluation) float64 { return e.bwLimited }),
	step("l_mem1",
		"l2_traffic/(mem1_perf_ratio*(active_cus/num_cus))",
		"time of one K step's L2 traffic",
		func(e *evaluation) float64 { return e.l2Cycles }),
	step("l_mem2",
		"mall_traffic/(mem2_perf_ratio*bw_limited)",
		"time of one K step's MALL traffic",
		func(e *evaluation) float64 { return e.mallCycles }),
	step("l_mem3",
		"hbm_traffic/(mem3_perf_ratio*bw_limited) + hbm_latency",
		"time of one K step's HBM traffic, plus latency",
		func(e *evaluation) float64 { return e.hbmCycles }),
	column("l_mem", "cycles", fromGEMM,
		"max(l_mem1, l_mem2, l_mem3)",
		"memory latency of one K step",
		func(e *evaluation) float64 { return e.memoryCycles }),

	// One tile.
	column("utilization", "1", fromGEMM,
		"m*n*k/(tiles_m*block_m*tiles_n*block_n*cdiv(k, block_k)*block_k)",
		"useful share of the padded volume",
		func(e *evaluation) float64 { return e.utilization }),
	column("utilization_penalty", "1", fromGEMM,
		"when(utilization > min_utilization, 1/utilization, 1)",
		"cost of padding",
		func(e *evaluation) float64 { return e.penalty }),
	column("occupancy", "1", fromOption,
		"rule: the option occ",
		"workgroups that may share a compute unit",
		func(e *evaluation) float64 { return f(e.occupancy) }),
	column("real_occupancy", "1", fromGEMM,
		"min(max(occupancy, 1), cdiv(tiles_m*tiles_n*batch*split, num_cus))",
		"workgroups that actually share a compute unit",
		func(e *evaluation) float64 { return f(e.occupied) }),
	column("occupancy_discount", "1", fromGEMM,
		"rule: occupancy_base to the power of real_occupancy",
		"share of prologue and epilogue that other workgroups on the compute unit do not hide",
		func(e *evaluation) float64 { return e.discount }),
	column("l_prologue", "cycles", fromGEMM,
		"prologue_factor*l_mem*occupancy_discount*utilization_penalty",
		"filling the pipeline",
		func(e *evaluation) float64 { return e.prologue }),
	column("l_store", "cycles", fromGEMM,
		"floor(active_cus/split)*cdiv(block_m*element_bytes, load_granule)*load_granule/element_bytes"+
			"*block_n*output_bytes/(mem3_perf_ratio*bw_limited)",
		"storing C; its rows are rounded up like a load of A",
		func(e *evaluation) float64 { return e.store }),
	column("l_reduction", "cycles", fromGEMM,
		"when(split > 1, tiles_m*tiles_n*split*cdiv(block_m*element_bytes, load_granule)*load_granule"+
			"/element_bytes*block_n*output_bytes/(mem3_perf_ratio*bw_limited) +"+
			" block_m*block_n*split/reduction_rate + reduction_latency, 0)",
		"reduction of split tiles",
		func(e *evaluation) float64 { return e.reduction }),
	column("l_k_padding", "cycles", fromGEMM,
		"mod(k, block_k)/k*k_padding_penalty",
		"penalty for a partial last K step",
		func(e *evaluation) float64 { return e.current().kPadding }),
	column("l_epilogue", "cycles", fromGEMM,
		"(l_store + l_compute*utilization_penalty)*occupancy_discount + l_reduction + l_k_padding",
		"last step and store, before it is counted twice",
		func(e *evaluation) float64 { return e.epilogue }),
	column("l_conversion", "cycles", fromGEMM,
		"rule: time that splitting TF32 operands into BF16 adds to a K step on gfx950; else 0",
		"conversion of emulated TF32",
		func(e *evaluation) float64 { return e.conversion }),
	column("l_tile_single", "cycles", fromGEMM,
		"max(l_compute, l_mem)*utilization_penalty + l_conversion",
		"one K step",
		func(e *evaluation) float64 { return e.single }),
	column("num_iter", "1", fromGEMM,
		"max(cdiv(cdiv(k, split), block_k) - 1, 1)",
		"K steps after the first, at least one",
		func(e *evaluation) float64 { return e.numIter }),
	column("tile_latency", "cycles", fromGEMM,
		"l_tile_single*num_iter + l_prologue + l_epilogue*epilogue_factor + setup_latency +"+
			" step_overhead*num_iter",
		"one output tile",
		func(e *evaluation) float64 { return e.tileLatency }),
	column("heuristic_factor", "1", fromGEMM,
		"rule: small_tile_factor for the tile 64x32x32 with 16-bit types and K-contiguous B; on gfx950 with"+
			" tf32, hand-made factors between 0.4 and 0.8; else 1",
		"hand-made corrections",
		func(e *evaluation) float64 { return e.factor }),

	// The parts of the total.
	share("steady_state",
		"l_tile_single*num_iter",
		"K steps",
		func(e *evaluation) float64 { return e.single * e.numIter }),
	share("prologue",
		"l_prologue",
		"filling the pipeline",
		func(e *evaluation) float64 { return e.prologue }),
	share("epilogue",
		"(l_store + l_compute*utilization_penalty)*occupancy_discount*epilogue_factor",
		"last step and store",
		func(e *evaluation) float64 { return e.storePart * epilogueFactor }),
	share("reduction",
		"l_reduction*epilogue_factor",
		"reduction of split tiles",
		func(e *evaluation) float64 { return e.reduction * epilogueFactor }),
	share("k_padding",
		"l_k_padding*epilogue_factor",
		"penalty for a partial last K step",
		func(e *evaluation) float64 { return e.current().kPadding * epilogueFactor }),
	share("setup",
		"setup_latency",
		"fixed cost per tile",
		func(*evaluation) float64 { return setupLatency }),
	share("loop_overhead",
		"step_overhead*num_iter",
		"fixed cost per K step",
		func(e *evaluation) float64 { return stepOverhead * e.numIter }),
	{
		arch.Term{
			Name: "total_latency", Unit: "cycles", Source: fromGEMM, Kind: arch.KindTotal,
			Formula: "tile_latency*timesteps*heuristic_factor",
			Doc:     "the prediction; the largest float64 if the model drops the tile",
		},
		func(e *evaluation) float64 {
			if e.rejected() {
				return arch.RejectedTotal
			}
			return e.total
		},
	},
}

// termSchema returns the schema for a grid mode.
func termSchema(mode gridMode) []arch.Term {
	schema := make([]arch.Term, len(terms))
	for i := range terms {
		schema[i] = terms[i].Term
		schema[i].Common = commonNames[schema[i].Name]
		if schema[i].Formula == gridFormula && mode != dataParallel {
			schema[i].Formula = "rule: grid=" + gridModes[mode] + ", see docs/model-amd-origami.md;" +
				" with split_k above 1 " + gridFormula
		}
	}
	return schema
}
