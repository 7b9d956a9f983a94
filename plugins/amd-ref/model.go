package amdref

import (
	"math/bits"

	"github.com/origami-gemm/origami/core/arch"
)

// The empirical numbers of the model. Constants in terms.go says what each is; docs/model-amd-reference.md where it enters.
const (
	hbmLatency          = 200
	prologueFactor      = 1.5
	epilogueFactor      = 2
	setupLatency        = 1
	stepOverhead        = 500
	kPaddingPenalty     = 50000
	reductionLatency    = 10000
	reductionRate       = 64
	emptyHitRate        = 0.5
	overflowHitRate     = 0.1
	globalCapacityScale = 1024
	roundBits           = 1024
	smallTilePenalty    = 10
	skinnyRatio         = 5
	minUtilization      = 1e-9
	occupancyBase       = 0.95
	maxOccupancy        = 32
)

// occupancyDiscount[n] is 0.95^n as C's pow rounds it, which is to the nearest double. Go's math.Pow rounds some of them
// differently, and so does repeated multiplication. A compute unit holds at most 32 wavefronts, so no larger n occurs.
var occupancyDiscount = [maxOccupancy + 1]float64{
	1, 0.95, 0.9025, 0.8573749999999999, 0.8145062499999999, 0.7737809374999998, 0.7350918906249998, 0.6983372960937497, 0.6634204312890623,
	0.6302494097246091, 0.5987369392383787, 0.5688000922764597, 0.5403600876626367, 0.5133420832795048, 0.48767497911552954,
	0.46329123015975304, 0.44012666865176536, 0.4181203352191771, 0.3972143184582182, 0.37735360253530725, 0.3584859224085419,
	0.3405616262881148, 0.323533544973709, 0.3073568677250236, 0.2919890243387724, 0.27738957312183377, 0.26352009446574204,
	0.2503440897424549, 0.23782688525533216, 0.22593554099256555, 0.21463876394293727, 0.2039068257457904, 0.19371148445850087,
}

// machine is a device in the form that the equations use.
type machine struct {
	cus, xcds       uint64
	ldsBytes        uint64
	l2Bytes         uint64 // of one die
	l2Bandwidth     arch.Bandwidth
	mallBandwidth   arch.Bandwidth
	hbmBandwidth    arch.Bandwidth
	assumedWGM      uint64 // WGM of an unbatched problem while configurations are scored
	emulatesXF32    bool   // TF32 runs as three BF16 products, with conversions
	parallelMI      uint64
	gridMode        gridMode
	occupancy       uint64
	februaryMapping bool
}

// instruction is a matrix instruction. latency is its cost in cycles, with all matrix cores of a compute unit at work.
type instruction struct{ m, n, k, latency uint64 }

// problem is a GEMM in the form that the equations use, with everything that does not depend on the tile.
type problem struct {
	*machine
	m, n, k, batch uint64
	// transA and transB are the BLAS letters of column-major storage: T for A and N for B are K-contiguous.
	transA, transB bool
	bits, bytes    uint64  // of an element of A and of B
	outBytes       float64 // of an element of C
	mi             instruction
	// convert is the latency of a BF16 instruction of that shape where TF32 is emulated, zero elsewhere.
	convert float64
	wgm     uint64

	volume       float64 // M·N·K
	block        uint64  // 128 bytes, in elements
	wholeK       bool    // K is a multiple of block
	longM, longN bool    // skinny, in the direction that the hint rule looks in
	refused      bool    // by a rule that does not depend on the tile
}

// derive fills the fields that follow from the others.
func (p *problem) derive() {
	p.bytes = p.bits / 8
	p.volume = f(p.m * p.n * p.k)
	p.block = roundBits / p.bits
	p.wholeK = p.k%p.block == 0
	p.longM = p.transA && p.m/p.n > skinnyRatio
	p.longN = !p.transB && p.n/p.m > skinnyRatio
	p.refused = p.mi.m == 1 && p.mi.n == 1 && p.mi.k == 64 && p.m > 2
}

// round128 rounds a number of elements along one dimension of a tile up to 128 bytes.
func (p *problem) round128(x uint64) uint64 { return (x + p.block - 1) &^ (p.block - 1) }

// evaluation computes the terms of one configuration after another. Its stages are nested: tileStage depends on block_m
// and block_n, launchStage on the number of workgroups over those tiles, stepStage on block_k. A stage reads only the
// problem and the stages before it, so leaving out a repetition changes no bit, whatever the order of configurations.
type evaluation struct {
	problem
	tileStage
	launchStage
	stepStage
	// depths are what depends on block_k alone, by the number of its trailing zero bits, and slot is the current one. (A
	// pointer to it would move the evaluation to the heap.)
	depths [depthSlots]depth
	slot   int
}

const depthSlots = 16

// current returns what depends on the current block_k alone.
func (e *evaluation) current() *depth { return &e.depths[e.slot%depthSlots] }

type tileStage struct {
	bm, bn      uint64
	gm, gn      uint64  // tiles along M and N
	grid, tiles uint64  // gm·gn, and that times the batch
	area        float64 // of the padded output
	compute     uint64  // cycles of the instructions of one depth
	storeRows   uint64  // rows of C that a tile's store touches
	loadRounded uint64  // elements that a load touches per element of rounded depth
	loadPlain   uint64  // and per element of depth where the other dimension is rounded
	tileRefused bool    // by a rule that does not depend on block_k
	tileSkinny  bool    // by the hint rule, if block_k is a multiple of 128 bytes
}

type launchStage struct {
	launch
	active       float64
	rounds       float64 // timesteps
	l2Rate       float64 // bytes per cycle of each level with that many active compute units
	bwLimited    float64
	mallRate     float64
	hbmRate      float64
	l2M, l2N     uint64 // super-tile of one die, as far as its L2 holds it
	mallM, mallN uint64 // super-tile of the whole device
	occupied     uint64 // workgroups per compute unit
	discount     float64
	concurrent   float64 // batch entries at once
	store        float64
	reduction    float64

	// What follows is the same for every block_k as long as no rounding comes in between (see shares).
	scale     uint64 // block_k that it is computed for, 1 for any; 0: not yet
	l2Share   float64
	allShare  float64
	l2Miss    float64 // from these two, as long as nothing overflows
	mallHit   float64
	mallMiss  float64
	unitBytes float64 // of the device's super-tile, per scale elements of depth
}

// depth is what depends on block_k alone.
type depth struct {
	bk           uint64
	asFloat      float64
	steps        uint64  // K steps of an unsplit tile
	rest         float64 // those after the first, at least 1
	padded       float64 // K padded to whole steps
	rounded      uint64  // block_k rounded up to 128 bytes
	whole        bool    // it was a multiple already
	instructions uint64  // matrix instructions along K
	kPadding     float64 // penalty for a last step that K does not fill
	power        bool    // a power of two
}

type stepStage struct {
	tileM, tileN     uint64 // super-tile of one die that its L2 holds
	l2Hit, globalHit float64
	lCompute         float64
	loadBytes        float64
	minLoad          float64
	fromL2, fromMALL float64 // bytes
	fromHBM          float64
	l1, l2, l3, lMem float64
	bound            arch.Bound
	utilization      float64
	penalty          float64
	numIter          float64
	prologue         float64
	storePart        float64 // of the epilogue, before reduction and padding
	epilogue         float64
	conversion       float64
	single           float64
	tileLatency      float64
	factor           float64
	total            float64
}

// place enters the stage tile for a configuration and looks up what belongs to its block_k. It is enough for fits and rejected.
func (e *evaluation) place(bm, bn, bk uint64) {
	if bm != e.bm || bn != e.bn {
		e.tile(bm, bn)
		e.workgroups = 0
	}
	e.slot = bits.TrailingZeros64(bk) % depthSlots
	if d := e.current(); d.bk != bk {
		*d = e.newDepth(bk)
	}
}

// fits reports whether one tile of A and B fits local memory.
func (e *evaluation) fits() bool { return (e.bm+e.bn)*e.current().bk*e.bytes <= e.ldsBytes }

// rejected reports whether a rule of the model drops the configuration.
func (e *evaluation) rejected() bool { return e.tileRefused || e.tileSkinny && e.current().whole }

// score computes the remaining terms of the configuration that place has entered. With splitK above 1 each tile is split
// over that many workgroups; otherwise the grid mode decides.
func (e *evaluation) score(splitK uint64) {
	workgroups := e.tiles
	switch {
	case splitK > 1:
		workgroups *= splitK
	case e.gridMode != dataParallel:
		in := gridInput{cus: e.cus, maxCUs: e.cus, tiles: e.tiles, steps: e.current().steps, occupancy: e.occupancy}
		workgroups = in.workgroups(e.gridMode)
	}
	if workgroups != e.workgroups {
		e.launched(newLaunch(workgroups, e.tiles, e.cus))
	}
	e.step()
}

// tile is the first stage.
func (e *evaluation) tile(bm, bn uint64) {
	t := tileStage{bm: bm, bn: bn, gm: cdiv(e.m, bm), gn: cdiv(e.n, bn)}
	t.grid = t.gm * t.gn
	t.tiles = t.grid * e.batch
	t.area = float64(f(t.gm)*f(bm)) * float64(f(t.gn)*f(bn))
	t.compute = e.mi.latency * (cdiv(bm, e.mi.m) * cdiv(bn, e.mi.n))
	t.storeRows = e.round128(bm)
	if e.transA {
		t.loadRounded += bm
	} else {
		t.loadPlain += t.storeRows
	}
	if e.transB {
		t.loadPlain += e.round128(bn)
	} else {
		t.loadRounded += bn
	}
	t.tileRefused = e.refused || e.m <= 256 && e.n <= 256 && e.k < 1024 && e.batch != 1 && (bm < e.m || bn < e.n)
	t.tileSkinny = e.wholeK && (e.longN && e.m <= 2*bm || e.longM && e.n <= 2*bn)
	e.tileStage = t
}

func (e *evaluation) newDepth(bk uint64) depth {
	d := depth{bk: bk, asFloat: f(bk), steps: cdiv(e.k, bk), rounded: e.round128(bk), instructions: cdiv(bk, e.mi.k), power: bk&(bk-1) == 0}
	d.rest = f(max(d.steps, 2) - 1)
	d.padded = f(d.steps) * f(bk)
	d.whole = d.rounded == bk
	if left := e.k % bk; left != 0 {
		d.kPadding = float64(f(left) / f(e.k) * kPaddingPenalty)
	}
	return d
}

// launched is the second stage.
func (e *evaluation) launched(l launch) {
	s := launchStage{launch: l, active: f(l.active), rounds: f(l.timesteps)}
	active := int(l.active)
	s.l2Rate = float64(e.l2Bandwidth.At(active))
	s.bwLimited = e.hbmBandwidth.Fraction(active)
	s.mallRate = float64(e.mallBandwidth.Peak) * s.bwLimited
	s.hbmRate = float64(e.hbmBandwidth.Peak) * s.bwLimited

	wide := min(e.wgm, e.gn)
	s.mallM, s.mallN = e.fit(cdiv(l.active, e.wgm), wide)
	perDie := max(cdiv(cdiv(min(e.grid, e.cus), l.split*e.batch), e.xcds), 1)
	s.l2M, s.l2N = e.fit(cdiv(perDie, wide), wide)

	s.occupied = min(max(e.occupancy, 1), cdiv(e.tiles*l.split, e.cus))
	s.discount = occupancyDiscount[s.occupied]
	s.concurrent = min(f(e.batch), max(s.active/f(e.grid), 1))
	rows := f(e.storeRows)
	s.store = f(l.active/l.split) * rows * f(e.bn) * e.outBytes / s.hbmRate
	if l.split > 1 {
		tile := e.storeRows * e.bn
		read := float64(f(e.grid*(l.split-1)*tile) * e.outBytes)
		write := float64(f(e.grid*tile) * e.outBytes)
		s.reduction = (read+write)/s.hbmRate + f(e.bm*e.bn)*f(l.split)/reductionRate + reductionLatency
	}
	e.launchStage = s
}

// fit wraps a super-tile that is taller than the grid into further columns and clamps it to the grid.
func (e *evaluation) fit(tm, tn uint64) (uint64, uint64) {
	if tm > e.gm {
		tn += tm / e.gm * e.wgm
		tm = e.gm
	}
	return max(min(e.gm, tm), 1), max(min(e.gn, tn), 1)
}

// reuse returns the share of a super-tile's loads that hit what another of its tiles has loaded before:
// 1 − unique/all, in elements.
func reuse(tm, tn, bm, bn, bk uint64) float64 {
	a, b := tm*(bm*bk), tn*(bn*bk)
	all := max(a*tn+b*tm, 1)
	return min(max(f(all-(a+b))/f(all), 0), 1)
}

// shares fills what depends on block_k only through rounding.
func (e *evaluation) shares(scale uint64) {
	e.scale = scale
	e.l2Share = reuse(e.l2M, e.l2N, e.bm, e.bn, scale)
	allA, allB := f(e.gm*e.gn*e.bm*scale), f(e.gm*e.gn*e.bn*scale)
	a, b := f(e.gm*e.bm*scale), f(e.gn*e.bn*scale)
	e.allShare = ((allA - a) + (allB - b)) / (allA + allB)
	e.l2Miss = 1 - l2HitRate(e.l2Share, e.allShare)
	e.mallHit = reuse(e.mallM, e.mallN, e.bm, e.bn, scale)
	e.mallMiss = 1 - e.mallHit
	e.unitBytes = float64(f(e.mallM*e.bm*scale)*f(e.bytes)) + float64(f(e.mallN*e.bn*scale)*f(e.bytes))
}

// l2HitRate combines the hit rate of one die's super-tile with the cap that the whole problem puts on it.
func l2HitRate(local, global float64) float64 {
	if hit := min(local, global); hit != 0 {
		return hit
	}
	return emptyHitRate
}

// step is the third stage: the latency of one K step, of a tile and of the whole problem.
func (e *evaluation) step() {
	d, s := e.current(), &e.stepStage
	bk := d.bk
	// Numerators and denominators of the shares are multiples of block_k. A power of two cancels exactly, any other
	// block_k as long as all products are below 2^53; beyond that they are formed with block_k in, as the original does.
	scale, depth := uint64(1), d.asFloat
	if !d.power && e.grid*(e.bm+e.bn)*bk >= 1<<53 {
		scale, depth = bk, 1
	}
	if e.scale != scale {
		e.shares(scale)
	}

	// L2: the super-tile shrinks until the cache holds it, then the whole problem puts a cap on its hit rate.
	s.tileM, s.tileN, s.l2Hit, s.globalHit = e.l2M, e.l2N, e.l2Share, e.allShare
	l2Miss := e.l2Miss
	if (e.l2M*e.bm+e.l2N*e.bn)*bk*e.bytes > e.l2Bytes || (e.gm*e.bm+e.gn*e.bn)*bk*e.bytes > e.l2Bytes*globalCapacityScale {
		e.overflow(scale)
		l2Miss = 1 - l2HitRate(s.l2Hit, s.globalHit)
	}

	// Memory latency of one K step.
	s.lCompute = f(e.compute * d.instructions)
	s.loadBytes = f((e.loadRounded*d.rounded + e.loadPlain*bk) * e.bytes)
	s.minLoad = e.unitBytes * depth * e.concurrent
	s.fromL2 = s.loadBytes * e.active
	missed := l2Miss * s.fromL2
	s.fromMALL = larger(missed, s.minLoad)
	s.fromHBM = larger(e.mallMiss*missed, s.minLoad)
	s.l1 = s.fromL2 / e.l2Rate
	s.l2 = s.fromMALL / e.mallRate
	transfer := s.fromHBM / e.hbmRate
	s.l3 = transfer + hbmLatency
	// On a tie the first of compute, L2, MALL and HBM is the bound.
	wait := s.l1
	s.bound = arch.BoundL2
	if s.l2 > wait {
		wait = s.l2
		s.bound = arch.BoundMALL
	}
	if s.l3 > wait {
		wait = s.l3
		s.bound = arch.BoundDRAM
		if transfer < hbmLatency {
			s.bound = arch.BoundLatency
		}
	}
	s.lMem = wait
	if s.lCompute >= wait {
		wait = s.lCompute
		s.bound = arch.BoundCompute
	}

	// Tile latency.
	s.utilization = e.volume / (e.area * d.padded)
	s.penalty = 1
	if s.utilization > minUtilization {
		s.penalty = 1 / s.utilization
	}
	s.single = float64(wait * s.penalty)
	s.conversion, s.factor = 0, 1
	if e.convert != 0 {
		s.conversion, s.factor = e.conversionLatency(bk), e.xf32Factor(bk)
		s.single += s.conversion
	} else if bk == 32 && e.bm == 64 && e.bn == 32 && !e.transB && e.bits == 16 {
		s.factor = smallTilePenalty
	}
	s.prologue = float64(prologueFactor * s.lMem * e.discount * s.penalty)
	s.storePart = float64((e.store + float64(s.lCompute*s.penalty)) * e.discount)
	s.epilogue = s.storePart + e.reduction + d.kPadding
	s.numIter = d.rest
	if e.split > 1 {
		s.numIter = f(max(cdiv(cdiv(e.k, e.split), bk), 2) - 1)
	}
	s.tileLatency = float64(s.single*s.numIter) + s.prologue + float64(s.epilogue*epilogueFactor) + setupLatency + float64(stepOverhead*s.numIter)
	s.total = s.tileLatency * e.rounds * s.factor
}

// overflow recomputes the L2 hit rates of a step whose operands do not fit.
func (e *evaluation) overflow(scale uint64) {
	s := &e.stepStage
	rowBytes, columnBytes := e.bm*e.current().bk*e.bytes, e.bn*e.current().bk*e.bytes
	for s.tileM*rowBytes+s.tileN*columnBytes > e.l2Bytes {
		if s.tileM > 1 && s.tileM >= s.tileN {
			s.tileM--
		} else if s.tileN > 1 {
			s.tileN--
		} else {
			break
		}
	}
	s.l2Hit = reuse(s.tileM, s.tileN, e.bm, e.bn, scale)
	if e.gm*rowBytes+e.gn*columnBytes > e.l2Bytes*globalCapacityScale {
		s.globalHit = overflowHitRate
	}
}

// larger is max without the care for NaN and signed zeros, which do not occur.
func larger(a, b float64) float64 {
	if a > b {
		return a
	}
	return b
}

// conversionLatency is what splitting TF32 operands into BF16 parts adds to a K step, beyond what matrix instructions and
// loads hide (gfx950).
func (e *evaluation) conversionLatency(bk uint64) float64 {
	wm, wn := f(e.bm)/2, f(e.bn)/2
	a := wm * f(bk) * f(e.bytes) / 128 / f(e.mi.m)
	b := wn * f(bk) * f(e.bytes) / 128 / f(e.mi.n)
	reads := a + b
	products := 3 * (wm / f(e.mi.m)) * (wn / f(e.mi.n)) * f(bk/e.mi.k)
	spare := max(0, products-reads-a)
	hidden := float64(0.5*e.convert*spare) + float64(0.25*e.convert*(reads+a))
	return max(float64(6.5*e.convert*a)-hidden, 0)
}

// xf32Factor is the hand-made factor on the total where TF32 is emulated (gfx950).
func (e *evaluation) xf32Factor(bk uint64) float64 {
	factor := 1.0
	if e.bm == 256 && e.bn == 256 && bk == 32 && (!e.transA || !e.transB) {
		m, n, k := f(e.m), f(e.n), f(e.k)
		intensity := 6 * m * n * k / ((float64(m*n) + float64(n*k) + float64(m*k)) * f(e.bytes))
		switch {
		case intensity >= 1000:
			factor = 0.4
		case !e.transA && e.transB:
			factor = 0.6
		default:
			factor = 0.8
		}
	}
	if e.k >= 16*e.m && e.k >= 16*e.n && bk >= 128 {
		factor *= 0.5
	}
	return factor
}

// cdiv returns ⌈n/d⌉.
func cdiv(n, d uint64) uint64 { return (n + d - 1) / d }

// f converts a count, which is far below 2^63.
func f(v uint64) float64 { return float64(int64(v)) }
