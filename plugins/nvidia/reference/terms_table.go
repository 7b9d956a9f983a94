package reference

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// The published sources of the equations.
const (
	portReport = "tritonBLAS NVIDIA port report (2026-02-12)"
	ptxISA     = "PTX ISA, mma.sync.aligned.m16n8k16"
)

// constants are the empirical numbers of the model. Formulas refer to them by name, and explain shows them.
var constants = []arch.Constant{
	{
		Name: "mma_m", Value: gpu.MMAM, Unit: "1",
		Doc:    "rows of the matrix instruction",
		Source: ptxISA,
	},
	{
		Name: "mma_n", Value: gpu.MMAN, Unit: "1",
		Doc:    "columns of the matrix instruction",
		Source: ptxISA,
	},
	{
		Name: "mma_k", Value: gpu.MMAK, Unit: "1",
		Doc:    "depth of the matrix instruction",
		Source: ptxISA,
	},
	{
		Name: "line_bytes", Value: lineBytes, Unit: "B",
		Doc:    "loads are rounded to cache lines; one line is the least",
		Source: portReport + " §3.4, C.4; AMD Origami",
	},
	{
		Name: "l2_hit_cap", Value: l2HitCap, Unit: "1",
		Doc:    "hit rate when one K step of the grid exceeds the L2",
		Source: portReport + " §3.3, C.4",
	},
	{
		Name: "occupancy", Value: 1, Unit: "1",
		Doc:    "CTAs per SM that the discount assumes",
		Source: portReport + " Appendix A",
	},
	{
		Name: "occupancy_discount", Value: occupancyDiscount, Unit: "1",
		Doc:    "on prologue and epilogue, to the power of the occupancy",
		Source: portReport + " §3.6, C.4; AMD Origami, fitted on MI300X",
	},
	{
		Name: "prologue_factor", Value: prologueFactor, Unit: "1",
		Doc:    "memory latencies that a pipeline fill takes",
		Source: portReport + " §3.6, C.4; AMD Origami, fitted on MI300X",
	},
	{
		Name: "epilogue_count", Value: epilogueCount, Unit: "1",
		Doc:    "times the epilogue counts",
		Source: portReport + " §3.6, C.4; AMD Origami, fitted on MI300X",
	},
	{
		Name: "loop_overhead_cycles", Value: loopOverhead, Unit: "cycles",
		Doc:    "per K iteration",
		Source: portReport + " §3.6, C.4; AMD Origami, fitted on MI300X",
	},
	{
		Name: "k_padding_cycles", Value: kPaddingPenalty, Unit: "cycles",
		Doc:    "times the share of K in a partial step",
		Source: portReport + " §3.6, C.4; AMD Origami, fitted on MI300X",
	},
	{
		Name: "setup_cycles", Value: setupCycles, Unit: "cycles",
		Doc:    "launch of a CTA",
		Source: portReport + " §3.6, C.4; AMD Origami",
	},
}

// columns is the schema of the breakdown, in the order in which the model computes.
var columns = []column{
	// Grid and waves.
	{arch.Term{
		Name: "grid_m", Unit: "1",
		Formula: "cdiv(m, block_m)",
		Doc:     "rows of output tiles",
		Source:  portReport + " §3.2, Algorithm 4",
	}, func(b *breakdown) float64 { return float64(b.gridM) }},
	{arch.Term{
		Name: "grid_n", Unit: "1",
		Formula: "cdiv(n, block_n)",
		Doc:     "columns of output tiles",
		Source:  portReport + " §3.2, Algorithm 4",
	}, func(b *breakdown) float64 { return float64(b.gridN) }},
	{arch.Term{
		Name: "total_tiles", Unit: "1",
		Formula: "grid_m * grid_n * batch",
		Doc:     "output tiles",
		Source:  portReport + " §3.2, Algorithm 4",
	}, func(b *breakdown) float64 { return float64(b.tiles) }},
	{arch.Term{
		Name: "active_sms", Unit: "1",
		Formula: "min(total_tiles, num_sms)",
		Doc:     "SMs that have a tile",
		Source:  portReport + " §3.2, Algorithm 4",
	}, func(b *breakdown) float64 { return float64(b.active) }},
	{arch.Term{
		Name: "num_waves", Unit: "1",
		Formula: "cdiv(total_tiles, num_sms)",
		Doc:     "rounds of tiles over the SMs",
		Source:  portReport + " §3.2, Algorithm 4",
	}, func(b *breakdown) float64 { return float64(b.waves) }},
	// Compute.
	{arch.Term{
		Name: "n_mma", Unit: "1",
		Formula: "cdiv(block_m, mma_m) * cdiv(block_n, mma_n) * cdiv(block_k, mma_k)",
		Doc:     "matrix instructions per K step of a tile",
		Source:  portReport + " §3.1, Algorithm 3",
	}, func(b *breakdown) float64 { return float64(b.mma) }},
	{arch.Term{
		Name: "l_mi", Unit: "cycles",
		Formula: "mma_latency / tensor_cores_per_sm",
		Doc:     "cycles per matrix instruction",
		Source:  portReport + " §3.1, Algorithm 3",
	}, func(b *breakdown) float64 { return b.mmaCycles }},
	{arch.Term{
		Name: "l_compute", Unit: "cycles", Kind: arch.KindStep,
		Formula: "l_mi * n_mma",
		Doc:     "matrix instructions of one K step",
		Source:  portReport + " §3.1, Algorithm 3",
	}, func(b *breakdown) float64 { return b.compute }},
	// L2 hit rate.
	{arch.Term{
		Name: "wgm", Unit: "1",
		Formula: "ceil(sqrt(num_sms))",
		Doc:     "launch-order group that phase one assumes",
		Source:  portReport + " §2.2",
	}, func(b *breakdown) float64 { return float64(b.groupM) }},
	{arch.Term{
		Name: "l2_group_m", Unit: "1",
		Formula: "rule: cdiv(active_sms, l2_group_n) rows of tiles, wrapped to further columns above grid_m," +
			" clamped to the grid",
		Doc:    "height of the super group",
		Source: portReport + " §3.3, Algorithm 5; the clamp from AMD Origami",
	}, func(b *breakdown) float64 { return float64(b.mem.groupTileM) }},
	{arch.Term{
		Name: "l2_group_n", Unit: "1",
		Formula: "rule: min(wgm, grid_n) columns of tiles, plus wgm per wrap, clamped to the grid",
		Doc:     "width of the super group",
		Source:  portReport + " §3.3, Algorithm 5; the clamp from AMD Origami",
	}, func(b *breakdown) float64 { return float64(b.mem.groupTileN) }},
	{arch.Term{
		Name: "l2_tile_m", Unit: "1",
		Formula: "rule: l2_group_m, the longer side reduced by one until one K step of the super group fits" +
			" l2_bytes",
		Doc:    "height of the super group in the L2",
		Source: portReport + " §3.3, Algorithm 5",
	}, func(b *breakdown) float64 { return float64(b.mem.tileM) }},
	{arch.Term{
		Name: "l2_tile_n", Unit: "1",
		Formula: "rule: l2_group_n, the longer side reduced by one until one K step of the super group fits" +
			" l2_bytes",
		Doc:    "width of the super group in the L2",
		Source: portReport + " §3.3, Algorithm 5",
	}, func(b *breakdown) float64 { return float64(b.mem.tileN) }},
	{arch.Term{
		Name: "uncached_a", Unit: "B",
		Formula: "l2_tile_m * block_m * block_k * element_bytes",
		Doc:     "distinct bytes of A in the super group",
		Source:  portReport + " §3.3, Algorithm 5",
	}, func(b *breakdown) float64 { return float64(b.uncachedA) }},
	{arch.Term{
		Name: "uncached_b", Unit: "B",
		Formula: "l2_tile_n * block_k * block_n * element_bytes",
		Doc:     "distinct bytes of B in the super group",
		Source:  portReport + " §3.3, Algorithm 5",
	}, func(b *breakdown) float64 { return float64(b.uncachedB) }},
	{arch.Term{
		Name: "working_set", Unit: "B",
		Formula: "(grid_m * block_m * block_k + grid_n * block_k * block_n) * element_bytes",
		Doc:     "one K step of the padded grid",
		Source:  portReport + " §3.3 and Appendix A, global cap check",
	}, func(b *breakdown) float64 { return float64(b.mem.gridStep) }},
	{arch.Term{
		Name: "l2_hit", Unit: "1",
		Formula: "min((uncached_a * l2_tile_n + uncached_b * l2_tile_m - (uncached_a + uncached_b)) /" +
			" (uncached_a * l2_tile_n + uncached_b * l2_tile_m), when(working_set > l2_bytes," +
			" l2_hit_cap, 1))",
		Doc:    "share of the loads that the L2 serves",
		Source: portReport + " §3.3, Algorithm 5",
	}, func(b *breakdown) float64 { return b.mem.hit }},
	// Memory latency of one K step.
	{arch.Term{
		Name: "load_a", Unit: "B",
		Formula: "cdiv(block_m * block_k * element_bytes, line_bytes) * line_bytes",
		Doc:     "bytes of A per SM",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return float64(b.loadA) }},
	{arch.Term{
		Name: "load_b", Unit: "B",
		Formula: "cdiv(block_k * block_n * element_bytes, line_bytes) * line_bytes",
		Doc:     "bytes of B per SM",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return float64(b.loadB) }},
	{arch.Term{
		Name: "per_sm_load", Unit: "B",
		Formula: "max(load_a + load_b, line_bytes)",
		Doc:     "bytes per SM",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return float64(b.mem.perSM) }},
	{arch.Term{
		Name: "total_load", Unit: "B",
		Formula: "per_sm_load * active_sms",
		Doc:     "bytes over all SMs",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return b.mem.load }},
	{arch.Term{
		Name: "l2_bw_fraction", Unit: "1",
		Formula: "active_sms / num_sms",
		Doc:     "share of the L2 bandwidth in reach",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return b.mem.l2Fraction }},
	{arch.Term{
		Name: "limited_l2_bw", Unit: "B/cycle",
		Formula: "l2_perf_ratio * l2_bw_fraction",
		Doc:     "L2 bandwidth of the active SMs",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return b.mem.l2Bandwidth }},
	{arch.Term{
		Name: "l_l2", Unit: "cycles", Kind: arch.KindStep,
		Formula: "total_load / limited_l2_bw",
		Doc:     "L2 transfer of one K step",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return b.mem.l2 }},
	{arch.Term{
		Name: "dram_bw_fraction", Unit: "1",
		Formula: "min(1, dram_bw_coeff * active_sms)",
		Doc:     "share of the DRAM bandwidth in reach",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return b.mem.dramFraction }},
	{arch.Term{
		Name: "load_dram", Unit: "B",
		Formula: "(1 - l2_hit) * total_load",
		Doc:     "bytes that miss the L2",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return b.mem.missed }},
	{arch.Term{
		Name: "limited_dram_bw", Unit: "B/cycle",
		Formula: "dram_perf_ratio * dram_bw_fraction",
		Doc:     "DRAM bandwidth of the active SMs",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return b.mem.dramBandwidth }},
	{arch.Term{
		Name: "l_dram", Unit: "cycles", Kind: arch.KindStep,
		Formula: "when(load_dram > 0, load_dram / limited_dram_bw + hbm_latency_penalty, 0)",
		Doc:     "DRAM transfer and latency of one K step",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return b.mem.dram }},
	{arch.Term{
		Name: "l_mem", Unit: "cycles",
		Formula: "max(l_l2, l_dram)",
		Doc:     "memory side of one K step",
		Source:  portReport + " §3.4, Algorithm 7",
	}, func(b *breakdown) float64 { return b.mem.latency }},
	// Utilization.
	{arch.Term{
		Name: "utilization", Unit: "1",
		Formula: "m * n * k / (grid_m * block_m * grid_n * block_n * cdiv(k, block_k) * block_k)",
		Doc:     "useful share of the padded work",
		Source:  portReport + " §3.5",
	}, func(b *breakdown) float64 { return b.utilization }},
	{arch.Term{
		Name: "penalty", Unit: "1",
		Formula: "1 / utilization",
		Doc:     "factor for the padding",
		Source:  portReport + " §3.6, Algorithm 8",
	}, func(b *breakdown) float64 { return b.penalty }},
	// One tile.
	{arch.Term{
		Name: "l_prologue", Unit: "cycles",
		Formula: "prologue_factor * l_mem * penalty * pow(occupancy_discount, occupancy)",
		Doc:     "pipeline fill",
		Source:  portReport + " §3.6, Algorithm 8",
	}, func(b *breakdown) float64 { return b.prologue }},
	{arch.Term{
		Name: "output_total", Unit: "B",
		Formula: "active_sms * block_m * block_n * output_bytes",
		Doc:     "output of the active SMs",
		Source:  portReport + " §3.6, Algorithm 8",
	}, func(b *breakdown) float64 { return float64(b.output) }},
	{arch.Term{
		Name: "l_epilogue", Unit: "cycles",
		Formula: "(output_total / limited_dram_bw + l_compute * penalty) * pow(occupancy_discount, occupancy)",
		Doc:     "output write and one compute step",
		Source:  portReport + " §3.6, Algorithm 8",
	}, func(b *breakdown) float64 { return b.epilogue }},
	{arch.Term{
		Name: "num_iter", Unit: "1",
		Formula: "max(cdiv(k, block_k) - 1, 1)",
		Doc:     "steady-state K steps",
		Source:  portReport + " §3.6, Algorithm 8",
	}, func(b *breakdown) float64 { return float64(b.iterations) }},
	{arch.Term{
		Name: "l_k_padding", Unit: "cycles",
		Formula: "mod(k, block_k) / k * k_padding_cycles",
		Doc:     "penalty for a partial K step",
		Source:  portReport + " §3.6, Algorithm 8",
	}, func(b *breakdown) float64 { return b.padding }},
	{arch.Term{
		Name: "l_steady", Unit: "cycles",
		Formula: "max(l_compute, l_mem) * penalty",
		Doc:     "one steady-state K step",
		Source:  portReport + " §3.6, Algorithm 8",
	}, func(b *breakdown) float64 { return b.steady }},
	{arch.Term{
		Name: "l_tile", Unit: "cycles",
		Formula: "l_steady * num_iter + l_prologue + l_epilogue * epilogue_count + setup_cycles +" +
			" loop_overhead_cycles * num_iter + l_k_padding",
		Doc:    "one wave",
		Source: portReport + " §3.6, Algorithm 8",
	}, func(b *breakdown) float64 { return b.tile }},
	// The parts of the total.
	{arch.Term{
		Name: "steady_state", Unit: "cycles", Kind: arch.KindShare,
		Formula: "l_steady * num_iter * num_waves",
		Doc:     "K loop",
		Source:  portReport + " §3.6-3.7",
	}, func(b *breakdown) float64 { return b.steady * float64(b.iterations) * float64(b.waves) }},
	{arch.Term{
		Name: "prologue", Unit: "cycles", Kind: arch.KindShare,
		Formula: "l_prologue * num_waves",
		Doc:     "pipeline fills",
		Source:  portReport + " §3.6-3.7",
	}, func(b *breakdown) float64 { return b.prologue * float64(b.waves) }},
	{arch.Term{
		Name: "epilogue", Unit: "cycles", Kind: arch.KindShare,
		Formula: "l_epilogue * epilogue_count * num_waves",
		Doc:     "output",
		Source:  portReport + " §3.6-3.7",
	}, func(b *breakdown) float64 { return b.epilogue * epilogueCount * float64(b.waves) }},
	{arch.Term{
		Name: "loop_overhead", Unit: "cycles", Kind: arch.KindShare,
		Formula: "loop_overhead_cycles * num_iter * num_waves",
		Doc:     "addressing and barriers of the K loop",
		Source:  portReport + " §3.6-3.7",
	}, func(b *breakdown) float64 { return loopOverhead * float64(b.iterations) * float64(b.waves) }},
	{arch.Term{
		Name: "k_padding", Unit: "cycles", Kind: arch.KindShare,
		Formula: "l_k_padding * num_waves",
		Doc:     "partial K steps",
		Source:  portReport + " §3.6-3.7",
	}, func(b *breakdown) float64 { return b.padding * float64(b.waves) }},
	{arch.Term{
		Name: "setup", Unit: "cycles", Kind: arch.KindShare,
		Formula: "setup_cycles * num_waves",
		Doc:     "CTA launches",
		Source:  portReport + " §3.6-3.7",
	}, func(b *breakdown) float64 { return setupCycles * float64(b.waves) }},
	{arch.Term{
		Name: "l_total", Unit: "cycles", Kind: arch.KindTotal,
		Formula: "l_tile * num_waves",
		Doc:     "predicted total",
		Source:  portReport + " §3.7, Algorithm 9",
	}, func(b *breakdown) float64 { return b.total }},
}
