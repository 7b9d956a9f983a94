package refined

import (
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// device is what the refined model knows of a GPU, in cycles of its clock and bytes.
type device struct {
	quantities
	sms             float64 // SMs
	clock           float64 // Hz
	rate            float64 // FLOP per cycle and SM on the tensor cores
	mmaRate         float64 // the same with mma.sync
	threadsPerSM    float64
	ctasPerSM       float64
	mmaLatency      float64 // of one mma.sync and the loads of its operands
	l2Total         float64 // B/cycle that the L2 delivers to all SMs
	l2Usable        float64 // B
	dramBandwidth   float64 // B/cycle
	dramLatency     float64 // under load
	launch          float64 // cycles
	powerCycles     float64 // cycles per FLOP at the power limit; 0 where no limit is known
	powerWindow     float64 // cycles
	sharedPerSM     float64
	sharedReserved  float64
	registerFile    float64
	registerGranule float64
	schedulers      float64
	touchLatency    float64 // of operands from DRAM, for kernels that were timed by themselves
}

func newDevice(g *gpu.Device, q quantities) device {
	params := g.Params
	d := device{
		quantities: q,
		sms:        params.Get("num_sms"), clock: params.Get("clock"),
		threadsPerSM: float64(g.SM.Threads), ctasPerSM: float64(g.SM.CTAs),
		registerFile: float64(g.RegisterFile), registerGranule: float64(g.SM.RegisterGranule),
		schedulers: float64(g.SM.Schedulers), sharedReserved: float64(g.SM.SharedReserved),
		mmaLatency:    params.Get("mma_latency") + q.ldmatrixLatency,
		l2Total:       params.Get("l2_perf_ratio") * q.l2Coalescing,
		l2Usable:      params.Get("l2_bytes") * l2UsableShare,
		dramBandwidth: params.Get("dram_perf_ratio") * q.dramEfficiency,
		dramLatency:   params.Get("hbm_latency_penalty") * q.dramLatencyLoad,
	}
	d.rate = math.Exp2(math.Round(math.Log2(params.Get("peak_fp16") / (d.sms * d.clock))))
	d.mmaRate = d.rate * g.SM.MMAShare
	d.sharedPerSM = float64(g.SharedMemory) + d.sharedReserved
	d.launch = q.launchSeconds * d.clock
	d.touchLatency = q.touchSeconds * d.clock
	d.powerWindow = q.powerWindowSeconds * d.clock
	if p, ok := params.Lookup("tdp"); ok {
		d.powerCycles = q.energyPerFlop / (p.Value * dynamicShare) * d.clock
	}
	return d
}

// preparedKernel is what the model knows of one kernel before it knows the sizes of the problem: cycles are of one CTA and
// one K step unless they say otherwise.
type preparedKernel struct {
	config gemm.Config
	reject arch.Reason

	blockM, blockN, blockK float64
	stepsAhead             float64 // K steps that loads run ahead of the tensor cores
	wgmma                  bool
	warpsM, warpsN, warpsK float64
	threads                float64
	tileBytes              float64 // operands
	lines                  float64 // of 128 B that the operands touch
	repeatM, repeatN       float64 // 1 if tiles that stick out of the matrix read its last row of A, or column of B, again
	unbuffered             bool    // an operand is loaded when it is needed

	tensor, shared, issue, line float64
	stepLatency                 float64 // waits and barriers of a step with mma.sync
	chain                       float64 // dependent instructions of one step, without waiting for loads of buffered operands
	// timed is what a timing pass found of the kernel, if isTimed.
	isTimed bool
	timed   timedKernel
	// variants by sizes.ragged: whether block_k divides K, or loads are masked.
	variants [2]variant
}

// variant is what depends on whether loads are masked along K.
type variant struct {
	registers, spillBytes, sharedBytes float64
	ctas                               float64 // that fit on an SM
	spill                              float64 // cycles of a step
	onChip                             float64 // the sum of the fourth powers of a step's cycles at every resource of the SM
}

// prepare fills k. If the kernel cannot be used, k.reject says why and the detail puts it in numbers.
func (m *Model) prepare(k *preparedKernel, p *gemm.Problem, c *gemm.Config) (detail string) {
	*k = preparedKernel{config: *c}
	f, err := m.family(c)
	if err != nil {
		k.reject = arch.ReasonModelRule
		return ""
	}
	d := &m.device
	k.blockM, k.blockN, k.blockK = float64(c.BlockM), float64(c.BlockN), float64(c.BlockK)
	k.threads = float64(32 * c.NumWarps)
	k.stepsAhead = float64(max(c.NumStages-1, 1))
	operands := kernel.OperandsOf(p)
	loop := f.Loop(m.gpu, operands, *c)
	k.wgmma, k.unbuffered = loop.WGMMA, loop.Unbuffered
	k.warpsM, k.warpsN, k.warpsK = float64(loop.WarpsM), float64(loop.WarpsN), float64(loop.WarpsK)
	k.repeatM, k.repeatN = when(loop.RepeatM), when(loop.RepeatN)
	if t, ok := f.timed.Find(p, c); ok {
		k.timed, k.isTimed = d.timedKernel(k.blockK, &t), true
	}
	var need kernel.Resources
	for masked := range k.variants {
		r := f.resources(m.gpu, operands, c, masked == 1)
		if masked == 0 || r.SharedMemory > need.SharedMemory {
			need = r
		}
		d.setVariant(&k.variants[masked], k.threads, &r)
	}
	k.reject, detail = f.Check(m.gpu, operands, *c, need)

	k.tileBytes = float64(k.blockM*k.blockK*kernel.ElementBytes) + float64(k.blockN*k.blockK*kernel.ElementBytes)
	k.lines = lineCount(p.AMajor, k.blockM, k.blockK) + lineCount(p.BMajor, k.blockN, k.blockK)
	k.line = k.lines / d.lineRate
	k.issue = f.slots * float64(c.NumWarps) / d.schedulers
	k.stepLatency = f.latency

	k16 := k.blockK / gpu.MMAK
	var reads float64 // of operands from shared memory
	if k.wgmma {
		// Warpgroups divide the rows first; those that share rows divide the columns.
		n := k.blockN / k.warpsN
		instructions := k.blockM / gpu.WGMMAM * k.warpsN * k16
		k.tensor = instructions * max(2*gpu.WGMMAM*n*gpu.MMAK/d.rate, d.wgmmaCycles)
		reads = instructions * (gpu.WGMMAM + n) * gpu.MMAK * kernel.ElementBytes
		k.chain = k.tensor
	} else {
		warpM, warpN := max(k.blockM/k.warpsM, gpu.MMAM), max(k.blockN/k.warpsN, gpu.MMAN)
		depth := k.blockK / k.warpsK
		warps := float64(c.NumWarps)
		k.tensor = warps * warpM * warpN * depth * 2 / d.mmaRate
		reads = warps * (warpM + warpN) * depth * kernel.ElementBytes
		k.chain = max(k16/k.warpsK*d.mmaLatency, k.tensor) + k.stepLatency
	}
	k.shared = (reads + k.tileBytes) / d.sharedBandwidth
	for i := range k.variants {
		v := &k.variants[i]
		v.onChip = fourth(k.tensor) + fourth(k.shared) + fourth(k.issue) + fourth(k.line) + fourth(v.spill)
	}
	k.chain += k.issue
	if k.unbuffered {
		k.chain += d.loadLatency
	}
	return detail
}

// setVariant fills v with what a kernel needs and how many CTAs of it fit on an SM.
func (d *device) setVariant(v *variant, threads float64, r *kernel.Resources) {
	v.registers, v.spillBytes, v.sharedBytes = float64(r.Registers), float64(r.SpillBytes), float64(r.SharedMemory)
	perWarp := math.Ceil(max(v.registers, 1)/d.registerGranule) * d.registerGranule
	v.ctas = max(1, min(math.Floor(d.registerFile/(perWarp*threads)),
		math.Floor(d.sharedPerSM/(v.sharedBytes+d.sharedReserved)),
		math.Floor(d.threadsPerSM/threads), d.ctasPerSM))
	v.spill = 2 * v.spillBytes * threads / d.spillBandwidth
}

// overhead is what a family's loop costs beside loads and matrix instructions.
type overhead struct {
	slots   float64 // instructions of a warp and K step
	latency float64 // cycles of waiting and barriers in a K step with mma.sync
}

// lineCount is the number of 128-byte lines that a tile of an operand touches, extent along M or N.
func lineCount(major gemm.Major, extent, depth float64) float64 {
	if major == gemm.MajorK {
		return extent * math.Ceil(depth*kernel.ElementBytes/gpu.LineBytes)
	}
	return depth * math.Ceil(extent*kernel.ElementBytes/gpu.LineBytes)
}

// resources is what a kernel needs, as the compiler reports it where that is known, and predicted elsewhere.
func (f *family) resources(g *gpu.Device, o kernel.Operands, c *gemm.Config, masked bool) kernel.Resources {
	if r, ok := f.compiled.Find(o.DType, c, masked); ok {
		return r
	}
	return f.Resources(g, o, *c, masked)
}

func fourth(x float64) float64 { x *= x; return float64(x * x) }

func fourthRoot(x float64) float64 { return math.Sqrt(math.Sqrt(x)) }

// sizes is what the model takes of a problem.
type sizes struct {
	m, n, k, batch float64
}

func newSizes(p *gemm.Problem) sizes {
	return sizes{float64(p.M), float64(p.N), float64(p.K), float64(p.Batch)}
}

// ragged is 1 if block_k does not divide K.
func (s *sizes) ragged(k *preparedKernel) int {
	if steps := s.k / k.blockK; steps != math.Trunc(steps) {
		return 1
	}
	return 0
}

// timing is the model written out for one problem and kernel, one field per intermediate, in the order of computing.
type timing struct {
	ragged               int
	gridM, gridN, ctas   float64 // ctas: of the whole launch
	steps                float64 // K steps of one CTA
	group                float64
	perSM                float64 // CTAs of the busiest SM
	fullWaves, tailCTAs  float64
	sweeps, groups       float64
	missA, missB         float64
	dramBytes, dramShare float64
	repeated             float64 // rows and columns of a tile beyond the matrix that repeat its last one, on average
	// oneLoop, chipLoop and fullLoop are the K loop at the paces of a kernel that was timed by itself, 0 for others.
	oneLoop, chipLoop, fullLoop float64
	full, tail                  wave
	waves                       float64 // cycles of all waves
	power, floor                float64
	limited                     float64
	total                       float64
	fill, loop, epilogue        float64 // over all waves
}

// wave is one round of CTAs: as many on each SM as fit, or what is left.
type wave struct {
	ctas, active     float64 // CTAs per SM, and SMs
	l2, dram, repeat float64 // cycles of one CTA's step
	// throughput is the fourth power of the cycles in which the SM does a step of all its CTAs, alone the cycles that one
	// CTA's step takes by itself.
	throughput, alone    float64
	step                 float64
	fill, loop, epilogue float64 // cycles
}

// time fills t.
func (d *device) time(t *timing, s *sizes, k *preparedKernel) {
	t.ragged = s.ragged(k)
	v := &k.variants[t.ragged]
	split := float64(k.config.SplitK)
	t.gridM, t.gridN = math.Ceil(s.m/k.blockM), math.Ceil(s.n/k.blockN)
	t.ctas = t.gridM * t.gridN * s.batch * split
	t.steps = math.Ceil(math.Ceil(s.k/k.blockK) / split)
	t.group = float64(k.config.GroupM)
	if t.group == 0 {
		t.group = defaultGroup
	}
	t.group = min(t.group, t.gridM)
	t.perSM = math.Ceil(t.ctas / d.sms)
	t.fullWaves = math.Floor(t.perSM / v.ctas)
	t.tailCTAs = t.perSM - float64(t.fullWaves*v.ctas)

	// What DRAM delivers: every operand once, and again what the L2 could not keep until it was needed again. A group of
	// rows of tiles sweeps over all columns; it reads its part of A once per sweep of what runs at a time, and all of B.
	t.sweeps = max(1, t.gridN*t.group/min(t.ctas, d.sms*v.ctas))
	t.groups = math.Ceil(t.gridM / t.group)
	t.missA = 1 - min(1, d.l2Usable/(t.group*k.blockM*s.k*kernel.ElementBytes))
	t.missB = 1 - min(1, d.l2Usable/((float64(t.gridM*k.blockM)+float64(t.gridN*k.blockN))*s.k*kernel.ElementBytes))
	t.dramBytes = s.batch * s.k * kernel.ElementBytes * (float64(s.m*(1+float64((t.sweeps-1)*t.missA))) + float64(s.n*(1+float64((t.groups-1)*t.missB))))
	t.dramShare = min(1, t.dramBytes/(t.ctas*t.steps*k.tileBytes))

	t.repeated = 0
	if k.repeatM+k.repeatN > 0 {
		t.repeated = float64(k.repeatM*(k.blockM-s.m/t.gridM)) + float64(k.repeatN*(k.blockN-s.n/t.gridN))
	}
	t.oneLoop, t.chipLoop, t.fullLoop = 0, 0, 0
	if k.isTimed {
		d.timedLoops(t, k)
	}
	t.full, t.tail = wave{}, wave{}
	if t.fullWaves > 0 {
		d.wave(&t.full, k, t, v.ctas, min(d.sms, t.ctas))
	}
	if t.tailCTAs > 0 {
		left := t.ctas
		if t.fullWaves > 0 {
			left = max(t.ctas-float64(t.fullWaves*d.sms*v.ctas), 1) / t.tailCTAs
		}
		d.wave(&t.tail, k, t, t.tailCTAs, min(d.sms, left))
	}
	t.fill = float64(t.fullWaves*t.full.fill) + t.tail.fill
	t.loop = float64(t.fullWaves*t.full.loop) + t.tail.loop
	t.epilogue = float64(t.fullWaves*t.full.epilogue) + t.tail.epilogue
	t.waves = t.fill + t.loop + t.epilogue

	flops := 2 * t.ctas * k.blockM * k.blockN * t.steps * k.blockK
	t.power = max(float64(flops*d.powerCycles)-d.powerWindow, 0)
	t.floor = (t.dramBytes + float64(s.batch*s.m*s.n*kernel.ElementBytes)) / d.dramBandwidth
	t.limited = fourthRoot(fourth(t.waves) + fourth(t.power) + fourth(t.floor))
	t.total = d.launch + t.limited
}

// wave fills w for a number of CTAs on each of the active SMs.
func (d *device) wave(w *wave, k *preparedKernel, t *timing, ctas, active float64) {
	w.ctas, w.active = ctas, active
	w.l2 = k.tileBytes / min(d.l2PortBandwidth, d.l2Total/active)
	w.dram = active * k.tileBytes * t.dramShare / d.dramBandwidth
	w.repeat = active * t.repeated * k.blockK * kernel.ElementBytes / d.hotLineBandwidth
	v := &k.variants[t.ragged]
	w.throughput = fourth(ctas) * (v.onChip + fourth(w.l2) + fourth(w.dram) + fourth(w.repeat))
	w.alone = max(k.chain, (d.dramLatency+w.l2)/k.stepsAhead) + v.spill
	w.step = fourthRoot(w.throughput + fourth(w.alone))
	w.fill = d.prologueCycles + d.dramLatency + float64(ctas*w.l2)
	w.loop = t.steps * w.step
	output := ctas * k.blockM * k.blockN
	w.epilogue = d.epilogueCycles + output*kernel.ElementBytes/d.epilogueBandwidth
	if split := float64(k.config.SplitK); split > 1 {
		// Each writes fp32 sums, and the last reads those of all.
		w.epilogue += d.dramLatency + output*accumulatorBytes*(1+split)/d.epilogueBandwidth
	}
	if k.isTimed {
		d.timedWave(w, k, t)
	}
}

// bound is what limits most of the time.
func (t *timing) bound(k *preparedKernel) arch.Bound {
	w := &t.full
	if t.fullWaves == 0 || float64(t.fullWaves*t.full.loop) < t.tail.loop {
		w = &t.tail
	}
	switch {
	case t.power > t.waves && t.power > t.floor:
		return arch.BoundCompute
	case t.floor > t.waves:
		return arch.BoundDRAM
	case t.loop < t.total/2 || fourth(w.alone) > w.throughput:
		return arch.BoundLatency
	case w.dram > max(w.l2, w.repeat, k.tensor, k.shared, k.issue, k.line):
		return arch.BoundDRAM
	case max(w.l2, w.repeat) > max(k.tensor, k.shared, k.issue, k.line):
		return arch.BoundL2
	default:
		return arch.BoundCompute
	}
}
