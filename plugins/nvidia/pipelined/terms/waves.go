package terms

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
)

// DRAM delivers every operand once, and again what the L2 could not keep until it was needed again. A group of rows of
// tiles sweeps over all columns. It reads its part of A once per sweep of what runs at a time, and all of B.
var trafficTerms = []model.Term{
	row("sweeps", one, "max(1, grid_n * group / min(ctas, sms * ctas_per_sm))",
		"rounds that a group of rows takes to sweep over all columns"),
	row("row_groups", one, "max(1, ceil(grid_m / group) * min(1, grid_n * group / min(ctas, sms * ctas_per_sm)))",
		"times that all columns are swept over; groups that run at the same time share a sweep"),
	row("miss_a", one, "1 - min(1, l2_bytes * l2_usable_share / (group * block_m * k * element_bytes))",
		"share of a group's rows of A that the L2 does not keep"),
	row("miss_b", one, `1 - min(1, l2_bytes * l2_usable_share
			/ ((grid_m * block_m + grid_n * block_n) * k * element_bytes))`,
		"share of B that the L2 does not keep from one group to the next"),
	row("dram_bytes", bytes, `batch * k * element_bytes
			* (m * (1 + (sweeps - 1) * miss_a) + n * (1 + (row_groups - 1) * miss_b))`, "operands from DRAM"),
	row("dram_share", one, "min(1, dram_bytes / (ctas * steps * step_bytes))", "share of the loads that DRAM serves"),
	row("l2_hit", one, "1 - dram_share", "share of the loads that the L2 serves").As(arch.CommonL2Hit),
	row("repeated", bytes, `repeat_m * (block_m - m / grid_m) / when(wraps > 0, m, 1)
				* when(trans_a > 0, block_k * element_bytes, `+wholeLines+`)
			+ repeat_n * (block_n - n / grid_n) / when(wraps > 0, n, 1)
				* when(trans_b > 0, `+wholeLines+`, block_k * element_bytes)`,
		"of rows and columns of a tile beyond the matrix ÷ those of the matrix that they load again, on average; "+
			"in whole cache lines along K").If("repeat_m + repeat_n > 0"),
	row("hidden", one, "when(resident > 0, 1, fill_overlap * (1 - 1 / ctas_per_sm))",
		"share of the start of a wave behind the first that other CTAs of the SM hide, or copies ahead"),
	row("dram_latency", cycles, "hbm_latency_penalty * dram_latency_load",
		"latency of a copy while DRAM is idle; SMs that share a line wait for the one that fetches it"),
	row("idle_latency", cycles, "dram_latency + copy_latency",
		"from the start of a K step to the arrival of its copies, while DRAM is idle"),
	row("dram_queue", cycles, "hbm_latency_penalty * dram_queue_load",
		"what the latency grows by while DRAM is busy all the time"),
	row("l2_queue", cycles, "l2_queue_cycles", "what it grows by while the L2 is busy all the time").
		If("1 - resident > 0"),
}

// wholeLines are the bytes of the cache lines that a row along K touches.
const wholeLines = "ceil(block_k * element_bytes / line_bytes) * line_bytes"

// askedOfL2 are the bytes that one CTA asks the L2 for in a K step, with what rows that begin within a sector cost.
const askedOfL2 = `when(resident > 0, step_bytes + l2_crossing * (offset_a * shared_a + offset_b * shared_b),
			step_bytes * (1 + broken_lines / tile_lines))`

// deviceTerms are the times of a K step at what all SMs share, and all resources together.
var deviceTerms = []model.Term{
	row("coalescing", one,
		"when(resident > 0, wave_coalescing, when(ctas > sms * ctas_per_sm, l2_coalescing, wave_coalescing))",
		"requests of SMs ÷ deliveries of the L2: more in a launch of a single wave, whose CTAs start together. A resident "+
			"grid is one"),
	row("l2_step", cycles, "active * ("+askedOfL2+" + missed_bytes) / (l2_perf_ratio * coalescing)",
		"one CTA's operands through the L2").As(arch.CommonL2Step),
	row("dram_step", cycles, "active * step_bytes * dram_share / (dram_perf_ratio * dram_efficiency)",
		"one CTA's share of DRAM").As(arch.CommonDRAMStep),
	row("repeat_step", cycles, "active * repeated / hot_line_bandwidth",
		"one CTA's share of the lines that are loaded again"),
	row("spill_l2_step", cycles, "active * spill_traffic / (l2_perf_ratio * spill_share)",
		"one CTA's local memory through the L2").Step(),
	row("busy", cycles4, `on_chip + pow(line_step, 4) + pow(l2_step, 4) + pow(dram_step, 4) + pow(repeat_step, 4)
			+ pow(spill_l2_step, 4)`, "a K step of one CTA at all resources, as a sum of fourth powers"),
}

// wave is one wave of CTAs. The full ones are alike, and the tail has what is left. The terms of a wave that does not
// exist are 0. One table serves both: in it, wave_ stands for the name, and wave_ctas for the CTAs per SM.
func wave(name, ctas string) []model.Term {
	count := name + "_waves"
	if name == "tail" {
		count = ctas
	}
	rename := strings.NewReplacer("wave_ctas", ctas, "wave_", name+"_")
	out := slices.Clone(waveTerms)
	for i := range out {
		t := &out[i]
		when := count + " > 0"
		if t.When != "" { // the timing pass counts, and the wave exists
			when = "pass_counts * " + when
		}
		t.Name, t.Formula, t.When = rename.Replace(t.Name), rename.Replace(t.Formula), when
		if name != "full" {
			t.Common = "" // comparisons show one of each
		}
	}
	return out
}

// A resource that is shared adds up over the CTAs. Together, the resources take as long as the largest of them, with a
// smooth transition: the fourth root of the sum of the fourth powers.
var waveTerms = []model.Term{
	row("wave_spill_miss", one, `when(spill_traffic > 0,
			1 - 1 / sqrt(1 + pow(active * wave_ctas * spill_traffic / (2 * l2_bytes * l2_usable_share), 2)), 0)`,
		"share of the local memory of all SMs that the L2 does not keep: what exceeds it, with a smooth transition"),
	row("wave_spill_dram_step", cycles, "active * spill_traffic * wave_spill_miss / (dram_perf_ratio * spill_share)",
		"one CTA's local memory through DRAM"),
	row("wave_busy", cycles4, "pow(wave_ctas, 4) * (busy + pow(wave_spill_dram_step, 4))",
		"a K step of all CTAs of the SM, as a sum of fourth powers"),
	row("wave_throughput", cycles, "sqrt(sqrt(wave_busy))",
		"a K step of all CTAs of the SM: the largest of its resources, with a smooth transition"),
	row("wave_latency", cycles, `(idle_latency + sqrt(idle_latency * idle_latency
			+ 4 * (wave_ctas * (dram_queue * dram_step + l2_queue * l2_step) * steps_ahead))) / 2`,
		"from the start of a K step to the arrival of its copies, with DRAM and the L2 busy for what share of a step they "+
			"take"),
	row("wave_alone", cycles, `when(resident > 0, max(chain_step + turn_step, wave_latency / steps_ahead + read_step),
			sqrt(sqrt(sqrt(sqrt(sqrt(pow(pow(pow(chain_step + turn_step, 4), 4), 2)
				+ pow(pow(pow(wave_latency * arrival / steps_ahead + behind + read_step, 4), 4), 2))))))) + spill_step`,
		"a K step of one CTA: its instructions, or the latency of copies over the steps that they run ahead. The root of a "+
			"sum of 32nd powers is the longer, and up to 2 % more where both take as long"),
	row("wave_step", cycles, "sqrt(sqrt(sqrt(wave_busy * wave_busy + pow(wave_alone, 4) * pow(wave_alone, 4))))",
		"one K step: the eighth root of a sum of eighth powers, which is close to the longer of the two").
		As(arch.CommonKStep),
	row("wave_first_step", cycles, "max(wave_throughput, chain_step + turn_step + spill_step)",
		"one of the first K steps, whose copies were issued together: the fill has waited for them"),
	row("wave_fill", cycles, "prologue_cycles + wave_latency + wave_ctas * l2_step",
		"start of the CTAs and their first loads"),
	row("wave_loop", cycles, "min(steps, steps_ahead) * wave_first_step + max(steps - steps_ahead, 0) * wave_step",
		"K loop"),
	row("wave_epilogue", cycles, `wave_ctas * block_m * block_n
				* when(handover > 0,
					2 * accumulator_bytes / when(resident > 0, partial_bandwidth, epilogue_bandwidth) + output_cost / split_k,
					output_cost)
			+ wave_ctas * block_m * block_n * (max(apart / split_k, 1) - 1) * 2 * accumulator_bytes / partial_bandwidth
			+ wave_ctas * tensor_copy
			+ when(handover > 0, when(resident > 0, resident_arrival, arrival_latency), 0) + resident * resident_turn`,
		"output; sums that are handed over are written and, by the last CTA of the tile, read, as are those of leaves "+
			"that wait "+
			"for others of their CTA"),
	row("wave_paced", cycles, `when(wave_ctas > 1,
			chip_loop + (full_chip_loop - chip_loop) * min(1, (wave_ctas - 1) / max(timed_ctas - 1, 1)),
			one_loop + (chip_loop - one_loop) * (active / num_sms))`,
		"K loop at the paces of the timing pass, with a warm L2").If("pass_counts > 0"),
	row("wave_timed", cycles, `timed_fixed + max(max(steps - steps_ahead, 0) * (wave_latency / steps_ahead),
			sqrt(sqrt(pow(wave_paced, 4) + pow(steps * wave_ctas * dram_step, 4))))`,
		"the wave after the timing pass; a cold L2 adds the latency of copies and the time of DRAM").If("pass_counts > 0"),
}

// The total, and the shares of which it is the sum.
var totalTerms = []model.Term{
	input("evicted", cycles, OfProblem, "on Hopper, min(bytes, l2_bytes) ÷ (timing_evict · DRAM), less that of an H200",
		"what dirty lines of the L2 take to leave it, as between events, less what they take on an H200, whose times the "+
			"numbers were fitted to"),
	row("launch", cycles, "launch_seconds * clock + evicted", "launch of the kernel").Share(),
	row("fill", cycles, `hidden * max(full_fill, tail_fill) + (1 - hidden) * (full_waves * full_fill + tail_fill)`,
		"starts of CTAs and pipeline fills: behind the first, other CTAs of the SM work meanwhile").Share(),
	row("loop", cycles, "full_waves * full_loop + tail_loop", "K loops").Share(),
	row("epilogue", cycles, "full_waves * full_epilogue + tail_epilogue", "output, and the sums of a split K").Share(),
	row("all_waves", cycles,
		`when(pass_counts > 0,
			`+weighted("fill + loop + epilogue", "full_waves * full_timed + tail_timed")+`,
			fill + loop + epilogue)`, "all waves; where the timing pass counts, the geometric mean with what it predicts, "+
			"with a weight of 3/8: square roots have the same bits everywhere"),
	row("pass", cycles, "all_waves - (fill + loop + epilogue)",
		"what the timing pass changes").Share().If("pass_counts > 0"),
	row("power", cycles, `max(2 * ctas * block_m * block_n * steps * block_k * (16 / instruction_k)
			* (energy_share * energy_per_flop / (tdp * dynamic_share) * clock)
			- power_window * clock, 0)`,
		"least time within the power limit, 0 if tdp is unknown; an instruction takes the same energy with any type").
		If("tdp * (1 - fma) > 0"),
	row("dram_floor", cycles, "(dram_bytes + batch * m * n * output_bytes) / (dram_perf_ratio * dram_efficiency)",
		"least time of DRAM for operands and output"),
	row("compute_floor", cycles, "2 * batch * m * n * k * (clock / peak)",
		"least time at the peak rate: data sheets may give it for a clock below the boost clock"),
	row("reduction", cycles, `when(handover > 0,
			split_k * (when(resident > 0, resident_add, add_latency)
				+ block_m * block_n * accumulator_bytes / (line_rate * line_bytes)),
			reduce_launches * relaunch_seconds * clock
				+ batch * m * n * (split_k * accumulator_bytes + output_bytes) / reduce_bandwidth)`,
		"adding up the sums of a split K: launches, or the parts that the CTA that arrives last reads").Share().
		If("split_k > 1"),
	row("handed", cycles, `when(part > floor(part),
			1.5 * (min(2, 1 + part) * block_m * block_n * 2 * accumulator_bytes / partial_bandwidth + resident_arrival
				+ (1 + 1 / part) * (resident_add + block_m * block_n * accumulator_bytes / (line_rate * line_bytes))), 0)`,
		"the sums of parts of tiles: written, and read by the CTA that arrives last at a tile. 1.5 times the "+
			"hand-over of a split of K, found on h200-wgmma/tail/wgmma-lost").Share().If("shared_tiles > 0"),
	row("dram_total", bytes, `dram_bytes + batch * m * n * output_bytes + steps * (dram_perf_ratio * spill_share)
			* (full_waves * ctas_per_sm * full_spill_dram_step + tail_ctas * tail_spill_dram_step)`,
		"through DRAM: operands, output, local memory").As(arch.CommonDRAMTotal),
	row("partial_bytes", bytes, `2 * accumulator_bytes * split_k
			* when(handover > 0, ctas / split_k * block_m * block_n, batch * m * n)`,
		"sums of a split K, written and read").If("split_k > 1"),
	row("requested", bytes, `ctas * steps * (when(resident > 0,
				step_bytes + (sharers_a - 1) * shared_a + (sharers - 1) * shared_b, tile_bytes) + spill_traffic)
			+ partial_bytes + batch * m * n * output_bytes`,
		"what SMs ask global memory for: operands of all tiles, sums of a split K, local memory, output").
		As(arch.CommonRequested),
	row("l2_total", bytes, "ctas * steps * ("+askedOfL2+` / coalescing + spill_traffic)
			+ partial_bytes + batch * m * n * output_bytes`,
		"through the L2, which delivers once what SMs ask for at the same time").As(arch.CommonL2Total),
	row("shared_total", bytes, `ctas * steps * when(fma > 0, fma_loads * shared_width,
			when(wgmma > 0, `+instructions+` * (wgmma_m + wgmma_n) * instruction_k * element_bytes,
				`+fragmentBytes+`))`,
		"read of shared memory; a load for FMA counts with the width of the banks").As(arch.CommonSharedTotal),
	row("limits", cycles, limited+" - all_waves",
		"what the power limit, DRAM's bandwidth and the peak rate add").Share(),
	input("vendor", cycles, OfProblem, "0.95 times the prediction of the family library in the timing model, "+
		"converted to events; 0 where times of the family's kernels on the architecture, or on the device, are known",
		"what no kernel is expected to undercut by much"),
	row("unbeaten", cycles, `sqrt(sqrt(sqrt(pow(pow(`+own+`, 4), 2) + pow(pow(vendor, 4), 2)))) - (`+own+`)`,
		"what is missing to the time of the library: the eighth root of a sum of eighth powers, which is close to the "+
			"longer of the two and keeps the order of kernels").Share().If("vendor > 0"),
	row("total", cycles, own+" + unbeaten", "predicted total").Total(),
}

// own is the total by what is known of the kernel.
const own = "launch + " + limited + " + reduction + handed"

const limited = `max(when(power > 0, sqrt(sqrt(pow(all_waves, 4) + pow(power, 4))), all_waves),
	dram_floor, compute_floor)`
