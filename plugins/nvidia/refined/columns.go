package refined

import "github.com/origami-gemm/origami/core/arch"

// breakdown is everything that the columns are read off.
type breakdown struct {
	kernel preparedKernel
	sizes  sizes
	device *device
	timing timing
}

func (b *breakdown) variant() *variant { return &b.kernel.variants[b.timing.ragged] }

// column is a term and how its value is read off a breakdown.
type column struct {
	arch.Term
	value func(*breakdown) float64
}

// The sources that the schema names.
const (
	modelDoc   = "docs/model-nvidia-refined.md"
	onChipSum  = "pow(tensor_step, 4) + pow(shared_step, 4) + pow(issue_step, 4) + pow(line_step, 4) + pow(spill_step, 4)"
	linesOfA   = "rule: block_m * ceil(block_k * element_bytes / line_bytes) if A is contiguous along K, else block_k * ceil(block_m * element_bytes / line_bytes); the same for B with block_n"
	kindShare  = arch.KindShare
	kindStep   = arch.KindStep
	unitCycles = "cycles"
)

// columns is the schema of the model's breakdown, in the order in which the model computes.
var columns = func() []column {
	all := []column{
		// The kernel.
		{arch.Term{Name: "threads", Unit: "1", Formula: "32 * num_warps", Doc: "threads of a CTA"}, func(b *breakdown) float64 { return b.kernel.threads }},
		{arch.Term{Name: "registers", Unit: "1", Formula: "rule: as the compiler reports, or predicted from accumulators, fragments and pointers", Doc: "registers per thread"}, func(b *breakdown) float64 { return b.variant().registers }},
		{arch.Term{Name: "spill_bytes", Unit: "B", Formula: "rule: as the compiler reports, or predicted from the registers that are missing", Doc: "local memory of a thread that holds what does not fit into registers"}, func(b *breakdown) float64 { return b.variant().spillBytes }},
		{arch.Term{Name: "shared_bytes", Unit: "B", Formula: "rule: as the compiler reports, or the buffers that the family makes of num_stages, or the epilogue's if larger", Doc: "shared memory of a CTA"}, func(b *breakdown) float64 { return b.variant().sharedBytes }},
		{arch.Term{Name: "ctas_per_sm", Unit: "1", Formula: "max(1, min(min(floor(register_file / (ceil(max(registers, 1) / register_granule) * register_granule * threads)), floor((shared_memory_bytes + shared_reserved) / (shared_bytes + shared_reserved))), min(floor(threads_per_sm / threads), ctas_limit)))", Doc: "CTAs that fit on an SM"}, func(b *breakdown) float64 { return b.variant().ctas }},
		{arch.Term{Name: "wgmma", Unit: "1", Formula: "rule: 1 if the kernel multiplies with wgmma (triton, sm90, block_m a multiple of 64), 0 if with mma.sync", Doc: "matrix instruction"}, func(b *breakdown) float64 { return when(b.kernel.wgmma) }},
		{arch.Term{Name: "warps_m", Unit: "1", Formula: "rule: as the family lays its warps over the tile", Doc: "warps along the rows of a tile"}, func(b *breakdown) float64 { return b.kernel.warpsM }},
		{arch.Term{Name: "warps_n", Unit: "1", Formula: "rule: as the family lays its warps over the tile", Doc: "warps along the columns of a tile"}, func(b *breakdown) float64 { return b.kernel.warpsN }},
		{arch.Term{Name: "warps_k", Unit: "1", Formula: "rule: as the family lays its warps over the tile", Doc: "warps that share a tile and divide its K steps"}, func(b *breakdown) float64 { return b.kernel.warpsK }},
		{arch.Term{Name: "steps_ahead", Unit: "1", Formula: "max(num_stages - 1, 1)", Doc: "K steps that loads run ahead"}, func(b *breakdown) float64 { return b.kernel.stepsAhead }},
		{arch.Term{Name: "unbuffered", Unit: "1", Formula: "rule: 1 if an operand has less than 4 bytes per thread and step, too few for an asynchronous copy (triton), else 0", Doc: "an operand is loaded when it is needed"}, func(b *breakdown) float64 { return when(b.kernel.unbuffered) }},
		// One CTA's K step on the SM.
		{arch.Term{Name: "tensor_step", Unit: unitCycles, Kind: kindStep, Common: arch.CommonComputeStep, Formula: "when(wgmma > 0, block_m / wgmma_m * warps_n * (block_k / mma_k) * max(2 * wgmma_m * (block_n / warps_n) * mma_k / tensor_rate, wgmma_cycles), num_warps * max(block_m / warps_m, 16) * max(block_n / warps_n, 8) * (block_k / warps_k) * 2 / (tensor_rate * mma_sync_share))", Doc: "tensor cores"}, func(b *breakdown) float64 { return b.kernel.tensor }},
		{arch.Term{Name: "tile_bytes", Unit: "B", Common: arch.CommonLoadPerUnit, Formula: "(block_m + block_n) * block_k * element_bytes", Doc: "operands"}, func(b *breakdown) float64 { return b.kernel.tileBytes }},
		{arch.Term{Name: "shared_step", Unit: unitCycles, Formula: "(tile_bytes + when(wgmma > 0, block_m / wgmma_m * warps_n * (block_k / mma_k) * (wgmma_m + block_n / warps_n) * mma_k * element_bytes, num_warps * (max(block_m / warps_m, 16) + max(block_n / warps_n, 8)) * (block_k / warps_k) * element_bytes)) / shared_bandwidth", Doc: "shared memory: copies in, operands out"}, func(b *breakdown) float64 { return b.kernel.shared }},
		{arch.Term{Name: "issue_step", Unit: unitCycles, Formula: "rule: loop_slots (mma: mma_loop_slots) * num_warps / schedulers", Doc: "issue slots of the loop beside loads and matrix instructions"}, func(b *breakdown) float64 { return b.kernel.issue }},
		{arch.Term{Name: "own_latency", Unit: unitCycles, Formula: "rule: step_latency (mma: mma_step_latency)", Doc: "wait and barriers of a K step with mma.sync"}, func(b *breakdown) float64 { return b.kernel.stepLatency }},
		{arch.Term{Name: "lines", Unit: "1", Formula: linesOfA, Doc: "cache lines that the operands touch"}, func(b *breakdown) float64 { return b.kernel.lines }},
		{arch.Term{Name: "line_step", Unit: unitCycles, Formula: "lines / line_rate", Doc: "copies: lines through the load path"}, func(b *breakdown) float64 { return b.kernel.line }},
		{arch.Term{Name: "spill_step", Unit: unitCycles, Formula: "2 * spill_bytes * threads / spill_bandwidth", Doc: "local memory, written and read"}, func(b *breakdown) float64 { return b.variant().spill }},
		{arch.Term{Name: "chain_step", Unit: unitCycles, Formula: "when(wgmma > 0, tensor_step, max(block_k / mma_k / warps_k * (mma_latency + ldmatrix_latency), tensor_step) + own_latency) + issue_step + unbuffered * load_latency", Doc: "dependent instructions"}, func(b *breakdown) float64 { return b.kernel.chain }},
		// Grid and waves.
		{arch.Term{Name: "grid_m", Unit: "1", Common: arch.CommonTilesM, Formula: "cdiv(m, block_m)", Doc: "rows of output tiles"}, func(b *breakdown) float64 { return b.timing.gridM }},
		{arch.Term{Name: "grid_n", Unit: "1", Common: arch.CommonTilesN, Formula: "cdiv(n, block_n)", Doc: "columns of output tiles"}, func(b *breakdown) float64 { return b.timing.gridN }},
		{arch.Term{Name: "ctas", Unit: "1", Formula: "grid_m * grid_n * batch * split_k", Doc: "CTAs of the launch"}, func(b *breakdown) float64 { return b.timing.ctas }},
		{arch.Term{Name: "steps", Unit: "1", Formula: "ceil(cdiv(k, block_k) / split_k)", Doc: "K steps of a CTA"}, func(b *breakdown) float64 { return b.timing.steps }},
		{arch.Term{Name: "group", Unit: "1", Formula: "min(when(group_m > 0, group_m, default_group), grid_m)", Doc: "rows of tiles that are walked together"}, func(b *breakdown) float64 { return b.timing.group }},
		{arch.Term{Name: "ctas_of_sm", Unit: "1", Common: arch.CommonWaves, Formula: "cdiv(ctas, num_sms)", Doc: "CTAs of the busiest SM"}, func(b *breakdown) float64 { return b.timing.perSM }},
		{arch.Term{Name: "full_waves", Unit: "1", Formula: "floor(ctas_of_sm / ctas_per_sm)", Doc: "rounds in which the SM is full"}, func(b *breakdown) float64 { return b.timing.fullWaves }},
		{arch.Term{Name: "tail_ctas", Unit: "1", Formula: "ctas_of_sm - full_waves * ctas_per_sm", Doc: "CTAs of the busiest SM in the last round"}, func(b *breakdown) float64 { return b.timing.tailCTAs }},
		// The K loop of a kernel that was timed by itself.
		{arch.Term{Name: "timed", Unit: "1", Formula: "rule: 1 if the characterization has the kernel, whose times then replace the model's of prologue, K steps and epilogue, else 0", Doc: "the kernel was timed by itself"}, func(b *breakdown) float64 { return when(b.kernel.isTimed) }},
		{arch.Term{Name: "timed_fixed", Unit: unitCycles, Formula: "rule: the time of one CTA, carried back to a K of 0, less timed_launch_seconds; at least timed_least_seconds", Doc: "prologue and epilogue"}, func(b *breakdown) float64 { return b.kernel.timed.fixed }},
		{arch.Term{Name: "timed_ctas", Unit: "1", Formula: "rule: of the characterization", Doc: "CTAs of an SM that were timed together"}, func(b *breakdown) float64 { return b.kernel.timed.ctas }},
	}
	for _, p := range []struct {
		name, doc, below string
		pace             func(*timedKernel) pace
		loop             func(*timing) float64
	}{
		{"one", "one CTA alone", "0", func(k *timedKernel) pace { return k.one }, func(t *timing) float64 { return t.oneLoop }},
		{"chip", "one CTA on every SM", "one_loop", func(k *timedKernel) pace { return k.chip }, func(t *timing) float64 { return t.chipLoop }},
		{"full_chip", "as many CTAs on every SM as fit", "chip_loop", func(k *timedKernel) pace { return k.full }, func(t *timing) float64 { return t.fullLoop }},
	} {
		all = append(all,
			column{arch.Term{Name: p.name + "_pace", Unit: unitCycles, Formula: "rule: of the characterization, within a K of 2048", Doc: "K step of " + p.doc}, func(b *breakdown) float64 { return p.pace(&b.kernel.timed).short }},
			column{arch.Term{Name: p.name + "_long_pace", Unit: unitCycles, Formula: "rule: of the characterization, from a K of 2048 to 6144", Doc: "K step of " + p.doc + ", further on"}, func(b *breakdown) float64 { return p.pace(&b.kernel.timed).long }},
			column{arch.Term{Name: p.name + "_loop", Unit: unitCycles, Formula: "when(timed > 0, max(" + p.below + ", min(steps, 2048 / block_k) * " + p.name + "_pace + (steps - min(steps, 2048 / block_k)) * " + p.name + "_long_pace + max(0, steps - steps_ahead) * first_touch_share * max(0, touch_seconds * clock / steps_ahead - " + p.name + "_long_pace)), 0)", Doc: "K loop of " + p.doc}, func(b *breakdown) float64 { return p.loop(&b.timing) }},
		)
	}
	all = append(all, []column{
		// DRAM traffic.
		{arch.Term{Name: "sweeps", Unit: "1", Formula: "max(1, grid_n * group / min(ctas, num_sms * ctas_per_sm))", Doc: "rounds that a group of rows takes to sweep over all columns"}, func(b *breakdown) float64 { return b.timing.sweeps }},
		{arch.Term{Name: "row_groups", Unit: "1", Formula: "ceil(grid_m / group)", Doc: "times that all columns are swept over"}, func(b *breakdown) float64 { return b.timing.groups }},
		{arch.Term{Name: "miss_a", Unit: "1", Formula: "1 - min(1, l2_bytes * l2_usable_share / (group * block_m * k * element_bytes))", Doc: "share of a group's rows of A that the L2 does not keep"}, func(b *breakdown) float64 { return b.timing.missA }},
		{arch.Term{Name: "miss_b", Unit: "1", Formula: "1 - min(1, l2_bytes * l2_usable_share / ((grid_m * block_m + grid_n * block_n) * k * element_bytes))", Doc: "share of B that the L2 does not keep from one group to the next"}, func(b *breakdown) float64 { return b.timing.missB }},
		{arch.Term{Name: "dram_bytes", Unit: "B", Formula: "batch * k * element_bytes * (m * (1 + (sweeps - 1) * miss_a) + n * (1 + (row_groups - 1) * miss_b))", Doc: "operands from DRAM"}, func(b *breakdown) float64 { return b.timing.dramBytes }},
		{arch.Term{Name: "dram_share", Unit: "1", Formula: "min(1, dram_bytes / (ctas * steps * tile_bytes))", Doc: "share of the loads that DRAM serves"}, func(b *breakdown) float64 { return b.timing.dramShare }},
		{arch.Term{Name: "l2_hit", Unit: "1", Common: arch.CommonL2Hit, Formula: "1 - dram_share", Doc: "share of the loads that the L2 serves"}, func(b *breakdown) float64 { return 1 - b.timing.dramShare }},
		{arch.Term{Name: "repeated", Unit: "1", Formula: "rule: of mma, block_m - m / grid_m if A is contiguous along K, plus block_n - n / grid_n if B is; else 0", Doc: "rows and columns of a tile beyond the matrix that repeat its last one, on average"}, func(b *breakdown) float64 { return b.timing.repeated }},
		{arch.Term{Name: "dram_latency", Unit: unitCycles, Formula: "hbm_latency_penalty * dram_latency_load", Doc: "of DRAM under load; SMs that share a line wait for the one that fetches it"}, func(b *breakdown) float64 { return b.device.dramLatency }},
	}...)
	all = append(all, waveColumns("full", "ctas_per_sm", "min(num_sms, ctas)", "full_waves", func(b *breakdown) *wave { return &b.timing.full })...)
	all = append(all, waveColumns("tail", "tail_ctas", "min(num_sms, when(full_waves > 0, max(ctas - full_waves * num_sms * ctas_per_sm, 1) / max(tail_ctas, 1), ctas))", "tail_ctas", func(b *breakdown) *wave { return &b.timing.tail })...)
	all = append(all,
		column{arch.Term{Name: "all_waves", Unit: unitCycles, Formula: "full_waves * (full_fill + full_loop + full_epilogue) + tail_fill + tail_loop + tail_epilogue", Doc: "all rounds"}, func(b *breakdown) float64 { return b.timing.waves }},
		column{arch.Term{Name: "power", Unit: unitCycles, Formula: "rule: max(2 * ctas * block_m * block_n * steps * block_k * energy_per_flop / (tdp * dynamic_share) - power_window, 0) * clock, 0 without a tdp", Doc: "least time within the power limit"}, func(b *breakdown) float64 { return b.timing.power }},
		column{arch.Term{Name: "dram_floor", Unit: unitCycles, Formula: "(dram_bytes + batch * m * n * output_bytes) / (dram_perf_ratio * dram_efficiency)", Doc: "least time of DRAM for operands and output"}, func(b *breakdown) float64 { return b.timing.floor }},
		// The parts of the total.
		column{arch.Term{Name: "launch", Unit: unitCycles, Kind: kindShare, Formula: "launch_seconds * clock", Doc: "launch of the kernel"}, func(b *breakdown) float64 { return b.device.launch }},
		column{arch.Term{Name: "fill", Unit: unitCycles, Kind: kindShare, Formula: "full_waves * full_fill + tail_fill", Doc: "starts of CTAs and pipeline fills"}, func(b *breakdown) float64 { return b.timing.fill }},
		column{arch.Term{Name: "loop", Unit: unitCycles, Kind: kindShare, Formula: "full_waves * full_loop + tail_loop", Doc: "K loops"}, func(b *breakdown) float64 { return b.timing.loop }},
		column{arch.Term{Name: "epilogue", Unit: unitCycles, Kind: kindShare, Formula: "full_waves * full_epilogue + tail_epilogue", Doc: "output, and the sums of a split K"}, func(b *breakdown) float64 { return b.timing.epilogue }},
		column{arch.Term{Name: "limits", Unit: unitCycles, Kind: kindShare, Formula: "pow(pow(all_waves, 4) + pow(power, 4) + pow(dram_floor, 4), 0.25) - all_waves", Doc: "what the power limit and DRAM's bandwidth add"}, func(b *breakdown) float64 { return b.timing.limited - b.timing.waves }},
		column{arch.Term{Name: "total", Unit: unitCycles, Kind: arch.KindTotal, Common: arch.CommonTotal, Formula: "launch + pow(pow(all_waves, 4) + pow(power, 4) + pow(dram_floor, 4), 0.25)", Doc: "predicted total"}, func(b *breakdown) float64 { return b.timing.total }},
	)
	for i := range all {
		all[i].Source = modelDoc
	}
	return all
}()

// waveColumns is a round of CTAs. Its terms are 0 where there is none.
func waveColumns(name, ctas, active, there string, of func(*breakdown) *wave) []column {
	guard := func(f string) string { return "when(" + there + " > 0, " + f + ", 0)" }
	n := func(s string) string { return name + "_" + s }
	return []column{
		{arch.Term{Name: n("active"), Unit: "1", Common: commonOf(name, arch.CommonActiveUnits), Formula: guard(active), Doc: "SMs at work"}, func(b *breakdown) float64 { return of(b).active }},
		{arch.Term{Name: n("l2_step"), Unit: unitCycles, Common: commonOf(name, arch.CommonL2Step), Formula: guard("tile_bytes / min(l2_port_bandwidth, l2_perf_ratio * l2_coalescing / max(" + n("active") + ", 1))"), Doc: "one CTA's operands through the L2"}, func(b *breakdown) float64 { return of(b).l2 }},
		{arch.Term{Name: n("dram_step"), Unit: unitCycles, Common: commonOf(name, arch.CommonDRAMStep), Formula: guard(n("active") + " * tile_bytes * dram_share / (dram_perf_ratio * dram_efficiency)"), Doc: "one CTA's share of DRAM"}, func(b *breakdown) float64 { return of(b).dram }},
		{arch.Term{Name: n("repeat_step"), Unit: unitCycles, Formula: guard(n("active") + " * repeated * block_k * element_bytes / hot_line_bandwidth"), Doc: "one CTA's share of the line that repeated rows share"}, func(b *breakdown) float64 { return of(b).repeat }},
		{arch.Term{Name: n("throughput"), Unit: unitCycles, Formula: guard(ctas + " * pow(" + onChipSum + " + pow(" + n("l2_step") + ", 4) + pow(" + n("dram_step") + ", 4) + pow(" + n("repeat_step") + ", 4), 0.25)"), Doc: "a K step of all CTAs of the SM: the largest of its resources, with a smooth transition"}, func(b *breakdown) float64 { return fourthRoot(of(b).throughput) }},
		{arch.Term{Name: n("alone"), Unit: unitCycles, Formula: guard("max(chain_step, (dram_latency + " + n("l2_step") + ") / steps_ahead) + spill_step"), Doc: "a K step of one CTA: its instructions, or the latency of loads over the steps that they run ahead"}, func(b *breakdown) float64 { return of(b).alone }},
		{arch.Term{Name: n("step"), Unit: unitCycles, Common: commonOf(name, arch.CommonKStep), Formula: "pow(pow(" + n("throughput") + ", 4) + pow(" + n("alone") + ", 4), 0.25)", Doc: "one K step"}, func(b *breakdown) float64 { return of(b).step }},
		{arch.Term{Name: n("fill"), Unit: unitCycles, Formula: guard("when(timed > 0, timed_fixed, prologue_cycles + dram_latency + " + ctas + " * " + n("l2_step") + ")"), Doc: "start of the CTAs and their first loads"}, func(b *breakdown) float64 { return of(b).fill }},
		{arch.Term{Name: n("loop"), Unit: unitCycles, Formula: guard("when(timed > 0, when(" + ctas + " > 1, chip_loop + (full_chip_loop - chip_loop) * min(1, (" + ctas + " - 1) / max(timed_ctas - 1, 1)), one_loop + (chip_loop - one_loop) * " + n("active") + " / num_sms), steps * " + n("step") + ")"), Doc: "K loop"}, func(b *breakdown) float64 { return of(b).loop }},
		{arch.Term{Name: n("epilogue"), Unit: unitCycles, Formula: guard("when(timed > 0, 0, epilogue_cycles + " + ctas + " * block_m * block_n * output_bytes / epilogue_bandwidth + when(split_k > 1, dram_latency + " + ctas + " * block_m * block_n * 4 * (1 + split_k) / epilogue_bandwidth, 0))"), Doc: "output"}, func(b *breakdown) float64 { return of(b).epilogue }},
	}
}

// commonOf gives the common name to the full round only: comparisons have one of each.
func commonOf(name, common string) string {
	if name == "full" {
		return common
	}
	return ""
}

func when(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// terms is the public part of columns.
var terms = func() []arch.Term {
	out := make([]arch.Term, len(columns))
	for i, c := range columns {
		out[i] = c.Term
	}
	return out
}()
