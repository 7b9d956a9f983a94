// Package terms is the library model as a table: a row per term, with the formula that computes it. The formulas are
// the only text of the model. Generators turn them into its Go code and into its page, docs/model-library.md
// (internal/gen). `origami explain` prints them.
//
// To add a term, add a row. If it needs an empirical number, add that to quantities.go with its bounds. Then run
// `make generate`.
package terms

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
)

// Term is a row of the table. A formula may name the numbers of the machine, the constants, the quantities, the
// problem, the configuration and the rows above it (core/formula).
type Term struct {
	Name, Unit, Doc string
	// Formula computes the term. A term without one is set from the types of the problem, and From says how.
	Formula, From string
	Kind          arch.TermKind
	Common        string // the name that other models have for it (arch.Common…)
}

// Source is the page that documents the terms.
const Source = "docs/model-library.md"

// Schema returns the public schema of the breakdown.
func Schema() []arch.Term {
	out := make([]arch.Term, len(Terms))
	for i, t := range Terms {
		out[i] = arch.Term{
			Name: t.Name, Unit: t.Unit, Formula: t.Formula, Doc: t.Doc, Source: Source, Kind: t.Kind, Common: t.Common,
		}
		if t.Formula == "" {
			out[i].Formula = "rule: " + t.From
		}
	}
	return out
}

const (
	one      = "1"
	bytes    = "B"
	perCycle = "B/cycle"
	cycles   = "cycles"
	seconds  = "s"
)

// Part is a section of the table.
type Part struct {
	Name  string
	Terms []Term
}

// Parts are the sections of the table, for a reader.
var Parts = []Part{
	{"the type", typeTerms}, {"the problem", problemTerms}, {"the grid", gridTerms}, {"the loop", loopTerms},
	{"the total", totalTerms},
}

// Terms is the model, in the order in which it computes. Operations are done in the order in which they are written:
// the results are the same bits everywhere.
var Terms = table(typeTerms, problemTerms, gridTerms, loopTerms, totalTerms)

// table puts parts together, with each formula on one line.
func table(parts ...[]Term) []Term {
	out := slices.Concat(parts...)
	for i := range out {
		out[i].Formula = strings.ReplaceAll(strings.Join(strings.Fields(out[i].Formula), " "), "( ", "(")
	}
	return out
}

// ramp rises from 0 at low to 1 at high.
func ramp(of, low, width string) string {
	return "min(max((" + of + " - " + low + ") / " + width + ", 0), 1)"
}

// caches is the capacity of all caches behind the units.
const caches = "(l2_size + mall_size)"

// What depends on the type of the operands, since the kernels for each have quantities of their own.
var typeTerms = append([]Term{
	{
		Name: "peak", Unit: "FLOP/s", Doc: "dense rate of the type of the operands, of all units",
		From: "the peak of the data sheet for the type",
	},
	{
		Name: "kernels", Unit: one, Doc: "whose quantities count",
		From: "4 for fp4, 8 for fp8, 8.5 for int8, 19 for tf32, 32 for fp32, else 16",
	},
}, byType()...)

func byType() (list []Term) {
	for _, q := range ofType {
		list = append(list, Term{
			Name: q.Name, Unit: q.Unit, Doc: q.Doc,
			Formula: "when(kernels == 16, " + q.Name + "_16, when(kernels == 8, " + q.Name + "_8, when(kernels == 32, " +
				q.Name + "_32, when(kernels == 19, " + q.Name + "_tf32, when(kernels == 4, " + q.Name + "_4, " + q.Name +
				"_int8)))))",
		})
	}
	return list
}

// What the problem needs, whatever the tile.
var problemTerms = []Term{
	{
		Name: "weights", Unit: bytes, Formula: "batch * n * k * element_bytes", Doc: "B, the weights of a layer",
	},
	{
		Name: "activations", Unit: bytes, Formula: "batch * m * k * element_bytes", Doc: "A, the activations of a layer",
	},
	{Name: "output", Unit: bytes, Formula: "batch * m * n * output_bytes", Doc: "C"},
	{
		Name: "warm_misses", Unit: one, Doc: "share of the matrices that the caches do not keep from one run to the next",
		Formula: ramp("(weights + activations + output) / (keep_share * "+caches+")", "0.5", "1"),
	},
	{
		Name: "cold_weights", Unit: one,
		Doc: "share of B that DRAM delivers; of layers in turn, the caches keep the B of each if they hold all",
		Formula: `max(all_cold, when(layers > 1,
			` + ramp("layers * weights / (weights_share * "+caches+")", "0.8", "0.4") + `, warm_misses))`,
	},
	{
		Name: "cold_activations", Unit: one, Doc: "share of A that DRAM delivers, and of C that it takes",
		Formula: `max(all_cold, when(layers > 1,
			` + ramp("(activations + output) / (keep_share * "+caches+")", "0.5", "1") + `, warm_misses))`,
	},
	{
		Name: "reads", Unit: bytes, Formula: "cold_weights * weights + cold_activations * activations",
		Doc: "from DRAM, each byte once",
	},
	{Name: "writes", Unit: bytes, Formula: "cold_activations * output", Doc: "to DRAM"},
	{
		Name: "again_weights", Unit: bytes, Doc: "of B, what the caches do not keep from one wave of tiles to the next",
		Formula: "weights * " + ramp("weights / (reuse_share * "+caches+")", "0.3", "1"),
	},
	{
		Name: "again_activations", Unit: bytes, Doc: "the same of A",
		Formula: "activations * " + ramp("activations / (reuse_share * "+caches+")", "0.3", "1"),
	},
	{
		Name: "unit_rate", Unit: "FLOP/cycle", Doc: "peak of one unit",
		Formula: "peak / (clock * units)",
	},
	{Name: "dram_rate", Unit: perCycle, Formula: "dram_speed / clock", Doc: "peak of DRAM"},
	{
		Name: "compute_floor", Unit: cycles, Doc: "least time at the peak",
		Formula: "2 * batch * m * n * k / (unit_rate * units)",
	},
	{
		Name: "dram_floor", Unit: cycles, Doc: "least time of DRAM at its peak",
		Formula: "(reads + writes) / dram_rate",
	},
}

// The output tiles, and who computes them.
var gridTerms = []Term{
	{Name: "tiles_m", Unit: one, Common: arch.CommonTilesM, Formula: "cdiv(m, block_m)", Doc: "rows of output tiles"},
	{Name: "tiles_n", Unit: one, Common: arch.CommonTilesN, Formula: "cdiv(n, block_n)", Doc: "columns of output tiles"},
	{Name: "ctas", Unit: one, Formula: "tiles_m * tiles_n * batch * split_k", Doc: "CTAs (workgroups) of the launch"},
	{Name: "steps", Unit: one, Formula: "cdiv(cdiv(k, block_k), split_k)", Doc: "K steps of a CTA"},
	{
		Name: "resident", Unit: one,
		Doc:     "CTAs of one unit whose waiting overlaps, as the times show; it may be more than its registers hold",
		Formula: "min(4 * resident_tiles, max(1, resident_tiles * 16384 / (block_m * block_n)))",
	},
	{Name: "ctas_of_unit", Unit: one, Formula: "cdiv(ctas, units)", Doc: "CTAs of the busiest unit"},
	{Name: "active", Unit: one, Common: arch.CommonActiveUnits, Formula: "min(ctas, units)", Doc: "units at work"},
	{
		Name: "wave_tiles", Unit: one, Formula: "active * resident / split_k",
		Doc: "output tiles that are computed at the same time",
	},
	{
		Name: "wave_rows", Unit: one, Doc: "rows of tiles of a wave: it is about square, in elements",
		Formula: "min(tiles_m, max(1, sqrt(wave_tiles * block_n / block_m)))",
	},
	{
		Name: "wave_columns", Unit: one, Doc: "columns of tiles of a wave",
		Formula: "min(tiles_n, max(1, wave_tiles / wave_rows))",
	},
	{
		Name: "read_again", Unit: bytes, Doc: "from DRAM besides: what a wave needs again and the caches did not keep",
		Formula: `when(wave_tiles < tiles_m * tiles_n * batch,
			min((tiles_m / wave_rows - 1) * again_weights, (tiles_n / wave_columns - 1) * again_activations), 0)`,
	},
	{
		Name: "dram_bytes", Unit: bytes, Common: arch.CommonDRAMTotal, Doc: "through DRAM",
		Formula: "reads + writes + read_again",
	},
	{
		Name: "tile_bytes", Unit: bytes, Doc: "operands of a CTA",
		Formula: "(block_m + block_n) * steps * block_k * element_bytes",
	},
	{
		Name: "die_tiles", Unit: one, Doc: "output tiles that one die computes at the same time",
		Formula: "max(1, units * resident / (l2_count * split_k))",
	},
	{
		Name: "die_rows", Unit: one, Doc: "rows of these tiles: they are about square, in elements",
		Formula: "min(tiles_m, max(1, sqrt(die_tiles * block_n / block_m)))",
	},
	{
		Name: "die_columns", Unit: one, Doc: "columns of these tiles",
		Formula: "min(tiles_n, max(1, die_tiles / die_rows))",
	},
	{
		Name: "far_bytes", Unit: bytes, Doc: "from beyond the L2 of a die: each die reads A and B for itself",
		Formula: `(tiles_m * block_m * (tiles_n / die_columns) + tiles_n * block_n * (tiles_m / die_rows))
			* batch * split_k * steps * block_k * element_bytes`,
	},
}

// The loops over K of all CTAs, and their output. They take as long as the busiest resource, with a smooth transition:
// the fourth root of the sum of the fourth powers.
var loopTerms = []Term{
	{
		Name: "matrix", Unit: cycles, Doc: "matrix instructions of the busiest unit, and what they wait for operands",
		Formula: `ctas_of_unit * (2 * block_m * block_n * steps * block_k * (1 / (unit_rate * rate_share))
			+ tile_bytes * (1 / feed))`,
	},
	{
		Name: "l2", Unit: cycles,
		Doc: "operands: of the busiest unit through its port, of all through the L2, or from beyond it",
		Formula: `max(max(tile_bytes * ctas_of_unit * (1 / l2_port), tile_bytes * ctas * (1 / (units * l2_share))),
			far_bytes * (1 / (units * far_share)))`,
	},
	{
		Name: "dram", Unit: cycles, Doc: "DRAM",
		Formula: "(reads + read_again) * (1 / (dram_rate * read_share)) + writes * (1 / (dram_rate * write_share))",
	},
	{
		Name: "step", Unit: cycles, Doc: "least time of a K step of one CTA: loads wait for the L2, and some for DRAM",
		Formula: "(step_seconds + max(cold_weights, cold_activations) * cold_step_seconds) * clock",
	},
	{
		Name: "latency", Unit: cycles, Doc: "K steps one after another, of the CTAs that a unit has in turn",
		Formula: "max(1, ctas_of_unit / resident) * (cta_seconds * clock + steps * step)",
	},
	{
		Name: "store", Unit: cycles, Doc: "output of the busiest unit",
		Formula: "ctas_of_unit * block_m * block_n * output_bytes * (1 / store_rate)",
	},
	{
		Name: "inner", Unit: cycles, Doc: "all but DRAM",
		Formula: "sqrt(sqrt(pow(matrix, 4) + pow(l2, 4) + pow(latency, 4))) + store",
	},
	{
		Name: "loop", Unit: cycles, Kind: arch.KindShare, Doc: "all loops over K, and the output",
		Formula: "sqrt(sqrt(pow(inner, 4) + pow(dram, 4)))",
	},
}

// The total, and the shares of which it is the sum.
var totalTerms = []Term{
	{
		Name: "launch", Unit: cycles, Kind: arch.KindShare,
		Doc:     "launch, start of the first CTA, output of the last; the first loads wait for DRAM",
		Formula: "(launch_seconds + max(cold_weights, cold_activations) * cold_seconds) * clock",
	},
	{
		Name: "limits", Unit: cycles, Kind: arch.KindShare, Doc: "what the peaks of the data sheet add",
		Formula: "max(max(compute_floor, dram_floor) - loop, 0)",
	},
	{
		Name: "reduction", Unit: cycles, Kind: arch.KindShare, Doc: "adding up the parts of a split K",
		Formula: `when(split_k > 1, split_seconds * clock
			+ 2 * max(1, ctas / units) * block_m * block_n * 4 * (1 / reduce_rate), 0)`,
	},
	{
		Name: "cold_wide", Unit: one, Doc: "share of A in 16 bits, and of what it is quantised to, that DRAM moves",
		Formula: "max(all_cold, " +
			ramp("batch * m * k * (2 + element_bytes) / (wide_share * "+caches+")", "0.7", "0.6") + ")",
	},
	{
		Name: "quantise", Unit: cycles, Kind: arch.KindShare,
		Doc: "quantising A from 16 bits, if the option scheme has it inside the time",
		Formula: `quantises * (quantise_seconds * clock + batch * m * k * (2 + element_bytes)
			* max(1 / (units * quantise_rate), cold_wide / (dram_rate * quantise_share)))`,
	},
	{
		Name: "busy", Unit: cycles, Formula: "launch + loop + limits + reduction + quantise", Doc: "all of that",
	},
	{
		Name: "power", Unit: cycles, Doc: "least time within the power limit, once a run is long; 0 if the limit is unknown",
		Formula: "when(tdp > 0, 2 * batch * m * n * k * (energy / tdp) * clock, 0)",
	},
	{
		Name: "throttle", Unit: cycles, Kind: arch.KindShare, Doc: "what the power limit adds",
		Formula: "max(power - loop, 0) * (busy / (busy + throttle_seconds * clock))",
	},
	{
		Name: "total", Unit: cycles, Kind: arch.KindTotal, Common: arch.CommonTotal, Doc: "predicted total",
		Formula: "busy + throttle",
	},
}
