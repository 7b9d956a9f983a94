// Package terms is the model of SGEMM kernels as a table: a row per term, with the formula that computes it.
// docs/ladder.md says where the numbers come from.
//
// To add a term, add a row. Then run `make generate`.
package terms

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
)

// The units of terms.
const (
	one     = "1"
	inBytes = "B"
	cycles  = "cycles"
	flopByB = "FLOP/B"
)

// OfKernel are the terms that are counted in a kernel's loop.
const OfKernel = "kernel"

// OfLines are the terms that are counted in a kernel's loop for lines of A and B as far apart as a problem's.
const OfLines = "lines"

var row = model.Row

func input(name, unit, from, doc string) model.Term {
	return model.Input(name, unit, OfKernel, from, doc)
}

// Terms is the model. A K step is block_k indices along K, which is one turn of a kernel's loop.
var Terms = model.Table(kernelTerms, gridTerms, resourceTerms, latencyTerms,
	waveTerms("full", "ctas_per_sm", "full_waves"), waveTerms("tail", "tail_ctas", "tail_ctas"), totalTerms)

const (
	fromAddresses = "the addresses of one warp, in a K step of the CTA"
	fromFamily    = "from the kernel family"
)

var kernelTerms = []model.Term{
	row("threads", one, "32 * num_warps", "threads of a CTA"),
	input("registers", one, "predicted by the kernel family", "registers per thread"),
	input("shared_bytes", inBytes, "predicted by the kernel family", "shared memory per CTA"),
	input("operand_bytes", inBytes, "2 for tensor cores, which multiply fp16, else 4", "an element that is multiplied"),
	input("fmas", one, fromFamily, "FMA instructions of all warps in a K step"),
	input("multiplications", one, fromFamily, "tensor-core multiplications of 16x16x16 of all warps in a K step"),
	input("global_instructions", one, fromFamily, "loads and copies from global memory, of all warps in a K step"),
	input("async_copies", one, fromFamily, "those of them that are cp.async"),
	input("shared_instructions", one, fromFamily, "loads from and stores to shared memory, of all warps in a K step"),
	input("wide_instructions", one, fromFamily, "those of both that access 16 bytes per lane"),
	input("shared_wavefronts", one, fromAddresses+": the most different words in a bank, between parts of a warp that "+
		"merge and parts that do not", "passes through shared memory"),
	input("conflict_degree", one, fromAddresses, "largest degree of bank conflicts of an access to shared memory"),
	model.Input("l1_passes", one, OfLines, fromAddresses+
		": cache lines ÷ 4, or the most words in one of the 32 banks of L1 if these are more",
		"passes of loads from global memory through L1"),
	input("requested_bytes", inBytes, fromAddresses, "what the lanes of all warps load from global memory"),
	input("barriers", one, fromFamily, "how often all threads of the CTA wait for each other in a K step"),
	input("ahead", one, fromFamily, "K steps whose loads are under way while one is multiplied"),
	input("converts", one, "1 if A and B are fp32 and are multiplied as fp16",
		"a kernel before this one converts A and B"),
	row("ctas_per_sm", one, `max(1, min(
		floor(register_file / (ceil(max(registers, 1) / register_granule) * register_granule * threads)),
		floor((shared_memory_bytes + shared_reserved) / (shared_bytes + shared_reserved)),
		floor(threads_per_sm / threads), ctas_limit))`, "CTAs that fit on an SM").As(arch.CommonCTAsPerUnit),
}

var gridTerms = []model.Term{
	row("grid_m", one, "cdiv(m, block_m)", "rows of output tiles").As(arch.CommonTilesM),
	row("grid_n", one, "cdiv(n, block_n)", "columns of output tiles").As(arch.CommonTilesN),
	row("tiles", one, "grid_m * grid_n * batch",
		"output tiles. One across the edge of C takes as long as a whole one: stores are predicated, and no branch depends "+
			"on the lane (experiments/issue-on-h200: 0.99 to 1.03)"),
	row("ctas", one, "tiles * split_k", "CTAs of the launch"),
	row("steps", one, "cdiv(cdiv(k, block_k), split_k)", "K steps of a CTA"),
	row("waves", one, "ctas / (num_sms * ctas_per_sm)", "CTAs of the launch ÷ CTAs that fit on the device").
		As(arch.CommonWaves),
	row("ctas_of_sm", one, "cdiv(ctas, num_sms)", "CTAs of the busiest SM"),
	row("active", one, "ctas / ctas_of_sm", "SMs at work, on average over the launch").As(arch.CommonActiveUnits),
	row("full_waves", one, "floor(ctas_of_sm / ctas_per_sm)", "waves in which the SM is full"),
	row("tail_ctas", one, "ctas_of_sm - full_waves * ctas_per_sm", "CTAs of the busiest SM in the last, partial wave"),
	row("group", one, "min(when(group_m > 0, group_m, 1), grid_m)", "rows of tiles that are walked together"),
	row("sweeps", one, "max(1, grid_n * group / min(tiles, num_sms * ctas_per_sm))",
		"rounds that a group of rows takes to sweep over all columns"),
	row("row_groups", one, "max(1, ceil(grid_m / group) * min(1, grid_n * group / min(tiles, num_sms * ctas_per_sm)))",
		"times that all columns are swept over; groups that run at the same time share a sweep"),
	row("miss_a", one, "1 - min(1, l2_bytes * l2_usable_share / (group * block_m * k * operand_bytes))",
		"share of a group's rows of A that the L2 does not keep"),
	row("miss_b", one, `1 - min(1, l2_bytes * l2_usable_share
		/ ((grid_m * block_m + grid_n * block_n) * k * operand_bytes))`,
		"share of B that the L2 does not keep from one group to the next"),
	row("dram_bytes", inBytes, `batch * k * operand_bytes
		* (m * (1 + (sweeps - 1) * miss_a) + n * (1 + (row_groups - 1) * miss_b))`, "operands from DRAM"),
	row("tile_bytes", inBytes, "(block_m + block_n) * block_k * operand_bytes",
		"operands of a K step: what an L1 that keeps them asks the L2 for").As(arch.CommonLoadPerUnit),
	row("dram_share", one, "min(1, dram_bytes / (ctas * steps * tile_bytes))", "share of the loads that DRAM serves"),
	row("l2_hit", one, "1 - dram_share", "share of the loads that the L2 serves").As(arch.CommonL2Hit),
	row("intensity_requested", flopByB, "when(requested_bytes > 0, 2 * block_m * block_n * block_k / requested_bytes, 0)",
		"FLOP per byte that the lanes ask for"),
	row("intensity_l2", flopByB, "2 * block_m * block_n * block_k / tile_bytes", "FLOP per byte from the L2"),
	row("intensity_dram", flopByB, "2 * batch * m * n * k / (dram_bytes + batch * m * n * output_bytes)",
		"FLOP per byte from and to DRAM"),
	row("intensity_limit", flopByB, "2 * m * n * k / (operand_bytes * (m * k + k * n) + output_bytes * m * n)",
		"FLOP per byte if DRAM moves every element once: no kernel has more"),
}

// A resource of the SM is busy for these cycles in a K step of one CTA. The roof of each is a published rate; loads and
// FMA instructions reach a share of it.
var resourceTerms = []model.Term{
	row("load_issue_step", cycles, `(global_instructions / global_load_share + shared_instructions
		+ wide_instructions * (wide_slots - 1)) * (32 / load_store_units)`,
		"issue of loads and stores: the lanes of a warp, load_store_units per cycle"),
	row("shared_step", cycles, "shared_wavefronts", "shared memory: 32 banks of 4 B per cycle"),
	row("l1_step", cycles, "l1_passes + tile_bytes / 128",
		"L1: a pass of a load from global memory per cycle, and one of 128 B for lines that come from the L2"),
	row("fma_step", cycles, "fmas * 32 / fma_lanes / fma_share", "FMA instructions"),
	row("tensor_step", cycles, "multiplications * (2 * 16 * 16 * 16) / (tensor_rate * mma_sync_share)", "tensor cores").
		As(arch.CommonComputeStep),
	row("issue_step", cycles, `(fmas + global_instructions * (1 + when(barriers > 0, copy_slots, 1))
		+ async_copies * async_slots + shared_instructions + loop_slots * num_warps) / schedulers`,
		"issue of all instructions of warps, one per cycle and scheduler, never two (experiments/issue-on-h200: FFMA and "+
			"LOP3 in turn 0.92); a load of an operand that is not copied has an addition for its address"),
	row("l2_step", cycles, "active * tile_bytes / l2_perf_ratio", "one CTA's operands through the L2").
		As(arch.CommonL2Step),
	row("dram_step", cycles, "active * tile_bytes * dram_share / dram_perf_ratio", "one CTA's share of DRAM").
		As(arch.CommonDRAMStep),
	row("busy", "cycles^4", `pow(load_issue_step, 4) + pow(shared_step, 4) + pow(l1_step, 4)
		+ pow(fma_step + tensor_step, 4) + pow(issue_step, 4) + pow(l2_step, 4) + pow(dram_step, 4)`,
		"all resources, as a sum of fourth powers"),
	row("throughput_step", cycles, "sqrt(sqrt(busy))",
		"one CTA's K step at the busiest resource, with a smooth transition to the next"),
}

// Loads that nothing runs ahead of make a CTA wait. Others on the SM work meanwhile.
var latencyTerms = []model.Term{
	row("dram_waits", one, "1 / max(1, waves) + (1 - 1 / max(1, waves)) * dram_share",
		"share of the K steps that wait for DRAM: the CTAs of the first wave walk along K side by side, so that all of "+
			"them wait for what one loads first; later ones find it in the L2, but for its misses"),
	row("load_latency", cycles, "l2_latency_cycles + dram_waits * max(0, hbm_latency_penalty - l2_latency_cycles)",
		"latency of a load from the L2, or from DRAM in the K steps that wait for it"),
	row("barrier_step", cycles, "barriers * barrier_latency", "barriers of a K step"),
	row("exposed_step", cycles, `when(ahead > 0, max(0, load_latency / max(ahead, 1) - throughput_step),
		max(0, load_latency - when(barriers > 0, global_instructions * (32 / load_store_units), throughput_step)))`,
		"what one CTA waits for loads beyond their issue; if nothing separates loads from the work on those before, beyond "+
			"that work"),
	row("alone_step", cycles, "max(0, fmas / num_warps * warp_fma_cycles - throughput_step)",
		"how much longer the FMA instructions of one warp take than those of all warps take the SM's lanes"),
	row("wait_step", cycles, "exposed_step + alone_step + barrier_step",
		"what one CTA waits in a K step if it is alone on the SM"),
}

// waveTerms are the K step of a number of CTAs that share an SM. The last wave has fewer.
func waveTerms(name, ctas, condition string) []model.Term {
	when := func(formula string) string { return "when(" + condition + " > 0, " + formula + ", 0)" }
	return []model.Term{
		row(name+"_wait", cycles, when(`sqrt(pow((`+ctas+` - 1) * throughput_step, 2) + pow(wait_step, 2))
			- (`+ctas+` - 1) * throughput_step`),
			"what the SM waits in a K step: one CTA's wait beyond the time that the others work, with a smooth transition"),
		row(name+"_step", cycles, when(ctas+" * throughput_step + "+name+"_wait"), "a K step of all CTAs of the SM").
			As(map[string]string{"full": arch.CommonKStep}[name]),
	}
}

var totalTerms = []model.Term{
	row("waiting_step", cycles, "(full_waves * full_wait + tail_wait) / ctas_of_sm",
		"what the SM waits in a K step, per CTA: latencies and barriers that no other CTA hides"),
	row("launch", cycles, "launch_seconds * clock", "launch of the kernel").As(arch.CommonLaunch).Share(),
	row("conversion", cycles, `when(converts > 0,
		next_launch_seconds * clock + batch * (m * k + k * n) * (4 + operand_bytes) / dram_perf_ratio, 0)`,
		"a kernel that rounds A and B to fp16").Share(),
	row("fill", cycles, "(full_waves + when(tail_ctas > 0, 1, 0)) * (load_latency + prologue_cycles)",
		"start of CTAs and their first loads").Share(),
	row("loop", cycles, "steps * (full_waves * full_step + tail_step)", "K loops").Share(),
	row("output", cycles, "ctas_of_sm * active * block_m * block_n * output_bytes / l2_perf_ratio",
		"output of C, or of the sums of a split of K").Share(),
	row("partial_bytes", inBytes, "when(split_k > 1, ctas * block_m * block_n * 4, 0)", "sums of the splits of K"),
	row("reduction", cycles, `when(split_k > 1, handover_cycles + cdiv(tiles, num_sms)
		* split_k * (l2_latency_cycles + block_m * block_n * 4 / sm_l2_rate)
		+ 2 * max(0, partial_bytes - l2_bytes * l2_usable_share) / dram_perf_ratio, 0)`,
		"the CTA of a tile that arrives last adds the sums of all splits, one after the other; what the L2 does not keep of "+
			"them is written to DRAM and read from there").Share(),
	row("dram_total", inBytes, "dram_bytes + batch * m * n * output_bytes", "through DRAM: operands, output").
		As(arch.CommonDRAMTotal),
	row("dram_floor", cycles, "dram_total / dram_perf_ratio", "least time of DRAM"),
	row("compute_floor", cycles, `2 * batch * m * n * k
		* when(multiplications > 0, 1 / (tensor_rate * num_sms), 1 / (2 * fma_lanes * num_sms))`,
		"least time at the peak rate"),
	row("limits", cycles, `max(fill + loop + output + reduction, dram_floor, compute_floor)
		- (fill + loop + output + reduction)`,
		"what DRAM's bandwidth and the peak rate add").Share(),
	row("total", cycles, "launch + conversion + fill + loop + output + reduction + limits", "predicted total").Total(),
}
