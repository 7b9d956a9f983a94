// Package terms is the model tensile as a table: a row per term, with the formula that computes it. The
// formulas are the only text of the model: internal/gen turns them into Go, and `origami explain` prints them.
//
// To add a term, add a row. If it needs an empirical number, add that to quantities.go. Then run `make generate`.
package terms

import (
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
)

// Page documents the terms.
const Page = "docs/model-tensile.md"

const (
	one    = "1"
	bytes  = "B"
	cycles = "cycles"
)

// OfKernel are the inputs that are set from the configuration and from the type of the operands.
const OfKernel = "kernel"

// OfRelease is the input that is set from the sizes of the problem.
const OfRelease = "release"

var row, input = model.Row, model.Input

// Terms is the model, in the order in which it computes.
var Terms = model.Table(kernelTerms, stepTerms, gridTerms, trafficTerms, wave("full", "workgroups_per_cu", "num_cus"),
	wave("tail", "tail_count", "tail_cus"), wave("dealt", "1", "num_cus"), totalTerms)

const fromFamily = "from the kernel family"

// What fits on a CU: registers and LDS limit the work-groups.
var kernelTerms = []model.Term{
	input("rate", "FLOP/cycle", OfKernel,
		"peak rate of the type ÷ (num_cus * clock), of the data sheet; half of it for fp16 with FMA", "peak of one CU"),
	input("energy_scale", one, OfKernel, "(peak_fp16 ÷ the peak of the type) to the power of 3/4",
		"energy of a FLOP ÷ that of a 16-bit FLOP"),
	input("waves_m", one, OfKernel, fromFamily, "waves along the rows of a tile"),
	input("waves_n", one, OfKernel, fromFamily, "waves along the columns of a tile"),
	input("thread_m", one, OfKernel, fromFamily, "rows of a thread's tile with FMA, 0 with matrix instructions"),
	input("thread_n", one, OfKernel, fromFamily, "columns of that tile"),
	row("tile_bytes", bytes, "(block_m + block_n) * block_k * element_bytes",
		"operands of a step").As(arch.CommonLoadPerUnit),
	row("accumulators", one, "block_m * block_n * local_split / (wave_lanes * num_warps)",
		"registers of a lane for sums"),
	row("registers", one, `accumulators + 2 * when(fma > 0, thread_m + thread_n,
				(block_m / waves_m + block_n / waves_n) * instruction_bytes / (4 * wave_lanes))
			+ tile_bytes / (4 * wave_lanes * num_warps) + base_registers`,
		"registers of a lane: sums, operands from LDS in two buffers, operands on their way to LDS, addresses"),
	row("workgroups_per_cu", one, `max(1, min(floor(lds_bytes / (num_stages * tile_bytes)),
			floor(simds * floor(registers_per_cu / (simds * wave_lanes)
				/ (ceil(registers / register_granule) * register_granule)) / num_warps), workgroups_limit))`,
		"work-groups that fit on a CU").As(arch.CommonCTAsPerUnit),
}

// One step of one work-group, at each resource of its CU.
var stepTerms = []model.Term{
	row("matrix_step", cycles, "2 * block_m * block_n * block_k / (rate * compute_share)",
		"matrix cores, or FMA of the vector units").As(arch.CommonComputeStep).Step(),
	row("lds_step", cycles, `when(fma > 0, wave_lanes * num_warps * (thread_m + thread_n) / local_split,
				block_m * waves_n + block_n * waves_m) * block_k * element_bytes / lds_read_rate
			+ tile_bytes / lds_write_rate`, "LDS: operands out to the waves, and in"),
	row("line_traffic", bytes, `line_bytes * (
			when(trans_a > 0, block_k * ceil(block_m * element_bytes / line_bytes),
				block_m * ceil(block_k * element_bytes / line_bytes))
			+ when(trans_b > 0, block_n * ceil(block_k * element_bytes / line_bytes),
				block_k * ceil(block_n * element_bytes / line_bytes)))`, "cache lines that the operands of a step touch"),
	row("load_step", cycles, "line_traffic / load_rate", "L1 cache"),
	row("chain_step", cycles, `matrix_step * max(1, simds / num_warps) + step_latency
			+ when(fma > 0, fma_latency * block_k / local_split, 0)`,
		"one work-group alone: its waves use as many SIMDs as they are"),
}

// The grid, and the waves in which the CUs compute it.
var gridTerms = []model.Term{
	row("tiles_m", one, "cdiv(m, block_m)", "rows of output tiles").As(arch.CommonTilesM),
	row("tiles_n", one, "cdiv(n, block_n)", "columns of output tiles").As(arch.CommonTilesN),
	row("tiles", one, "tiles_m * tiles_n * batch", "output tiles"),
	row("steps", one, "cdiv(cdiv(k, block_k), split_k)", "steps of a work-group"),
	row("workgroups", one, "tiles * split_k", "work-groups of the launch"),
	row("waves", one, "workgroups / (workgroups_per_cu * num_cus)",
		"work-groups ÷ those that fit on the device").As(arch.CommonWaves),
	row("full_waves", one, "floor(waves)", "waves that fill the device"),
	row("rest", one, "workgroups - full_waves * workgroups_per_cu * num_cus",
		"work-groups of the last wave, if it does not fill the device"),
	row("tail_count", one, "max(1, ceil(rest / num_cus))", "of them on the busiest CU"),
	row("tail_cus", one, "max(1, min(rest, num_cus))", "CUs that work on them"),
	row("parts", one, "max(1, floor(num_cus / tiles))",
		"work-groups among which stream-K deals the steps of a tile, if there are fewer tiles than CUs"),
	row("active", one, "min(workgroups, num_cus)", "CUs at work in the first wave").As(arch.CommonActiveUnits),
	row("group", one, "when(group_m > 0, group_m, default_group)",
		"rows of tiles that are walked before the next column (work-group mapping)"),
	row("far_rate", "B/cycle",
		"when(mall_rate > 0, mall_rate * num_xcds * mall_share, dram_bandwidth / clock * dram_share)",
		"what the caches of all dies get from behind them: MALL, or DRAM"),
}

// What the L2 caches load. The work-groups that a die runs at a time form a rectangle of tiles. A step loads each row
// of it from A once, and each column from B.
var trafficTerms = []model.Term{
	row("tiles_per_die", one, "max(1, min(workgroups, workgroups_per_cu * num_cus) / (num_xcds * split_k))",
		"tiles that a die works on at a time"),
	row("rows", one, "min(group, tiles_m)", "rows of tiles of the rectangle"),
	row("columns", one, "min(max(1, tiles_per_die / rows), tiles_n)", "columns of tiles of the rectangle"),
	row("l2_misses", bytes, "tiles * (block_m / columns + block_n / rows) * k * element_bytes",
		"operands that the L2 caches load"),
	row("far", cycles, "l2_misses / far_rate", "MALL for them, or DRAM without one"),
}

// waveTerms are those of one wave. wave_ stands for its name.
var waveTerms = []model.Term{
	row("wave_running", one, "wave_count * wave_cus", "work-groups that run at a time"),
	row("wave_l2_step", cycles, "wave_running * line_traffic / (l2_rate * num_xcds * l2_share)", "L2 caches"),
	row("wave_power_step", cycles, `wave_running * (2 * block_m * block_n * block_k * (energy_per_flop * energy_scale)
			+ tile_bytes * energy_per_byte) / tdp * clock`, "least time of a step within the power limit of the board"),
	row("wave_step", cycles, `max(sqrt(sqrt(pow(wave_count * matrix_step, 4) + pow(wave_count * lds_step, 4)
				+ pow(wave_count * load_step, 4) + pow(wave_l2_step, 4)
				+ pow(wave_power_step, 4))), chain_step, load_latency / steps_ahead)`,
		"a step: resources as the fourth root of the sum of fourth powers"),
	row("wave_end", cycles, `prologue_cycles + load_latency + epilogue_latency
			+ block_m * block_n * when(split_k > 1, accumulator_bytes, output_bytes)
				* max(wave_count / store_rate, wave_running / (far_rate * store_share))
			+ wave_count * (local_split - 1) * (block_m * block_n * accumulator_bytes)
				* (1 / lds_read_rate + 1 / lds_write_rate)`,
		"start and output of the work-groups, through their CU and all together; sums of waves that share a tile"),
}

// wave returns the terms of a wave with count work-groups on each of cus CUs.
func wave(name, count, cus string) []model.Term {
	out := make([]model.Term, len(waveTerms))
	replace := strings.NewReplacer("wave_count", count, "wave_cus", cus, "wave_lanes", "wave_lanes", "wave_", name+"_")
	for i, t := range waveTerms {
		t.Name, t.Formula, t.Doc = replace.Replace(t.Name), replace.Replace(t.Formula), t.Doc+", "+name+" wave"
		if name == "full" {
			switch t.Name {
			case "full_l2_step":
				t.Kind, t.Common = arch.KindStep, arch.CommonL2Step
			case "full_step":
				t.Common = arch.CommonKStep
			}
		}
		out[i] = t
	}
	return out
}

var totalTerms = []model.Term{
	row("wave_loops", cycles, "steps * (full_waves * full_step + when(rest > 0, tail_step, 0))", "steps of all waves"),
	row("hidden", one, "end_overlap * (1 - 1 / workgroups_per_cu)",
		"share of starts and outputs behind which other work-groups of the CU compute"),
	row("last_end", cycles, "when(rest > 0, tail_end, 0)", "start and output of the last wave"),
	row("wave_ends", cycles, `hidden * max(when(full_waves > 0, full_end, 0), last_end)
			+ (1 - hidden) * (full_waves * full_end + last_end)`, "starts and outputs of all waves"),
	row("even_loops", cycles, "when(tiles < num_cus, cdiv(steps, parts) * dealt_step, waves * steps * full_step)",
		"steps of stream-K, which deals them evenly to all CUs"),
	row("even_ends", cycles, `fixup_cycles
			+ when(tiles < num_cus, dealt_end, (hidden + (1 - hidden) * ceil(waves)) * full_end)`,
		"starts and outputs of stream-K, and the sums of tiles that CUs share"),
	row("even", one, "when(stream_k > 0, when(even_loops + even_ends < wave_loops + wave_ends, 1, 0), 0)",
		"1 if the steps are dealt evenly: with stream-K, if that is faster"),
	row("recorded_loop", cycles, "sqrt(sqrt(pow(when(even > 0, even_loops, wave_loops), 4) + pow(far, 4)))",
		"steps, with what the L2 caches wait for"),
	row("recorded_fill", cycles, "when(even > 0, even_ends, wave_ends)", "starts and outputs of work-groups"),
	row("dram_total", bytes, "batch * ((m * k + k * n) * element_bytes + m * n * output_bytes)",
		"operands and output, each once").As(arch.CommonDRAMTotal),
	row("requested", bytes, "workgroups * steps * tile_bytes + batch * m * n * output_bytes",
		"what CUs ask global memory for: operands of all tiles, output").As(arch.CommonRequested),
	row("l2_total", bytes, "workgroups * steps * line_traffic + batch * m * n * output_bytes",
		"through the L2 caches, in whole cache lines").As(arch.CommonL2Total),
	row("lds_total", bytes,
		`workgroups * steps * when(fma > 0, wave_lanes * num_warps * (thread_m + thread_n) / local_split,
			block_m * waves_n + block_n * waves_m) * block_k * element_bytes`,
		"that waves read of LDS").As(arch.CommonSharedTotal),
	row("dram_floor", cycles, "dram_total / (dram_bandwidth * dram_share) * clock", "least time of DRAM for them"),
	input("release", one, OfRelease, "what the model library predicts ÷ the fastest of all kernels by the terms above; 1 "+
		"for the recorded release", "the current libraries ÷ the recorded ones, whatever the kernel"),
	row("launch", cycles, "release * (launch_seconds * clock)", "launch of the kernel").Share(),
	row("loop", cycles, "release * recorded_loop", "steps, with what the L2 caches wait for").Share(),
	row("fill", cycles, "release * recorded_fill", "starts and outputs of work-groups").Share(),
	row("limits", cycles, "release * max(0, dram_floor - (recorded_loop + recorded_fill))",
		"what DRAM's least time adds").Share(),
	row("reduction", cycles, `release * when(split_k > 1, reduce_seconds * clock
			+ batch * m * n * (2 * accumulator_bytes * split_k + output_bytes) / far_rate, 0)`,
		"adding up the parts of a split K: another launch, which reads them and writes the output").Share(),
	row("total", cycles, "launch + loop + fill + limits + reduction", "predicted total").Total(),
}
