// Package terms is the library model as a table: a row per term, with the formula that computes it. The formulas are
// the only text of the model: internal/gen turns them into Go, and `origami explain` prints them.
//
// To add a term, add a row. If it needs an empirical number, add that to quantities.go with its bounds. Then run
// `make generate`.
package terms

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
)

// Page documents the terms.
const Page = "docs/model-library.md"

const (
	one      = "1"
	bytes    = "B"
	perCycle = "B/cycle"
	cycles   = "cycles"
	seconds  = "s"
)

// OfProblem are the inputs that are set from the types of the problem, OfTiming those that are set from the option
// timing. NearProblem and Nearby are those that published times near the problem give.
const (
	OfProblem   = "problem"
	OfTiming    = "timing"
	NearProblem = "near"
	Nearby      = "nearby"
)

var row, input = model.Row, model.Input

// Terms is the model, in the order in which it computes.
var Terms = model.Table(typeTerms, problemTerms, gridTerms, loopTerms, totalTerms)

// ramp rises from 0 at low to 1 at high.
func ramp(of, low, width string) string {
	return "min(max((" + of + " - " + low + ") / " + width + ", 0), 1)"
}

// caches is the capacity of all caches behind the units.
const caches = "(l2_size + mall_size)"

// What depends on the type of the operands, since the kernels for each have quantities of their own.
var typeTerms = append([]model.Term{
	input("peak", "FLOP/s", OfProblem, "the peak of the data sheet for the type",
		"dense rate of the type of the operands, of all units"),
	input("kernels", one, OfProblem, "4 for fp4, 8 for fp8, 8.5 for int8, 19 for tf32, 32 for fp32, else 16",
		"whose quantities count"),
	input("one_row", one, OfProblem, "1 if m is 1 and the library has kernels without tiles for "+
		"the type and scheme, else 0", "whether these may run"),
}, byType()...)

func byType() (list []model.Term) {
	for _, q := range OfType {
		list = append(list, row(q.Name, q.Unit,
			"when(kernels == 16, "+q.Name+"_16, when(kernels == 8, "+q.Name+"_8, when(kernels == 32, "+
				q.Name+"_32, when(kernels == 19, "+q.Name+"_tf32, when(kernels == 4, "+q.Name+"_4, "+q.Name+
				"_int8)))))", q.Doc))
	}
	return list
}

// What the problem needs, whatever the tile.
var problemTerms = []model.Term{
	row("weights", bytes, "batch * n * k * element_bytes", "B, the weights of a layer"),
	row("activations", bytes, "batch * m * k * element_bytes", "A, the activations of a layer"),
	row("output", bytes, "batch * m * n * output_bytes", "C"),
	row("warm_misses", one, ramp("(weights + activations + output) / (warm_share * "+caches+")", "0.5", "1"),
		"share of the matrices that the caches do not keep from one run to the next"),
	row("cold_weights", one, `max(all_cold, when(layers > 1,
			`+ramp("layers * weights / (weights_share * "+caches+")", "0.8", "0.4")+`, warm_misses))`,
		"share of B that DRAM delivers; of layers in turn, the caches keep the B of each if they hold all"),
	row("cold_activations", one, `max(all_cold, when(layers > 1,
			`+ramp("(activations + output) / (keep_share * "+caches+")", "0.5", "1")+`, warm_misses))`,
		"share of A that DRAM delivers, and of C that it takes"),
	row("reads", bytes, "cold_weights * weights + cold_activations * activations", "from DRAM, each byte once"),
	row("writes", bytes, "cold_activations * output", "to DRAM"),
	row("again_weights", bytes, "weights * "+ramp("weights / (reuse_share * "+caches+")", "0.3", "1"),
		"of B, what the caches do not keep from one wave of tiles to the next"),
	row("again_activations", bytes, "activations * "+ramp("activations / (reuse_share * "+caches+")", "0.3", "1"),
		"the same of A"),
	row("unit_rate", "FLOP/cycle", "peak / (clock * units)", "peak of one unit"),
	row("dram_rate", perCycle, "dram_speed / clock * when(dram_ecc > 0, ecc_share, 1)",
		"peak of DRAM, less what error correction takes"),
	input("halvings", one, OfProblem, "log2(16 ÷ bytes); 0 for fp32, and on AMD, where no such times were recorded",
		"of 16 bytes, until they begin every row of A, B and C"),
	row("narrow", one, "1 + 1.2 * halvings",
		`what loads and stores of less than 16 bytes cost. 1.2: cuBLAS on an H200, 80 products in fp16 and bf16 with unaligned
		rows, least squares of the logarithms; the scatter is 31 % (plugins/nvidia/data/sweeps, 2026-11-23). Taken for other
		generations and types`),
	input("crossings", one, OfProblem, "log2(128 ÷ bytes); 0 but for fp8 on Hopper, of which such times were recorded",
		"of the 128 bytes of a line of the L2, until they begin every row of A and B"),
	row("lines", one, "1 + 0.12 * crossings",
		`of the L2 that a tile takes, ÷ those that it takes if every row begins with one. 0.12: of 0, 0.05, 0.1, 0.12 and 0.15
		the fits of 1,464 times of cuBLAS on an H200 have the losses 13.96, 13.32, 13.04, 13.00 and 12.99
		(plugins/library/published/measured, 2026-11-22)`),
	row("compute_floor", cycles, "2 * batch * m * n * k / (unit_rate * units)", "least time at the peak"),
	row("dram_floor", cycles, "(reads + writes) / dram_rate", "least time of DRAM at its peak"),
}

// The output tiles, and who computes them.
var gridTerms = []model.Term{
	row("tiles_m", one, "cdiv(m, block_m)", "rows of output tiles").As(arch.CommonTilesM),
	row("tiles_n", one, "cdiv(n, block_n)", "columns of output tiles").As(arch.CommonTilesN),
	row("ctas", one, "tiles_m * tiles_n * batch * split_k", "CTAs (workgroups) of the launch"),
	row("steps", one, "cdiv(cdiv(k, block_k), split_k)", "K steps of a CTA"),
	row("resident", one, "min(4 * resident_tiles, max(1, resident_tiles * 16384 / (block_m * block_n)))",
		"CTAs of one unit whose waiting overlaps, as the times show; it may be more than its registers hold"),
	row("ctas_of_unit", one, "cdiv(ctas, units)", "CTAs of the busiest unit"),
	row("active", one, "min(ctas, units)", "units at work").As(arch.CommonActiveUnits),
	row("wave_tiles", one, "active * resident / split_k", "output tiles that are computed at the same time"),
	row("wave_rows", one, "min(tiles_m, max(1, sqrt(wave_tiles * block_n / block_m)))",
		"rows of tiles of a wave: it is about square, in elements"),
	row("wave_columns", one, "min(tiles_n, max(1, wave_tiles / wave_rows))", "columns of tiles of a wave"),
	row("read_again", bytes, `when(wave_tiles < tiles_m * tiles_n * batch,
			min((tiles_m / wave_rows - 1) * again_weights, (tiles_n / wave_columns - 1) * again_activations), 0)`,
		"from DRAM besides: what a wave needs again and the caches did not keep"),
	row("dram_bytes", bytes, "reads + writes + read_again", "through DRAM").As(arch.CommonDRAMTotal),
	row("tile_bytes", bytes, "(block_m + block_n) * steps * block_k * element_bytes", "operands of a CTA"),
	row("die_tiles", one, "max(1, units * resident / (l2_count * split_k))",
		"output tiles that one die computes at the same time"),
	row("die_rows", one, "min(tiles_m, max(1, sqrt(die_tiles * block_n / block_m)))",
		"rows of these tiles: they are about square, in elements"),
	row("die_columns", one, "min(tiles_n, max(1, die_tiles / die_rows))", "columns of these tiles"),
	row("far_bytes", bytes, `(tiles_m * block_m * (tiles_n / die_columns) + tiles_n * block_n * (tiles_m / die_rows))
			* batch * split_k * steps * block_k * element_bytes`,
		"from beyond the L2 of a die: each die reads A and B for itself"),
}

// The loops over K of all CTAs, and their output. They take as long as the busiest resource, with a smooth transition:
// the fourth root of the sum of the fourth powers.
var loopTerms = []model.Term{
	row("matrix", cycles, `ctas_of_unit * (2 * block_m * block_n * steps * block_k * (1 / (unit_rate * rate_share))
			+ tile_bytes * (1 / feed))`, "matrix instructions of the busiest unit, and what they wait for operands"),
	row("l2", cycles, `max(max(lines * tile_bytes * ctas_of_unit * (1 / l2_port),
			lines * tile_bytes * ctas * (1 / (units * l2_share))),
			far_bytes * (1 / (units * far_share)))`,
		"operands: of the busiest unit through its port, of all through the L2, or from beyond it"),
	row("dram", cycles,
		"(reads + read_again) * (1 / (dram_rate * read_share)) + writes * (1 / (dram_rate * write_share))", "DRAM"),
	row("step", cycles, "(step_seconds + max(cold_weights, cold_activations) * cold_step_seconds) * clock",
		"least time of a K step of one CTA: loads wait for the L2, and some for DRAM"),
	row("latency", cycles, "max(1, ctas_of_unit / resident) * (cta_seconds * clock + steps * step)",
		"K steps one after another, of the CTAs that a unit has in turn"),
	row("store", cycles, "ctas_of_unit * block_m * block_n * output_bytes * (1 / store_rate)",
		"output of the busiest unit"),
	row("inner", cycles, "(sqrt(sqrt(pow(matrix, 4) + pow(l2, 4) + pow(latency, 4))) + store) * (1 / clock_gain)",
		"all but DRAM"),
	row("tiled", cycles, "sqrt(sqrt(pow(inner, 4) + pow(dram, 4)))", "all loops over K, and the output"),
	row("gemv", cycles, `sqrt(sqrt(pow(weights * (1 / (units * gemv_rate)), 4) + pow(dram, 4)))
			+ k * element_bytes / 128 * (gemv_seconds * clock)`,
		"the same in a kernel for one row of A: no part of a tile is idle"),
	row("loop", cycles, "when(one_row > 0, min(narrow * tiled, gemv), narrow * tiled)",
		"the faster of both, for one row of A").Share(),
}

// The total, and the shares of which it is the sum.
var totalTerms = []model.Term{
	row("launch", cycles, "(launch_seconds + max(cold_weights, cold_activations) * cold_seconds) * clock",
		"launch, start of the first CTA, output of the last; the first loads wait for DRAM").Share(),
	row("limits", cycles, "max(max(compute_floor, dram_floor) - loop, 0)",
		"what the peaks of the data sheet add").Share(),
	row("reduction", cycles, `when(split_k > 1, split_seconds * clock
			+ 2 * max(1, ctas / units) * block_m * block_n * 4 * (1 / reduce_rate), 0)`,
		"adding up the parts of a split K").Share(),
	row("cold_wide", one, "max(all_cold, "+
		ramp("batch * m * k * (2 + element_bytes) / (wide_share * "+caches+")", "0.7", "0.6")+")",
		"share of A in 16 bits, and of what it is quantised to, that DRAM moves"),
	row("quantise", cycles, `quantises * (quantise_seconds * clock + batch * m * k * (2 + element_bytes)
			* max(1 / (units * quantise_rate), cold_wide / (dram_rate * quantise_share)))`,
		"quantising A from 16 bits, if the option scheme has it inside the time").Share(),
	row("busy", cycles, "launch + loop + limits + reduction + quantise", "all of that"),
	row("thrift", one, "when(unit_watts > 0, pow(min(tdp / (units * unit_watts), 1), 0.4), 1)",
		`of the energy, at the lower clock and voltage that a lower power limit leaves. 0.4: of 0, 0.2, 0.3, 0.4, 0.5 and 0.6
		the published times from 4096x4096x4096 on of an H100 PCIe of 350 W, six in fp16, bf16 and tf32, have the errors
		0.163, 0.093, 0.065, 0.057, 0.074 and 0.108, roots of the mean square of logarithms`),
	row("power", cycles, "when(tdp > 0, 2 * batch * m * n * k * (energy * thrift / tdp) * clock, 0)",
		"least time within the power limit, once a run is long; 0 if the limit is unknown"),
	row("throttle", cycles, "max(power - loop, 0) * (busy / (busy + throttle_seconds * clock))",
		"what the power limit adds").Share(),
	input("stopwatch", cycles, OfTiming, "what core/timing adds for the option timing to kernels back to back",
		"what the stopwatch counts besides the kernel, or is missing to the order of timings").Share(),
	input("near_times", one, NearProblem, "up to 8 of the timing, or of the one that it adds to",
		"published times near the problem, in log M, log N and log K").As(arch.CommonNearTimes),
	input("near_set", one, NearProblem, "its number in the source", "the published times that the nearest of them is of").
		As(arch.CommonNearSet),
	input("near_distance", one, NearProblem, "Euclidean, 0 without a time", "of the nearest of them, in these logarithms").
		As(arch.CommonNearDistance),
	input("near_residual", one, NearProblem, "of package core/residual",
		"log(measured ÷ predicted) that the times near the problem show").As(arch.CommonNearResidual),
	input("near_spread", one, NearProblem, "of package core/residual",
		"standard deviation of what is left of it; 0 if the times say less than the model's own error"),
	input("nearby", cycles, Nearby, "exp(near_residual) - 1 of the total, without stopwatch if the times are of the "+
		"timing "+
		"that it adds to, and at least what leads to compute_floor and dram_floor",
		"what published times near the problem add, down to the peaks of the data sheet").Share(),
	row("total", cycles, "busy + throttle + stopwatch + nearby", "predicted total").Total(),
}
