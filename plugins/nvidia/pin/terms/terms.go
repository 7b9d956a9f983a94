// Package terms is the model of any compiled Triton kernel as a table: a row per term, with the formula that computes
// it, and its empirical numbers. internal/gen turns the formulas into Go.
package terms

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
)

// DataSet is what the quantities were chosen on: experiments/pin-on-h200.
const DataSet = "h200-pin"

// Page documents the terms.
const Page = "docs/pin.md"

const (
	one    = "1"
	cycles = "cycles"
	bytes  = "B"
)

// OfKernel are the terms that a description of a compiled kernel gives.
const OfKernel = "kernel"

var row = model.Row

func input(name, unit, doc string) model.Term {
	return model.Input(name, unit, OfKernel, "read from the compiled kernel", doc)
}

// Terms are the terms of a launch. What a program needs of an SM is work, summed over the programs that are resident
// together. A program also has a path: how long it takes when it is alone. Both overlap in part.
var Terms = model.Table([]model.Term{
	input("programs", one, "programs of the grid"),
	input("warps", one, "warps of a program"),
	input("registers", one, "registers of a thread"),
	input("spills", one, "spilled registers of a thread"),
	input("shared_bytes", bytes, "shared memory of a program"),
	input("instructions", one, "instructions of a program's warps, without memory's spills"),
	input("special", one, "of them, instructions of the special-function unit"),
	input("wavefronts", one, "passes of 128 bytes through L1 of the accesses to global memory, one per cycle"),
	input("shared_traffic", bytes, "bytes that a program moves in shared memory, with bank conflicts"),
	input("products", one, "products of the fastest matrix instruction of 16-bit types, or equivalents"),
	input("sync_products", one, "the same of mma.sync"),
	input("sector_bytes", bytes, "bytes of the sectors that a program moves between L1 and L2"),
	input("dram_bytes", bytes, "bytes of all programs that DRAM moves at least"),
	input("short_bytes", bytes, "the same, times how many rows of 128 bytes are begun per full one, less one"),
	input("path", cycles, "longest chain of a program's results with 400 cycles to memory"),
	input("path_loads", cycles, "what 600 cycles more for loads add to the path"),
	input("path_copies", cycles, "what 600 cycles more for asynchronous copies add to the path"),
	input("barrier_steps", one, "barriers of a program, times the steps of a tree over its warps"),
	input("trips", one, "trips of the loop that runs most"),
	input("copied_trips", one, "trips of a loop with asynchronous copies, 0 without"),

	row("programs_of_sm", one, "cdiv(programs, num_sms)", "programs of the SM with the most"),
	row("threads", one, "32 * warps", "threads of a program"),
	row("programs_per_sm", one, `max(1, min(min(floor(register_file / (cdiv(registers, register_granule) *
			register_granule * threads)), floor((shared_memory_bytes + shared_reserved) / (shared_bytes + shared_reserved))),
			min(floor(threads_per_sm / threads), ctas_limit)))`, "programs that an SM has room for").As(arch.CommonCTAsPerUnit),
	row("together", one, "min(programs_of_sm, programs_per_sm)", "programs of a full wave on an SM"),
	row("full_waves", one, "floor(programs_of_sm / programs_per_sm)", "full waves"),
	row("tail", one, "programs_of_sm - full_waves * programs_per_sm", "programs of the last wave, if it is not full"),

	row("spill_accesses", one, "spills * warps * (spill_uses + spill_trip_uses * (max(1, trips) - 1))",
		"accesses of a program's warps to spilled registers"),
	row("spill_bytes", bytes, `when(spills * 128 * warps * together > shared_memory_bytes - shared_bytes * together,
			128 * spill_accesses, 0)`, "what they move between L1 and L2, where L1 is too small"),
	row("issue", one, "instructions + spill_accesses", "instructions that a program issues"),
	row("issue_step", cycles, "issue / min(4, warps)", "a program's instructions on its schedulers"),
	row("special_step", cycles, "2 * special", "a program's special functions: 16 lanes per cycle"),
	row("shared_step", cycles, "shared_load * shared_traffic / shared_width + spill_accesses",
		"a program's shared memory and local memory"),
	row("tensor_step", cycles, "products / (tensor_rate / 2)", "a program's matrix instructions"),
	row("sync_step", cycles, "sync_products / (tensor_rate / 2 * mma_sync_share) * 4", "mma.sync on one scheduler"),
	row("l2_step", cycles, "(sector_bytes + spill_bytes) / l2_port", "a program's bytes between L1 and L2"),
	row("latency", cycles, `path + path_loads * (load_wait - 400) / 600 + path_copies * (copy_wait - 400) / 600
			+ issue_weight * issue_step + barrier_wait * barrier_steps + program_start`, "a program that is alone on an SM"),

	row("schedulers", one, "min(4, warps * together)", "schedulers that a full wave keeps busy"),
	row("issue_work", cycles, "issue / schedulers * max(1, issue_warps * schedulers / (warps * together))",
		"instructions of a program on the schedulers of a full wave"),
	row("work", cycles, `together * pow(pow(issue_work, 4) + pow(special_step, 4) + pow(wavefronts, 4)
			+ pow(shared_step, 4) + pow(tensor_step + sync_step / schedulers, 4) + pow(l2_step, 4), 1 / 4)`,
		"what a full wave needs of an SM: units work side by side, and the busiest counts most"),
	row("wave", cycles, "pow(pow(work, hiding) + pow(latency, hiding), 1 / hiding)",
		"a full wave: programs hide each other's latency in part"),
	row("tail_schedulers", one, "max(1, min(4, warps * tail))", "schedulers that the last wave keeps busy"),
	row("tail_issue_work", cycles, `issue / tail_schedulers *
			max(1, issue_warps * tail_schedulers / (warps * max(1, tail)))`, "instructions of a program in the last wave"),
	row("tail_work", cycles, `tail * pow(pow(tail_issue_work, 4) + pow(special_step, 4)
			+ pow(wavefronts, 4) + pow(shared_step, 4) + pow(tensor_step + sync_step / tail_schedulers, 4)
			+ pow(l2_step, 4), 1 / 4)`, "work of the last wave"),
	row("tail_wave", cycles, "when(tail > 0, pow(pow(tail_work, hiding) + pow(latency, hiding), 1 / hiding), 0)",
		"the last wave"),
	row("sms", cycles, "pow(pow(full_waves * wave + tail_wave, 4) + pow(dispatch * programs, 4), 1 / 4)",
		"all waves of the SM with the most programs; meanwhile one program after another starts, on any SM"),
	row("dram", cycles, `(dram_bytes + short_rows * short_bytes) / (dram_bandwidth * dram_share) * clock * clock_share`,
		"the bytes that DRAM moves"),
	row("turns", one, "max(1, programs_of_sm / programs_per_sm * max(1, copied_trips))",
		"turns in which computing and reading can change places"),
	row("longer", cycles, "max(sms, dram)", "the longer of both").Share(),
	row("exposed", cycles, "min(sms, dram) / (1 + overlap * (turns - 1))", "what is not hidden of the shorter").Share(),
	row("launch", cycles, "start_seconds * clock * clock_share", "a kernel in a CUDA graph").Share(),
	row("total", cycles, "longer + exposed + launch", "predicted total").Total(),
})

const chosen = "chosen on 98 cases of 24 public kernels, in round numbers"

func of(name, unit string, value, low, high, foldLow, foldHigh float64, doc string) model.Quantity {
	return model.Bounded(name, unit, value, low, high, doc).Over(foldLow, foldHigh).From(DataSet, chosen)
}

// Quantities are the empirical numbers of the model. Folds leave whole packages out.
var Quantities = []model.Quantity{
	of("load_wait", cycles, 500, 200, 1000, 381, 472, "from the address of a load to its data"),
	of("copy_wait", cycles, 1200, 200, 1600, 882, 1600, "from the address of an asynchronous copy to its data"),
	of("barrier_wait", cycles, 40, 5, 80, 37, 58, "a step of a barrier's tree over warps"),
	of("program_start", cycles, 500, 50, 1500, 432, 549, "start and end of a program"),
	of("issue_weight", one, 0.5, 0.2, 3, 0.28, 0.35, "share of a program's instructions that its path does not hide"),
	of("issue_warps", one, 3, 0.5, 12, 3.06, 3.22, "warps with which a scheduler issues each cycle: results take a few"),
	of("hiding", one, 1.5, 1, 8, 1.22, 1.47, "power of the mean of work and latency: 1 is their sum, many their maximum"),
	of("overlap", one, 0.3, 0.1, 10, 0.3, 0.32, "how much of a turn hides computing behind reading"),
	of("shared_load", one, 1.5, 0.5, 2.5, 1.5, 1.77, "time of shared memory ÷ that of its bytes at the full width"),
	of("spill_uses", one, 20, 0.5, 40, 19.3, 19.3, "passes per spilled register of a warp, outside of loops"),
	of("spill_trip_uses", one, 5, 0.1, 10, 4.95, 5.3, "the same per trip of a loop"),
	of("short_rows", one, 0.3, 0, 2, 0.24, 0.38, "what a row of DRAM that is read in parts costs besides, per part"),
}

// Constants are the chosen numbers.
var Constants = []arch.Constant{
	{Name: "l2_port", Unit: "B/cycle", Value: 64, Doc: "bytes between L2 and an SM",
		Source: "NVIDIA A100 Tensor Core GPU Architecture whitepaper: 5120 B per cycle of L2, 64 of each slice to its SMs"},
	{Name: "clock_share", Unit: one, Value: 0.885, Doc: "clock under load ÷ the highest one",
		Source: "1.75 of 1.98 GHz, near the 1.83 GHz of the H200's tensor peaks"},
	{Name: "dram_share", Unit: one, Value: 0.9375, Doc: "DRAM's bandwidth that kernels reach ÷ that of the data sheet",
		Source: "4.5 of 4.8 TB/s, the fastest copies among the measured kernels"},
	{Name: "dispatch", Unit: cycles, Value: 1.05, Doc: "from the start of a program to that of the next, on any SM",
		Source: "138 cycles of each of 132 SMs: 30 times of programs of 32 to 256 elements, experiments/pin-on-h200"},
	{Name: "start_seconds", Unit: "s", Value: 2e-6, Doc: "launch of a kernel in a CUDA graph",
		Source: "the shortest of the measured kernels take 2.8 µs"},
}
