package terms

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
)

// DRAM delivers every operand once, and again what the L2 could not keep until it was needed again. A group of rows of
// tiles sweeps over all columns. It reads its part of A once per sweep of what runs at a time, and all of B.
var trafficTerms = []Term{
	{
		Name: "sweeps", Unit: one, Doc: "rounds that a group of rows takes to sweep over all columns",
		Formula: "max(1, grid_n * group / min(ctas, num_sms * ctas_per_sm))",
	},
	{
		Name: "row_groups", Unit: one,
		Doc:     "times that all columns are swept over; groups that run at the same time share a sweep",
		Formula: "max(1, ceil(grid_m / group) * min(1, grid_n * group / min(ctas, num_sms * ctas_per_sm)))",
	},
	{
		Name: "miss_a", Unit: one, Doc: "share of a group's rows of A that the L2 does not keep",
		Formula: "1 - min(1, l2_bytes * l2_usable_share / (group * block_m * k * element_bytes))",
	},
	{
		Name: "miss_b", Unit: one, Doc: "share of B that the L2 does not keep from one group to the next",
		Formula: `1 - min(1, l2_bytes * l2_usable_share
			/ ((grid_m * block_m + grid_n * block_n) * k * element_bytes))`,
	},
	{
		Name: "dram_bytes", Unit: bytes, Doc: "operands from DRAM",
		Formula: `batch * k * element_bytes
			* (m * (1 + (sweeps - 1) * miss_a) + n * (1 + (row_groups - 1) * miss_b))`,
	},
	{
		Name: "dram_share", Unit: one, Doc: "share of the loads that DRAM serves",
		Formula: "min(1, dram_bytes / (ctas * steps * step_bytes))",
	},
	{
		Name: "l2_hit", Unit: one, Common: arch.CommonL2Hit, Doc: "share of the loads that the L2 serves",
		Formula: "1 - dram_share",
	},
	{
		Name: "repeated", Unit: bytes, When: "repeat_m + repeat_n > 0",
		Doc: "of rows and columns of a tile beyond the matrix ÷ those of the matrix that they load again, on average; " +
			"in whole cache lines along K",
		Formula: `repeat_m * (block_m - m / grid_m) / when(wraps > 0, m, 1)
				* when(trans_a > 0, block_k * element_bytes, ` + wholeLines + `)
			+ repeat_n * (block_n - n / grid_n) / when(wraps > 0, n, 1)
				* when(trans_b > 0, ` + wholeLines + `, block_k * element_bytes)`,
	},
	{
		Name: "hidden", Unit: one,
		Doc:     "share of the start of a wave behind the first that other CTAs of the SM hide, or copies ahead",
		Formula: "when(resident > 0, 1, fill_overlap * (1 - 1 / ctas_per_sm))",
	},
	{
		Name: "dram_latency", Unit: cycles, Formula: "hbm_latency_penalty * dram_latency_load",
		Doc: "latency of a copy while DRAM is idle; SMs that share a line wait for the one that fetches it",
	},
	{
		Name: "idle_latency", Unit: cycles, Formula: "dram_latency + copy_latency",
		Doc: "from the start of a K step to the arrival of its copies, while DRAM is idle",
	},
	{
		Name: "dram_queue", Unit: cycles, Formula: "hbm_latency_penalty * dram_queue_load",
		Doc: "what the latency grows by while DRAM is busy all the time",
	},
}

// wholeLines are the bytes of the cache lines that a row along K touches.
const wholeLines = "ceil(block_k * element_bytes / line_bytes) * line_bytes"

// askedOfL2 are the bytes that one CTA asks the L2 for in a K step, with what rows that begin within a sector cost.
const askedOfL2 = `when(resident > 0, step_bytes + l2_crossing * (offset_a * shared_a + offset_b * shared_b),
			step_bytes * (1 + broken_lines / tile_lines))`

// deviceTerms are the times of a K step at what all SMs share, and all resources together.
var deviceTerms = []Term{
	{
		Name: "coalescing", Unit: one,
		Doc: "requests of SMs ÷ deliveries of the L2: more where the CTAs of a single wave stay resident, as they start " +
			"together",
		Formula: "when(resident > 0, when(ctas > num_sms * ctas_per_sm, l2_coalescing, resident_coalescing), l2_coalescing)",
	},
	{
		Name: "l2_step", Unit: cycles, Common: arch.CommonL2Step, Doc: "one CTA's operands through the L2",
		Formula: "active * " + askedOfL2 + " / (l2_perf_ratio * coalescing)",
	},
	{
		Name: "dram_step", Unit: cycles, Common: arch.CommonDRAMStep, Doc: "one CTA's share of DRAM",
		Formula: "active * step_bytes * dram_share / (dram_perf_ratio * dram_efficiency)",
	},
	{
		Name: "repeat_step", Unit: cycles, Doc: "one CTA's share of the lines that are loaded again",
		Formula: "active * repeated / hot_line_bandwidth",
	},
	{
		Name: "spill_l2_step", Unit: cycles, Doc: "one CTA's local memory through the L2",
		Formula: "active * spill_traffic / (l2_perf_ratio * spill_share)",
	},
	{
		Name: "busy", Unit: cycles4, Doc: "a K step of one CTA at all resources, as a sum of fourth powers",
		Formula: `on_chip + pow(line_step, 4) + pow(l2_step, 4) + pow(dram_step, 4) + pow(repeat_step, 4)
			+ pow(spill_l2_step, 4)`,
	},
}

// wave is one wave of CTAs. The full ones are alike, and the tail has what is left. The terms of a wave that does not
// exist are 0. One table serves both: in it, wave_ stands for the name, and wave_ctas for the CTAs per SM.
func wave(name, ctas string) []Term {
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
var waveTerms = []Term{
	{
		Name: "wave_spill_miss", Unit: one,
		Doc: "share of the local memory of all SMs that the L2 does not keep: what exceeds it, with a smooth transition",
		Formula: `when(spill_traffic > 0,
			1 - 1 / sqrt(1 + pow(active * wave_ctas * spill_traffic / (2 * l2_bytes * l2_usable_share), 2)), 0)`,
	},
	{
		Name: "wave_spill_dram_step", Unit: cycles, Doc: "one CTA's local memory through DRAM",
		Formula: "active * spill_traffic * wave_spill_miss / (dram_perf_ratio * spill_share)",
	},
	{
		Name: "wave_busy", Unit: cycles4, Doc: "a K step of all CTAs of the SM, as a sum of fourth powers",
		Formula: "pow(wave_ctas, 4) * (busy + pow(wave_spill_dram_step, 4))",
	},
	{
		Name: "wave_throughput", Unit: cycles, Formula: "sqrt(sqrt(wave_busy))",
		Doc: "a K step of all CTAs of the SM: the largest of its resources, with a smooth transition",
	},
	{
		Name: "wave_latency", Unit: cycles,
		Doc: "from the start of a K step to the arrival of its copies, with DRAM busy for what share of a step they take",
		Formula: `(idle_latency + sqrt(idle_latency * idle_latency
			+ 4 * dram_queue * (wave_ctas * dram_step * steps_ahead))) / 2`,
	},
	{
		Name: "wave_alone", Unit: cycles,
		Doc:     "a K step of one CTA: its instructions, or the latency of copies over the steps that they run ahead",
		Formula: "max(chain_step, wave_latency / steps_ahead) + spill_step",
	},
	{
		Name: "wave_step", Unit: cycles, Common: arch.CommonKStep,
		Doc:     "one K step: the eighth root of a sum of eighth powers, which is close to the longer of the two",
		Formula: "sqrt(sqrt(sqrt(wave_busy * wave_busy + pow(wave_alone, 4) * pow(wave_alone, 4))))",
	},
	{
		Name: "wave_first_step", Unit: cycles,
		Doc:     "one of the first K steps, whose copies were issued together: the fill has waited for them",
		Formula: "max(wave_throughput, chain_step + spill_step)",
	},
	{
		Name: "wave_fill", Unit: cycles, Doc: "start of the CTAs and their first loads",
		Formula: "prologue_cycles + wave_latency + wave_ctas * l2_step",
	},
	{
		Name: "wave_loop", Unit: cycles, Doc: "K loop",
		Formula: "min(steps, steps_ahead) * wave_first_step + max(steps - steps_ahead, 0) * wave_step",
	},
	{
		Name: "wave_epilogue", Unit: cycles,
		Doc: "output; sums that are handed over are written and, by the last CTA of the tile, read",
		Formula: `wave_ctas * block_m * block_n
				* when(handover > 0,
					2 * accumulator_bytes / when(resident > 0, partial_bandwidth, epilogue_bandwidth) + output_cost / split_k,
					output_cost)
			+ when(handover > 0, when(resident > 0, resident_arrival, arrival_latency), 0) + resident * resident_turn`,
	},
	{
		Name: "wave_paced", Unit: cycles, When: "pass_counts > 0",
		Doc: "K loop at the paces of the timing pass, with a warm L2",
		Formula: `when(wave_ctas > 1,
			chip_loop + (full_chip_loop - chip_loop) * min(1, (wave_ctas - 1) / max(timed_ctas - 1, 1)),
			one_loop + (chip_loop - one_loop) * (active / num_sms))`,
	},
	{
		Name: "wave_timed", Unit: cycles, When: "pass_counts > 0",
		Doc: "the wave after the timing pass; a cold L2 adds the latency of copies and the time of DRAM",
		Formula: `timed_fixed + max(max(steps - steps_ahead, 0) * (wave_latency / steps_ahead),
			sqrt(sqrt(pow(wave_paced, 4) + pow(steps * wave_ctas * dram_step, 4))))`,
	},
}

// The total, and the shares of which it is the sum.
var totalTerms = []Term{
	{
		Name: "launch", Unit: cycles, Kind: arch.KindShare, Doc: "launch of the kernel",
		Formula: "when(resident > 0, resident_launch, launch_seconds) * clock",
	},
	{
		Name: "fill", Unit: cycles, Kind: arch.KindShare,
		Doc:     "starts of CTAs and pipeline fills: behind the first, other CTAs of the SM work meanwhile",
		Formula: `hidden * max(full_fill, tail_fill) + (1 - hidden) * (full_waves * full_fill + tail_fill)`,
	},
	{
		Name: "loop", Unit: cycles, Kind: arch.KindShare, Doc: "K loops",
		Formula: "full_waves * full_loop + tail_loop",
	},
	{
		Name: "epilogue", Unit: cycles, Kind: arch.KindShare, Doc: "output, and the sums of a split K",
		Formula: "full_waves * full_epilogue + tail_epilogue",
	},
	{
		Name: "all_waves", Unit: cycles,
		Doc: "all waves; where the timing pass counts, the geometric mean with what it predicts, " +
			"since the errors of the two are independent",
		Formula: `when(pass_counts > 0, sqrt((fill + loop + epilogue) * (full_waves * full_timed + tail_timed)),
			fill + loop + epilogue)`,
	},
	{
		Name: "pass", Unit: cycles, Kind: arch.KindShare, When: "pass_counts > 0", Doc: "what the timing pass changes",
		Formula: "all_waves - (fill + loop + epilogue)",
	},
	{
		Name: "power", Unit: cycles, When: "tdp * (1 - fma) > 0",
		Doc: "least time within the power limit, 0 if tdp is unknown; an instruction takes the same energy with any type",
		Formula: `max(2 * ctas * block_m * block_n * steps * block_k * (16 / instruction_k)
			* (energy_per_flop / (tdp * dynamic_share) * clock)
			- power_window * clock, 0)`,
	},
	{
		Name: "dram_floor", Unit: cycles, Doc: "least time of DRAM for operands and output",
		Formula: "(dram_bytes + batch * m * n * output_bytes) / (dram_perf_ratio * dram_efficiency)",
	},
	{
		Name: "compute_floor", Unit: cycles, Formula: "2 * batch * m * n * k * (clock / peak)",
		Doc: "least time at the peak rate: data sheets may give it for a clock below the boost clock",
	},
	{
		Name: "reduction", Unit: cycles, Kind: arch.KindShare, When: "split_k > 1",
		Doc: "adding up the sums of a split K: launches, or the parts that the CTA that arrives last reads",
		Formula: `when(handover > 0,
			split_k * (when(resident > 0, resident_add, add_latency)
				+ block_m * block_n * accumulator_bytes / (line_rate * line_bytes)),
			reduce_launches * relaunch_seconds * clock
				+ batch * m * n * (split_k * accumulator_bytes + output_bytes) / reduce_bandwidth)`,
	},
	{
		Name: "handed", Unit: cycles, Kind: arch.KindShare, When: "shared_tiles > 0",
		Doc: "the sums of parts of tiles: written, and read by the CTA that arrives last at a tile. 1.5 times the " +
			"hand-over of a split of K, found on h200-wgmma/tail/wgmma-lost",
		Formula: `when(part > floor(part),
			1.5 * (min(2, 1 + part) * block_m * block_n * 2 * accumulator_bytes / partial_bandwidth + resident_arrival
				+ (1 + 1 / part) * (resident_add + block_m * block_n * accumulator_bytes / (line_rate * line_bytes))), 0)`,
	},
	{
		Name: "dram_total", Unit: bytes, Common: arch.CommonDRAMTotal,
		Doc: "through DRAM: operands, output, local memory",
		Formula: `dram_bytes + batch * m * n * output_bytes + steps * (dram_perf_ratio * spill_share)
			* (full_waves * ctas_per_sm * full_spill_dram_step + tail_ctas * tail_spill_dram_step)`,
	},
	{
		Name: "partial_bytes", Unit: bytes, When: "split_k > 1", Doc: "sums of a split K, written and read",
		Formula: `2 * accumulator_bytes * split_k
			* when(handover > 0, ctas / split_k * block_m * block_n, batch * m * n)`,
	},
	{
		Name: "requested", Unit: bytes, Common: arch.CommonRequested,
		Doc: "what SMs ask global memory for: operands of all tiles, sums of a split K, local memory, output",
		Formula: `ctas * steps * (when(resident > 0,
				step_bytes + (sharers_a - 1) * shared_a + (sharers - 1) * shared_b, tile_bytes) + spill_traffic)
			+ partial_bytes + batch * m * n * output_bytes`,
	},
	{
		Name: "l2_total", Unit: bytes, Common: arch.CommonL2Total,
		Doc: "through the L2, which delivers once what SMs ask for at the same time",
		Formula: "ctas * steps * (" + askedOfL2 + ` / coalescing + spill_traffic)
			+ partial_bytes + batch * m * n * output_bytes`,
	},
	{
		Name: "shared_total", Unit: bytes, Common: arch.CommonSharedTotal,
		Doc: "read of shared memory; a load for FMA counts with the width of the banks",
		Formula: `ctas * steps * when(fma > 0, fma_loads * shared_width,
			when(wgmma > 0, ` + instructions + ` * (wgmma_m + wgmma_n) * instruction_k * element_bytes,
				` + fragmentBytes + `))`,
	},
	{
		Name: "limits", Unit: cycles, Kind: arch.KindShare,
		Doc:     "what the power limit, DRAM's bandwidth and the peak rate add",
		Formula: limited + " - all_waves",
	},
	{
		Name: "total", Unit: cycles, Kind: arch.KindTotal, Common: arch.CommonTotal, Doc: "predicted total",
		Formula: "launch + " + limited + " + reduction + handed",
	},
}

const limited = `max(when(power > 0, sqrt(sqrt(pow(all_waves, 4) + pow(power, 4))), all_waves),
	dram_floor, compute_floor)`
