// Package terms is the analytical model of tritonBLAS's NVIDIA port as a table: a row per term, with the formula that
// computes it. internal/gen turns the formulas into Go, and `origami explain` prints them.
package terms

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// The published sources of the equations.
const (
	portReport = "tritonBLAS NVIDIA port report (2026-02-12)"
	fromAMD    = portReport + " §3.6, C.4; AMD Origami"
	fromMI300X = fromAMD + ", fitted on MI300X"
	ptxISA     = "PTX ISA, mma.sync.aligned.m16n8k16"
)

// Units.
const one, bytes, cycles, perCycle = "1", "B", "cycles", "B/cycle"

// Constants are the empirical numbers of the model, which tritonBLAS's NVIDIA port takes unchanged from AMD Origami
// (Appendix C.4 of its report).
var Constants = []arch.Constant{
	constant("mma_m", gpu.MMAM, one, ptxISA, "rows of the matrix instruction"),
	constant("mma_n", gpu.MMAN, one, ptxISA, "columns of the matrix instruction"),
	constant("mma_k", gpu.MMAK, one, ptxISA, "depth of the matrix instruction"),
	constant("line_bytes", gpu.LineBytes, bytes, portReport+" §3.4, C.4; AMD Origami",
		"loads are rounded to cache lines; one line is the least"),
	constant("l2_hit_cap", 0.5, one, portReport+" §3.3, C.4",
		"hit rate when one K step of the grid exceeds the L2"),
	constant("occupancy", 1, one, portReport+" Appendix A", "CTAs per SM that the discount assumes"),
	constant("occupancy_discount", 0.95, one, fromMI300X,
		"on prologue and epilogue, to the power of the occupancy"),
	constant("prologue_factor", 1.5, one, fromMI300X, "memory latencies that a pipeline fill takes"),
	constant("epilogue_count", 2, one, fromMI300X, "times the epilogue counts"),
	constant("loop_overhead_cycles", 500, cycles, fromMI300X, "per K iteration"),
	constant("k_padding_cycles", 50000, cycles, fromMI300X, "times the share of K in a partial step"),
	constant("setup_cycles", 1, cycles, fromAMD, "launch of a CTA"),
}

func constant(name string, value float64, unit, source, doc string) arch.Constant {
	return arch.Constant{Name: name, Value: value, Unit: unit, Source: source, Doc: doc}
}

// What the model's own code computes: from the grid of output tiles, and from the whole kernel.
const (
	OfGrid   = "grid"
	OfKernel = "kernel"
)

// Groups are the launch-order groups that phase two tries. footprints has a term for each.
var Groups = [...]int{1, 2, 3, 4, 5, 6, 8, 16}

// Terms is the model, in the order in which it computes.
var Terms = slices.Concat(
	from(" §3.2, Algorithm 4",
		row("grid_m", one, "cdiv(m, block_m)", "rows of output tiles").As(arch.CommonTilesM),
		row("grid_n", one, "cdiv(n, block_n)", "columns of output tiles").As(arch.CommonTilesN),
		row("total_tiles", one, "grid_m * grid_n * batch", "output tiles"),
		row("active_sms", one, "min(total_tiles, num_sms)", "SMs that have a tile").As(arch.CommonActiveUnits),
		row("num_waves", one, "cdiv(total_tiles, num_sms)", "rounds of tiles over the SMs"),
	),
	from(" §3.1, Algorithm 3",
		row("n_mma", one, "cdiv(block_m, mma_m) * cdiv(block_n, mma_n) * cdiv(block_k, mma_k)",
			"matrix instructions per K step of a tile"),
		row("l_mi", cycles, "mma_latency / tensor_cores_per_sm", "cycles per matrix instruction"),
		row("l_compute", cycles, "l_mi * n_mma",
			"matrix instructions of one K step").Step().As(arch.CommonComputeStep),
	),
	from(" §2.2",
		row("wgm", one, "ceil(sqrt(num_sms))", "launch-order group that phase one assumes"),
	),
	from(" §3.3, Algorithm 5; the clamp from AMD Origami",
		input("l2_group_m", one, OfGrid,
			"cdiv(active_sms, l2_group_n) rows of tiles, wrapped to further columns above grid_m, clamped to the "+
				"grid", "height of the super group"),
		input("l2_group_n", one, OfGrid,
			"min(wgm, grid_n) columns of tiles, plus wgm per wrap, clamped to the grid",
			"width of the super group"),
	),
	from(" §3.3, Algorithm 5",
		input("l2_tile_m", one, OfKernel,
			"l2_group_m, the longer side reduced by one until one K step of the super group fits l2_bytes",
			"height of the super group in the L2"),
		input("l2_tile_n", one, OfKernel,
			"l2_group_n, the longer side reduced by one until one K step of the super group fits l2_bytes",
			"width of the super group in the L2"),
		row("uncached_a", bytes, "l2_tile_m * block_m * block_k * element_bytes",
			"distinct bytes of A in the super group"),
		row("uncached_b", bytes, "l2_tile_n * block_k * block_n * element_bytes",
			"distinct bytes of B in the super group"),
	),
	from(" §3.3 and Appendix A, global cap check",
		row("working_set", bytes, "(grid_m * block_m * block_k + grid_n * block_k * block_n) * element_bytes",
			"one K step of the padded grid"),
	),
	from(" §3.3, Algorithm 5",
		row("l2_hit", one,
			"min((uncached_a * l2_tile_n + uncached_b * l2_tile_m - (uncached_a + uncached_b)) / (uncached_a * "+
				"l2_tile_n + uncached_b * l2_tile_m), when(working_set > l2_bytes, l2_hit_cap, 1))",
			"share of the loads that the L2 serves").As(arch.CommonL2Hit),
	),
	from(" §3.4, Algorithm 7",
		row("load_a", bytes, "cdiv(block_m * block_k * element_bytes, line_bytes) * line_bytes",
			"bytes of A per SM"),
		row("load_b", bytes, "cdiv(block_k * block_n * element_bytes, line_bytes) * line_bytes",
			"bytes of B per SM"),
		row("per_sm_load", bytes, "max(load_a + load_b, line_bytes)",
			"bytes per SM").As(arch.CommonLoadPerUnit),
		row("total_load", bytes, "per_sm_load * active_sms", "bytes over all SMs").As(arch.CommonL2Traffic),
		row("l2_bw_fraction", one, "active_sms / num_sms", "share of the L2 bandwidth in reach"),
		row("limited_l2_bw", perCycle, "l2_perf_ratio * l2_bw_fraction", "L2 bandwidth of the active SMs"),
		row("l_l2", cycles, "total_load / limited_l2_bw",
			"L2 transfer of one K step").Step().As(arch.CommonL2Step),
		row("dram_bw_fraction", one, "min(1, dram_bw_coeff * active_sms)",
			"share of the DRAM bandwidth in reach").As(arch.CommonDRAMFraction),
		row("load_dram", bytes, "(1 - l2_hit) * total_load",
			"bytes that miss the L2").As(arch.CommonDRAMTraffic),
		row("limited_dram_bw", perCycle, "dram_perf_ratio * dram_bw_fraction",
			"DRAM bandwidth of the active SMs"),
		row("l_dram", cycles, "when(load_dram > 0, load_dram / limited_dram_bw + hbm_latency_penalty, 0)",
			"DRAM transfer and latency of one K step").Step().As(arch.CommonDRAMStep),
		row("l_mem", cycles, "max(l_l2, l_dram)", "memory side of one K step").As(arch.CommonMemoryStep),
	),
	from(" §3.5",
		row("utilization", one,
			"m * n * k / (grid_m * block_m * grid_n * block_n * cdiv(k, block_k) * block_k)",
			"useful share of the padded work").Exactly(OfKernel),
	),
	from(" §3.6, Algorithm 8",
		row("penalty", one, "1 / utilization", "factor for the padding").As(arch.CommonPenalty),
		row("l_prologue", cycles, "prologue_factor * l_mem * penalty * pow(occupancy_discount, occupancy)",
			"pipeline fill"),
		row("output_total", bytes, "active_sms * block_m * block_n * output_bytes",
			"output of the active SMs"),
		row("l_epilogue", cycles,
			"(output_total / limited_dram_bw + l_compute * penalty) * pow(occupancy_discount, occupancy)",
			"output write and one compute step"),
		row("num_iter", one, "max(cdiv(k, block_k) - 1, 1)", "steady-state K steps"),
		row("l_k_padding", cycles, "mod(k, block_k) / k * k_padding_cycles", "penalty for a partial K step"),
		row("l_steady", cycles, "max(l_compute, l_mem) * penalty",
			"one steady-state K step").As(arch.CommonKStep),
		row("l_tile", cycles,
			"l_steady * num_iter + l_prologue + l_epilogue * epilogue_count + setup_cycles + loop_overhead_cycles "+
				"* num_iter + l_k_padding", "one wave").As(arch.CommonWave),
	),
	from(" §2.2, phase 2", footprints()...),
	from(" §3.6-3.7",
		row("steady_state", cycles, "l_steady * num_iter * num_waves", "K loop").Share(),
		row("prologue", cycles, "l_prologue * num_waves", "pipeline fills").Share(),
		row("epilogue", cycles, "l_epilogue * epilogue_count * num_waves", "output").Share(),
		row("loop_overhead", cycles, "loop_overhead_cycles * num_iter * num_waves",
			"addressing and barriers of the K loop").Share(),
		row("k_padding", cycles, "l_k_padding * num_waves", "partial K steps").Share(),
		row("setup", cycles, "setup_cycles * num_waves", "CTA launches").Share(),
	),
	from(" §3.7, Algorithm 9",
		row("l_total", cycles, "l_tile * num_waves", "predicted total").Total(),
	),
)

// footprints are what phase two compares: the footprint of the first wave for each group. They enter no total.
func footprints() []model.Term {
	list := []model.Term{row("first_wave", one, "min(grid_m * grid_n, num_sms)", "tiles of the first wave")}
	for _, g := range Groups {
		list = append(list, row(fmt.Sprintf("footprint_%d", g), one,
			strings.ReplaceAll("block_m * (floor(first_wave / (G * grid_n)) * G + min(mod(first_wave, G * grid_n), "+
				"min(G, grid_m - floor(first_wave / (G * grid_n)) * G))) + block_n * when(first_wave >= G * grid_n, grid_n, "+
				"cdiv(first_wave, min(G, grid_m)))", "G", strconv.Itoa(g)),
			fmt.Sprintf("distinct rows of A and columns of B that the first wave loads with group_m %d", g)))
	}
	return list
}

// from describes terms of a section of the port's report.
func from(section string, terms ...model.Term) []model.Term {
	return model.From(portReport+section, terms...)
}

var row, input = model.Row, model.Input
