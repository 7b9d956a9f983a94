package wgmma

import (
	"fmt"

	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Emit implements gemmgen.Program. Whether the kernel fits a device is for Check to say.
func (s Spec) Emit(t target.Target) (*gemmgen.Kernel, error) {
	s = s.key()
	g, reason, detail := s.layout()
	if reason != "" {
		return nil, gemmgen.Refused(s.Config, reason, detail)
	}
	e := &emitter{Builder: asm.New(s.name()), s: s, g: g}
	e.kernel()
	k, err := e.Build(t)
	if err != nil {
		return nil, gemmgen.Wrong(s.Config, err)
	}
	return &gemmgen.Kernel{Kernel: k, Key: s, Threads: g.threads, SharedMemory: unit.Bytes(g.sharedBytes)}, nil
}

// emitter builds one kernel. Its fields are the values that more than one part of the kernel needs.
type emitter struct {
	asm.Builder
	s Spec
	g geometry
	p params

	tid, group ptx.Operand // thread in the CTA; warpgroup in the CTA
	rank       ptx.Operand // CTA in the cluster
	rankM      ptx.Operand // along M, which counts first
	rankN      ptx.Operand // along N
	smem       ptx.Operand // address of the dynamic shared memory
	full       ptx.Operand // address of the barriers that say that a stage was copied
	empty      ptx.Operand // address of the barriers that say that a stage was multiplied
	waits      int         // loops that wait so far
	divisions  int         // divisions so far
}

// params are the kernel's parameters.
type params struct {
	a, b, cMap, c, ldc, strideC   ptx.Operand
	m, n, kBlocks                 ptx.Operand
	tilesM, tilesN, tiles, groupM ptx.Operand
	// Only of kernels that split K.
	blocksPerSplit, perSplit, splits, partials, counters ptx.Operand
	// Only of kernels that share tiles along K. The first whole tiles are not shared. Each cluster has share blocks
	// along K of the others, which have shared in all.
	whole, share, shared ptx.Operand
	alpha, beta          ptx.Operand
	bias, r              ptx.Operand // only of kernels that add them
	// Only of kernels that scale. A step is 1 for a scale of each row or column, 0 for one of all.
	scaleA, scaleB, stepA, stepB ptx.Operand
	// copied is the bytes of the copies of a stage.
	copied ptx.Operand
	// skew is how many blocks along K later each eight tiles begin than those before, 0 if all begin at the first.
	skew ptx.Operand
	// lastM and lastN are the first row and column of the last tiles.
	lastM, lastN ptx.Operand
}

// kernel emits the whole kernel. The first warpgroup copies, the others multiply and store.
func (e *emitter) kernel() {
	c := e.s.Config
	e.Header("%s, kernel family %s: %s x %s -> %s, A %c-contiguous, B %c-contiguous", gemmgen.Formula(e.s.Epilogue),
		Name, e.s.DType, e.s.DType, e.s.Out, e.s.AMajor, e.s.BMajor)
	of := ""
	if e.g.turned {
		of = " of the transposed tile"
	}
	e.Header("tile %dx%dx%d, %d warpgroups that multiply %dx%d each%s, %d stages of %d B, clusters of %dx%d CTAs",
		c.BlockM, c.BlockN, c.BlockK, e.g.consumers, tileM*e.g.tiles, e.g.columns, of, c.NumStages, e.g.stageBytes,
		e.g.clusterM, e.g.clusterN)
	e.Begin(e.g.threads, 1)
	if e.g.cluster > 1 {
		e.Cluster(e.g.cluster)
	}
	e.p = params{
		a: e.MapParam("a"), b: e.MapParam("b"), c: e.Param("c", ptx.U64),
		ldc: e.Param("ldc", ptx.S64), strideC: e.Param("stride_c", ptx.S64),
		m: e.Param("m", ptx.S32), n: e.Param("n", ptx.S32), kBlocks: e.Param("k_blocks", ptx.U32),
		tilesM: e.Param("tiles_m", ptx.U32), tilesN: e.Param("tiles_n", ptx.U32), tiles: e.Param("tiles", ptx.U32),
		groupM: e.Param("group_m", ptx.U32), alpha: e.Param("alpha", ptx.F32), beta: e.Param("beta", ptx.F32),
		copied: e.Param("copied", ptx.U32), skew: e.Param("skew", ptx.U32),
		lastM: e.Param("last_m", ptx.U32), lastN: e.Param("last_n", ptx.U32),
	}
	if e.splits() {
		e.p.blocksPerSplit, e.p.perSplit = e.Param("blocks_per_split", ptx.U32), e.Param("per_split", ptx.U32)
		e.p.splits = e.Param("splits", ptx.U32)
		e.p.partials, e.p.counters = e.Param("partials", ptx.U64), e.Param("counters", ptx.U64)
	}
	if e.streams() {
		e.p.whole, e.p.share, e.p.shared = e.Param("whole", ptx.U32), e.Param("share", ptx.U32), e.Param("shared", ptx.U32)
		e.p.partials, e.p.counters = e.Param("partials", ptx.U64), e.Param("counters", ptx.U64)
	}
	if e.s.Epilogue.Scales {
		e.p.scaleA, e.p.scaleB = e.Param("scale_a", ptx.U64), e.Param("scale_b", ptx.U64)
		e.p.stepA, e.p.stepB = e.Param("step_a", ptx.U32), e.Param("step_b", ptx.U32)
	}
	if e.s.Epilogue.Bias {
		e.p.bias = e.Param("bias", ptx.U64)
	}
	if e.s.reads() {
		e.p.r = e.Param("r", ptx.U64)
	}
	if e.s.TilesC {
		e.p.cMap = e.MapParam("c_map")
	}
	e.setup()
	consume, done := e.Label("consume"), e.Label("done")
	e.If(e.SetpNeS32(e.Pred(), e.group, ptx.Int(0))).Bra(consume)
	e.produce()
	e.BraUni(done)
	e.Place(consume)
	e.consume()
	e.Place(done)
	if e.g.cluster > 1 {
		e.Comment("others of the cluster may still arrive at this CTA's barriers")
		e.BarrierClusterArriveRelaxed()
		e.BarrierClusterWait()
	}
	e.Ret()
}

// splits reports whether CTAs share output tiles along K.
func (e *emitter) splits() bool { return e.s.Config.SplitK > 1 }

// setup finds which thread this is and makes the barriers.
func (e *emitter) setup() {
	e.tid = e.Special(ptx.TidX)
	e.group = e.ShflSyncIdxB32(e.B32(), e.Shr(e.tid, 7), ptx.Int(0)) // the same in all lanes, as the assembler then knows
	e.ranks()
	e.smem = e.MovU32(e.B32(), e.DynamicShared("smem", swizzleBytes))
	stages := e.s.Config.NumStages
	e.full = e.Add(e.smem, ptx.Int(e.g.barriers))
	e.empty = e.Add(e.full, ptx.Int(barrierBytes*stages))
	e.fetchMaps()
	e.makeBarriers()
	if e.g.cluster > 1 {
		e.BarrierClusterArriveRelaxed()
		e.BarrierClusterWait()
	} else {
		e.BarSync(ptx.Int(0))
	}
}

// fetchMaps makes the thread that copies fetch the tensor maps ahead.
func (e *emitter) fetchMaps() {
	first := e.SetpEqS32(e.Pred(), e.tid, ptx.Int(0))
	for _, tensors := range e.p.maps() {
		at := e.mapAddress(tensors)
		e.If(first).PrefetchTensormap(ptx.Global(at, 0))
	}
}

// makeBarriers makes the barriers, those of each stage by one of the lanes of the second warp, which has nothing else
// to do.
func (e *emitter) makeBarriers() {
	stage := e.Add(e.tid, ptx.Int(-32))
	mine := e.SetpLtU32(e.Pred(), stage, ptx.Int(e.s.Config.NumStages))
	full := e.Mad(stage, barrierBytes, e.full)
	e.If(mine).MbarrierInitB64(ptx.Shared(full, 0), ptx.Int(1))
	e.If(mine).MbarrierInitB64(ptx.Shared(full, barrierBytes*e.s.Config.NumStages), ptx.Int(e.g.consumers*e.g.cluster))
	e.If(mine).FenceMbarrierInit()
}

// ranks finds which CTA of its cluster this is.
func (e *emitter) ranks() {
	e.rank = e.And(e.Special(ptx.CtaidX), e.g.cluster-1)
	e.rankM, e.rankN = e.And(e.rank, e.g.clusterM-1), e.Shr(e.rank, asm.Log2(e.g.clusterM))
}

// sharers returns the masks of the CTAs that share a block of A with this one, those of its row of the cluster, and a
// block of B. CTAs are numbered along M first.
func (e *emitter) sharers() (ofA, ofB ptx.Operand) {
	mask := func(step, count int, shift ptx.Operand) ptx.Operand {
		if count == 1 {
			return ptx.Operand{} // it has them alone
		}
		bits, d := 0, e.B16()
		for i := range count {
			bits |= 1 << (step * i)
		}
		if count == e.g.cluster {
			e.MovB16(d, ptx.Int(bits))
			return d
		}
		all := e.MovB32(e.B32(), ptx.Int(bits))
		e.ShlB32(all, all, shift)
		e.MovB32Unpack(e.Vec(d, e.B16()), all)
		return d
	}
	return mask(e.g.clusterM, e.g.clusterN, e.rankM), mask(1, e.g.clusterM, e.Shl(e.rankN, asm.Log2(e.g.clusterM)))
}

// maps returns the tensor maps among the parameters.
func (p *params) maps() []ptx.Operand {
	if p.cMap == (ptx.Operand{}) {
		return []ptx.Operand{p.a, p.b}
	}
	return []ptx.Operand{p.a, p.b, p.cMap}
}

// ring is a thread's place in the ring of stages.
type ring struct {
	stage ptx.Operand // from 0
	// parity is the parity of the barriers' phase. It changes when the ring is closed.
	parity ptx.Operand
}

func (e *emitter) newRing(parity int) ring {
	r := ring{e.B32(), e.B32()}
	e.MovB32(r.stage, ptx.Int(0))
	e.MovB32(r.parity, ptx.Int(parity))
	return r
}

// next moves to the next stage.
func (e *emitter) next(r ring) {
	e.AddS32(r.stage, r.stage, ptx.Int(1))
	wrap := e.SetpEqS32(e.Pred(), r.stage, ptx.Int(e.s.Config.NumStages))
	e.SelpB32(r.stage, ptx.Int(0), r.stage, wrap)
	flip := e.SelpB32(e.B32(), ptx.Int(1), ptx.Int(0), wrap)
	e.XorB32(r.parity, r.parity, flip)
}

// wait waits until the phase of that parity of a barrier has ended.
func (e *emitter) wait(barrier, parity ptx.Operand) {
	again := e.Label(fmt.Sprintf("wait%d", e.waits))
	e.waits++
	e.Place(again)
	ended := e.MbarrierTryWaitParityB64(e.Pred(), ptx.Shared(barrier, 0), parity)
	e.IfNot(ended).Bra(again)
}

// tile is an output tile, or one split of it.
type tile struct {
	// row and column count the tiles of clusters. batch is the matrix.
	row, column, batch ptx.Operand
	// m0 and n0 are the first row and column of C. outside says that the tile lies outside of C: it only completes a
	// cluster, and copies what its neighbour does. It is there with clusters alone.
	m0, n0, outside ptx.Operand
	// k0 is the first index of the split along K, and blocks how many blocks it has.
	k0, blocks, split ptx.Operand
	// shared counts the tiles that the CTAs share along K, worker the clusters. partial says that the CTA has only a part
	// of the tile along K. They are there with stream alone.
	shared, worker, partial ptx.Operand
}

// eachTile emits a loop over the CTA's tiles. The clusters take them in turns, in the grouped order: the tiles of
// group_m rows are numbered column by column, then the tiles of the next group, so that CTAs that run together share
// operand tiles in L2. All tiles of a split come before the next split.
func (e *emitter) eachTile(role string, body func(t tile)) {
	loop, end, none := e.Label(role+"_tile"), e.Label(role+"_end"), e.Pred()
	tiles, tilesM, tilesN := e.Param32(e.p.tiles), e.Param32(e.p.tilesM), e.Param32(e.p.tilesN)
	groupM := e.Param32(e.p.groupM)
	shift := asm.Log2(e.g.cluster)
	at, step := e.Shr(e.Special(ptx.CtaidX), shift), e.Shr(e.Special(ptx.NctaidX), shift)
	perMatrix := e.MulLoS32(e.B32(), tilesM, tilesN)
	perGroup := e.MulLoS32(e.B32(), groupM, tilesN)
	var s stream
	if e.streams() {
		s = e.newStream(at)
	}
	e.Place(loop)
	if e.streams() {
		e.ended(s, at, none)
	} else {
		e.SetpGeU32(none, at, tiles)
	}
	e.If(none).Bra(end)
	batch := e.B32()
	t := tile{batch: batch, k0: e.B32(), blocks: e.B32()}
	in := at // the tile in its split
	switch {
	case e.streams():
		in = e.streamed(s, at, &t)
	case e.splits():
		t.split = e.B32()
		perSplit, each := e.Param32(e.p.perSplit), e.Param32(e.p.blocksPerSplit)
		e.divide(t.split, at, perSplit)
		in = e.MulLoS32(e.B32(), t.split, perSplit)
		e.SubS32(in, at, in)
		e.MulLoS32(t.k0, t.split, each)
		e.MinU32(t.blocks, e.Sub(e.Param32(e.p.kBlocks), t.k0), each)
		e.MulLoS32(t.k0, t.k0, ptx.Int(e.s.Config.BlockK))
	default:
		e.MovB32(t.k0, ptx.Int(0))
		e.LdParamU32(t.blocks, e.p.kBlocks)
	}
	e.divide(batch, in, perMatrix)
	left := e.MulLoS32(e.B32(), batch, perMatrix)
	e.SubS32(left, in, left)
	row, column := e.InGroups(e.divide, left, tilesM, groupM, perGroup)
	t.row, t.column = row, column
	t.m0 = e.MadLoS32(e.B32(), row, ptx.Int(e.g.clusterM), e.rankM)
	e.MulLoS32(t.m0, t.m0, ptx.Int(e.s.Config.BlockM))
	t.n0 = e.MadLoS32(e.B32(), column, ptx.Int(e.g.clusterN), e.rankN)
	e.MulLoS32(t.n0, t.n0, ptx.Int(e.g.blockC))
	if e.g.cluster > 1 {
		m, n := e.Param32(e.p.m), e.Param32(e.p.n)
		t.outside = e.SetpGeU32(e.Pred(), t.m0, m)
		e.IfNot(t.outside).SetpGeU32(t.outside, t.n0, n)
	}
	e.MinU32(t.m0, t.m0, e.Param32(e.p.lastM))
	e.MinU32(t.n0, t.n0, e.Param32(e.p.lastN))
	body(t)
	e.AddS32(at, at, step)
	e.BraUni(loop)
	e.Place(end)
}

// divide computes d = x / y. Most quotients of the first tiles are 0, which takes no division: those hold up the first
// copies.
func (e *emitter) divide(d, x, y ptx.Operand) ptx.Operand {
	divided := e.Label(fmt.Sprintf("divided%d", e.divisions))
	e.divisions++
	e.MovB32(d, ptx.Int(0))
	e.If(e.SetpLtU32(e.Pred(), x, y)).Bra(divided)
	e.DivU32(d, x, y)
	e.Place(divided)
	return d
}

// produce copies operand tiles. One thread does, as far ahead as there are stages.
func (e *emitter) produce() {
	e.Comment("the warpgroup that copies")
	if e.g.consumers > 1 {
		e.SetmaxnregDecSyncAlignedU32(ptx.Int(registerSplits[e.g.consumers].producer))
	}
	idle := e.Label("idle")
	e.If(e.SetpNeS32(e.Pred(), e.tid, ptx.Int(0))).Bra(idle)
	mapA, mapB := e.mapAddress(e.p.a), e.mapAddress(e.p.b)
	r := e.newRing(1)
	allA, allB := e.sharers()
	copied := e.Param32(e.p.copied)
	e.eachTile("produce", func(t tile) {
		e.alongK(t, func(k ptx.Operand) {
			barrier := e.Mad(r.stage, barrierBytes, e.full)
			e.wait(e.Mad(r.stage, barrierBytes, e.empty), r.parity)
			e.MbarrierArriveExpectTxB64(ptx.Shared(barrier, 0), copied)
			to := e.Mad(r.stage, e.g.stageBytes, e.smem)
			e.copyA(mapA, to, barrier, k, t, allA)
			e.copyB(mapB, to, barrier, k, t, allB)
			e.next(r)
		})
	})
	e.Place(idle)
	e.BarWarpSync(ptx.Int(-1))
}

// alongK emits a loop over the blocks along K of a tile, in the order in which they are added to its sums. k is the
// first index of a block.
func (e *emitter) alongK(t tile, body func(k ptx.Operand)) {
	loop := e.Label("produce_block")
	first, end := e.skewed(t)
	k := e.MovB32(e.B32(), first)
	left := e.MovB32(e.B32(), t.blocks)
	e.Place(loop)
	body(k)
	e.AddS32(k, k, ptx.Int(e.s.Config.BlockK))
	wrap := e.SetpEqS32(e.Pred(), k, end)
	e.SelpB32(k, t.k0, k, wrap)
	e.If(e.CountDown(left)).Bra(loop)
}

// skewed returns the index along K at which the copies of a tile begin, and the end of the tile's part of K, behind
// which they go on at its beginning.
func (e *emitter) skewed(t tile) (first, end ptx.Operand) {
	whole := e.B32()
	blocks := e.MulLoS32(e.B32(), e.Shr(e.Add(t.row, t.column), skewShift), e.Param32(e.p.skew))
	e.divide(whole, blocks, t.blocks)
	e.MulLoS32(whole, whole, t.blocks)
	e.SubS32(blocks, blocks, whole)
	return e.Mad(blocks, e.s.Config.BlockK, t.k0), e.Mad(t.blocks, e.s.Config.BlockK, t.k0)
}

// skewShift is the logarithm of how many neighbouring tiles begin at the same block along K.
const skewShift = 3
