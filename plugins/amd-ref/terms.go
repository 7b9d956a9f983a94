package amdref

import (
	"context"
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// Sources of the equations and of the constants in them.
const (
	fromGEMM     = "AMD Origami (ROCm rocm-libraries, shared/origami, January 2026), gemm.cpp"
	fromStreamK  = "AMD Origami (ROCm rocm-libraries, shared/origami, January 2026), streamk.cpp"
	fromHardware = "AMD Origami (ROCm rocm-libraries, shared/origami, January 2026), hardware.hpp"
	fromProblem  = "the problem"
	fromOption   = "the option of that name"
)

// constants are the model's empirical numbers by the names that formulas use.
var constants = []arch.Constant{
	{Name: "hbm_latency", Value: hbmLatency, Unit: "cycles", Source: fromGEMM, Doc: "added to every transfer from HBM, also to an empty one"},
	{Name: "prologue_factor", Value: prologueFactor, Unit: "1", Source: fromGEMM, Doc: "the prologue's share of a K step's memory latency"},
	{Name: "epilogue_factor", Value: epilogueFactor, Unit: "1", Source: fromGEMM, Doc: "how often the epilogue counts"},
	{Name: "setup_latency", Value: setupLatency, Unit: "cycles", Source: fromGEMM, Doc: "fixed cost of a tile"},
	{Name: "step_overhead", Value: stepOverhead, Unit: "cycles", Source: fromGEMM, Doc: "fixed cost of a K step"},
	{Name: "k_padding_penalty", Value: kPaddingPenalty, Unit: "cycles", Source: fromGEMM, Doc: "times (K mod block_k)/K, where block_k does not divide K"},
	{Name: "reduction_latency", Value: reductionLatency, Unit: "cycles", Source: fromGEMM, Doc: "fixed cost of adding up split tiles"},
	{Name: "reduction_rate", Value: reductionRate, Unit: "1", Source: fromGEMM, Doc: "elements that a compute unit adds up per cycle"},
	{Name: "empty_hit_rate", Value: emptyHitRate, Unit: "1", Source: fromGEMM, Doc: "stands in for an L2 hit rate of exactly zero"},
	{Name: "overflow_hit_rate", Value: overflowHitRate, Unit: "1", Source: fromGEMM, Doc: "global L2 hit rate of a working set above the capacity"},
	{Name: "global_capacity_scale", Value: globalCapacityScale, Unit: "1", Source: fromGEMM + " (a size in bytes is multiplied by 1024)", Doc: "L2 capacities that the global working set is compared with"},
	{Name: "load_granule", Value: roundBits / 8, Unit: "B", Source: fromGEMM, Doc: "what the contiguous dimension of a load is rounded up to"},
	{Name: "min_utilization", Value: minUtilization, Unit: "1", Source: fromGEMM, Doc: "utilisation at or below which the penalty is 1"},
	{Name: "occupancy_base", Value: occupancyBase, Unit: "1", Source: fromGEMM, Doc: "what is left of prologue and epilogue per workgroup on a compute unit"},
	{Name: "small_tile_factor", Value: smallTilePenalty, Unit: "1", Source: fromGEMM, Doc: "on the total of the tile 64x32x32 with 16-bit types and K-contiguous B"},
	{Name: "skinny_ratio", Value: skinnyRatio, Unit: "1", Source: fromGEMM, Doc: "N/M or M/N above which the hint rule drops a tile that covers half of the short side"},
	{Name: "mi_missing_cycles", Value: missingMICycles, Unit: "cycles", Source: fromHardware, Doc: "latency of a matrix instruction that the library's table lacks"},
}

// term is a column and how to read it off an evaluation.
type term struct {
	arch.Term
	value func(e *evaluation) float64
}

// terms is the schema: the columns of AMD's own breakdown and the values in between, in the order in which they follow
// from each other.
var terms = []term{
	// The grid.
	column("tiles_m", "1", "cdiv(m, block_m)", "output tiles along M", fromGEMM, func(e *evaluation) float64 { return f(e.gm) }),
	column("tiles_n", "1", "cdiv(n, block_n)", "output tiles along N", fromGEMM, func(e *evaluation) float64 { return f(e.gn) }),
	column("num_wgs", "1", gridFormula, "workgroups", fromStreamK, func(e *evaluation) float64 { return f(e.workgroups) }),
	column("active_cus", "1", "min(num_wgs, num_cus)", "compute units at work", fromStreamK, func(e *evaluation) float64 { return e.active }),
	column("timesteps", "1", "cdiv(max(num_wgs, tiles_m*tiles_n*batch), num_cus)", "rounds of workgroups, one per compute unit and round", fromStreamK,
		func(e *evaluation) float64 { return f(e.timesteps) }),
	column("split", "1", "cdiv(num_wgs, tiles_m*tiles_n*batch)", "workgroups that share an output tile's K steps", fromStreamK, func(e *evaluation) float64 { return f(e.split) }),
	// What is dropped.
	column("a_k_contiguous", "1", "rule: 1 if A is contiguous along K (AMD's letter T), 0 if along M", "layout of A", fromProblem, func(e *evaluation) float64 { return flag(e.transA) }),
	column("b_k_contiguous", "1", "rule: 1 if B is contiguous along K (AMD's letter N), 0 if along N", "layout of B", fromProblem, func(e *evaluation) float64 { return flag(!e.transB) }),
	column("lds_ok", "1", "when((block_m + block_n)*block_k*element_bytes <= lds_bytes, 1, 0)", "one tile of A and B fits local memory", fromGEMM,
		func(e *evaluation) float64 { return flag(e.fits()) }),
	column("rejected", "1", "rule: 1 if the model drops the tile: (a) a batch, M and N up to 256, K below 1024 and a tile smaller than the problem;"+
		" (b) the instruction 1x1x64 with M above 2; (c) K and block_k multiples of 128 B, and M at most 2*block_m with K-contiguous B and floor(N/M) above skinny_ratio,"+
		" or N at most 2*block_n with K-contiguous A and floor(M/N) above skinny_ratio",
		"dropped by a rule of the model", fromGEMM, func(e *evaluation) float64 { return flag(e.rejected()) }),
	// Compute.
	column("mi_m", "1", "rule: rows of the matrix instruction in use", "matrix instruction, rows", fromHardware, func(e *evaluation) float64 { return f(e.mi.m) }),
	column("mi_n", "1", "rule: columns of the matrix instruction in use", "matrix instruction, columns", fromHardware, func(e *evaluation) float64 { return f(e.mi.n) }),
	column("mi_k", "1", "rule: depth of the matrix instruction in use", "matrix instruction, depth", fromHardware, func(e *evaluation) float64 { return f(e.mi.k) }),
	column("mi_latency", "cycles", "rule: cycles of the matrix instruction over parallel_mi, rounded down", "one matrix instruction, all matrix cores at work", fromHardware,
		func(e *evaluation) float64 { return f(e.mi.latency) }),
	step("l_compute", "mi_latency*cdiv(block_m, mi_m)*cdiv(block_n, mi_n)*cdiv(block_k, mi_k)", "matrix instructions of one K step", func(e *evaluation) float64 { return e.lCompute }),
	// Hit rates.
	column("wgm", "1", "rule: 1 with a batch, else the square root of floor(num_cus/num_xcds), rounded up",
		"workgroup mapping that the hit rates assume; the mapping of the launch is chosen afterwards", fromGEMM, func(e *evaluation) float64 { return f(e.wgm) }),
	column("l2_tile_m", "1", "rule: rows of the die's super-tile: its tiles cdiv(cdiv(min(tiles_m*tiles_n, num_cus), split*batch), num_xcds) in min(wgm, tiles_n) columns,"+
		" wrapped and clamped to the grid, then the longer side one shorter at a time until A and B of it fit l2_bytes",
		"tiles that share one die's L2, along M", fromGEMM, func(e *evaluation) float64 { return f(e.tileM) }),
	column("l2_tile_n", "1", "rule: columns of the die's super-tile, see l2_tile_m", "tiles that share one die's L2, along N", fromGEMM, func(e *evaluation) float64 { return f(e.tileN) }),
	column("l2_hit", "1", "1 - (l2_tile_m*block_m + l2_tile_n*block_n)/(l2_tile_m*l2_tile_n*(block_m + block_n))",
		"share of the loads of one die's tiles that another of these tiles has loaded", fromGEMM, func(e *evaluation) float64 { return e.l2Hit }),
	column("l2_hit_global", "1", "when((tiles_m*block_m + tiles_n*block_n)*block_k*element_bytes > l2_bytes*global_capacity_scale, overflow_hit_rate,"+
		" 1 - (tiles_m*block_m + tiles_n*block_n)/(tiles_m*tiles_n*(block_m + block_n)))",
		"the same over all tiles of the problem", fromGEMM, func(e *evaluation) float64 { return e.globalHit }),
	column("h_mem1", "1", "when(min(l2_hit, l2_hit_global) == 0, empty_hit_rate, min(l2_hit, l2_hit_global))", "L2 hit rate", fromGEMM, func(e *evaluation) float64 { return l2HitRate(e.l2Hit, e.globalHit) }),
	column("mall_tile_m", "1", "max(min(cdiv(active_cus, wgm), tiles_m), 1)", "tiles that share the MALL, along M", fromGEMM, func(e *evaluation) float64 { return f(e.mallM) }),
	column("mall_tile_n", "1", "max(min(min(wgm, tiles_n) + when(cdiv(active_cus, wgm) > tiles_m, floor(cdiv(active_cus, wgm)/tiles_m)*wgm, 0), tiles_n), 1)",
		"tiles that share the MALL, along N", fromGEMM, func(e *evaluation) float64 { return f(e.mallN) }),
	column("mall_hit", "1", "1 - (mall_tile_m*block_m + mall_tile_n*block_n)/(mall_tile_m*mall_tile_n*(block_m + block_n))",
		"MALL hit rate of the tiles of one timestep; its capacity does not enter", fromGEMM, func(e *evaluation) float64 { return e.mallHit }),
	// Memory latency of one K step.
	column("load_bytes_per_cu", "B", "when(a_k_contiguous == 1, block_m*cdiv(block_k*element_bytes, load_granule), block_k*cdiv(block_m*element_bytes, load_granule))*load_granule"+
		" + when(b_k_contiguous == 1, block_n*cdiv(block_k*element_bytes, load_granule), block_k*cdiv(block_n*element_bytes, load_granule))*load_granule",
		"bytes of A and B that a K step loads, contiguous runs rounded up", fromGEMM, func(e *evaluation) float64 { return e.loadBytes }),
	column("min_load", "B", "(mall_tile_m*block_m + mall_tile_n*block_n)*block_k*element_bytes*min(batch, max(active_cus/(tiles_m*tiles_n), 1))",
		"least traffic of MALL and HBM: each byte of the device's super-tile once", fromGEMM, func(e *evaluation) float64 { return e.minLoad }),
	column("l2_traffic", "B", "load_bytes_per_cu*active_cus", "what L2 delivers in one K step", fromGEMM, func(e *evaluation) float64 { return e.fromL2 }),
	column("mall_traffic", "B", "max((1 - h_mem1)*l2_traffic, min_load)", "what MALL delivers in one K step", fromGEMM, func(e *evaluation) float64 { return e.fromMALL }),
	column("hbm_traffic", "B", "max((1 - mall_hit)*((1 - h_mem1)*l2_traffic), min_load)", "what HBM delivers in one K step", fromGEMM, func(e *evaluation) float64 { return e.fromHBM }),
	column("bw_limited", "1", "when(active_cus > num_cus, 1, min(bw_c0*active_cus*active_cus + bw_c1*active_cus + bw_c2, 1))",
		"share of MALL and HBM bandwidth that the active compute units reach", fromGEMM, func(e *evaluation) float64 { return e.bwLimited }),
	step("l_mem1", "l2_traffic/(mem1_perf_ratio*(active_cus/num_cus))", "L2 traffic of one K step", func(e *evaluation) float64 { return e.l1 }),
	step("l_mem2", "mall_traffic/(mem2_perf_ratio*bw_limited)", "MALL traffic of one K step", func(e *evaluation) float64 { return e.l2 }),
	step("l_mem3", "hbm_traffic/(mem3_perf_ratio*bw_limited) + hbm_latency", "HBM traffic of one K step, and its latency", func(e *evaluation) float64 { return e.l3 }),
	column("l_mem", "cycles", "max(l_mem1, l_mem2, l_mem3)", "memory latency of one K step", fromGEMM, func(e *evaluation) float64 { return e.lMem }),
	// One tile.
	column("utilization", "1", "m*n*k/(tiles_m*block_m*tiles_n*block_n*cdiv(k, block_k)*block_k)", "useful share of the padded volume", fromGEMM,
		func(e *evaluation) float64 { return e.utilization }),
	column("utilization_penalty", "1", "when(utilization > min_utilization, 1/utilization, 1)", "what padding costs", fromGEMM, func(e *evaluation) float64 { return e.penalty }),
	column("occupancy", "1", "rule: the option occ", "workgroups that may share a compute unit", fromOption, func(e *evaluation) float64 { return f(e.occupancy) }),
	column("real_occupancy", "1", "min(max(occupancy, 1), cdiv(tiles_m*tiles_n*batch*split, num_cus))", "workgroups that do share a compute unit", fromGEMM,
		func(e *evaluation) float64 { return f(e.occupied) }),
	column("occupancy_discount", "1", "rule: occupancy_base to the power of real_occupancy", "what workgroups on the same compute unit hide of each other", fromGEMM,
		func(e *evaluation) float64 { return e.discount }),
	column("l_prologue", "cycles", "prologue_factor*l_mem*occupancy_discount*utilization_penalty", "filling the pipeline", fromGEMM, func(e *evaluation) float64 { return e.prologue }),
	column("l_store", "cycles", "floor(active_cus/split)*cdiv(block_m*element_bytes, load_granule)*load_granule/element_bytes*block_n*output_bytes/(mem3_perf_ratio*bw_limited)",
		"storing C; its rows are rounded up like a load of A", fromGEMM, func(e *evaluation) float64 { return e.store }),
	column("l_reduction", "cycles", "when(split > 1, tiles_m*tiles_n*split*cdiv(block_m*element_bytes, load_granule)*load_granule/element_bytes*block_n*output_bytes/(mem3_perf_ratio*bw_limited)"+
		" + block_m*block_n*split/reduction_rate + reduction_latency, 0)",
		"adding up split tiles", fromGEMM, func(e *evaluation) float64 { return e.reduction }),
	column("l_k_padding", "cycles", "mod(k, block_k)/k*k_padding_penalty", "a last K step that K does not fill", fromGEMM, func(e *evaluation) float64 { return e.current().kPadding }),
	column("l_epilogue", "cycles", "(l_store + l_compute*utilization_penalty)*occupancy_discount + l_reduction + l_k_padding",
		"last step and store, before it is counted twice", fromGEMM, func(e *evaluation) float64 { return e.epilogue }),
	column("l_conversion", "cycles", "rule: what splitting TF32 operands into BF16 adds to a K step on gfx950, else 0", "conversion of emulated TF32", fromGEMM,
		func(e *evaluation) float64 { return e.conversion }),
	column("l_tile_single", "cycles", "max(l_compute, l_mem)*utilization_penalty + l_conversion", "one K step", fromGEMM, func(e *evaluation) float64 { return e.single }),
	column("num_iter", "1", "max(cdiv(cdiv(k, split), block_k) - 1, 1)", "K steps after the first, at least one", fromGEMM, func(e *evaluation) float64 { return e.numIter }),
	column("tile_latency", "cycles", "l_tile_single*num_iter + l_prologue + l_epilogue*epilogue_factor + setup_latency + step_overhead*num_iter", "one output tile", fromGEMM,
		func(e *evaluation) float64 { return e.tileLatency }),
	column("heuristic_factor", "1", "rule: small_tile_factor for the tile 64x32x32 with 16-bit types and K-contiguous B; on gfx950 with tf32 hand-made factors between 0.4 and 0.8; else 1",
		"corrections by hand", fromGEMM, func(e *evaluation) float64 { return e.factor }),
	// The parts of the total.
	share("steady_state", "l_tile_single*num_iter", "K steps", func(e *evaluation) float64 { return e.single * e.numIter }),
	share("prologue", "l_prologue", "filling the pipeline", func(e *evaluation) float64 { return e.prologue }),
	share("epilogue", "(l_store + l_compute*utilization_penalty)*occupancy_discount*epilogue_factor", "last step and store", func(e *evaluation) float64 { return e.storePart * epilogueFactor }),
	share("reduction", "l_reduction*epilogue_factor", "adding up split tiles", func(e *evaluation) float64 { return e.reduction * epilogueFactor }),
	share("k_padding", "l_k_padding*epilogue_factor", "a last K step that K does not fill", func(e *evaluation) float64 { return e.current().kPadding * epilogueFactor }),
	share("setup", "setup_latency", "fixed cost per tile", func(*evaluation) float64 { return setupLatency }),
	share("loop_overhead", "step_overhead*num_iter", "fixed cost per K step", func(e *evaluation) float64 { return stepOverhead * e.numIter }),
	{arch.Term{Name: "total_latency", Unit: "cycles", Formula: "tile_latency*timesteps*heuristic_factor", Source: fromGEMM, Kind: arch.KindTotal,
		Doc: "the prediction; the largest float64 where the model drops the tile"},
		func(e *evaluation) float64 {
			if e.rejected() {
				return arch.RejectedTotal
			}
			return e.total
		}},
}

// commonNames gives the columns that other models have under other names.
var commonNames = map[string]string{
	"active_cus": arch.CommonActiveUnits, "timesteps": arch.CommonWaves, "h_mem1": arch.CommonL2Hit, "mall_hit": arch.CommonMALLHit,
	"load_bytes_per_cu": arch.CommonLoadPerUnit, "hbm_traffic": arch.CommonDRAMTraffic, "bw_limited": arch.CommonDRAMFraction,
	"utilization_penalty": arch.CommonPenalty, "l_compute": arch.CommonComputeStep, "l_mem1": arch.CommonL2Step,
	"l_mem2": arch.CommonMALLStep, "l_mem3": arch.CommonDRAMStep, "l_mem": arch.CommonMemoryStep,
	"l_tile_single": arch.CommonKStep, "tile_latency": arch.CommonWave, "total_latency": arch.CommonTotal,
}

func column(name, unit, formula, doc, source string, value func(*evaluation) float64) term {
	return term{arch.Term{Name: name, Unit: unit, Formula: formula, Doc: doc, Source: source}, value}
}

func step(name, formula, doc string, value func(*evaluation) float64) term {
	t := column(name, "cycles", formula, doc, fromGEMM, value)
	t.Kind = arch.KindStep
	return t
}

// share makes a part of the total out of a part of one tile's latency.
func share(name, formula, doc string, value func(*evaluation) float64) term {
	t := column(name, "cycles", "("+formula+")*timesteps*heuristic_factor", doc+", over all timesteps", fromGEMM,
		func(e *evaluation) float64 { return value(e) * f(e.timesteps) * e.factor })
	t.Kind = arch.KindShare
	return t
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// gridFormula is the number of workgroups with one per output tile, or more by the configuration's split.
const gridFormula = "tiles_m*tiles_n*batch*max(split_k, 1)"

// termSchema returns the schema for a grid mode.
func termSchema(mode gridMode) []arch.Term {
	schema := make([]arch.Term, len(terms))
	for i := range terms {
		schema[i] = terms[i].Term
		schema[i].Common = commonNames[schema[i].Name]
		if schema[i].Formula == gridFormula && mode != dataParallel {
			schema[i].Formula = "rule: grid=" + gridModes[mode] + ", see docs/model-amd-reference.md; with split_k above 1 " + gridFormula
		}
	}
	return schema
}

// Terms implements arch.Architecture.
func (a *architecture) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	q, err := a.problem(p)
	if err != nil {
		return err
	}
	if len(dst) != len(cfgs)*len(terms) {
		return fmt.Errorf("amd-ref: Terms of %d configurations into %d values", len(cfgs), len(dst))
	}
	e := evaluation{problem: q}
	for i := range cfgs {
		if err := check(&cfgs[i]); err != nil {
			return err
		}
		e.placeConfig(&cfgs[i])
		e.score(uint64(cfgs[i].SplitK))
		row := dst[i*len(terms) : (i+1)*len(terms)]
		for j := range terms {
			row[j] = terms[j].value(&e)
		}
	}
	return nil
}
