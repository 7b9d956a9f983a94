package terms

import (
	"cmp"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/model"
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
	ofDevice("tensor_rate", "FLOP/cycle", "of one SM: the power of two next to peak_fp16 / (num_sms * clock), "+
		"since data sheets and drivers give different clocks; an override of peak_fp16 changes it in proportion",
		"device file", func(g *gpu.Device) float64 { return g.FlopsPerCycle("peak_fp16") }),
	{
		Constant: arch.Constant{Name: "mma_sync_share", Unit: one, Doc: "rate of mma.sync ÷ tensor_rate"},
		Of:       func(g *gpu.Device) float64 { return g.SM.MMAShare },
		SourceOf: func(g *gpu.Device) string { return g.SM.MMAShareSource },
	},
	ofDevice("tensor_memory", one, "columns of tensor memory of an SM, which hold the sums of tcgen05.mma; 0 without it",
		"PTX ISA, Tensor Memory", func(g *gpu.Device) float64 { return float64(g.SM.TensorMemory) }),
	fixed("tensor_lanes", gpu.TensorRows, one, "lanes of tensor memory: a tcgen05.mma of fewer rows takes as long as one "+
		"of so many", "PTX ISA, Tensor Memory"),
	fixed("tensor_memory_bandwidth", 512, perCycle, "tensor memory of an SM",
		"assumed: a column of its 128 lanes of 4 B per cycle"),
	{
		Constant: arch.Constant{Name: "energy_share", Unit: one, Doc: "energy of a FLOP ÷ energy_per_flop"},
		Of:       func(g *gpu.Device) float64 { return cmp.Or(g.SM.EnergyShare, 1) },
		SourceOf: func(g *gpu.Device) string {
			return cmp.Or(g.SM.EnergyShareSource, "energy_per_flop is taken for all parts")
		},
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

// LibraryLead is the least time of a family ÷ the time of the vendor's library where no times of the family are known.
// It is chosen: the tenth percentile of Triton's time ÷ cuBLAS's is 0.93 over 84 sizes on an H200, and 0.95 over 40
// others, in the timing events (experiments/timings-on-h200).
const LibraryLead = 0.95

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
	from("h200-triton", "fitted on h200-triton (34,240 times of 856 kernels on 40 sizes), 2026-11-27"+Held, fittedFirst),
	from("h200-triton", "fitted on h200-triton (34,240 times of 856 kernels on 40 sizes) with the others as they are, "+
		"2026-11-28", fitted),
	from("h200-mma, sweeps", "fitted on h200-mma and the sets mma-fit of sweeps (23,979 times on 158 problems) "+
		"with the other quantities as they are, 2026-11-28", fittedMMA),
	of(Resident, from("h200-wgmma", "fitted for picks on the sets wgmma-fit of h200-wgmma, of which one is an H100's, "+
		"with the other quantities as they are, 2026-11-28", fittedResident)),
	of(Persistent, from("h100-persistent", "fitted on h100-persistent/h100-fit (13,956 times of 292 kernels on 54 "+
		"sizes) with the other quantities as they are, 2026-11-28", fittedPersistent)),
	from("sweeps", "fitted on sweeps, 2026-11-22; transposed_rate on the set tf32, 2026-11-28", fittedSweeps),
	from("sweeps", "fitted on the set unaligned of sweeps, and on the first draw of random sizes (2,060 times), with the "+
		"other quantities as they are, 2026-11-26"+Held, fittedSpills),
	from("sweeps", "fitted on the fits of the sets unaligned, odd and unaligned-splits, and on the first draw of "+
		"random-unaligned (10,510 times), with the other quantities as they are, 2026-11-29", fittedNarrow),
	from("", "chosen on h200-triton, 2026-11-21 and 2026-11-27, in round numbers; scores are flat within", chosen),
	from("", "chosen on h200-wgmma, h200-triton and the sets h200-fit of sweeps, whose fits are 1.49, 1.34 and 1.73, "+
		"2026-11-27; the loss is flat within", chosenWave),
)

// Resident and Persistent stand for the families with these kernel.Traits.
const (
	Resident   = "resident"
	Persistent = "persistent"
)

// of says of quantities that they are of a family.
func of(family string, list []model.Quantity) []model.Quantity {
	for i := range list {
		list[i].Kernel = family
	}
	return list
}

// from sets the source of quantities. Of those that were fitted as a whole, or chosen, it has the range.
func from(dataSet, source string, list []model.Quantity) []model.Quantity {
	for i := range list {
		q := &list[i]
		if q.DataSet, q.Source = dataSet, source; q.Folds == nil {
			q.Source += " " + q.Range(q.Low, q.High)
		}
	}
	return list
}

// Held ends the source of quantities that a later fit has left as they were.
const Held = ", and held since"

// fittedFirst are the quantities of all families. They were found with those of fitted, and held when the terms of a K
// step of Triton's kernels were changed, as what wgmma's kernels are known by was found on top of them. The last three,
// and step_latency, were held when loads of single elements got terms of their own: a fit of all ends at bounds, and
// then more knowledge makes picks in bf16 slower.
var fittedFirst = []model.Quantity{
	bounded("launch_seconds", "s", 3.735e-06, 2e-6, 6e-6,
		"launch of the kernel and the events around it").Over(3.64e-06, 3.87e-06),
	bounded("wgmma_cycles", cycles, 22.99, 1, 64, "least time of one wgmma m64nNk16 on an SM").Over(21.5, 23.9),
	bounded("line_rate", one, 0.6004, 0.3, 3,
		"128-byte lines per cycle that the copies of one SM touch").Over(0.587, 0.609).Off(unlimited),
	bounded("dram_efficiency", one, 0.9528, 0.7, 1.1,
		"share of dram_perf_ratio that operands reach").Over(0.933, 0.984).Off(unlimited),
	bounded("dram_latency_load", one, 1.439, 0.7, 3, "latency of a copy ÷ hbm_latency_penalty").Over(1.41, 1.44),
	bounded("dram_queue_load", one, 2.423, 0.1, 8,
		"what a DRAM that is always busy adds to the latency ÷ hbm_latency_penalty").Over(2.27, 2.55),
	bounded("prologue_cycles", cycles, 260, 50, 3000, "start of a CTA up to its first load").Over(50, 329),
	bounded("spill_bandwidth", perCycle, 37.59, 5, 128, "of one SM to local memory").Over(37.4, 37.8).Off(unlimited),
	bounded("spill_share", one, 0.7286, 0.2, 2,
		"share of l2_perf_ratio and dram_perf_ratio, which are measured with loads, that local "+
			"memory reaches: half of it is stores").Over(0.711, 0.756).Off(unlimited),
	bounded("energy_per_flop", "J", 8.059e-13, 0.2e-12, 1.2e-12,
		"of the tensor cores and what feeds them, at the clock that the power limit leaves").Over(7.96e-13, 1.13e-12),
	bounded("power_window", "s", 0.000847, 1e-5, 1e-2,
		"for how long the board may exceed its limit before the clock falls").Over(0.000828, 0.00138),
	bounded("late_share", one, 1.386, 0.05, 4,
		"time in which a CTA issues copies behind its matrix instructions ÷ that at line_rate").
		Over(1.37, 1.4).Off(0),
	bounded("copy_wait", cycles, 4.898, 0.1, 20,
		"for how long a warp issues the copy of a cache line, if the CTA computes one tile").Over(4.68, 5.03).Off(0),
	bounded("load_latency", cycles, 799.4, 200, 1000,
		"what a K step waits for an operand that is loaded when needed: L2, registers, shared memory").Over(789, 828),
}

// fitted are those of Triton's kernels, and of mma's.
var fitted = []model.Quantity{
	bounded("l2_coalescing", one, 1.298, 1, 2,
		"bytes that reach SMs per byte that the L2 delivers: presumably SMs that ask for the "+
			"same line at the same time are served at once").Over(1.28, 1.32).Off(unlimited),
	bounded("line_latency", cycles, 2.402, 0.1, 5,
		"by how much each cache line of a K step delays the last copy of one CTA").Over(2.35, 2.48),
	bounded("shared_bandwidth", perCycle, 86.73, 40, 128,
		"what matrix instructions read of one SM's shared memory, which has 32 banks of 4 B").Over(86.1, 87.5).Off(unlimited),
	bounded("fill_overlap", one, 0.6961, 0.01, 1,
		"share of the start of a wave that other CTAs of the SM hide if there are many").Over(0.672, 0.863),
	bounded("epilogue_bandwidth", perCycle, 22.68, 10, 50, "output of one SM").Over(19.2, 26.1).Off(unlimited),
	// Without it, the latency of the instruction itself is taken out as well.
	bounded("ldmatrix_latency", cycles, 5.8, 1, 60,
		"from shared memory to the operands of mma.sync").Over(3.58, 8.74).Off(-24.1),
	bounded("l2_queue_cycles", cycles, 110.6, 10, 2000,
		"what an L2 that is always busy adds to the latency of a copy").Over(65.2, 160).Off(0),
}

// fittedMMA are the quantities that only kernels of the family mma tell. Those of all its kernels are fitted together.
var fittedMMA = []model.Quantity{
	bounded("hot_line_bandwidth", perCycle, 989.1, 64, 5120,
		"what all SMs together get of the lines of one row: a kernel that repeats rows reads "+
			"it again for every row of a tile beyond the matrix").Over(952, 1010).Off(unlimited),
	bounded("sector_cost", one, 1.453, 0.1, 4,
		"lines that a copy costs besides if a sector ends within each of its parts").Over(1.32, 1.49),
	bounded("convert_rate", one, 2.42, 0.1, 8,
		"instructions of warps that convert operands, per cycle of an SM").Over(2.36, 2.49).Off(unlimited),
	bounded("fma_share", one, 0.7558, 0.3, 1.2,
		"rate of FMA ÷ its peak: presumably operands that are in the same bank of the register "+
			"file").Over(0.739, 0.762).Off(1),
	bounded("fma_load_rate", one, 0.6015, 0.1, 4,
		"loads of warps from shared memory for FMA, per cycle of an SM").Over(0.598, 0.61).Off(unlimited),
	bounded("fma_latency", cycles, 17.29, 1, 100,
		"what a warp waits for the operands of FMA, per index along K").Over(15.1, 19.9),
	bounded("arrival_latency", cycles, 1579, 50, 10000,
		"from the sums of a CTA to when the last CTA of the tile knows of them: fence, counter, "+
			"barriers").Over(1520, 1620),
	bounded("add_latency", cycles, 316.8, 20, 5000,
		"what the last CTA of a tile waits for the sums of each of the others").Over(305, 328),
}

// fittedResident are the quantities of CTAs that stay resident.
var fittedResident = []model.Quantity{
	bounded("engine_bandwidth", perCycle, 126.2794, 16, 128,
		"what the copy engine of an SM brings of the L2").Over(115.8, 128).Off(unlimited),
	bounded("crossing", one, 2.044271, 0.01, 3,
		"what a byte of rows that begin within a cache line costs the copy engine besides").Over(1.161, 2.257),
	bounded("l2_crossing", one, 2.224536, 0.01, 6,
		"what a byte of rows that begin within a sector costs the L2 besides").Over(2.085, 2.384),
	bounded("sharing_step", cycles, 22.05634, 0.1, 200,
		"what CTAs of a cluster wait for each other in a K step, for each cache line of its depth").Over(15.55, 26.36),
	bounded("engine_latency", cycles, 679.9606, 1, 2000,
		"what a copy of the copy engine takes longer than a load").Over(565.4, 764.9),
	bounded("sharing_latency", cycles, 896.9723, 1, 3000,
		"what a copy waits for another CTA of a cluster").Over(862.4, 950.1),
	bounded("resident_shared", perCycle, 108.9292, 105, 256,
		"shared_bandwidth of a resident CTA, whose copies do not pass through registers").Over(105, 115.6).Off(unlimited),
	bounded("resident_bandwidth", perCycle, 19.85028, 5, 512,
		"output of a resident CTA: what it keeps its sums for").Over(18.44, 24.84).Off(unlimited),
	bounded("scattered_bandwidth", perCycle, 4.215758, 1, 256,
		"output of a resident CTA whose threads store their own sums").Over(3.259, 6.728).Off(unlimited),
	bounded("resident_turn", cycles, 144.633, 1, 5000,
		"from the last multiplication of a tile to the first of the next, besides the output").Over(43.9, 241.3),
	bounded("partial_bandwidth", perCycle, 23.08061, 5, 512,
		"sums of a split of K that a resident CTA writes and reads").Over(21.65, 24.61).Off(unlimited),
	bounded("resident_arrival", cycles, 2767.741, 10, 10000,
		"from the sums of a warp to when the last warp knows of them: fence, counter").Over(2503, 3170),
	bounded("resident_add", cycles, 136.4298, 10, 5000,
		"what the last warp waits for the sums of each of the others").Over(10, 187.4),
	bounded("large_sharing", one, 0.5795214, 0.1, 7,
		"what the CTAs of a cluster of four or eight wait for each other ÷ what those of a cluster of two do").
		Over(0.5627, 0.6717),
}

var fittedSweeps = []model.Quantity{
	bounded("interleaved_share", one, 0.1608, 0.05, 1,
		"share of the time of copies that the matrix instructions wait for, if addresses are computed between them"),
	bounded("copy_rate", one, 0.1545, 0.02, 1,
		"loads through registers, each with its store to shared memory, that an SM does per cycle").Off(unlimited),
	bounded("cross_copy_rate", one, 0.07894, 0.02, 1,
		"the same, of operands that are contiguous along M or N").Off(unlimited),
	bounded("transposed_rate", one, 0.04881, 0.02, 1,
		"copies that transpose, element by element, that an SM does per cycle: the writes of a warp "+
			"conflict").Off(unlimited),
	bounded("store_rate", one, 0.433, 0.01, 1,
		"store instructions of warps that an SM issues per cycle").Off(unlimited),
	bounded("relaunch_seconds", "s", 2.662e-6, 0.5e-6, 5e-6,
		"from the end of a kernel to that of one that waits for it and does nothing"),
	bounded("reduce_bandwidth", perCycle, 2329, 200, 8000,
		"sums and output of the kernel that adds up the parts of a split K").Off(unlimited),
}

var fittedSpills = []model.Quantity{
	bounded("narrow_spill_share", one, 0.45, 0.05, 2,
		"share of spill_bandwidth that a K step reaches whose operands pass through registers: what spills is read back "+
			"right before it is needed").Over(0.39, 0.46).Off(1),
}

// fittedNarrow are the quantities of Triton's loops whose operands pass through registers element by element.
var fittedNarrow = []model.Quantity{
	bounded("narrow_rate", one, 0.2, 0.05, 1,
		"loads of one element, each with its store to shared memory, that an SM does per cycle").
		Over(0.186, 0.2).Off(unlimited),
	bounded("scattered_cycles", cycles, 0.367, 0.05, 2,
		"for each cache line that a load of a warp touches if its lanes have lines of their own").Over(0.348, 0.386).Off(0),
	bounded("narrow_latency", cycles, 989, 400, 2000,
		"what a K step waits for operands that are loaded when needed, element by element").Over(989, 989),
	bounded("narrow_share", one, 0.84, 0.3, 1.2,
		"share of the time of narrow loads that a CTA waits for besides their latency").Over(0.81, 0.84),
	bounded("narrow_arrival", one, 0.25, 0.01, 1,
		"share of the latency of copies beside narrow loads that a step waits for, if they run one step ahead").
		Over(0.189, 0.288).Off(0),
	bounded("turn_cycles", cycles, 1049, 10, 6000,
		"what a K step waits longer if its narrow loads take turns in registers").Over(1049, 1213).Off(0),
	bounded("turn_registers", one, 27, 1, 100,
		"registers beside sums and loads from which on all narrow loads are on their way at once").Over(24.6, 29.4),
	bounded("kept_share", one, 0.396, 0.01, 2,
		"share of the L1 from which on lines of a narrow B are lost before all of their elements are read").Over(0.25, 0.436),
}

// fittedPersistent are the quantities of kernels whose CTAs compute one tile after the other.
var fittedPersistent = []model.Quantity{
	bounded("read_share", one, 0.1985, 0.01, 1,
		"share of the time in which matrix instructions read shared memory that delays copies a single K step ahead"),
	bounded("line_wait", cycles, 8.487, 0.1, 20, "for how long a warp issues the copy of a cache line"),
}

var chosen = []model.Quantity{
	bounded("timed_launch_seconds", "s", 2.8e-6, 2e-6, 3.5e-6,
		"launch of a kernel that has just run, taken off the times of the characterization"),
	bounded("timed_least_seconds", "s", 1e-6, 0, 1.5e-6, "least prologue and epilogue of a kernel that was timed"),
}

// chosenWave is a number of the L2, whatever asks it. Data sets that were measured on other days disagree on it.
var chosenWave = []model.Quantity{
	bounded("wave_coalescing", one, 1.5, 1.3, 1.75,
		"l2_coalescing of a launch of a single wave, whose CTAs start together").Off(1),
}

var bounded = model.Bounded
