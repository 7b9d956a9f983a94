// Package terms is the library model as a table: a row per term, with the formula that computes it. The formulas are the
// only text of the model. Generators turn them into its Go code and into its page, docs/model-library.md (internal/gen).
// `origami explain` prints them.
//
// To add a term, add a row. If it needs an empirical number, add that to quantities.go with its bounds. Then run
// `make generate`.
package terms

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
)

// Term is a row of the table. A formula may name the numbers of the machine, the constants, the quantities, the problem,
// the configuration and the rows above it (core/formula).
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
var Parts = []Part{{"the problem", problemTerms}, {"the grid", gridTerms}, {"the loop", loopTerms}, {"the total", totalTerms}}

// Terms is the model, in the order in which it computes. Operations are done in the order in which they are written: the
// results are the same bits everywhere.
var Terms = table(problemTerms, gridTerms, loopTerms, totalTerms)

// table puts parts together, with each formula on one line.
func table(parts ...[]Term) []Term {
	out := slices.Concat(parts...)
	for i := range out {
		out[i].Formula = strings.ReplaceAll(strings.Join(strings.Fields(out[i].Formula), " "), "( ", "(")
	}
	return out
}

// What the problem needs, whatever the tile.
var problemTerms = []Term{
	{
		Name: "peak", Unit: "FLOP/s", Doc: "dense rate of the type of the operands, of all units",
		From: "the peak of the data sheet for the type",
	},
	{Name: "a_bytes", Unit: bytes, Formula: "batch * m * k * element_bytes", Doc: "A"},
	{Name: "b_bytes", Unit: bytes, Formula: "batch * n * k * element_bytes", Doc: "B, the weights of a layer"},
	{Name: "c_bytes", Unit: bytes, Formula: "batch * m * n * output_bytes", Doc: "C"},
	{
		Name: "b_from_dram", Unit: one, Doc: "share of B that DRAM delivers: what the L2 cannot keep of the layers in turn",
		Formula: `max(all_cold, min(max(
			(layers * b_bytes / (l2_usable_share * (l2_size + mall_size)) - 0.7) / 0.6, 0), 1))`,
	},
	{
		Name: "a_from_dram", Unit: one, Doc: "share of A and C that pass through DRAM: what the L2 cannot keep",
		Formula: `max(all_cold, min(max(
			((a_bytes + c_bytes) / (l2_usable_share * (l2_size + mall_size)) - 0.5), 0), 1))`,
	},
	{
		Name: "dram_bytes", Unit: bytes, Common: arch.CommonDRAMTotal, Doc: "through DRAM, each byte once",
		Formula: "b_from_dram * b_bytes + a_from_dram * (a_bytes + c_bytes)",
	},
	{
		Name: "unit_rate", Unit: "FLOP/cycle", Doc: "peak of one unit",
		Formula: "peak / (clock * units)",
	},
	{
		Name: "compute_floor", Unit: cycles, Doc: "least time at the peak",
		Formula: "2 * batch * m * n * k / (unit_rate * units)",
	},
	{
		Name: "dram_floor", Unit: cycles, Doc: "least time of DRAM at its peak",
		Formula: "dram_bytes / (dram_speed / clock)",
	},
}

// The output tiles, and who computes them.
var gridTerms = []Term{
	{Name: "tiles_m", Unit: one, Common: arch.CommonTilesM, Formula: "cdiv(m, block_m)", Doc: "rows of output tiles"},
	{Name: "tiles_n", Unit: one, Common: arch.CommonTilesN, Formula: "cdiv(n, block_n)", Doc: "columns of output tiles"},
	{Name: "ctas", Unit: one, Formula: "tiles_m * tiles_n * batch * split_k", Doc: "CTAs (workgroups) of the launch"},
	{Name: "steps", Unit: one, Formula: "cdiv(cdiv(k, block_k), split_k)", Doc: "K steps of a CTA"},
	{Name: "ctas_of_unit", Unit: one, Common: arch.CommonWaves, Formula: "cdiv(ctas, units)", Doc: "CTAs of the busiest unit"},
	{Name: "active", Unit: one, Common: arch.CommonActiveUnits, Formula: "min(ctas, units)", Doc: "units at work"},
	{
		Name: "tile_efficiency", Unit: one, Doc: "share of the peak of a unit that the loop of a tile reaches",
		Formula: "rate_share / (1 + half_tile / block_m + half_tile / block_n)",
	},
}

// The loops over K of all CTAs. They take as long as the busiest resource, with a smooth transition: the fourth root of
// the sum of the fourth powers.
var loopTerms = []Term{
	{
		Name: "matrix", Unit: cycles, Doc: "matrix instructions of the busiest unit",
		Formula: "ctas_of_unit * 2 * block_m * block_n * steps * block_k / (unit_rate * tile_efficiency)",
	},
	{
		Name: "l2", Unit: cycles, Doc: "operands of the CTAs of the busiest unit through its port",
		Formula: "ctas_of_unit * (block_m + block_n) * steps * block_k * element_bytes / l2_port",
	},
	{
		Name: "dram", Unit: cycles, Doc: "DRAM; one CTA cannot draw all of its bandwidth",
		Formula: `max(dram_bytes / (dram_speed / clock * dram_share),
			(a_from_dram * block_m + b_from_dram * block_n) * steps * block_k * element_bytes / cta_draw)`,
	},
	{
		Name: "latency", Unit: cycles, Doc: "K steps one after another, of the CTAs that a unit has in turn",
		Formula: "max(1, ctas_of_unit * block_m * block_n / resident_tile) * (fill_seconds + steps * step_seconds) * clock",
	},
	{
		Name: "loop", Unit: cycles, Kind: arch.KindShare, Doc: "all loops over K",
		Formula: "sqrt(sqrt(pow(matrix, 4) + pow(l2, 4) + pow(dram, 4) + pow(latency, 4)))",
	},
}

// The total, and the shares of which it is the sum.
var totalTerms = []Term{
	{
		Name: "launch", Unit: cycles, Kind: arch.KindShare, Doc: "launch, start of the first CTA, output of the last",
		Formula: "launch_seconds * clock",
	},
	{
		Name: "reduction", Unit: cycles, Kind: arch.KindShare, Doc: "adding up the parts of a split K",
		Formula: `when(split_k > 1, split_seconds * clock
			+ 2 * ctas * block_m * block_n * 4 / (active * reduce_rate), 0)`,
	},
	{
		Name: "limits", Unit: cycles, Kind: arch.KindShare, Doc: "what the peaks of the data sheet add",
		Formula: "max(max(compute_floor, dram_floor) - loop, 0)",
	},
	{
		Name: "total", Unit: cycles, Kind: arch.KindTotal, Common: arch.CommonTotal, Doc: "predicted total",
		Formula: "launch + loop + limits + reduction",
	},
}
