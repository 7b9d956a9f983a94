package amdorigami

import "github.com/origami-gemm/origami/core/arch"

// setTile computes the first stage.
func (e *evaluation) setTile(bm, bn uint64) {
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
	smallBatched := e.m <= 256 && e.n <= 256 && e.k < 1024 && e.batch != 1
	t.tileRefused = e.refused || smallBatched && (bm < e.m || bn < e.n)
	t.tileSkinny = e.wholeK && (e.longN && e.m <= 2*bm || e.longM && e.n <= 2*bn)
	e.tileStage = t
}

// newDepth computes the values that depend on block_k alone.
func (e *evaluation) newDepth(bk uint64) depth {
	d := depth{
		bk: bk, asFloat: f(bk), power: bk&(bk-1) == 0,
		steps: cdiv(e.k, bk), rounded: e.round128(bk), instructions: cdiv(bk, e.mi.k),
	}
	d.rest = f(max(d.steps, 2) - 1)
	d.padded = f(d.steps) * f(bk)
	d.whole = d.rounded == bk
	if left := e.k % bk; left != 0 {
		d.kPadding = float64(f(left) / f(e.k) * kPaddingPenalty)
	}
	return d
}

// setLaunch computes the second stage.
func (e *evaluation) setLaunch(l launch) {
	s := launchStage{launch: l, active: f(l.active), rounds: f(l.timesteps)}
	active := int(l.active)
	s.l2Rate = float64(e.l2.Bandwidth.At(active))
	s.bwLimited = e.hbm.Bandwidth.Fraction(active)
	s.mallRate = float64(e.mall.Bandwidth.Peak) * s.bwLimited
	s.hbmRate = float64(e.hbm.Bandwidth.Peak) * s.bwLimited

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

// fit clamps a super-tile to the grid. A super-tile that is taller than the grid continues in further columns.
func (e *evaluation) fit(tm, tn uint64) (uint64, uint64) {
	if tm > e.gm {
		tn += tm / e.gm * e.wgm
		tm = e.gm
	}
	return max(min(e.gm, tm), 1), max(min(e.gn, tn), 1)
}

// reuse returns the share of a super-tile's loads that hit data already loaded by another of its tiles:
// 1 − unique/all, in elements.
func reuse(tm, tn, bm, bn, bk uint64) float64 {
	a, b := tm*(bm*bk), tn*(bn*bk)
	all := max(a*tn+b*tm, 1)
	return min(max(f(all-(a+b))/f(all), 0), 1)
}

// setHitRates computes the values that depend on block_k only through rounding.
func (e *evaluation) setHitRates(scale uint64) {
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

// l2HitRate caps the hit rate of one die's super-tile at that of the whole problem.
func l2HitRate(local, global float64) float64 {
	if hit := min(local, global); hit != 0 {
		return hit
	}
	return emptyHitRate
}

// setStep computes the third stage: the latency of one K step, of a tile and of the whole problem. It is one function
// because it is most of an estimate: calls between its parts cost a seventh of the whole.
func (e *evaluation) setStep() {
	d, s := e.current(), &e.stepStage
	bk := d.bk
	// Numerators and denominators of the hit rates are multiples of block_k. A power of two cancels exactly. Any other
	// block_k cancels exactly as long as all products stay below 2^53. Beyond that the products include block_k, as in
	// the original.
	scale, depth := uint64(1), d.asFloat
	if !d.power && e.grid*(e.bm+e.bn)*bk >= 1<<53 {
		scale, depth = bk, 1
	}
	if e.scale != scale {
		e.setHitRates(scale)
	}

	// L2: the super-tile shrinks until the cache holds it. Then the whole problem caps its hit rate.
	s.tileM, s.tileN, s.l2Hit, s.globalHit = e.l2M, e.l2N, e.l2Share, e.allShare
	l2Miss := e.l2Miss
	if (e.l2M*e.bm+e.l2N*e.bn)*bk*e.bytes > e.l2Bytes ||
		(e.gm*e.bm+e.gn*e.bn)*bk*e.bytes > e.l2Bytes*globalCapacityScale {
		e.overflow(scale)
		l2Miss = 1 - l2HitRate(s.l2Hit, s.globalHit)
	}

	// One K step. If several latencies are equal, the bound is the first of compute, L2, MALL and HBM.
	s.computeCycles = f(e.compute * d.instructions)
	s.loadBytes = f((e.loadRounded*d.rounded + e.loadPlain*bk) * e.bytes)
	s.minLoad = e.unitBytes * depth * e.concurrent
	s.fromL2 = s.loadBytes * e.active
	missed := l2Miss * s.fromL2
	s.fromMALL = larger(missed, s.minLoad)
	s.fromHBM = larger(e.mallMiss*missed, s.minLoad)
	s.l2Cycles = s.fromL2 / e.l2Rate
	s.mallCycles = s.fromMALL / e.mallRate
	transfer := s.fromHBM / e.hbmRate
	s.hbmCycles = transfer + e.hbmLatency
	wait := s.l2Cycles
	s.bound = arch.BoundL2
	if s.mallCycles > wait {
		wait, s.bound = s.mallCycles, arch.BoundMALL
	}
	if s.hbmCycles > wait {
		wait, s.bound = s.hbmCycles, arch.BoundDRAM
		if transfer < e.hbmLatency {
			s.bound = arch.BoundLatency
		}
	}
	s.memoryCycles = wait
	if s.computeCycles >= wait {
		wait, s.bound = s.computeCycles, arch.BoundCompute
	}

	// The tile.
	s.utilization, s.penalty = e.volume/(e.area*d.padded), 1
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
	s.prologue = float64(prologueFactor * s.memoryCycles * e.discount * s.penalty)
	s.storePart = float64((e.store + float64(s.computeCycles*s.penalty)) * e.discount)
	s.epilogue = s.storePart + e.reduction + d.kPadding
	s.numIter = d.rest
	if e.split > 1 {
		s.numIter = f(max(cdiv(cdiv(e.k, e.split), bk), 2) - 1)
	}
	s.tileLatency = float64(s.single*s.numIter) + s.prologue + float64(s.epilogue*epilogueFactor) +
		setupLatency + float64(stepOverhead*s.numIter)
	s.total = s.tileLatency * e.rounds * s.factor
}

// overflow recomputes the L2 hit rates of a step whose operands do not fit in the cache.
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

// larger is max without its handling of NaN and signed zeros, which do not occur.
func larger(a, b float64) float64 {
	if a > b {
		return a
	}
	return b
}
