// Package terms is the model pipelined as a table: a row per term, with the formula that computes it. The formulas are
// the only text of the model: internal/gen turns them into Go, and `origami explain` prints them.
//
// To add a term, add a row. If it needs an empirical number, add that to quantities.go with its bounds. Then run
// `make generate`.
package terms

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
)

// The sets of terms that the model's own code sets.
const (
	// OfKernel are set from the configuration, and from the layout and type of the operands.
	OfKernel = "kernel"
	// OfVariant are set from the same, and depend on whether loads are masked along K.
	OfVariant = "variant"
	// OfProblem are set from the leading dimensions and the alignment of the operands.
	OfProblem = "problem"
	// OfGroups are set from the rows of the groups and from the configuration.
	OfGroups = "groups"
)

// Page documents the terms.
const Page = "docs/model-pipelined.md"

const (
	one      = "1"
	bytes    = "B"
	perCycle = "B/cycle"
	cycles   = "cycles"
	cycles4  = "cycles^4" // of sums of fourth powers
)

var row, input = model.Row, model.Input

// Terms is the model, in the order in which it computes.
var Terms = model.Table(kernelTerms, stepTerms, gridTerms, timedTerms, trafficTerms, deviceTerms,
	wave("full", "ctas_per_sm"), wave("tail", "tail_ctas"), totalTerms)

const (
	fromFamily   = "from the kernel family"
	fromCompiler = "as the compiler reports it, or predicted by the kernel family"
	fromPass     = "from the characterization, 0 without"
)

// What fits on an SM: registers, shared memory, threads and slots limit the CTAs.
var kernelTerms = []model.Term{
	row("threads", one, "32 * num_warps", "threads of a CTA"),
	input("resident", one, OfKernel, fromFamily,
		"1 if the launch has a CTA for each SM, which computes one tile after the other and copies ahead from one "+
			"to the next with the copy engine (TMA)"),
	input("persistent", one, OfKernel, fromFamily,
		"1 if the launch has at most a CTA for each SM, which computes one tile after the other, and does not copy ahead "+
			"from one to the next"),
	input("tensor_columns", one, OfKernel, fromFamily,
		"columns of tensor memory that a CTA has for its sums; 0 if they are in registers"),
	input("sharers", one, OfKernel, fromFamily, "CTAs of a cluster along M, which share the copies of B"),
	input("sharers_a", one, OfKernel, fromFamily, "CTAs of a cluster along N, which share the copies of A"),
	input("streams", one, OfKernel, fromFamily, "1 if all CTAs share the tiles that fill no wave, along K (stream-K)"),
	input("registers", one, OfVariant, fromCompiler, "registers per thread"),
	input("spill_bytes", bytes, OfVariant, fromCompiler, "local memory per thread for the registers that do not fit"),
	input("shared_bytes", bytes, OfVariant, fromCompiler, "shared memory per CTA"),
	row("ctas_per_sm", one, `when(resident + persistent > 0, 1, max(1, min(
			floor(register_file / (ceil(max(registers, 1) / register_granule) * register_granule * threads)),
			floor((shared_memory_bytes + shared_reserved) / (shared_bytes + shared_reserved)),
			floor(threads_per_sm / threads), ctas_limit,
			when(tensor_columns > 0, floor(tensor_memory / tensor_columns), ctas_limit))))`,
		"CTAs that fit on an SM").As(arch.CommonCTAsPerUnit),
	input("wgmma", one, OfKernel, fromFamily,
		"matrix instruction: 1 for wgmma and tcgen05.mma, with operands in shared memory, 0 for mma.sync"),
	input("fma", one, OfKernel, fromFamily, "1 for FMA instructions instead of matrix instructions"),
	input("serial", one, OfKernel, fromFamily,
		"1 if each matrix instruction waits for the one before, and the copies for the last"),
	input("interleaved", one, OfKernel, fromFamily, "1 if addresses are computed between the copies"),
	input("wgmma_m", one, OfKernel, fromFamily, "rows of a wgmma or tcgen05.mma"),
	input("wgmma_n", one, OfKernel, fromFamily, "columns of a wgmma or tcgen05.mma"),
	input("rate", one, OfKernel, "from the peak rates of the device",
		"rate of the type that is multiplied ÷ rate of fp16"),
	input("peak", "FLOP/s", OfKernel, "from the peak rates of the device", "peak rate of the type that is multiplied"),
	input("instruction_k", one, OfKernel, "32 bytes of the type that is multiplied", "depth of a matrix instruction"),
	input("warps_m", one, OfKernel, fromFamily, "warps along the rows of a tile"),
	input("warps_n", one, OfKernel, fromFamily, "warps along the columns of a tile"),
	input("warps_k", one, OfKernel, fromFamily, "warps that share a tile and divide its K steps"),
	row("steps_ahead", one, "max(num_stages - 1, 1)", "K steps that loads run ahead"),
	input("load_waits", one, OfKernel, fromFamily, "how often a K step waits for loads that pass through registers"),
	input("conversions", one, OfKernel, fromFamily,
		"instructions that convert a register of operands before it is multiplied"),
	input("late_copies", one, OfKernel, fromFamily,
		"1 if a K step issues its copies behind its matrix instructions: they fill the buffer that these read, or these are "+
			"serial"),
	input("repeat_m", one, OfKernel, fromFamily,
		"1 if rows of a tile beyond the matrix load rows of A again, which are contiguous along K"),
	input("repeat_n", one, OfKernel, fromFamily,
		"1 if columns of a tile beyond the matrix load columns of B again, which are contiguous along K"),
	input("wraps", one, OfKernel, fromFamily,
		"1 if rows and columns beyond the matrix start again at its first; otherwise they repeat one of them"),
	input("sync_copies", one, OfKernel, fromFamily,
		"loads of all warps in a K step that pass through registers, of operands that are contiguous along K"),
	input("cross_copies", one, OfKernel, fromFamily, "the same, of operands that are contiguous along M or N"),
	input("async_a", one, OfKernel, fromFamily, "1 if A is copied asynchronously"),
	input("async_b", one, OfKernel, fromFamily, "1 if B is copied asynchronously"),
	input("transposed_copies", one, OfKernel, fromFamily,
		"copies of all warps in a K step that transpose an operand element by element"),
	input("store_bytes", bytes, OfKernel, fromFamily, "of the output that a thread stores at a time"),
	input("apart", one, OfKernel, fromFamily,
		"sums of parts of K that wait in memory until they are added in a tree, and one more, of all CTAs of a tile").
		If("apart > 1"),
	input("reduce_launches", one, OfKernel, fromFamily,
		"launches that add up the sums of a split K; 0 if the last CTA of a tile does"),
	input("family_slots", one, OfKernel, fromFamily,
		"instructions of a warp per K step besides loads and matrix instructions"),
	input("family_latency", cycles, OfKernel, fromFamily,
		"waits and barriers of a K step with mma.sync, or of a resident CTA"),
}

// One K step of one CTA, at each resource of its SM.
var stepTerms = []model.Term{
	row("tensor_step", cycles, `when(wgmma > 0,
			`+instructions+`
				* max(2 * when(tensor_columns > 0, tensor_lanes, wgmma_m) * wgmma_n * instruction_k / (tensor_rate * rate),
					wgmma_cycles),
			num_warps * `+warpM+` * `+warpN+` * (block_k / warps_k)
				* 2 / (tensor_rate * rate * when(fma > 0, fma_share, mma_sync_share)))`,
		"tensor cores").As(arch.CommonComputeStep).Step(),
	row("tile_bytes", bytes, "(block_m + block_n) * block_k * element_bytes",
		"operands of a K step").As(arch.CommonLoadPerUnit),
	row("columns", one, `when(trans_b > 0, block_n,
			ceil(block_n * element_bytes / line_bytes) * line_bytes / element_bytes)`,
		"columns of B that the copy engine brings for a tile: where they are contiguous, whole rows of the swizzle").
		If("resident > 0"),
	row("fma_loads", one,
		`num_warps * ((1 + trans_a) * `+warpM+` / mma_m + `+warpN+` / mma_n) * (block_k / warps_k)`,
		"loads of all warps from shared memory in a K step with FMA").If("fma > 0"),
	row("shared_step", cycles, `when(fma > 0, fma_loads / fma_load_rate,
			when(wgmma > 0,
				`+instructions+` * (wgmma_m + wgmma_n) * instruction_k * element_bytes,
				`+fragmentBytes+`)
			/ when(resident > 0, resident_shared, shared_bandwidth))`, "shared memory: operands out"),
	row("convert_step", cycles, `conversions * `+fragmentBytes+` / (32 * 4) / convert_rate`,
		"conversions of operands: a register of a warp has 32 lanes of 4 B").If("conversions > 0"),
	row("output_cost", cycles, `max(when(reduce_launches > 0, accumulator_bytes, output_bytes)
				/ when(resident > 0, when(store_bytes < 16, scattered_bandwidth, resident_bandwidth), epilogue_bandwidth),
			output_bytes / store_bytes / 32 / store_rate)`,
		"output of an element: bytes or, if they are narrow, store instructions"),
	row("tensor_copy", cycles, "2 * block_m * block_n * accumulator_bytes / tensor_memory_bandwidth",
		"sums in tensor memory: set to zero, and read").If("tensor_columns > 0"),
	row("handover", one, "when(split_k > 1, when(reduce_launches > 0, 0, 1), 0)",
		"1 if the CTAs of a tile hand their sums to the one that arrives last"),
	row("issue_step", cycles, "(family_slots * num_warps + fma_loads) / schedulers",
		"issue slots of the loop besides copies and what multiplies: one instruction per cycle and scheduler, never two "+
			"(experiments/issue-on-h200: FFMA and LOP3 in turn 0.92)"),
	row("tile_lines", one, `when(trans_a > 0, `+linesOf("k", "m")+`, `+linesOf("m", "k")+`)
			+ when(trans_b > 0, `+linesOf("n", "k")+`, `+linesOf("k", "n")+`)`,
		"cache lines that the operands touch"),
	row("narrow", one, "when(wraps * load_waits > 0, when(transposed_copies > 0, 0, 1), 0)",
		"1 if Triton loads an operand element by element through registers: 16 divides not all of its row, leading "+
			"dimension and address"),
	row("copy_step", cycles, `when(narrow > 0,
			(sync_copies + cross_copies) / narrow_rate + cross_copies * min(32, block_k) * scattered_cycles,
			sync_copies / copy_rate + cross_copies / cross_copy_rate + transposed_copies / transposed_rate)`,
		"copies of narrow accesses: instructions. Where Triton knows no elements side by side, as rows wrap, the lanes of "+
			"a warp load along K: each from a cache line of its own"),
	row("spill_traffic", bytes, "2 * spill_bytes * threads", "local memory, written and read in a K step"),
	row("spill_step", cycles, "spill_traffic / (spill_bandwidth * when(load_waits > 0, narrow_spill_share, 1))",
		"local memory through the load path of the SM").Step(),
	row("streamed", one, "wgmma * (1 - resident)",
		"1 if what matrix instructions read of shared memory takes no time besides them: wgmma reads it as it multiplies. "+
			"A resident CTA's numbers were found with both"),
	row("on_chip", cycles4,
		`pow(max(tensor_step + max(convert_step, (1 - wgmma) * issue_step), streamed * shared_step), 4)
			+ (1 - streamed) * pow(shared_step, 4) + pow(issue_step, 4)
			+ pow(copy_step + when(transposed_copies > 0, shared_step, 0), 4)
			+ pow(spill_step, 4)`, "resources of the SM besides its cache lines, as a sum of fourth powers. mma.sync and FMA "+
			"wait for the instructions beside them, or for conversions if these take longer. Copies that transpose write to "+
			"the banks that operands are read of"),
	row("instruction_step", cycles, `when(wgmma + fma > 0, tensor_step + fma * (block_k / warps_k * fma_latency),
			max(block_k / instruction_k / warps_k * (mma_latency + ldmatrix_latency), tensor_step))`,
		"matrix instructions of one CTA"),
	row("read_step", cycles, `when((2 - steps_ahead) * (resident + persistent * wgmma) > 0,
			when(resident > 0, instruction_step, read_share * shared_step), 0)`,
		"what copies that run a single K step ahead wait for the matrix instructions, which read shared memory meanwhile: "+
			"a resident CTA copies when they have ended"),
	row("issue_wait", cycles, `sqrt(sqrt(pow(instruction_step, 4) + pow(when(wgmma > 0,
			when(persistent > 0, line_wait, copy_wait) * tile_lines / num_warps, late_share * (tile_lines / line_rate)), 4)))
			- instruction_step`,
		"what matrix instructions wait for the copies that their warps issue meanwhile, and mma.sync for those behind the "+
			"instructions of the step before: together they take as long as the longer, with a smooth transition. A single "+
			"thread issues tcgen05.mma").
		If("when(wgmma > 0, (1 - resident) * (1 - min(tensor_columns, 1)) * max(persistent, 1 - late_copies), late_copies)" +
			" > 0"),
	row("sharing", one, "when(sharers * sharers_a > 2, large_sharing, sharers * sharers_a - 1)",
		"what the CTAs of a cluster wait for each other ÷ what those of a cluster of two do"),
	row("chain_step", cycles, `instruction_step + when(wgmma + fma > 0,
				interleaved * interleaved_share * (tile_lines * line_latency)
				+ resident * (family_latency + sharing * sharing_step * block_k * element_bytes / line_bytes),
				family_latency)
			+ convert_step + issue_wait + max(issue_step, serial * (tile_lines / line_rate))
			+ when(narrow > 0, narrow_latency + narrow_share * copy_step
				+ (async_a * `+linesOf("m", "k")+` + async_b * when(trans_b > 0, `+linesOf("n", "k")+`, `+linesOf("k", "n")+`))
					/ line_rate,
				when(load_waits > 0, load_waits * load_latency + copy_step, 0))`,
		"dependent instructions of one CTA. Narrow loads begin behind the copies of the step before, in the same queue"),
	row("turn_step", cycles, `when(narrow * wgmma * (async_a + async_b) > 0, turn_cycles * min(1, max(0,
			1 - (registers - block_m * block_n / threads - 3 * (sync_copies + cross_copies) / num_warps) / turn_registers)), 0)`,
		"what a step waits besides where registers are too few for all narrow loads at once, so that ptxas stores some "+
			"before it begins others: a load has a pointer of two registers, and the element"),
	row("arrival", one, "when(narrow > 0, narrow_arrival * (async_a + async_b), 1)",
		"share of the latency of copies that a step waits for"),
	row("behind", cycles, "narrow * (async_a + async_b) * chain_step / steps_ahead",
		"what copies that are issued behind a step's narrow loads wait for these, per step that they run ahead"),
}

const (
	// instructions is how many wgmma a K step takes: warpgroups divide the rows first, and those that share rows divide
	// the columns.
	instructions = "block_m / wgmma_m * (block_n / wgmma_n) * (block_k / instruction_k)"
	// warpM and warpN are the part of the tile that a warp computes with mma.sync.
	warpM = "max(block_m / warps_m, mma_m)"
	warpN = "max(block_n / warps_n, mma_n)"
	// fragmentBytes are what all warps read of shared memory in a K step with mma.sync.
	fragmentBytes = "num_warps * (" + warpM + " + " + warpN + ") * (block_k / warps_k) * element_bytes"
)

// linesOf are the cache lines that an operand touches in a K step, if its rows begin where a line does.
func linesOf(rows, elements string) string {
	return "block_" + rows + " * ceil(block_" + elements + " * element_bytes / line_bytes)"
}

// The grid, and the waves in which an SM computes its CTAs.
var gridTerms = []model.Term{
	input("group_tiles", one, OfGroups, "sum over the groups of their rows ÷ block_m, rounded up",
		"rows of output tiles of all groups; 0 without groups"),
	row("grid_m", one, `when(group_tiles > 0, group_tiles / batch,
			cdiv(cdiv(m, block_m), sharers) * sharers)`,
		"rows of output tiles; with groups, on average. A tile across the edge of C takes as long as a whole one: "+
			"stores are "+
			"predicated, and no branch depends on the lane (experiments/issue-on-h200: 0.99 to 1.03)").As(arch.CommonTilesM),
	row("grid_n", one, "cdiv(cdiv(n, block_n), sharers_a) * sharers_a", "columns of output tiles").As(arch.CommonTilesN),
	row("ctas", one, "when(group_tiles > 0, group_tiles, grid_m * batch) * grid_n * split_k", "CTAs of the launch"),
	row("shared_a", bytes, "m / grid_m / sharers_a * block_k * element_bytes",
		"what A takes of the L2 in a K step: the copy engine brings nothing from outside the matrix, and what the "+
			"CTAs of a cluster share once for all of them").If("resident > 0"),
	row("shared_b", bytes, "n / grid_n * (columns / block_n) / sharers * block_k * element_bytes",
		"what B takes of it").If("resident > 0"),
	row("step_bytes", bytes, "when(resident > 0, shared_a + shared_b, tile_bytes)",
		"what the operands of a K step take of the L2"),
	input("misaligned_a", one, OfProblem, "1 - gcd(bytes from row to row, line_bytes) / line_bytes",
		"largest offset at which a row of A begins in a cache line ÷ the line"),
	input("misaligned_b", one, OfProblem, "the same for B",
		"largest offset at which a row of B begins in a cache line ÷ the line"),
	row("offset_a", one, "max("+sector("a")+", trans_a * "+sectorPart("m")+")",
		"largest offset at which a row of a tile of A begins in a sector ÷ the sector").If("resident > 0"),
	row("offset_b", one, "max("+sector("b")+", (1 - trans_b) * "+sectorPart("n")+")",
		"largest offset at which a row of a tile of B begins in a sector ÷ the sector").If("resident > 0"),
	row("engine_a", bytes, `when(trans_a > 0, block_k * ceil(block_m * element_bytes / line_bytes) * line_bytes,
			min(block_m, m) * block_k * element_bytes) / sharers_a`,
		"what the copy engine of a CTA copies of A in a K step, also outside of the matrix, without what others of "+
			"its cluster copy. Rows along M count as whole lines").If("resident > 0"),
	row("engine_b", bytes, `when(trans_b > 0, columns * block_k * element_bytes,
			block_k * ceil(columns * element_bytes / line_bytes) * line_bytes) / sharers`,
		"the same of B").If("resident > 0"),
	row("engine_bytes", bytes, "engine_a + engine_b + crossing * (engine_a * misaligned_a + engine_b * misaligned_b)",
		"both, with what rows that begin within a line, and so touch two for one, cost the engine besides").
		If("resident > 0"),
	row("steps", one, "ceil(cdiv(k, block_k) / split_k)", "K steps of a CTA"),
	row("split_lines", one, `when(misaligned_a + misaligned_b > 0,
			when(trans_a > 0, block_k * `+split("a", "m")+`, block_m * `+split("a", "k")+`)
			+ when(trans_b > 0, block_n * `+split("b", "k")+`, block_k * `+split("b", "n")+`), 0)`,
		"cache lines that copies touch besides, because rows begin within a line"),
	row("broken_lines", one, `sector_cost * (
			async_a * `+sector("a")+` * when(trans_a > 0, `+linesOf("k", "m")+`, `+linesOf("m", "k")+`)
			+ async_b * `+sector("b")+` * when(trans_b > 0, `+linesOf("n", "k")+`, `+linesOf("k", "n")+`))`,
		"what asynchronous copies of rows that begin within a sector cost besides, in cache lines").
		If("misaligned_a + misaligned_b > 0"),
	row("lines", one, `tile_lines + max(split_lines, broken_lines)
			+ when(wraps * max(trans_a * (block_m - m), (1 - trans_b) * (block_n - n)) > 0,
			block_k * (trans_a * `+wrapped("m")+` + (1 - trans_b) * `+wrapped("n")+`), 0)`,
		"cache lines that copies touch: rows that wrap within a line touch it once for each time"),
	row("line_step", cycles, "when(resident > 0, engine_bytes / engine_bandwidth, lines / line_rate)",
		"copies: cache lines through the load path, or bytes through the copy engine"),
	row("copy_latency", cycles, `when(resident > 0,
			engine_latency + sharing * sharing_latency + engine_bytes / engine_bandwidth,
			lines * line_latency + when(late_copies > 0, instruction_step, 0))`,
		"from the start of a K step to its last copy"),
	row("group", one, "min(when(group_m > 0, group_m, default_group), grid_m)",
		"rows of tiles that are walked together"),
	row("sms", one, `when(sharers * sharers_a > 2,
			max(1, floor((num_sms - ceil(num_sms / 11)) / (sharers * sharers_a))) * sharers * sharers_a, num_sms)`,
		"SMs that CTAs of the kernel can have: of an H100's 132, clusters of four and eight get 120"),
	row("waves", one, "ctas / (sms * ctas_per_sm)",
		"CTAs of the launch ÷ CTAs that fit on the device").As(arch.CommonWaves),
	row("shared_tiles", one,
		`ctas / sms - max(0, floor(ctas / sms) - when(2 * (ctas - sms * floor(ctas / sms)) < sms,
			when(ctas - sms * floor(ctas / sms) > 0, 1, 0), 0))`,
		"tiles that are shared, ÷ CTAs: the last wave, and the one before it if the last is less than half full").
		If("streams > 0"),
	row("part", one, "min(ctas * steps, max(4, ceil(shared_tiles * steps))) / steps",
		"what a CTA has of the shared tiles, at least 4 K steps").If("shared_tiles > 0"),
	row("ctas_of_sm", one, "when(streams > 0, ctas / sms - shared_tiles + part, cdiv(ctas, sms))",
		"CTAs of the busiest SM, and its part of the shared tiles"),
	row("active", one, "ctas / ctas_of_sm", "SMs at work, on average over the launch").As(arch.CommonActiveUnits),
	row("missed_bytes", bytes, `block_k * block_n * line_bytes / 4 * min(1, max(0,
			min(ctas_per_sm, ctas_of_sm) * block_k * (line_bytes + block_n * element_bytes)
			/ (shared_memory_bytes + shared_reserved + 28672 - ctas_per_sm * (shared_bytes + shared_reserved)) - kept_share))`,
		"what the L2 delivers again of a B whose lanes load from cache lines of their own, element by element: a sector "+
			"each where the L1 is too small for the lines of the resident CTAs. It has what shared memory leaves of both, "+
			"28 KiB at least (CUDA C++ Programming Guide, Unified Shared Memory/L1)").
		If("narrow * (1 - async_b) * (1 - trans_b) > 0"),
	row("full_waves", one, "when(streams > 0, ctas_of_sm, floor(ctas_of_sm / ctas_per_sm))",
		"waves in which the SM is full"),
	row("tail_ctas", one, "ctas_of_sm - full_waves * ctas_per_sm", "CTAs of the busiest SM in the last, partial wave"),
}

// sector is where in a sector rows of an operand begin, at most. A line has four.
func sector(operand string) string {
	return "max(0, 4 * misaligned_" + operand + " - 3)"
}

// sectorPart is what of a sector is left behind the last whole one of a tile's block_m or block_n elements.
func sectorPart(of string) string {
	sectors := "4 * block_" + of + " * element_bytes / line_bytes"
	return "(" + sectors + " - floor(" + sectors + "))"
}

// split is how many lines a row of a tile touches more if it begins anywhere in a line where rows of an operand begin.
func split(operand, of string) string {
	bytes := "block_" + of + " * element_bytes / line_bytes"
	return "max(0, " + bytes + " + misaligned_" + operand + " - ceil(" + bytes + "))"
}

// wrapped is how often more a row of a tile touches its lines if the matrix has so few elements that it starts again
// within a line.
func wrapped(of string) string {
	return "max(0, floor(block_" + of + " / " + of + ") - ceil(block_" + of + " * element_bytes / line_bytes))"
}

// The K loop of a kernel that was timed by itself: up to a K of 2048, in which the pipeline fills and operands are
// near, and beyond. The pass has a warm L2. The loop adds what that hides: a step that comes first to operands in
// DRAM waits for them as long as the loads that run ahead do not cover.
var timedTerms = slices.Concat([]model.Term{
	input("timed", one, OfKernel, "1 if the characterization has the kernel, else 0", "the kernel was timed by itself"),
	row("pass_counts", one, "timed * when(misaligned_a + misaligned_b > 0, 0, 1)",
		"1 if the timing pass has the kernel, and rows begin with a cache line, as those of the pass did"),
	input("timed_ctas", one, OfKernel, fromPass, "CTAs of an SM that were timed together"),
	passTime("one", "2048", "one CTA alone"), passTime("one", "6144", "one CTA alone"),
	passTime("chip", "2048", "one CTA on every SM"), passTime("chip", "6144", "one CTA on every SM"),
	passTime("full_chip", "2048", "as many CTAs on every SM as fit"),
	passTime("full_chip", "6144", "as many CTAs on every SM as fit"),
	row("timed_fixed", cycles, `max(`+passCycles("one", "2048")+`
			- (`+passCycles("one", "6144")+`
				- `+passCycles("one", "2048")+`) / 4096 * 2048, timed_least_seconds * clock)`,
		"prologue and epilogue: the time of one CTA, carried back to a K of 0").If("timed > 0"),
}, pace("one", "one CTA alone", ""), pace("chip", "one CTA on every SM", "one_loop"),
	pace("full_chip", "as many CTAs on every SM as fit", "chip_loop"))

func passTime(name, k, of string) model.Term {
	return input(name+"_"+k, "s", OfKernel, fromPass, of+", K = "+k)
}

// passCycles is a time of the pass without the launch.
func passCycles(name, k string) string {
	return "(" + name + "_" + k + " * clock - timed_launch_seconds * clock)"
}

// pace is the K loop at one of the three paces of the pass. More CTAs are never faster than fewer: the loop takes at
// least the one that below names.
func pace(name, of, below string) []model.Term {
	short, long := name+"_pace", name+"_long_pace"
	first, last := passCycles(name, "2048"), passCycles(name, "6144")
	loop := `min(steps, 2048 / block_k) * ` + short + ` + (steps - min(steps, 2048 / block_k)) * ` + long + ``
	if below != "" {
		loop = "max(" + below + ",\n\t\t" + loop + ")"
	}
	return []model.Term{
		row(short, cycles, "max(0, "+first+" - timed_fixed) / (2048 / block_k)",
			"K step of "+of+", up to a K of 2048").If("timed > 0"),
		row(long, cycles, "max(0, "+last+"\n\t- "+first+") / (4096 / block_k)",
			"K step of "+of+", beyond a K of 2048").If("timed > 0"),
		row(name+"_loop", cycles, loop, "K loop of "+of).If("timed > 0"),
	}
}
