package terms

import "strings"

// Least is a time that the total is not below, up to rounding. It takes a fraction of the time to compute: a selection
// estimates only the kernels whose least time is not above the best total. It holds because
//   - the waves take at least the first of their fills, without DRAM's queue;
//   - a K step takes at least as long as any one of the resources that it needs;
//   - where the timing pass counts, a wave takes at least its K loop at the pace of the pass;
//   - neither the power limit nor DRAM's floor makes a kernel faster.
var Least = strings.Join(strings.Fields(`launch + max(max(when(pass_counts > 0,
	`+weighted(leastWaves, "full_waves * (timed_fixed + full_paced) + when(tail_ctas > 0, timed_fixed + tail_paced, 0)")+`,
	`+leastWaves+`), power), dram_floor) + reduction`), " ")

// weighted is the geometric mean of a time by the model and one by the timing pass, which weighs 3/8.
func weighted(model, pass string) string {
	ratio := "(" + pass + ") / (" + model + ")"
	return "(" + model + ") * sqrt(sqrt(" + ratio + " * sqrt(" + ratio + ")))"
}

// leastWaves is the least time of all waves by the model.
const leastWaves = `prologue_cycles + idle_latency + epilogue
	+ max(max(steps * max(ctas_of_sm * sqrt(sqrt(on_chip)),
				(full_waves + when(tail_ctas > 0, 1, 0)) * (chain_step + spill_step)),
			max(steps - steps_ahead, 0) * ((full_waves + when(tail_ctas > 0, 1, 0)) * (idle_latency * arrival / steps_ahead))),
		max(ctas * steps * (step_bytes * (1 / (l2_perf_ratio * coalescing))),
			min(ctas * steps * step_bytes, dram_bytes) * (1 / (dram_perf_ratio * dram_efficiency))))`
