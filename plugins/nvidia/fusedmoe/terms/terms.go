// Package terms is the model of kernels for experts as a table: a row per term, with the formula that computes it, and
// its empirical numbers. internal/gen turns the formulas into Go.
package terms

import (
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
)

// DataSet is what the quantities were fitted to: testdata/README.md.
const DataSet = "fused-moe"

// Page documents the terms.
const Page = "docs/serving.md"

const (
	one    = "1"
	cycles = "cycles"
)

// OfConfig are the terms that the model's own code sets.
const OfConfig = "config"

const family, problem = "from the kernel family", "from the problem"

var row, input = model.Row, model.Input

// Terms are the terms beside those of the product. A product of a layer of experts takes the time of Triton's tutorial
// kernel, times what the kernel's own ways change of that. The first product also has the kernels around both.
var Terms = model.Table([]model.Term{
	input("product", cycles, OfConfig, "the total of the family triton (docs/model-pipelined.md) in the timing model",
		"the product with Triton's tutorial kernel"),
	input("experts", one, OfConfig, problem, "1 for groups of rows, 0 for one matrix"),
	input("rows", one, OfConfig, problem, "rows of an expert that gets any, on average"),
	input("matrices", one, OfConfig, problem, "experts that get rows, or the batch"),
	input("scale_block", one, OfConfig, family, "elements along K and along N that have a scale in common, 0 for all"),
	input("top_k", one, OfConfig, "from the axis top_k", "experts of a token in a first product, 0 in a second one"),
	input("swap_ab", one, OfConfig, "from the axis swap_ab", "1 if the server exchanges A and B of fp8"),
	row("rows_busy", one, "rows * rows / (rows * rows + half_busy_rows * half_busy_rows)",
		"share of the time in which the tensor cores are busy: tiles of B are read once for all rows of an expert"),
	row("busy_way", one, "pow(busy_factor, rows_busy)", "computing takes longer, beside the time of reading"),
	row("short_way", one, "pow(short_factor, (1 - rows_busy) * pow(64 / (block_k * element_bytes), 2))",
		"short rows of B in a tile are read more slowly"),
	row("wide_way", one, "when(scale_block > 0, 1, pow(block_n / 64, wide_exponent * (1 - rows_busy)))",
		"so are wide tiles, of which fewer run at a time"),
	row("gather_way", one, `when(scale_block > 0, 1, pow(when(block_m == 128 && block_n == 256, gather_factor, 1)
			* when(num_warps == 4, four_warps_factor, 1), rows_busy))`,
		"gathered rows of A cost more than rows of B, a tile of 128x256 gathers the fewest for its work, and four warps "+
			"hide less of it than eight"),
	row("swap_way", one, `when(swap_ab * experts > 0 && element_bytes == 1 && block_m < 64,
			when(scale_block > 0, 1, pow(small_factor, rows / (rows + 4)))
			* when(block_n < 64, 1, swap_factor * when(block_k > 128, long_factor, 1)), 1)`,
		"A and B of fp8 are exchanged where the columns of a tile fill wgmma and its rows do not"),
	row("scale_way", one, `when(scale_block > 0, when(num_stages == 2, two_stages_factor, 1)
			* when(block_m * block_n > 64 * 32 * num_warps, spill_factor, 1)
			* when(experts > 0, scale_factor * when(num_warps == 8, pow(eight_warps_factor, rows_busy), 1), matrix_factor
				* when(block_m > 64, pow(when(num_warps == 8, eight_warps_factor, tall_factor), rows_busy), 1)), 1)`,
		"with scales per block, a step's sum waits for its product before it is added to another accumulator: two stages "+
			"hide less, warps of tall tiles wait for each other, and two accumulators of more than 64 elements per thread "+
			"spill"),
	row("slowdown", one, `when(experts > 0, product_scale, 1)
			* (busy_way * short_way * wide_way * gather_way * swap_way * scale_way)`, "time of the kernel ÷ product"),
	row("sm_tiles", one, "ceil(ceil(rows / block_m) * ceil(n / block_n) / num_sms)", "tiles of the SM that has the most"),
	row("scale_step", cycles, `scale_wait + when(block_m < 32, 0, when(block_m < 64, middle_wait, tall_wait))
			+ max(block_m, 64) * block_n * sm_tiles / scaled_per_cycle
			+ when(rows == 1 && block_m >= 4 * num_warps && block_m * ceil(n / block_n) > 9 * num_sms,
				one_row_wait * sqrt(block_m / 16), 0)
			+ when(block_m * block_n < 16 * 8 * num_warps, idle_warps_wait, 0)`,
		"least time of a K step with scales per block: the scales arrive, the product ends, the sums are scaled and added"),
	row("scale_floor", cycles, `when(scale_block > 0 && experts == 0, when(scale_wait > 0, matrix_cycles
			+ ceil(k / block_k) * sqrt(block_k / scale_block) * scale_step, 0), 0)`,
		"least time of a matrix with scales per block, however many stages there are"),
	row("ways", cycles, `sqrt(sqrt(sqrt(pow(product * slowdown, 8) + pow(scale_floor, 8)))) - product`,
		"what the kernel's own ways change of the product: the eighth root of a sum of eighth powers is close to the "+
			"longer of both times").Share(),
	row("elementwise_pass", cycles, `when(top_k > 0, elementwise * output_bytes
			* (rows * matrices * (1.5 * n) + rows * matrices * k + rows * matrices / top_k * k) / dram_bandwidth * clock, 0)`,
		"gated activation, and sum over a token's experts: what they read and write once, at a share of DRAM's peak").
		Share(),
	row("other_kernels", cycles, "when(top_k > 0, other_kernels_seconds * clock, 0)", "sorting the rows by expert").
		Share(),
	row("told_apart", one, `when(scale_block > 0 && experts > 0, told_of_blocks,
			when(rows >= many_rows, told_of_many, told_of_few))`,
		"least time of a kernel ÷ that of another from which on the other is known to be faster").As(arch.CommonToldApart),
	row("total", cycles, "product + ways + elementwise_pass + other_kernels", "predicted total").Total(),
})

const (
	published = "fitted on published times of vLLM's layer on an H100, an H200, an L40S and an RTX PRO 6000, of half of " +
		"the shapes"
	measured = "fitted on all tiles of vLLM's tuner for 54 layers and numbers of tokens, measured on one H100 " +
		"(experiments/experts-on-h100)"
	matrices = "fitted on 8,688 times of one H100, 230 of vLLM 0.33.0's kernel on one H200, and half of the winners of " +
		"vLLM's and SGLang's tables for Hopper (testdata/README.md)"
	servers   = "found on 240 times of vLLM 0.33.0's kernels on one H200"
	exchanged = "24 layers and numbers of tokens in vLLM 0.33.0's kernel on one H200, 1.03 to 1.13 times as fast"
	assumed   = "assumed to have no effect: tiles were measured on Hopper alone, and vLLM's own tables for others " +
		"contradict what was found there"
	winners = "what winners of vLLM's own tables are predicted to lose, which says how well kernels are told apart"
)

func of(q model.Quantity, source string) model.Quantity { return q.From(DataSet, source) }

// hopper is the generation of devices on which tiles were measured.
const hopper = "hopper"

// onHopper is a quantity that was found on Hopper and has no effect elsewhere.
func onHopper(name string, value, low, high, off float64, source, doc string) model.Quantity {
	q := model.Bounded(name, one, off, low, high, doc).Off(off)
	q.Source = assumed
	q.Rungs = []model.Value{{Of: hopper, Value: value, Source: source, DataSet: DataSet}}
	return q
}

// onBlackwell adds the value of a quantity that was found on Hopper for the data center's Blackwells.
func onBlackwell(q model.Quantity) model.Quantity {
	v := model.Value{Of: "blackwell", Value: q.Rungs[0].Value}
	v.Source = "as on Hopper; winners of the servers' tables for a B200, to which nothing was fitted, speak for it"
	q.Rungs = append(q.Rungs, v)
	return q
}

// Quantities are the empirical numbers of the model, of which the family's own devices have values of their own.
var Quantities = []model.Quantity{
	of(model.Bounded("product_scale", one, 0.832, 0.5, 1.5, "time of an expert's product ÷ that of Triton's tutorial "+
		"kernel, beside the ways"), published),
	of(model.Bounded("elementwise", one, 1.8, 0.8, 5, "time of the elementwise kernels ÷ that of their bytes at DRAM's "+
		"peak"), published),
	of(model.Bounded("other_kernels_seconds", "s", 13.85e-6, 1e-6, 50e-6, "kernels that sort the rows by expert"),
		published),
	onHopper("busy_factor", math.Exp(0.31), 1, 3, 1, measured, "time of computing ÷ that of the tutorial kernel"),
	onHopper("short_factor", math.Exp(0.2), 1, 3, 1, measured, "time with rows of 64 B of B ÷ time of long ones"),
	onHopper("wide_exponent", 0.03/math.Ln2, 0.001, 0.5, 0, measured+"; the fit has 0.04 for 0.03 of a doubling, and "+
		"vLLM's own tables speak for less", "power of block_n by which reading takes longer"),
	onHopper("gather_factor", math.Exp(-0.255), 0.3, 1.5, 1, measured, "time of a tile of 128x256 ÷ that of others"),
	onHopper("four_warps_factor", math.Exp(0.1), 0.5, 3, 1, measured, "time of experts with one scale by four warps ÷ by "+
		"eight"),
	onHopper("swap_factor", 1/1.13, 0.5, 1.5, 1, exchanged, "time with A and B exchanged ÷ time without"),
	onHopper("long_factor", 1.05, 0.5, 1.5, 1, servers, "the same of K steps of 256 elements, besides"),
	onHopper("small_factor", 1.22, 0.5, 2, 1, servers, "time of tiles of fewer than 64 rows in fp8 with one scale, "+
		"where an expert has many rows, ÷ time of such tiles in the kernel that was measured"),
	onHopper("scale_factor", math.Exp(0.1), 0.5, 3, 1, measured, "time of experts with scales per block ÷ time without"),
	onBlackwell(onHopper("matrix_factor", math.Exp(-0.23), 0.5, 3, 1, matrices,
		"the same of a matrix, where the loop is not latency-bound")),
	onHopper("tall_factor", math.Exp(0.07), 0.5, 3, 1, matrices,
		"time of tiles of more than 64 rows by four warps, besides"),
	onBlackwell(inCycles(onHopper("matrix_cycles", 8830, 1, 50000, 0, matrices,
		"launch, start and end of a matrix whose steps wait"))),
	onBlackwell(inCycles(onHopper("scale_wait", 467, 1, 5000, 0, matrices,
		"what each K step waits for scales and the product"))),
	onBlackwell(inCycles(onHopper("middle_wait", 87, 1, 5000, 0, matrices, "the same of tiles of 32 rows, besides"))),
	onBlackwell(inCycles(onHopper("tall_wait", 12, 1, 5000, 0, matrices,
		"the same of tiles of 64 rows and more, besides"))),
	inCycles(onHopper("one_row_wait", 150, 1, 5000, 0, matrices,
		"what a step of 16 rows and four warps waits for the only row of A, which each of its rows reads")),
	inCycles(onHopper("idle_warps_wait", 90, 1, 5000, 0, matrices,
		"what a step waits besides where warps have less than one instruction's 16x8 of the tile")),
	onBlackwell(onHopper("scaled_per_cycle", 17, 1, 1000, 17, matrices,
		"sums of a tile of at least 64 rows that an SM scales and adds")),
	onHopper("two_stages_factor", math.Exp(0.12), 0.5, 3, 1, measured, "the same of two stages, besides"),
	onHopper("eight_warps_factor", math.Exp(0.41), 0.5, 5, 1, measured, "the same of eight warps, besides"),
	onBlackwell(onHopper("spill_factor", math.Exp(0.8), 0.5, 10, 1, measured,
		"the same of accumulators that spill, besides")),
	toldApart("told_of_few", 1.03, 1.02, "told_apart with few rows per expert"),
	toldApart("told_of_many", 1.12, 1.03, "told_apart with many rows per expert"),
	toldApart("told_of_blocks", 1.12, 1.05, "told_apart of experts with scales per block"),
}

func inCycles(q model.Quantity) model.Quantity {
	q.Unit = cycles
	return q
}

func toldApart(name string, value, hopper float64, doc string) model.Quantity {
	q := onHopper(name, hopper, 1, 2, value, measured+": less would lose more speed at worst, and more on average", doc)
	q.Source, q.Rungs[0].DataSet = winners, ""
	return q
}

// Constants are the chosen numbers.
var Constants = []arch.Constant{
	{Name: "half_busy_rows", Unit: one, Value: 100, Doc: "rows of an expert that keep the tensor cores busy for half " +
		"of the time", Source: "chosen on " + DataSet + ", in round numbers"},
	{Name: "many_rows", Unit: one, Value: 256, Doc: "rows of an expert from which on there are many",
		Source: "chosen on vLLM's own tables"},
}
