package refined

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// The published quantities of the refined model.
const (
	l2UsableShare    = 0.7  // of the reported capacity
	dynamicShare     = 0.79 // of the board's power limit that switching takes
	defaultGroup     = 8    // launch-order group of a configuration that has none yet
	accumulatorBytes = 4
)

// quantities are the numbers of the model that stand for one part of the hardware or of a kernel each. constants says what
// they are. A field set to 0, or a bandwidth to infinity, takes that part out.
type quantities struct {
	launchSeconds      float64
	wgmmaCycles        float64
	lineRate           float64
	l2PortBandwidth    float64
	l2Coalescing       float64
	dramEfficiency     float64
	dramLatencyLoad    float64
	loadLatency        float64
	prologueCycles     float64
	epilogueCycles     float64
	epilogueBandwidth  float64
	ldmatrixLatency    float64
	hotLineBandwidth   float64
	spillBandwidth     float64
	energyPerFlop      float64
	powerWindowSeconds float64
	sharedBandwidth    float64
	// Of the rung characterized.
	timedLaunchSeconds float64
	timedLeastSeconds  float64
	touchSeconds       float64
	firstTouchShare    float64
}

// shipped are the quantities in use. docs/model-nvidia-refined.md says how they were found.
var shipped = quantities{
	launchSeconds:      3.435e-6,
	wgmmaCycles:        18.42,
	lineRate:           0.6039,
	l2PortBandwidth:    54.24,
	l2Coalescing:       1.448,
	dramEfficiency:     0.937,
	dramLatencyLoad:    1.923,
	loadLatency:        765.1,
	prologueCycles:     562,
	epilogueCycles:     20,
	epilogueBandwidth:  58.4,
	ldmatrixLatency:    35.7,
	hotLineBandwidth:   640.4,
	spillBandwidth:     33.46,
	energyPerFlop:      0.8e-12,
	powerWindowSeconds: 2.52e-3,
	sharedBandwidth:    128,
	timedLaunchSeconds: 2.8e-6,
	timedLeastSeconds:  1e-6,
	touchSeconds:       1.2e-6,
	firstTouchShare:    0.4,
}

// fit is where the fitted quantities come from.
const fit = "fitted on h200-triton (34,240 times of 856 kernels on 40 sizes), 2026-11-21; bounds "

// scanned is where the quantities of the rung characterized come from: by hand, in round numbers.
const scanned = "chosen on h200-triton, 2026-11-21, in round numbers; scores are flat within "

const fitMMA = "fitted on h200-mma (18,883 times of 821 kernels on 23 sizes) with the other quantities as they are, 2026-11-21; bounds "

const cudaGuide = "CUDA C++ Programming Guide, "

// constants are the model's quantities that no device file has, as explain shows them and formulas use them.
func (m *Model) constants() []arch.Constant {
	d, sm := &m.device, m.gpu.SM
	all := []arch.Constant{
		{Name: "mma_k", Value: gpu.MMAK, Unit: "1", Doc: "depth of the matrix instructions", Source: "PTX ISA, mma.sync m16n8k16 and wgmma m64nNk16"},
		{Name: "wgmma_m", Value: gpu.WGMMAM, Unit: "1", Doc: "rows of one wgmma", Source: "PTX ISA, wgmma.mma_async"},
		{Name: "tensor_rate", Value: d.rate, Unit: "FLOP/cycle", Doc: "of one SM: the power of two next to peak_fp16 / (num_sms * clock), since data sheets and drivers give different clocks", Source: "device file"},
		{Name: "mma_sync_share", Value: sm.MMAShare, Unit: "1", Doc: "rate of mma.sync ÷ tensor_rate", Source: sm.MMAShareSource},
		{Name: "shared_bandwidth", Value: d.sharedBandwidth, Unit: "B/cycle", Doc: "of one SM's shared memory", Source: cudaGuide + "Shared Memory: 32 banks of 4 B"},
		{Name: "schedulers", Value: d.schedulers, Unit: "1", Doc: "warp instructions that an SM issues per cycle", Source: cudaGuide + "Compute Capability 8.x and 9.0, Architecture"},
		{Name: "shared_reserved", Value: d.sharedReserved, Unit: "B", Doc: "shared memory of a CTA that the system takes; a CTA may use all of an SM but that", Source: cudaGuide + "Compute Capability 8.x and 9.0, Shared Memory"},
		{Name: "threads_per_sm", Value: d.threadsPerSM, Unit: "1", Doc: "resident threads of an SM", Source: cudaGuide + "Technical Specifications per Compute Capability"},
		{Name: "ctas_limit", Value: d.ctasPerSM, Unit: "1", Doc: "resident CTAs of an SM", Source: cudaGuide + "Technical Specifications per Compute Capability"},
		{Name: "register_granule", Value: d.registerGranule, Unit: "1", Doc: "registers of a thread are allocated in eights", Source: "Nsight Compute occupancy calculator: 256 registers per warp"},
		{Name: "line_bytes", Value: gpu.LineBytes, Unit: "B", Doc: "cache line", Source: cudaGuide + "Device Memory Accesses"},
		{Name: "l2_usable_share", Value: l2UsableShare, Unit: "1", Doc: "share of l2_bytes within which the L2 is uniformly fast", Source: "RRZE-HPC/gpu-benches@1038c5d, gpu-l2-cache, h200: 44 of 62.9 MB"},
		{Name: "dynamic_share", Value: dynamicShare, Unit: "1", Doc: "share of tdp that switching takes, the rest being memory at rest and leakage", Source: "assumed: no measurement separates the two; energy_per_flop was fitted with it"},
		{Name: "default_group", Value: defaultGroup, Unit: "1", Doc: "launch-order group of a configuration that has none yet", Source: "Triton tutorial, Matrix Multiplication: GROUP_SIZE_M"},
		{Name: "launch_seconds", Value: d.launchSeconds, Unit: "s", Doc: "launch of the kernel and the events around it", Source: fit + "2–6 µs; over folds 3.37–3.53 µs"},
		{Name: "wgmma_cycles", Value: d.wgmmaCycles, Unit: "cycles", Doc: "least time of one wgmma m64nNk16 on an SM", Source: fit + "1–64; over folds 16.6–19.7"},
		{Name: "line_rate", Value: d.lineRate, Unit: "1", Doc: "128-byte lines per cycle that the copies of one SM touch", Source: fit + "0.3–3; over folds 0.592–0.611"},
		{Name: "l2_port_bandwidth", Value: d.l2PortBandwidth, Unit: "B/cycle", Doc: "that one SM gets from the L2", Source: fit + "40–64; over folds 53.7–54.9"},
		{Name: "l2_coalescing", Value: d.l2Coalescing, Unit: "1", Doc: "bytes that reach SMs per byte that the L2 delivers: presumably since SMs that ask for the same line at the same time are served at once", Source: fit + "1–2; over folds 1.43–1.46"},
		{Name: "dram_efficiency", Value: d.dramEfficiency, Unit: "1", Doc: "share of dram_perf_ratio that operands reach", Source: fit + "0.7–1.1; over folds 0.898–0.963"},
		{Name: "dram_latency_load", Value: d.dramLatencyLoad, Unit: "1", Doc: "latency of DRAM under load ÷ hbm_latency_penalty", Source: fit + "1–3; over folds 1.89–1.94"},
		{Name: "load_latency", Value: d.loadLatency, Unit: "cycles", Doc: "what a K step waits for an operand that is loaded when needed: L2, registers, shared memory", Source: fit + "200–1000; over folds 758–784"},
		{Name: "prologue_cycles", Value: d.prologueCycles, Unit: "cycles", Doc: "start of a CTA up to its first load", Source: fit + "100–3000; over folds 393–596"},
		{Name: "epilogue_cycles", Value: d.epilogueCycles, Unit: "cycles", Doc: "end of a CTA beside its output", Source: fit + "20–3000; over folds 20–198"},
		{Name: "epilogue_bandwidth", Value: d.epilogueBandwidth, Unit: "B/cycle", Doc: "output of one SM", Source: fit + "10–128; over folds 51–128"},
		{Name: "ldmatrix_latency", Value: d.ldmatrixLatency, Unit: "cycles", Doc: "from shared memory to the operands of mma.sync", Source: fit + "5–60; over folds 32.2–38.7"},
		{Name: "hot_line_bandwidth", Value: d.hotLineBandwidth, Unit: "B/cycle", Doc: "that all SMs together get of the lines of one row, which the kernels of mma read again for every row of a tile beyond the matrix", Source: fitMMA + "64–5120; over folds 602–759"},
		{Name: "spill_bandwidth", Value: d.spillBandwidth, Unit: "B/cycle", Doc: "of one SM to local memory", Source: fit + "5–128; over folds 33.2–33.8"},
		{Name: "energy_per_flop", Value: d.energyPerFlop, Unit: "J", Doc: "of the tensor cores and what feeds them, at the clock that the power limit leaves", Source: fit + "0.2–0.8 pJ; over folds 0.54–0.80 pJ"},
		{Name: "timed_launch_seconds", Value: d.timedLaunchSeconds, Unit: "s", Doc: "launch of a kernel that has just run, taken off the times of the characterization", Source: scanned + "2–3.5 µs"},
		{Name: "timed_least_seconds", Value: d.timedLeastSeconds, Unit: "s", Doc: "least prologue and epilogue of a kernel that was timed", Source: scanned + "0–1.5 µs"},
		{Name: "touch_seconds", Value: d.touchSeconds, Unit: "s", Doc: "latency of operands that come from DRAM when all SMs ask", Source: scanned + "0.5–1.2 µs"},
		{Name: "first_touch_share", Value: d.firstTouchShare, Unit: "1", Doc: "share of K steps that wait for DRAM: the others find their operands on the way", Source: scanned + "0.4–1"},
		{Name: "power_window", Value: d.powerWindowSeconds, Unit: "s", Doc: "for how long the board may exceed its limit before the clock falls", Source: fit + "0.01–10 ms; over folds 1.4–2.5 ms"},
	}
	for _, f := range m.families {
		o := f.Overhead()
		all = append(all, o.Slots.Constant(), o.Latency.Constant())
	}
	return all
}
