package amdorigami

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/amd-ref/amd-origami/terms"
)

// cdiv returns ⌈n/d⌉.
func cdiv(n, d uint64) uint64 { return (n + d - 1) / d }

// f converts a count, which is far below 2^63.
func f(v uint64) float64 { return float64(int64(v)) }

// ceilSqrt returns ⌈√v⌉, at least 1.
func ceilSqrt(v uint64) uint64 {
	return max(1, uint64(math.Ceil(math.Sqrt(f(v)))))
}

// instruction is a matrix instruction.
type instruction struct {
	m, n, k uint64
	latency uint64  // cycles with all matrix cores of a compute unit busy
	convert float64 // latency of a BF16 instruction of the same shape if TF32 is emulated, else zero
}

// problem is a GEMM in whole numbers.
type problem struct {
	*machine
	m, n, k, batch uint64
	// transA and transB are the BLAS letters of column-major storage: T for A and N for B are K-contiguous.
	transA, transB  bool
	bytes, outBytes uint64 // size of an element of A or B, and of C
	mi              instruction
	wgm             uint64
	volume          float64 // M·N·K
}

// evaluation computes the terms of one configuration after another: in whole numbers what formulas would round, and all
// else by the generated code. Its stages depend on block_k, on block_m and block_n, also on the number of workgroups,
// and on all. A stage reads only the problem and the stages before it. An unchanged stage is therefore reused, and the
// order of configurations changes no bit.
type evaluation struct {
	on *architecture
	problem
	in     inputs
	config *gemm.Config
	depths [16]depth // by the number of trailing zero bits of block_k
	area   area
	launch launched
	step   stepTerms
}

// depth holds the terms of a block_k.
type depth struct {
	bk, steps uint64 // steps of an unsplit tile
	depthTerms
}

// area holds the terms of a block_m and block_n.
type area struct {
	bm, bn      uint64
	gm, gn      uint64 // tiles along M and N
	grid, tiles uint64 // gm·gn, and gm·gn·batch
	rejected    bool   // by a rule that does not depend on block_k
	skinny      bool   // rejected if block_k is a multiple of 128 bytes
	padded      float64
	areaTerms
}

// launched holds the terms of a number of workgroups.
type launched struct {
	launch
	l2M, l2N      uint64  // super-tile of one die, before its L2 limits it
	l2Hit, allHit float64 // of the super-tile, and if all tiles shared one cache
	launchTerms
}

// set moves to a problem.
func (e *evaluation) set(p problem) {
	*e = evaluation{on: e.on, problem: p, in: inputs{
		m: f(p.m), n: f(p.n), k: f(p.k), batch: f(p.batch), elementBytes: f(p.bytes), outputBytes: f(p.outBytes),
		aKContiguous: model.One(p.transA), bKContiguous: model.One(!p.transB),
		miM: f(p.mi.m), miN: f(p.mi.n), miK: f(p.mi.k), miLatency: f(p.mi.latency),
		wgm: f(p.wgm), occupancy: f(p.occupancy),
	}}
}

// Problem implements model.Evaluation.
func (e *evaluation) Problem(p gemm.Problem) { e.set(e.on.problem(&p)) }

// Config implements model.Evaluation. The rules of the model reject in Estimate: they depend on the sizes.
func (e *evaluation) Config(c *gemm.Config) arch.Reason {
	e.config = c
	if e.need(c) > e.ldsBytes {
		return arch.ReasonSharedMemory
	}
	return ""
}

func (e *evaluation) need(c *gemm.Config) uint64 {
	return uint64(c.BlockM+c.BlockN) * uint64(c.BlockK) * e.bytes
}

// Detail implements model.Evaluation.
func (e *evaluation) Detail(c *gemm.Config, _ arch.Reason) string {
	return fmt.Sprintf("needs %d B of LDS for one tile of A and B, %d B available", e.need(c), e.ldsBytes)
}

// Estimate implements model.Evaluation. If several latencies are equal, the bound is the first of compute, L2, MALL
// and HBM.
func (e *evaluation) Estimate() arch.Estimate {
	n, rejected := e.place(e.config)
	if rejected {
		return arch.Estimate{Reject: arch.ReasonModelRule}
	}
	e.score(n)
	t, d, bound := &e.step, &e.on.device, arch.BoundDRAM
	switch {
	case t.lCompute >= t.lMem:
		bound = arch.BoundCompute
	case t.lMem1 == t.lMem:
		bound = arch.BoundL2
	case t.lMem2 == t.lMem:
		bound = arch.BoundMALL
	case t.hbmTraffic/(d.mem3PerfRatio*e.launch.bwLimited) < d.hbmLatency:
		bound = arch.BoundLatency
	}
	return arch.Estimate{Cycles: unit.Cycles(t.totalLatency), Bound: bound}
}

// Row implements model.Evaluation.
func (e *evaluation) Row(dst []float64) {
	n, rejected := e.place(e.config)
	e.score(n)
	e.columns(dst, n, rejected)
}

func (e *evaluation) columns(dst []float64, n *depth, rejected bool) {
	e.step.rejected = model.One(rejected)
	columns(dst, &e.in, &e.on.device, &n.depthTerms, &e.area.areaTerms, &e.launch.launchTerms, &e.step)
	if rejected {
		dst[len(dst)-1] = arch.RejectedTotal
	}
}

// place moves to the tile of a configuration, and reports whether a rule of the model rejects it.
func (e *evaluation) place(c *gemm.Config) (n *depth, rejected bool) {
	bm, bn, bk, a := uint64(c.BlockM), uint64(c.BlockN), uint64(c.BlockK), &e.area
	if bm != a.bm || bn != a.bn {
		*a = area{bm: bm, bn: bn, gm: cdiv(e.m, bm), gn: cdiv(e.n, bn), areaTerms: areaTerms{blockM: f(bm), blockN: f(bn)}}
		a.grid = a.gm * a.gn
		a.tiles, a.padded = a.grid*e.batch, float64(f(a.gm)*a.blockM)*float64(f(a.gn)*a.blockN)
		a.rejected = e.mi.m == 1 && e.mi.n == 1 && e.mi.k == 64 && e.m > 2 ||
			e.m <= 256 && e.n <= 256 && e.k < 1024 && e.batch != 1 && (bm < e.m || bn < e.n)
		a.skinny = e.k*e.bytes%terms.Granule == 0 && (!e.transB && e.n/e.m > terms.SkinnyRatio && e.m <= 2*bm ||
			e.transA && e.m/e.n > terms.SkinnyRatio && e.n <= 2*bn)
		a.compute(&e.in, &e.on.device)
		e.launch = launched{}
	}
	if n = &e.depths[bits.TrailingZeros64(bk)%len(e.depths)]; n.bk != bk {
		*n = depth{bk: bk, steps: cdiv(e.k, bk), depthTerms: depthTerms{blockK: f(bk)}}
		n.compute(&e.in, &e.on.device)
	}
	return n, a.rejected || a.skinny && bk*e.bytes%terms.Granule == 0
}

// score computes the terms of the configuration that place has moved to. A split above 1 divides each tile among that
// many workgroups. Otherwise the grid mode decides.
func (e *evaluation) score(n *depth) {
	workgroups := e.area.tiles
	switch {
	case e.config.SplitK > 1:
		workgroups *= uint64(e.config.SplitK)
	case e.grid != dataParallel:
		in := gridInput{cus: e.cus, tiles: e.area.tiles, steps: n.steps}
		workgroups = in.workgroups(e.grid)
	}
	if workgroups != e.launch.workgroups {
		e.start(newLaunch(workgroups, e.area.tiles, e.cus))
	}
	e.compute(n)
}

// start fills the terms of a launch.
func (e *evaluation) start(l launch) {
	a, s := &e.area, &e.launch
	*s = launched{launch: l}
	wide := min(e.wgm, a.gn)
	mallM, mallN := e.fit(cdiv(l.active, e.wgm), wide)
	perDie := max(cdiv(cdiv(min(a.grid, e.cus), l.split*e.batch), e.xcds), 1)
	s.l2M, s.l2N = e.fit(cdiv(perDie, wide), wide)
	s.l2Hit, s.allHit = a.reuse(s.l2M, s.l2N), e.allHit(1)
	s.launchTerms = launchTerms{
		numWgs: f(l.workgroups), activeCus: f(l.active), timesteps: f(l.timesteps), split: f(l.split),
		mallTileM: f(mallM), mallTileN: f(mallN), mallHit: a.reuse(mallM, mallN),
		occupancyDiscount: occupancyDiscount[min(max(e.occupancy, 1), cdiv(a.tiles*l.split, e.cus))],
	}
	s.compute(&e.in, &e.on.device, &a.areaTerms)
}

// fit clamps a super-tile to the grid. A super-tile that is taller than the grid continues in further columns.
func (e *evaluation) fit(tm, tn uint64) (uint64, uint64) {
	if tm > e.area.gm {
		tn += tm / e.area.gm * e.wgm
		tm = e.area.gm
	}
	return max(min(e.area.gm, tm), 1), max(min(e.area.gn, tn), 1)
}

// reuse returns the share of a super-tile's loads that hit data already loaded by another of its tiles:
// 1 − unique/all, in elements per index along K, which cancels: super-tiles are small.
func (a *area) reuse(tm, tn uint64) float64 {
	all := tm * tn * (a.bm + a.bn)
	return f(all-(tm*a.bm+tn*a.bn)) / f(all)
}

// allHit is the hit rate if all tiles shared one cache, from so many indices along K.
func (e *evaluation) allHit(depth uint64) float64 {
	a := &e.area
	allA, allB := f(a.grid*a.bm*depth), f(a.grid*a.bn*depth)
	return ((allA - f(a.gm*a.bm*depth)) + (allB - f(a.gn*a.bn*depth))) / (allA + allB)
}

// compute fills the terms of a K step, of a tile and of the whole problem.
func (e *evaluation) compute(n *depth) {
	a, l, t, bk := &e.area, &e.launch, &e.step, n.bk
	// The super-tile of a die shrinks until the L2 holds it. Then the whole problem caps its hit rate.
	tileM, tileN, l2Hit, allHit := l.l2M, l.l2N, l.l2Hit, l.allHit
	rowBytes, columnBytes := a.bm*bk*e.bytes, a.bn*bk*e.bytes
	for tileM*rowBytes+tileN*columnBytes > e.l2Bytes && tileM*tileN > 1 {
		if tileM >= tileN {
			tileM--
		} else {
			tileN--
		}
	}
	if tileM != l.l2M || tileN != l.l2N {
		l2Hit = a.reuse(tileM, tileN)
	}
	switch {
	case a.gm*rowBytes+a.gn*columnBytes > e.l2Bytes*terms.GlobalCapacityScale:
		allHit = terms.OverflowHitRate
	case bk&(bk-1) != 0 && a.grid*(a.bm+a.bn)*bk >= 1<<53: // block_k, which the original includes, does not cancel
		allHit = e.allHit(bk)
	}
	t.splitK, t.l2TileM, t.l2TileN, t.l2Hit, t.l2HitGlobal = float64(e.config.SplitK), f(tileM), f(tileN), l2Hit, allHit
	t.utilization = e.volume / (a.padded * float64(f(n.steps)*n.blockK))
	t.lConversion, t.heuristicFactor = 0, 1
	if e.mi.convert != 0 {
		t.lConversion, t.heuristicFactor = e.conversionLatency(bk), e.xf32Factor(bk)
	} else if bk == 32 && a.bm == 64 && a.bn == 32 && !e.transB && e.bytes == 2 {
		t.heuristicFactor = terms.SmallTileFactor
	}
	t.compute(&e.in, &e.on.device, &n.depthTerms, &a.areaTerms, &l.launchTerms)
}

// maxOccupancy is the number of wavefronts that a compute unit holds.
const maxOccupancy = 32

// occupancyDiscount[n] is 0.95^n as C's pow rounds it, to the nearest double. Go's math.Pow and repeated multiplication
// round some of the values differently.
var occupancyDiscount = [maxOccupancy + 1]float64{
	1, 0.95, 0.9025, 0.8573749999999999,
	0.8145062499999999, 0.7737809374999998, 0.7350918906249998, 0.6983372960937497,
	0.6634204312890623, 0.6302494097246091, 0.5987369392383787, 0.5688000922764597,
	0.5403600876626367, 0.5133420832795048, 0.48767497911552954, 0.46329123015975304,
	0.44012666865176536, 0.4181203352191771, 0.3972143184582182, 0.37735360253530725,
	0.3584859224085419, 0.3405616262881148, 0.323533544973709, 0.3073568677250236,
	0.2919890243387724, 0.27738957312183377, 0.26352009446574204, 0.2503440897424549,
	0.23782688525533216, 0.22593554099256555, 0.21463876394293727, 0.2039068257457904,
	0.19371148445850087,
}
