// Package terms is the refined model as a table: a row per term, with the formula that computes it. The formulas are
// the only text of the model. Generators turn them into its Go code (internal/gen) and into its page,
// docs/model-pipelined.md. `origami explain` prints them.
//
// To add a term, add a row. If it needs an empirical number, add that to quantities.go with its bounds. Then run
// `make generate`.
package terms

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
)

// Term is a row of the table. A formula may name the parameters of the device, the constants, the quantities, the
// problem, the configuration and the rows above it (core/formula). The names decide when it is computed: once per
// device, per kernel, per problem, or for each kernel and problem.
type Term struct {
	Name, Unit, Doc string
	Formula         string
	// When is a condition. The term is 0 if it does not hold.
	When   string
	Kind   arch.TermKind
	Common string // the name that other models have for it (arch.Common…)
	// Input says what sets a term that has no formula. From says where the value comes from.
	Input Input
	From  string
}

// Input is what sets a term that has no formula.
type Input uint8

const (
	// Computed terms have a formula.
	Computed Input = iota
	// OfKernel is set from the configuration, and from the layout and type of the operands.
	OfKernel
	// OfVariant is the same, and depends on whether loads are masked along K.
	OfVariant
	// OfProblem is set from the leading dimensions and the alignment of the operands.
	OfProblem
	// OfGroups is set from the rows of the groups and from the configuration.
	OfGroups
)

// Source is the page that documents the terms.
const Source = "docs/model-pipelined.md"

// Schema returns the public schema of the breakdown.
func Schema() []arch.Term {
	out := make([]arch.Term, len(Terms))
	for i, t := range Terms {
		out[i] = arch.Term{
			Name: t.Name, Unit: t.Unit, Formula: t.Text(), Doc: t.Doc, Source: Source, Kind: t.Kind, Common: t.Common,
		}
	}
	return out
}

// Text returns the formula with its condition, or the prose of an input.
func (t *Term) Text() string {
	switch {
	case t.Input != Computed:
		return "rule: " + t.From
	case t.When != "":
		return "when(" + t.When + ", " + t.Formula + ", 0)"
	}
	return t.Formula
}

const (
	one      = "1"
	bytes    = "B"
	perCycle = "B/cycle"
	cycles   = "cycles"
	cycles4  = "cycles^4" // of sums of fourth powers
)

// Part is a section of the table.
type Part struct {
	Name  string
	Terms []Term
}

// Parts are the sections of the table, for a reader. They have the terms of a wave once: wave_ stands for full_ and
// tail_, and wave_ctas for the CTAs per SM.
var Parts = []Part{
	{"the kernel", kernelTerms}, {"the K step", stepTerms}, {"the grid", gridTerms},
	{"the timing pass", timedTerms}, {"the DRAM traffic", trafficTerms},
	{"the device", deviceTerms},
	{"a wave", waveTerms},
	{"the total", totalTerms},
}

// Terms is the model, in the order in which it computes. Operations are done in the order in which they are written:
// the results are the same bits everywhere.
var Terms = table(kernelTerms, stepTerms, gridTerms, timedTerms, trafficTerms, deviceTerms,
	wave("full", "ctas_per_sm"), wave("tail", "tail_ctas"), totalTerms)

// table puts parts together, with each formula on one line.
func table(parts ...[]Term) []Term {
	var out []Term
	for _, p := range parts {
		for _, t := range p {
			t.Formula = strings.ReplaceAll(strings.Join(strings.Fields(t.Formula), " "), "( ", "(")
			out = append(out, t)
		}
	}
	return out
}

const (
	fromFamily   = "from the kernel family"
	fromCompiler = "as the compiler reports it, or predicted by the kernel family"
	fromPass     = "from the characterization, 0 without"
)

// What fits on an SM: registers, shared memory, threads and slots limit the CTAs.
var kernelTerms = []Term{
	{Name: "threads", Unit: one, Formula: "32 * num_warps", Doc: "threads of a CTA"},
	{
		Name: "resident", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "1 if the launch has a CTA for each SM, which computes one tile after the other and copies ahead from one " +
			"to the next with the copy engine (TMA)",
	},
	{
		Name: "sharers", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "CTAs of a cluster along M, which share the copies of B",
	},
	{
		Name: "sharers_a", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "CTAs of a cluster along N, which share the copies of A",
	},
	{
		Name: "streams", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "1 if all CTAs share the tiles that fill no wave, along K (stream-K)",
	},
	{Name: "registers", Unit: one, Input: OfVariant, From: fromCompiler, Doc: "registers per thread"},
	{
		Name: "spill_bytes", Unit: bytes, Input: OfVariant, From: fromCompiler,
		Doc: "local memory per thread for the registers that do not fit",
	},
	{Name: "shared_bytes", Unit: bytes, Input: OfVariant, From: fromCompiler, Doc: "shared memory per CTA"},
	{
		Name: "ctas_per_sm", Unit: one, Common: arch.CommonCTAsPerUnit, Doc: "CTAs that fit on an SM",
		Formula: `when(resident > 0, 1, max(1, min(
			floor(register_file / (ceil(max(registers, 1) / register_granule) * register_granule * threads)),
			floor((shared_memory_bytes + shared_reserved) / (shared_bytes + shared_reserved)),
			floor(threads_per_sm / threads), ctas_limit)))`,
	},
	{
		Name: "wgmma", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "matrix instruction: 1 for wgmma, 0 for mma.sync",
	},
	{
		Name: "fma", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "1 for FMA instructions instead of matrix instructions",
	},
	{
		Name: "serial", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "1 if each matrix instruction waits for the one before, and the copies for the last",
	},
	{
		Name: "interleaved", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "1 if addresses are computed between the copies",
	},
	{Name: "wgmma_n", Unit: one, Input: OfKernel, From: fromFamily, Doc: "columns of a wgmma"},
	{
		Name: "rate", Unit: one, Input: OfKernel, From: "from the peak rates of the device",
		Doc: "rate of the type that is multiplied ÷ rate of fp16",
	},
	{
		Name: "peak", Unit: "FLOP/s", Input: OfKernel, From: "from the peak rates of the device",
		Doc: "peak rate of the type that is multiplied",
	},
	{
		Name: "instruction_k", Unit: one, Input: OfKernel, From: "32 bytes of the type that is multiplied",
		Doc: "depth of a matrix instruction",
	},
	{Name: "warps_m", Unit: one, Input: OfKernel, From: fromFamily, Doc: "warps along the rows of a tile"},
	{Name: "warps_n", Unit: one, Input: OfKernel, From: fromFamily, Doc: "warps along the columns of a tile"},
	{
		Name: "warps_k", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "warps that share a tile and divide its K steps",
	},
	{Name: "steps_ahead", Unit: one, Formula: "max(num_stages - 1, 1)", Doc: "K steps that loads run ahead"},
	{
		Name: "load_waits", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "how often a K step waits for loads that pass through registers",
	},
	{
		Name: "conversions", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "instructions that convert a register of operands before it is multiplied",
	},
	{
		Name: "late_copies", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "1 if a K step issues its copies behind its matrix instructions: they fill the buffer that these read",
	},
	{
		Name: "repeat_m", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "1 if rows of a tile beyond the matrix load rows of A again, which are contiguous along K",
	},
	{
		Name: "repeat_n", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "1 if columns of a tile beyond the matrix load columns of B again, which are contiguous along K",
	},
	{
		Name: "wraps", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "1 if rows and columns beyond the matrix start again at its first; otherwise they repeat its last",
	},
	{
		Name: "sync_copies", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "loads of all warps in a K step that pass through registers, of operands that are contiguous along K",
	},
	{
		Name: "cross_copies", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "the same, of operands that are contiguous along M or N",
	},
	{Name: "async_a", Unit: one, Input: OfKernel, From: fromFamily, Doc: "1 if A is copied asynchronously"},
	{Name: "async_b", Unit: one, Input: OfKernel, From: fromFamily, Doc: "1 if B is copied asynchronously"},
	{
		Name: "transposed_copies", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "copies of all warps in a K step that transpose an operand element by element",
	},
	{
		Name: "store_bytes", Unit: bytes, Input: OfKernel, From: fromFamily,
		Doc: "of the output that a thread stores at a time",
	},
	{
		Name: "reduce_launches", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "launches that add up the sums of a split K; 0 if the last CTA of a tile does",
	},
	{
		Name: "family_slots", Unit: one, Input: OfKernel, From: fromFamily,
		Doc: "instructions of a warp per K step besides loads and matrix instructions",
	},
	{
		Name: "family_latency", Unit: cycles, Input: OfKernel, From: fromFamily,
		Doc: "waits and barriers of a K step with mma.sync, or of a resident CTA",
	},
}

// One K step of one CTA, at each resource of its SM.
var stepTerms = []Term{
	{
		Name: "tensor_step", Unit: cycles, Kind: arch.KindStep, Common: arch.CommonComputeStep, Doc: "tensor cores",
		Formula: `when(wgmma > 0,
			` + instructions + `
				* max(2 * wgmma_m * wgmma_n * instruction_k / (tensor_rate * rate), wgmma_cycles),
			num_warps * ` + warpM + ` * ` + warpN + ` * (block_k / warps_k)
				* 2 / (tensor_rate * rate * when(fma > 0, fma_share, mma_sync_share)))`,
	},
	{
		Name: "tile_bytes", Unit: bytes, Common: arch.CommonLoadPerUnit, Doc: "operands of a K step",
		Formula: "(block_m + block_n) * block_k * element_bytes",
	},
	{
		Name: "columns", Unit: one, When: "resident > 0",
		Doc: "columns of B that the copy engine brings for a tile: where they are contiguous, whole rows of the swizzle",
		Formula: `when(trans_b > 0, block_n,
			ceil(block_n * element_bytes / line_bytes) * line_bytes / element_bytes)`,
	},
	{
		Name: "fma_loads", Unit: one, When: "fma > 0", Doc: "loads of all warps from shared memory in a K step with FMA",
		Formula: `num_warps * ((1 + trans_a) * ` + warpM + ` / mma_m + ` + warpN + ` / mma_n) * (block_k / warps_k)`,
	},
	{
		Name: "shared_step", Unit: cycles, Doc: "shared memory: operands out",
		Formula: `when(fma > 0, fma_loads / fma_load_rate,
			when(wgmma > 0,
				` + instructions + ` * (wgmma_m + wgmma_n) * instruction_k * element_bytes,
				` + fragmentBytes + `)
			/ when(resident > 0, resident_shared, shared_bandwidth))`,
	},
	{
		Name: "convert_step", Unit: cycles, When: "conversions > 0",
		Doc:     "conversions of operands: a register of a warp has 32 lanes of 4 B",
		Formula: `conversions * ` + fragmentBytes + ` / (32 * 4) / convert_rate`,
	},
	{
		Name: "output_cost", Unit: cycles, Doc: "output of an element: bytes or, if they are narrow, store instructions",
		Formula: `max(when(reduce_launches > 0, accumulator_bytes, output_bytes)
				/ when(resident > 0, when(store_bytes < 16, scattered_bandwidth, resident_bandwidth), epilogue_bandwidth),
			output_bytes / store_bytes / 32 / store_rate)`,
	},
	{
		Name: "handover", Unit: one, Doc: "1 if the CTAs of a tile hand their sums to the one that arrives last",
		Formula: "when(split_k > 1, when(reduce_launches > 0, 0, 1), 0)",
	},
	{
		Name: "issue_step", Unit: cycles, Doc: "issue slots of the loop besides copies and what multiplies",
		Formula: "(family_slots * num_warps + fma_loads) / schedulers",
	},
	{
		Name: "tile_lines", Unit: one, Doc: "cache lines that the operands touch",
		Formula: `when(trans_a > 0, ` + linesOf("k", "m") + `, ` + linesOf("m", "k") + `)
			+ when(trans_b > 0, ` + linesOf("n", "k") + `, ` + linesOf("k", "n") + `)`,
	},
	{
		Name: "copy_step", Unit: cycles, Doc: "copies of narrow accesses: instructions",
		Formula: "sync_copies / copy_rate + cross_copies / cross_copy_rate + transposed_copies / transposed_rate",
	},
	{
		Name: "spill_traffic", Unit: bytes, Doc: "local memory, written and read in a K step",
		Formula: "2 * spill_bytes * threads",
	},
	{
		Name: "spill_step", Unit: cycles, Doc: "local memory through the load path of the SM",
		Formula: "spill_traffic / spill_bandwidth",
	},
	{
		Name: "on_chip", Unit: cycles4, Doc: "resources of the SM besides its cache lines, as a sum of fourth powers",
		Formula: `pow(tensor_step + convert_step + fma * issue_step, 4) + pow(shared_step, 4) + pow(issue_step, 4)
			+ pow(copy_step, 4)
			+ pow(spill_step, 4)`,
	},
	{
		Name: "instruction_step", Unit: cycles, Doc: "matrix instructions of one CTA",
		Formula: `when(wgmma + fma > 0, tensor_step + fma * (block_k / warps_k * fma_latency),
			max(block_k / instruction_k / warps_k * (mma_latency + ldmatrix_latency), tensor_step))`,
	},
	{
		Name: "chain_step", Unit: cycles, Doc: "dependent instructions of one CTA",
		Formula: `instruction_step + when(wgmma + fma > 0,
				(serial + interleaved * interleaved_share) * (tile_lines * line_latency)
				+ resident * (family_latency + (sharers * sharers_a - 1) * sharing_step * block_k * element_bytes / line_bytes),
				family_latency)
			+ convert_step + issue_step + when(load_waits > 0, load_waits * load_latency + copy_step, 0)`,
	},
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
var gridTerms = []Term{
	{
		Name: "group_tiles", Unit: one, Input: OfGroups, From: "sum over the groups of their rows ÷ block_m, rounded up",
		Doc: "rows of output tiles of all groups; 0 without groups",
	},
	{
		Name: "grid_m", Unit: one, Common: arch.CommonTilesM, Doc: "rows of output tiles; with groups, on average",
		Formula: `when(group_tiles > 0, group_tiles / batch,
			cdiv(cdiv(m, block_m), sharers) * sharers)`,
	},
	{
		Name: "grid_n", Unit: one, Common: arch.CommonTilesN, Doc: "columns of output tiles",
		Formula: "cdiv(cdiv(n, block_n), sharers_a) * sharers_a",
	},
	{
		Name: "ctas", Unit: one, Doc: "CTAs of the launch",
		Formula: "when(group_tiles > 0, group_tiles, grid_m * batch) * grid_n * split_k",
	},
	{
		Name: "shared_a", Unit: bytes, When: "resident > 0",
		Doc: "what A takes of the L2 in a K step: the copy engine brings nothing from outside the matrix, and what the " +
			"CTAs of a cluster share once for all of them",
		Formula: "m / grid_m / sharers_a * block_k * element_bytes",
	},
	{
		Name: "shared_b", Unit: bytes, When: "resident > 0", Doc: "what B takes of it",
		Formula: "n / grid_n * (columns / block_n) / sharers * block_k * element_bytes",
	},
	{
		Name: "step_bytes", Unit: bytes, Doc: "what the operands of a K step take of the L2",
		Formula: "when(resident > 0, shared_a + shared_b, tile_bytes)",
	},
	{
		Name: "misaligned_a", Unit: one, Input: OfProblem, From: "1 - gcd(bytes from row to row, line_bytes) / line_bytes",
		Doc: "largest offset at which a row of A begins in a cache line ÷ the line",
	},
	{
		Name: "misaligned_b", Unit: one, Input: OfProblem, From: "the same for B",
		Doc: "largest offset at which a row of B begins in a cache line ÷ the line",
	},
	{
		Name: "offset_a", Unit: one, When: "resident > 0",
		Doc:     "largest offset at which a row of a tile of A begins in a sector ÷ the sector",
		Formula: "max(" + sector("a") + ", trans_a * " + sectorPart("m") + ")",
	},
	{
		Name: "offset_b", Unit: one, When: "resident > 0",
		Doc:     "largest offset at which a row of a tile of B begins in a sector ÷ the sector",
		Formula: "max(" + sector("b") + ", (1 - trans_b) * " + sectorPart("n") + ")",
	},
	{
		Name: "engine_a", Unit: bytes, When: "resident > 0",
		Doc: "what the copy engine of a CTA copies of A in a K step, also outside of the matrix, without what others of " +
			"its cluster copy. Rows along M count as whole lines",
		Formula: `when(trans_a > 0, block_k * ceil(block_m * element_bytes / line_bytes) * line_bytes,
			min(block_m, m) * block_k * element_bytes) / sharers_a`,
	},
	{
		Name: "engine_b", Unit: bytes, When: "resident > 0", Doc: "the same of B",
		Formula: `when(trans_b > 0, columns * block_k * element_bytes,
			block_k * ceil(columns * element_bytes / line_bytes) * line_bytes) / sharers`,
	},
	{
		Name: "engine_bytes", Unit: bytes, When: "resident > 0",
		Doc:     "both, with what rows that begin within a sector cost the engine besides",
		Formula: "engine_a * (1 + crossing * offset_a) + engine_b * (1 + crossing * offset_b)",
	},
	{Name: "steps", Unit: one, Formula: "ceil(cdiv(k, block_k) / split_k)", Doc: "K steps of a CTA"},
	{
		Name: "split_lines", Unit: one, Doc: "cache lines that copies touch besides, because rows begin within a line",
		Formula: `when(misaligned_a + misaligned_b > 0,
			when(trans_a > 0, block_k * ` + split("a", "m") + `, block_m * ` + split("a", "k") + `)
			+ when(trans_b > 0, block_n * ` + split("b", "k") + `, block_k * ` + split("b", "n") + `), 0)`,
	},
	{
		Name: "broken_lines", Unit: one, When: "misaligned_a + misaligned_b > 0",
		Doc: "what asynchronous copies of rows that begin within a sector cost besides, in cache lines",
		Formula: `sector_cost * (
			async_a * ` + sector("a") + ` * when(trans_a > 0, ` + linesOf("k", "m") + `, ` + linesOf("m", "k") + `)
			+ async_b * ` + sector("b") + ` * when(trans_b > 0, ` + linesOf("n", "k") + `, ` + linesOf("k", "n") + `))`,
	},
	{
		Name: "lines", Unit: one,
		Doc: "cache lines that copies touch: rows that wrap within a line touch it once for each time",
		Formula: `tile_lines + max(split_lines, broken_lines)
			+ when(wraps * max(trans_a * (block_m - m), (1 - trans_b) * (block_n - n)) > 0,
			block_k * (trans_a * ` + wrapped("m") + ` + (1 - trans_b) * ` + wrapped("n") + `), 0)`,
	},
	{
		Name: "line_step", Unit: cycles, Doc: "copies: cache lines through the load path, or bytes through the copy engine",
		Formula: "when(resident > 0, engine_bytes / engine_bandwidth, lines / line_rate)",
	},
	{
		Name: "copy_latency", Unit: cycles, Doc: "from the start of a K step to its last copy",
		Formula: `when(resident > 0,
			engine_latency + (sharers * sharers_a - 1) * sharing_latency + engine_bytes / engine_bandwidth,
			lines * line_latency + when(late_copies > 0, instruction_step, 0))`,
	},
	{
		Name: "group", Unit: one, Doc: "rows of tiles that are walked together",
		Formula: "min(when(group_m > 0, group_m, default_group), grid_m)",
	},
	{
		Name: "waves", Unit: one, Common: arch.CommonWaves, Doc: "CTAs of the launch ÷ CTAs that fit on the device",
		Formula: "ctas / (num_sms * ctas_per_sm)",
	},
	{
		Name: "shared_tiles", Unit: one, When: "streams > 0",
		Doc: "tiles that are shared, ÷ CTAs: the last wave, and the one before it if the last is less than half full",
		Formula: `ctas / num_sms - max(0, floor(ctas / num_sms) - when(2 * (ctas - num_sms * floor(ctas / num_sms)) < num_sms,
			when(ctas - num_sms * floor(ctas / num_sms) > 0, 1, 0), 0))`,
	},
	{
		Name: "part", Unit: one, When: "shared_tiles > 0",
		Doc:     "what a CTA has of the shared tiles, at least 4 K steps",
		Formula: "min(ctas * steps, max(4, ceil(shared_tiles * steps))) / steps",
	},
	{
		Name: "ctas_of_sm", Unit: one, Doc: "CTAs of the busiest SM, and its part of the shared tiles",
		Formula: "when(streams > 0, ctas / num_sms - shared_tiles + part, cdiv(ctas, num_sms))",
	},
	{
		Name: "active", Unit: one, Common: arch.CommonActiveUnits, Doc: "SMs at work, on average over the launch",
		Formula: "ctas / ctas_of_sm",
	},
	{
		Name: "full_waves", Unit: one, Doc: "waves in which the SM is full",
		Formula: "when(streams > 0, ctas_of_sm, floor(ctas_of_sm / ctas_per_sm))",
	},
	{
		Name: "tail_ctas", Unit: one, Doc: "CTAs of the busiest SM in the last, partial wave",
		Formula: "ctas_of_sm - full_waves * ctas_per_sm",
	},
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
var timedTerms = slices.Concat([]Term{
	{
		Name: "timed", Unit: one, Input: OfKernel, From: "1 if the characterization has the kernel, else 0",
		Doc: "the kernel was timed by itself",
	},
	{
		Name: "pass_counts", Unit: one,
		Doc:     "1 if the timing pass has the kernel, and rows begin with a cache line, as those of the pass did",
		Formula: "timed * when(misaligned_a + misaligned_b > 0, 0, 1)",
	},
	{Name: "timed_ctas", Unit: one, Input: OfKernel, From: fromPass, Doc: "CTAs of an SM that were timed together"},
	passTime("one", "2048", "one CTA alone"), passTime("one", "6144", "one CTA alone"),
	passTime("chip", "2048", "one CTA on every SM"), passTime("chip", "6144", "one CTA on every SM"),
	passTime("full_chip", "2048", "as many CTAs on every SM as fit"),
	passTime("full_chip", "6144", "as many CTAs on every SM as fit"),
	{
		Name: "timed_fixed", Unit: cycles, When: "timed > 0",
		Doc: "prologue and epilogue: the time of one CTA, carried back to a K of 0",
		Formula: `max(` + passCycles("one", "2048") + `
			- (` + passCycles("one", "6144") + `
				- ` + passCycles("one", "2048") + `) / 4096 * 2048, timed_least_seconds * clock)`,
	},
}, pace("one", "one CTA alone", ""), pace("chip", "one CTA on every SM", "one_loop"),
	pace("full_chip", "as many CTAs on every SM as fit", "chip_loop"))

func passTime(name, k, of string) Term {
	return Term{Name: name + "_" + k, Unit: "s", Input: OfKernel, From: fromPass, Doc: of + ", K = " + k}
}

// passCycles is a time of the pass without the launch.
func passCycles(name, k string) string {
	return "(" + name + "_" + k + " * clock - timed_launch_seconds * clock)"
}

// pace is the K loop at one of the three paces of the pass. More CTAs are never faster than fewer: the loop takes at
// least the one that below names.
func pace(name, of, below string) []Term {
	short, long := name+"_pace", name+"_long_pace"
	first, last := passCycles(name, "2048"), passCycles(name, "6144")
	loop := `min(steps, 2048 / block_k) * ` + short + ` + (steps - min(steps, 2048 / block_k)) * ` + long + ``
	if below != "" {
		loop = "max(" + below + ",\n\t\t" + loop + ")"
	}
	return []Term{
		{
			Name: short, Unit: cycles, When: "timed > 0", Doc: "K step of " + of + ", up to a K of 2048",
			Formula: "max(0, " + first + " - timed_fixed) / (2048 / block_k)",
		},
		{
			Name: long, Unit: cycles, When: "timed > 0", Doc: "K step of " + of + ", beyond a K of 2048",
			Formula: "max(0, " + last + "\n\t- " + first + ") / (4096 / block_k)",
		},
		{Name: name + "_loop", Unit: cycles, When: "timed > 0", Formula: loop, Doc: "K loop of " + of},
	}
}
