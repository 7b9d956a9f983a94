package terms

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/tabled"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// Parameters are the numbers of the device file that the formulas use. tdp is 0 if it is unknown.
var Parameters = []string{
	"num_sms", "clock", "shared_memory_bytes", "register_file", "mma_latency", "l2_bytes", "l2_perf_ratio",
	"dram_perf_ratio", "hbm_latency_penalty", "tdp",
}

// Constant is a published or assumed number of the model. Of and SourceOf return what depends on the device.
type Constant struct {
	arch.Constant
	Of       func(*gpu.Device) float64
	SourceOf func(*gpu.Device) string
}

// On returns the constant for a device.
func (c Constant) On(g *gpu.Device) arch.Constant {
	if c.Of != nil {
		c.Value = c.Of(g)
	}
	if c.SourceOf != nil {
		c.Source = c.SourceOf(g)
	}
	return c.Constant
}

// ConstantsRead returns the parameters of the device that constants are computed from.
func ConstantsRead(g *gpu.Device) []string {
	return g.Reads(func(traced *gpu.Device) {
		for _, c := range Constants {
			c.On(traced)
		}
	})
}

const (
	cudaGuide  = "CUDA C++ Programming Guide, "
	capability = cudaGuide + "Compute Capability 8.x and 9.0, "
	technical  = cudaGuide + "Technical Specifications per Compute Capability"
	mmaISA     = "PTX ISA, mma.sync m16n8k16"
)

// Constants are the model's published and assumed numbers.
var Constants = []Constant{
	fixed("mma_m", gpu.MMAM, one, "rows of one mma.sync", mmaISA),
	fixed("mma_n", gpu.MMAN, one, "columns of one mma.sync", mmaISA),
	fixed("wgmma_m", gpu.WGMMAM, one, "rows of one wgmma", "PTX ISA, wgmma.mma_async"),
	ofDevice("tensor_rate", "FLOP/cycle", "of one SM: the power of two next to peak_fp16 / (num_sms * clock), "+
		"since data sheets and drivers give different clocks; an override of peak_fp16 changes it in proportion",
		"device file", func(g *gpu.Device) float64 { return g.FlopsPerCycle("peak_fp16") }),
	{
		Constant: arch.Constant{Name: "mma_sync_share", Unit: one, Doc: "rate of mma.sync ÷ tensor_rate"},
		Of:       func(g *gpu.Device) float64 { return g.SM.MMAShare },
		SourceOf: func(g *gpu.Device) string { return g.SM.MMAShareSource },
	},
	ofDevice("schedulers", one, "warp instructions that an SM issues per cycle", capability+"Architecture",
		func(g *gpu.Device) float64 { return float64(g.SM.Schedulers) }),
	ofDevice("shared_reserved", bytes,
		"shared memory of a CTA that the system takes; a CTA may use all of an SM but that", capability+"Shared Memory",
		func(g *gpu.Device) float64 { return float64(g.SM.SharedReserved) }),
	ofDevice("threads_per_sm", one, "resident threads of an SM", technical,
		func(g *gpu.Device) float64 { return float64(g.SM.Threads) }),
	ofDevice("ctas_limit", one, "resident CTAs of an SM", technical,
		func(g *gpu.Device) float64 { return float64(g.SM.CTAs) }),
	ofDevice("register_granule", one, "registers of a thread are allocated in eights",
		"Nsight Compute occupancy calculator: 256 registers per warp",
		func(g *gpu.Device) float64 { return float64(g.SM.RegisterGranule) }),
	fixed("shared_width", 128, perCycle, "shared memory of an SM: 32 banks of 4 B",
		cudaGuide+"Compute Capability 5.x, Shared Memory, and the same for later ones"),
	fixed("line_bytes", gpu.LineBytes, bytes, "cache line", cudaGuide+"Device Memory Accesses"),
	fixed("accumulator_bytes", 4, bytes, "a sum",
		"PTX ISA, mma.sync and wgmma with .f32 accumulators"),
	fixed("l2_usable_share", 0.7, one, "share of l2_bytes within which the L2 is uniformly fast",
		"RRZE-HPC/gpu-benches@1038c5d, gpu-l2-cache, h200: 44 of 62.9 MB"),
	fixed("dynamic_share", 0.79, one, "share of tdp that switching takes; the rest is memory at rest and leakage",
		"assumed: no measurement separates the two; energy_per_flop was fitted with it"),
	fixed("default_group", DefaultGroup, one, "launch-order group of a configuration that has none yet",
		"Triton tutorial, Matrix Multiplication: GROUP_SIZE_M"),
}

// DefaultGroup is the constant default_group.
const DefaultGroup = 8

func fixed(name string, value float64, unit, doc, source string) Constant {
	return Constant{Constant: arch.Constant{Name: name, Value: value, Unit: unit, Doc: doc, Source: source}}
}

func ofDevice(name, unit, doc, source string, of func(*gpu.Device) float64) Constant {
	return Constant{Constant: arch.Constant{Name: name, Unit: unit, Doc: doc, Source: source}, Of: of}
}

var unlimited = math.Inf(1)

// Quantities are the model's empirical numbers, besides those of the kernel families (kernel.Overhead).
// docs/model-pipelined.md says how they were found.
var Quantities = slices.Concat(
	from("h200-triton", "fitted on h200-triton (34,240 times of 856 kernels on 40 sizes), 2026-11-22", fitted),
	from("h200-mma, sweeps", "fitted on h200-mma and the sets mma-fit of sweeps (23,979 times on 158 problems) "+
		"with the other quantities as they are, 2026-11-22", fittedMMA),
	ofResident(from("h200-wgmma", "fitted on the sets wgmma-fit of h200-wgmma with the other quantities as they are, "+
		"2026-11-23", fittedResident)),
	from("sweeps", "fitted on sweeps, 2026-11-22", fittedSweeps),
	from("", "chosen on h200-triton, 2026-11-21, in round numbers; scores are flat within", chosen),
)

// Resident stands for the family whose CTAs stay resident.
const Resident = "resident"

// ofResident says of quantities that they are of that family.
func ofResident(list []tabled.Quantity) []tabled.Quantity {
	for i := range list {
		list[i].Kernel = Resident
	}
	return list
}

// from sets the source of quantities. Of those that were fitted as a whole, or chosen, it has the range.
func from(dataSet, source string, list []tabled.Quantity) []tabled.Quantity {
	for i := range list {
		q := &list[i]
		if q.DataSet, q.Source = dataSet, source; q.Folds == nil {
			q.Source += " " + q.Range(q.Low, q.High)
		}
	}
	return list
}

var fitted = []tabled.Quantity{
	{
		Name: "launch_seconds", Value: 3.708e-06, Unit: "s", Low: 2e-6, High: 6e-6, Folds: folds(3.62e-6, 3.83e-6),
		Doc: "launch of the kernel and the events around it",
	},
	{
		Name: "wgmma_cycles", Value: 22.73, Unit: cycles, Low: 1, High: 64, Folds: folds(21.5, 23.4),
		Doc: "least time of one wgmma m64nNk16 on an SM",
	},
	{
		Name: "line_rate", Value: 0.6067, Unit: one, Low: 0.3, High: 3, Folds: folds(0.595, 0.614), Without: unlimited,
		Doc: "128-byte lines per cycle that the copies of one SM touch",
	},
	{
		Name: "l2_coalescing", Value: 1.298, Unit: one, Low: 1, High: 2, Folds: folds(1.28, 1.32), Without: unlimited,
		Doc: "bytes that reach SMs per byte that the L2 delivers: " +
			"presumably SMs that ask for the same line at the same time are served at once",
	},
	{
		Name: "dram_efficiency", Value: 0.9702, Unit: one, Low: 0.7, High: 1.1, Folds: folds(0.942, 0.992),
		Without: unlimited, Doc: "share of dram_perf_ratio that operands reach",
	},
	{
		Name: "dram_latency_load", Value: 1.442, Unit: one, Low: 0.7, High: 3, Folds: folds(1.41, 1.45),
		Doc: "latency of a copy ÷ hbm_latency_penalty",
	},
	{
		Name: "dram_queue_load", Value: 2.41, Unit: one, Low: 0.1, High: 8, Folds: folds(2.23, 2.5), Without: 0,
		Doc: "what a DRAM that is always busy adds to the latency ÷ hbm_latency_penalty",
	},
	{
		Name: "line_latency", Value: 2.503, Unit: cycles, Low: 0.1, High: 5, Folds: folds(2.49, 2.55), Without: 0,
		Doc: "by how much each cache line of a K step delays the last copy of one CTA",
	},
	{
		Name: "shared_bandwidth", Value: 85.78, Unit: perCycle, Low: 40, High: 128, Folds: folds(84.9, 86.5),
		Without: unlimited, Doc: "what matrix instructions read of one SM's shared memory, which has 32 banks of 4 B",
	},
	{
		Name: "fill_overlap", Value: 0.6561, Unit: one, Low: 0.01, High: 1, Folds: folds(0.595, 0.798), Without: 0,
		Doc: "share of the start of a wave that other CTAs of the SM hide if there are many",
	},
	{
		Name: "load_latency", Value: 772.3, Unit: cycles, Low: 200, High: 1000, Folds: folds(752, 778),
		Doc: "what a K step waits for an operand that is loaded when needed: L2, registers, shared memory",
	},
	{
		Name: "prologue_cycles", Value: 291.6, Unit: cycles, Low: 50, High: 3000, Folds: folds(83.7, 392),
		Doc: "start of a CTA up to its first load",
	},
	{
		Name: "epilogue_bandwidth", Value: 23.65, Unit: perCycle, Low: 10, High: 50, Folds: folds(22.4, 28.2),
		Without: unlimited, Doc: "output of one SM",
	},
	{
		// Without it, the latency of the instruction itself is taken out as well.
		Name: "ldmatrix_latency", Value: 11.87, Unit: cycles, Low: 5, High: 60, Folds: folds(8.61, 13.7), Without: -24.1,
		Doc: "from shared memory to the operands of mma.sync",
	},
	{
		Name: "spill_bandwidth", Value: 37.62, Unit: perCycle, Low: 5, High: 128, Folds: folds(37.3, 37.8),
		Without: unlimited, Doc: "of one SM to local memory",
	},
	{
		Name: "spill_share", Value: 0.7314, Unit: one, Low: 0.2, High: 2, Folds: folds(0.72, 0.769), Without: unlimited,
		Doc: "share of l2_perf_ratio and dram_perf_ratio, which are measured with loads, that local memory reaches: " +
			"half of it is stores",
	},
	{
		Name: "energy_per_flop", Value: 8.047e-13, Unit: "J", Low: 0.2e-12, High: 1.2e-12,
		Folds: folds(7.94e-13, 1.03e-12),
		Doc:   "of the tensor cores and what feeds them, at the clock that the power limit leaves",
	},
	{
		Name: "power_window", Value: 0.0007766, Unit: "s", Low: 1e-5, High: 1e-2, Folds: folds(0.000753, 0.00114),
		Doc: "for how long the board may exceed its limit before the clock falls",
	},
}

// fittedMMA are the quantities that only kernels of the family mma tell. Those of all its kernels are fitted together.
var fittedMMA = []tabled.Quantity{
	{
		Name: "hot_line_bandwidth", Value: 986.5, Unit: perCycle, Low: 64, High: 5120, Folds: folds(944.7, 1032),
		Without: unlimited, Doc: "what all SMs together get of the lines of one row: " +
			"a kernel that repeats rows reads it again for every row of a tile beyond the matrix",
	},
	{
		Name: "sector_cost", Value: 1.477, Unit: one, Low: 0.1, High: 4, Folds: folds(1.2, 1.62), Without: 0,
		Doc: "lines that a copy costs besides if a sector ends within each of its parts",
	},
	{
		Name: "convert_rate", Value: 2.483, Unit: one, Low: 0.1, High: 8, Folds: folds(2.4, 2.53), Without: unlimited,
		Doc: "instructions of warps that convert operands, per cycle of an SM",
	},
	{
		Name: "fma_share", Value: 0.7624, Unit: one, Low: 0.3, High: 1.2, Folds: folds(0.751, 0.770), Without: 1,
		Doc: "rate of FMA ÷ its peak: presumably operands that are in the same bank of the register file",
	},
	{
		Name: "fma_load_rate", Value: 0.6114, Unit: one, Low: 0.1, High: 4,
		Folds: folds(0.607, 0.616), Without: unlimited,
		Doc: "loads of warps from shared memory for FMA, per cycle of an SM",
	},
	{
		Name: "fma_latency", Value: 17.44, Unit: cycles, Low: 1, High: 100, Folds: folds(16.5, 19.7), Without: 0,
		Doc: "what a warp waits for the operands of FMA, per index along K",
	},
	{
		Name: "arrival_latency", Value: 1636, Unit: cycles, Low: 50, High: 10000, Folds: folds(1550, 1750), Without: 0,
		Doc: "from the sums of a CTA to when the last CTA of the tile knows of them: fence, counter, barriers",
	},
	{
		Name: "add_latency", Value: 318.7, Unit: cycles, Low: 20, High: 5000, Folds: folds(305, 326), Without: 0,
		Doc: "what the last CTA of a tile waits for the sums of each of the others",
	},
}

// fittedResident are the quantities of CTAs that stay resident.
var fittedResident = []tabled.Quantity{
	{
		Name: "engine_bandwidth", Value: 122.8, Unit: perCycle, Low: 16, High: 128,
		Folds: folds(111, 128), Without: unlimited,
		Doc: "what the copy engine of an SM brings of the L2",
	},
	{
		Name: "resident_coalescing", Value: 1.504, Unit: one, Low: 0.8, High: 4, Folds: folds(1.43, 1.54), Without: 1,
		Doc: "l2_coalescing of resident CTAs that start together",
	},
	{
		Name: "crossing", Value: 3.009, Unit: one, Low: 0.01, High: 6, Folds: folds(2.56, 3.78), Without: 0,
		Doc: "what a byte of rows that begin within a sector costs the copy engine besides",
	},
	{
		Name: "l2_crossing", Value: 1.669, Unit: one, Low: 0.01, High: 6, Folds: folds(1.57, 1.8), Without: 0,
		Doc: "what a byte of rows that begin within a sector costs the L2 besides",
	},
	{
		Name: "sharing_step", Value: 50.97, Unit: cycles, Low: 0.1, High: 200, Folds: folds(44, 81.1), Without: 0,
		Doc: "what CTAs of a cluster wait for each other in a K step, for each cache line of its depth",
	},
	{
		Name: "engine_latency", Value: 652.3, Unit: cycles, Low: 1, High: 2000, Folds: folds(583, 701), Without: 0,
		Doc: "what a copy of the copy engine takes longer than a load",
	},
	{
		Name: "sharing_latency", Value: 376.1, Unit: cycles, Low: 1, High: 3000, Folds: folds(303, 440), Without: 0,
		Doc: "what a copy waits for another CTA of a cluster",
	},
	{
		Name: "resident_shared", Value: 105.5, Unit: perCycle, Low: 105, High: 256,
		Folds: folds(105, 109), Without: unlimited,
		Doc: "shared_bandwidth of a resident CTA, whose copies do not pass through registers",
	},
	{
		Name: "resident_launch", Value: 3.687e-06, Unit: "s", Low: 2e-6, High: 4.2e-6, Folds: folds(3.45e-06, 3.83e-06),
		Doc: "launch_seconds of a resident grid",
	},
	{
		Name: "resident_bandwidth", Value: 18.3, Unit: perCycle, Low: 5, High: 512,
		Folds: folds(16.5, 22.8), Without: unlimited,
		Doc: "output of a resident CTA: what it keeps its sums for",
	},
	{
		Name: "scattered_bandwidth", Value: 5.295, Unit: perCycle, Low: 1, High: 256,
		Folds: folds(5.08, 5.47), Without: unlimited,
		Doc: "output of a resident CTA whose threads store their own sums",
	},
	{
		Name: "resident_turn", Value: 42.21, Unit: cycles, Low: 1, High: 5000, Folds: folds(1, 85.9), Without: 0,
		Doc: "from the last multiplication of a tile to the first of the next, besides the output",
	},
	{
		Name: "partial_bandwidth", Value: 23.25, Unit: perCycle, Low: 5, High: 512,
		Folds: folds(22.8, 24.1), Without: unlimited,
		Doc: "sums of a split of K that a resident CTA writes and reads",
	},
	{
		Name: "resident_arrival", Value: 3180, Unit: cycles, Low: 10, High: 10000,
		Folds: folds(3110, 3330), Without: 0,
		Doc: "from the sums of a warp to when the last warp knows of them: fence, counter",
	},
	{
		Name: "resident_add", Value: 147.1, Unit: cycles, Low: 10, High: 5000, Folds: folds(114, 383), Without: 0,
		Doc: "what the last warp waits for the sums of each of the others",
	},
}

var fittedSweeps = []tabled.Quantity{
	{
		Name: "interleaved_share", Value: 0.1608, Unit: one, Low: 0.05, High: 1, Without: 0,
		Doc: "share of the time of copies that the matrix instructions wait for, if addresses are computed between them",
	},
	{
		Name: "copy_rate", Value: 0.1545, Unit: one, Low: 0.02, High: 1, Without: unlimited,
		Doc: "loads through registers, each with its store to shared memory, that an SM does per cycle",
	},
	{
		Name: "cross_copy_rate", Value: 0.07894, Unit: one, Low: 0.02, High: 1, Without: unlimited,
		Doc: "the same, of operands that are contiguous along M or N",
	},
	{
		Name: "transposed_rate", Value: 0.0401, Unit: one, Low: 0.02, High: 1, Without: unlimited,
		Doc: "copies that transpose, element by element, that an SM does per cycle: the writes of a warp conflict",
	},
	{
		Name: "store_rate", Value: 0.433, Unit: one, Low: 0.01, High: 1, Without: unlimited,
		Doc: "store instructions of warps that an SM issues per cycle",
	},
	{
		Name: "relaunch_seconds", Value: 2.662e-6, Unit: "s", Low: 0.5e-6, High: 5e-6,
		Doc: "from the end of a kernel to that of one that waits for it and does nothing",
	},
	{
		Name: "reduce_bandwidth", Value: 2329, Unit: perCycle, Low: 200, High: 8000, Without: unlimited,
		Doc: "sums and output of the kernel that adds up the parts of a split K",
	},
}

var chosen = []tabled.Quantity{
	{
		Name: "timed_launch_seconds", Value: 2.8e-6, Unit: "s", Low: 2e-6, High: 3.5e-6,
		Doc: "launch of a kernel that has just run, taken off the times of the characterization",
	},
	{
		Name: "timed_least_seconds", Value: 1e-6, Unit: "s", Low: 0, High: 1.5e-6,
		Doc: "least prologue and epilogue of a kernel that was timed",
	},
}

// Numbers returns the names of all numbers that formulas may use: parameters, constants and quantities.
func Numbers() []string {
	names := slices.Clone(Parameters)
	for _, c := range Constants {
		names = append(names, c.Name)
	}
	for _, q := range Quantities {
		names = append(names, q.Name)
	}
	return names
}

func folds(low, high float64) *[2]float64 { return &[2]float64{low, high} }
