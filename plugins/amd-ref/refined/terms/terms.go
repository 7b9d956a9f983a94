// Package terms is the refined model of AMD GPUs as a table: a row per term, with the formula that computes it. The
// formulas are the only text of the model: internal/gen turns them into Go, and `origami explain` prints them.
//
// To add a term, add a row. If it needs an empirical number, add that to quantities.go. Then run `make generate`.
package terms

import (
	"strings"

	"github.com/origami-gemm/origami/core/arch"
)

// Term is a row of the table. A formula may name the parameters of the device, the constants, the quantities, the
// problem, the configuration and the rows above it (core/formula).
type Term struct {
	Name, Unit, Doc string
	Formula         string
	Kind            arch.TermKind
	Common          string // the name that other models have for it (arch.Common…)
	// Input says where the value of a term without a formula comes from.
	Input string
}

// Source is the page that documents the terms.
const Source = "docs/model-amd-refined.md"

// Schema returns the public schema of the breakdown.
func Schema() []arch.Term {
	out := make([]arch.Term, len(Terms))
	for i, t := range Terms {
		text := t.Formula
		if t.Input != "" {
			text = "rule: " + t.Input
		}
		out[i] = arch.Term{
			Name: t.Name, Unit: t.Unit, Formula: text, Doc: t.Doc, Source: Source, Kind: t.Kind, Common: t.Common,
		}
	}
	return out
}

const (
	one    = "1"
	bytes  = "B"
	cycles = "cycles"
)

// Part is a section of the table.
type Part struct {
	Name  string
	Terms []Term
}

// Parts are the sections of the table, for a reader. They have the terms of a wave once: wave_ stands for full_, tail_
// and dealt_ (of stream-K with fewer tiles than CUs), and wave_count for the work-groups per CU.
var Parts = []Part{
	{"the kernel", kernelTerms}, {"one step of one work-group", stepTerms}, {"the grid", gridTerms},
	{"the L2 caches", trafficTerms},
	{"a wave", waveTerms}, {"the total", totalTerms},
}

// Terms is the model, in the order in which it computes.
var Terms = table(kernelTerms, stepTerms, gridTerms, trafficTerms, wave("full", "workgroups_per_cu", "num_cus"),
	wave("tail", "tail_count", "tail_cus"), wave("dealt", "1", "num_cus"), totalTerms)

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

const fromFamily = "from the kernel family"

// What fits on a CU: registers and LDS limit the work-groups.
var kernelTerms = []Term{
	{
		Name: "rate", Unit: "FLOP/cycle", Doc: "peak of one CU",
		Input: "peak rate of the type ÷ (num_cus * clock), of the data sheet",
	},
	{
		Name: "energy_scale", Unit: one, Input: "(peak_fp16 ÷ the peak of the type) to the power of 3/4",
		Doc: "energy of a FLOP ÷ that of a 16-bit FLOP",
	},
	{Name: "waves_m", Unit: one, Input: fromFamily, Doc: "waves along the rows of a tile"},
	{Name: "waves_n", Unit: one, Input: fromFamily, Doc: "waves along the columns of a tile"},
	{Name: "thread_m", Unit: one, Input: fromFamily, Doc: "rows of a thread's tile with FMA, 0 with matrix instructions"},
	{Name: "thread_n", Unit: one, Input: fromFamily, Doc: "columns of that tile"},
	{
		Name: "tile_bytes", Unit: bytes, Common: arch.CommonLoadPerUnit, Doc: "operands of a step",
		Formula: "(block_m + block_n) * block_k * element_bytes",
	},
	{
		Name: "accumulators", Unit: one, Doc: "registers of a lane for sums",
		Formula: "block_m * block_n * local_split / (wave_lanes * num_warps)",
	},
	{
		Name: "registers", Unit: one,
		Doc: "registers of a lane: sums, operands from LDS in two buffers, operands on their way to LDS, addresses",
		Formula: `accumulators + 2 * when(fma > 0, thread_m + thread_n,
				(block_m / waves_m + block_n / waves_n) * instruction_bytes / (4 * wave_lanes))
			+ tile_bytes / (4 * wave_lanes * num_warps) + base_registers`,
	},
	{
		Name: "workgroups_per_cu", Unit: one, Common: arch.CommonCTAsPerUnit, Doc: "work-groups that fit on a CU",
		Formula: `max(1, min(floor(lds_bytes / (num_stages * tile_bytes)),
			floor(simds * floor(registers_per_cu / (simds * wave_lanes)
				/ (ceil(registers / register_granule) * register_granule)) / num_warps), workgroups_limit))`,
	},
}

// One step of one work-group, at each resource of its CU.
var stepTerms = []Term{
	{
		Name: "matrix_step", Unit: cycles, Kind: arch.KindStep, Common: arch.CommonComputeStep,
		Doc:     "matrix cores, or FMA of the vector units",
		Formula: "2 * block_m * block_n * block_k / (rate * compute_share)",
	},
	{
		Name: "lds_step", Unit: cycles, Doc: "LDS: operands out to the waves, and in",
		Formula: `when(fma > 0, wave_lanes * num_warps * (thread_m + thread_n) / local_split,
				block_m * waves_n + block_n * waves_m) * block_k * element_bytes / lds_read_rate
			+ tile_bytes / lds_write_rate`,
	},
	{
		Name: "line_traffic", Unit: bytes, Doc: "cache lines that the operands of a step touch",
		Formula: `line_bytes * (
			when(trans_a > 0, block_k * ceil(block_m * element_bytes / line_bytes),
				block_m * ceil(block_k * element_bytes / line_bytes))
			+ when(trans_b > 0, block_n * ceil(block_k * element_bytes / line_bytes),
				block_k * ceil(block_n * element_bytes / line_bytes)))`,
	},
	{Name: "load_step", Unit: cycles, Formula: "line_traffic / load_rate", Doc: "L1 cache"},
	{
		Name: "chain_step", Unit: cycles, Doc: "one work-group alone: its waves use as many SIMDs as they are",
		Formula: `matrix_step * max(1, simds / num_warps) + step_latency
			+ when(fma > 0, fma_latency * block_k / local_split, 0)`,
	},
}

// The grid, and the waves in which the CUs compute it.
var gridTerms = []Term{
	{
		Name: "tiles_m", Unit: one, Common: arch.CommonTilesM, Doc: "rows of output tiles",
		Formula: "cdiv(m, block_m)",
	},
	{
		Name: "tiles_n", Unit: one, Common: arch.CommonTilesN, Doc: "columns of output tiles",
		Formula: "cdiv(n, block_n)",
	},
	{Name: "tiles", Unit: one, Formula: "tiles_m * tiles_n * batch", Doc: "output tiles"},
	{Name: "steps", Unit: one, Formula: "cdiv(cdiv(k, block_k), split_k)", Doc: "steps of a work-group"},
	{Name: "workgroups", Unit: one, Formula: "tiles * split_k", Doc: "work-groups of the launch"},
	{
		Name: "waves", Unit: one, Common: arch.CommonWaves, Doc: "work-groups ÷ those that fit on the device",
		Formula: "workgroups / (workgroups_per_cu * num_cus)",
	},
	{Name: "full_waves", Unit: one, Formula: "floor(waves)", Doc: "waves that fill the device"},
	{
		Name: "rest", Unit: one, Formula: "workgroups - full_waves * workgroups_per_cu * num_cus",
		Doc: "work-groups of the last wave, if it does not fill the device",
	},
	{Name: "tail_count", Unit: one, Formula: "max(1, ceil(rest / num_cus))", Doc: "of them on the busiest CU"},
	{Name: "tail_cus", Unit: one, Formula: "max(1, min(rest, num_cus))", Doc: "CUs that work on them"},
	{
		Name: "parts", Unit: one, Formula: "max(1, floor(num_cus / tiles))",
		Doc: "work-groups among which stream-K deals the steps of a tile, if there are fewer tiles than CUs",
	},
	{
		Name: "active", Unit: one, Common: arch.CommonActiveUnits, Formula: "min(workgroups, num_cus)",
		Doc: "CUs at work in the first wave",
	},
	{
		Name: "group", Unit: one, Formula: "when(group_m > 0, group_m, default_group)",
		Doc: "rows of tiles that are walked before the next column (work-group mapping)",
	},
	{
		Name: "far_rate", Unit: "B/cycle", Doc: "what the caches of all dies get from behind them: MALL, or DRAM",
		Formula: "when(mall_rate > 0, mall_rate * num_xcds * mall_share, dram_bandwidth / clock * dram_share)",
	},
}

// What the L2 caches load. The work-groups that a die runs at a time form a rectangle of tiles. A step loads each row
// of it from A once, and each column from B.
var trafficTerms = []Term{
	{
		Name: "tiles_per_die", Unit: one, Doc: "tiles that a die works on at a time",
		Formula: "max(1, min(workgroups, workgroups_per_cu * num_cus) / (num_xcds * split_k))",
	},
	{Name: "rows", Unit: one, Formula: "min(group, tiles_m)", Doc: "rows of tiles of the rectangle"},
	{
		Name: "columns", Unit: one, Formula: "min(max(1, tiles_per_die / rows), tiles_n)",
		Doc: "columns of tiles of the rectangle",
	},
	{
		Name: "l2_misses", Unit: bytes, Doc: "operands that the L2 caches load",
		Formula: "tiles * (block_m / columns + block_n / rows) * k * element_bytes",
	},
	{Name: "far", Unit: cycles, Formula: "l2_misses / far_rate", Doc: "MALL for them, or DRAM without one"},
}

// waveTerms are those of one wave. wave_ stands for its name.
var waveTerms = []Term{
	{
		Name: "wave_running", Unit: one, Formula: "wave_count * wave_cus", Doc: "work-groups that run at a time",
	},
	{
		Name: "wave_l2_step", Unit: cycles, Doc: "L2 caches",
		Formula: "wave_running * line_traffic / (l2_rate * num_xcds * l2_share)",
	},
	{
		Name: "wave_power_step", Unit: cycles, Doc: "least time of a step within the power limit of the board",
		Formula: `wave_running * (2 * block_m * block_n * block_k * (energy_per_flop * energy_scale)
			+ tile_bytes * energy_per_byte) / tdp * clock`,
	},
	{
		Name: "wave_step", Unit: cycles, Doc: "a step: resources as the fourth root of the sum of fourth powers",
		Formula: `max(sqrt(sqrt(pow(wave_count * matrix_step, 4) + pow(wave_count * lds_step, 4)
				+ pow(wave_count * load_step, 4) + pow(wave_l2_step, 4)
				+ pow(wave_power_step, 4))), chain_step, load_latency / steps_ahead)`,
	},
	{
		Name: "wave_end", Unit: cycles,
		Doc: "start and output of the work-groups, through their CU and all together; sums of waves that share a tile",
		Formula: `prologue_cycles + load_latency + epilogue_latency
			+ block_m * block_n * when(split_k > 1, accumulator_bytes, output_bytes)
				* max(wave_count / store_rate, wave_running / (far_rate * store_share))
			+ wave_count * (local_split - 1) * (block_m * block_n * accumulator_bytes)
				* (1 / lds_read_rate + 1 / lds_write_rate)`,
	},
}

// wave returns the terms of a wave with count work-groups on each of cus CUs.
func wave(name, count, cus string) []Term {
	out := make([]Term, len(waveTerms))
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

var totalTerms = []Term{
	{
		Name: "launch", Unit: cycles, Kind: arch.KindShare, Formula: "launch_seconds * clock",
		Doc: "launch of the kernel",
	},
	{
		Name: "wave_loops", Unit: cycles, Doc: "steps of all waves",
		Formula: "steps * (full_waves * full_step + when(rest > 0, tail_step, 0))",
	},
	{
		Name: "hidden", Unit: one, Doc: "share of starts and outputs behind which other work-groups of the CU compute",
		Formula: "end_overlap * (1 - 1 / workgroups_per_cu)",
	},
	{
		Name: "last_end", Unit: cycles, Doc: "start and output of the last wave",
		Formula: "when(rest > 0, tail_end, 0)",
	},
	{
		Name: "wave_ends", Unit: cycles, Doc: "starts and outputs of all waves",
		Formula: `hidden * max(when(full_waves > 0, full_end, 0), last_end)
			+ (1 - hidden) * (full_waves * full_end + last_end)`,
	},
	{
		Name: "even_loops", Unit: cycles, Doc: "steps of stream-K, which deals them evenly to all CUs",
		Formula: "when(tiles < num_cus, cdiv(steps, parts) * dealt_step, waves * steps * full_step)",
	},
	{
		Name: "even_ends", Unit: cycles, Doc: "starts and outputs of stream-K, and the sums of tiles that CUs share",
		Formula: `fixup_cycles
			+ when(tiles < num_cus, dealt_end, (hidden + (1 - hidden) * ceil(waves)) * full_end)`,
	},
	{
		Name: "even", Unit: one, Doc: "1 if the steps are dealt evenly: with stream-K, if that is faster",
		Formula: "when(stream_k > 0, when(even_loops + even_ends < wave_loops + wave_ends, 1, 0), 0)",
	},
	{
		Name: "loops", Unit: cycles, Kind: arch.KindShare, Doc: "steps, with what the L2 caches wait for",
		Formula: "sqrt(sqrt(pow(when(even > 0, even_loops, wave_loops), 4) + pow(far, 4)))",
	},
	{
		Name: "ends", Unit: cycles, Kind: arch.KindShare, Formula: "when(even > 0, even_ends, wave_ends)",
		Doc: "starts and outputs of work-groups",
	},
	{
		Name: "dram_total", Unit: bytes, Common: arch.CommonDRAMTotal, Doc: "operands and output, each once",
		Formula: "batch * ((m * k + k * n) * element_bytes + m * n * output_bytes)",
	},
	{
		Name: "requested", Unit: bytes, Common: arch.CommonRequested,
		Doc:     "what CUs ask global memory for: operands of all tiles, output",
		Formula: "workgroups * steps * tile_bytes + batch * m * n * output_bytes",
	},
	{
		Name: "l2_total", Unit: bytes, Common: arch.CommonL2Total, Doc: "through the L2 caches, in whole cache lines",
		Formula: "workgroups * steps * line_traffic + batch * m * n * output_bytes",
	},
	{
		Name: "lds_total", Unit: bytes, Common: arch.CommonSharedTotal, Doc: "that waves read of LDS",
		Formula: `workgroups * steps * when(fma > 0, wave_lanes * num_warps * (thread_m + thread_n) / local_split,
			block_m * waves_n + block_n * waves_m) * block_k * element_bytes`,
	},
	{
		Name: "dram_floor", Unit: cycles, Doc: "least time of DRAM for them",
		Formula: "dram_total / (dram_bandwidth * dram_share) * clock",
	},
	{
		Name: "limit", Unit: cycles, Kind: arch.KindShare, Formula: "max(0, dram_floor - (loops + ends))",
		Doc: "what that floor adds",
	},
	{
		Name: "reduction", Unit: cycles, Kind: arch.KindShare,
		Doc: "adding up the parts of a split K: another launch, which reads them and writes the output",
		Formula: `when(split_k > 1, reduce_seconds * clock
			+ batch * m * n * (2 * accumulator_bytes * split_k + output_bytes) / far_rate, 0)`,
	},
	{
		Name: "total", Unit: cycles, Kind: arch.KindTotal, Common: arch.CommonTotal, Doc: "predicted total",
		Formula: "launch + loops + ends + limit + reduction",
	},
}
