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
	e := newEmitter(s.name(), s, g)
	e.kernel()
	return gemmgen.Assemble(e.Builder.Builder, t, s.Config, gemmgen.Kernel{
		Key: s, Threads: g.threads, SharedMemory: unit.Bytes(g.sharedBytes),
	})
}

// emitter builds one kernel. Its fields are the values that more than one part of the kernel needs.
type emitter struct {
	asm.Builder
	Sums asm.Sums
	s    Spec
	g    geometry

	tid, group ptx.Operand // thread in the CTA; warpgroup in the CTA
	rank       ptx.Operand // CTA in the cluster
	rankM      ptx.Operand // along M, which counts first
	rankN      ptx.Operand // along N
	smem       ptx.Operand // address of the dynamic shared memory
	full       ptx.Operand // address of the barriers that say that a stage was copied
	empty      ptx.Operand // address of the barriers that say that a stage was multiplied
	thread     ptx.Operand // thread in a warpgroup that multiplies
	consumer   ptx.Operand // warpgroup among those that multiply
	alpha      ptx.Operand
	waits      int // loops that wait so far
	divisions  int // divisions so far
}

func newEmitter(name string, s Spec, g geometry) *emitter {
	b := asm.New(name)
	return &emitter{Builder: b, Sums: b.Sums(false), s: s, g: g}
}

// kernel emits the whole kernel.
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
	e.Emit(e.params, e.setup, e.roles, asm.Only(e.g.cluster > 1, e.leave))
}

func (e *emitter) params() {
	e.Params(ptx.TensorMap, "a", "b")
	e.Params(ptx.U64, "c")
	e.Params(ptx.S64, "ldc", "stride_c")
	e.Params(ptx.S32, "m", "n")
	e.Params(ptx.U32, "k_blocks", "tiles_m", "tiles_n", "tiles", "group_m")
	e.Params(ptx.F32, "alpha", "beta")
	// The bytes of the copies of a stage, how many blocks along K later each eight tiles begin than those before (0 if all
	// begin at the first), and the first row and column of the last tiles.
	e.Params(ptx.U32, "copied", "skew", "last_m", "last_n")
	if e.splits() {
		e.Params(ptx.U32, "blocks_per_split", "per_split", "splits")
		e.Params(ptx.U64, "partials", "counters")
	}
	if e.levels() > 0 {
		e.Params(ptx.U32, "blocks_per_leaf")
		if !e.splits() && e.s.stacks(e.g) > 0 {
			e.Params(ptx.U64, "partials")
		}
	}
	if e.streams() {
		// The first whole tiles are not shared. The others have shared blocks along K in all, each cluster share of them.
		e.Params(ptx.U32, "whole", "share", "shared")
		e.Params(ptx.U64, "partials", "counters")
	}
	if e.s.Epilogue.Scales {
		// A step is 1 for a scale of each row or column, 0 for one of all.
		e.Params(ptx.U64, "scale_a", "scale_b")
		e.Params(ptx.U32, "step_a", "step_b")
	}
	if e.s.Epilogue.Bias {
		e.Params(ptx.U64, "bias")
	}
	if e.s.reads() {
		e.Params(ptx.U64, "r")
	}
	if e.s.TilesC {
		e.Params(ptx.TensorMap, "c_map")
	}
}

// roles gives the warpgroups their roles. The first copies, the others multiply and store.
func (e *emitter) roles() {
	consume, done := e.Label("consume"), e.Label("done")
	e.If(e.SetpNeS32(e.Pred(), e.group, ptx.Int(0))).Bra(consume)
	e.produce()
	e.BraUni(done)
	e.Place(consume)
	e.consume()
	e.Place(done)
}

// leave waits for the other CTAs of the cluster.
func (e *emitter) leave() {
	e.Comment("others of the cluster may still arrive at this CTA's barriers")
	e.meet()
}

// meet is a barrier for the cluster, or for the CTA if it is alone.
func (e *emitter) meet() {
	if e.g.cluster == 1 {
		e.BarSync(ptx.Int(0))
		return
	}
	e.BarrierClusterArriveRelaxed()
	e.BarrierClusterWait()
}

// splits reports whether CTAs share output tiles along K.
func (e *emitter) splits() bool { return e.s.Config.SplitK > 1 }

// setup finds which thread this is, fetches the tensor maps ahead and makes the barriers.
func (e *emitter) setup() {
	e.tid = e.Special(ptx.TidX)
	e.group = e.ShflSyncIdxB32(e.B32(), e.Shr(e.tid, 7), ptx.Int(0)) // the same in all lanes, as the assembler then knows
	e.ranks()
	e.smem = e.MovU32(e.B32(), e.DynamicShared("smem", swizzleBytes))
	e.full = e.Add(e.smem, ptx.Int(e.g.barriers))
	e.empty = e.Add(e.full, ptx.Int(barrierBytes*e.s.Config.NumStages))
	first := e.SetpEqS32(e.Pred(), e.tid, ptx.Int(0)) // the thread that copies
	maps := []string{"a", "b", "c_map"}
	if !e.s.TilesC {
		maps = maps[:2]
	}
	for _, name := range maps {
		at := e.mapAddress(name)
		e.If(first).PrefetchTensormap(ptx.Global(at, 0))
	}
	e.makeBarriers()
	e.meet()
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
		bits := 0
		for i := range count {
			bits |= 1 << (step * i)
		}
		if count == e.g.cluster {
			return e.MovB16(e.B16(), ptx.Int(bits))
		}
		d, all := e.B16(), e.MovB32(e.B32(), ptx.Int(bits))
		e.ShlB32(all, all, shift)
		e.MovB32Unpack(e.Vec(d, e.B16()), all)
		return d
	}
	return mask(e.g.clusterM, e.g.clusterN, e.rankM), mask(1, e.g.clusterM, e.Shl(e.rankN, asm.Log2(e.g.clusterM)))
}

// ring is a thread's place in the ring of stages.
type ring struct {
	stage ptx.Operand // from 0
	// parity is the parity of the barriers' phase. It changes when the ring is closed.
	parity ptx.Operand
}

func (e *emitter) newRing(parity int) ring {
	return ring{e.MovB32(e.B32(), ptx.Int(0)), e.MovB32(e.B32(), ptx.Int(parity))}
}

// next moves to the next stage.
func (e *emitter) next(r ring) {
	e.AddS32(r.stage, r.stage, ptx.Int(1))
	wrap := e.SetpEqS32(e.Pred(), r.stage, ptx.Int(e.s.Config.NumStages))
	e.SelpB32(r.stage, ptx.Int(0), r.stage, wrap)
	e.XorB32(r.parity, r.parity, e.SelpB32(e.B32(), ptx.Int(1), ptx.Int(0), wrap))
}

// wait waits until the phase of that parity of a barrier has ended.
func (e *emitter) wait(barrier, parity ptx.Operand) {
	again := e.Label(fmt.Sprintf("wait%d", e.waits))
	e.waits++
	e.Place(again)
	e.IfNot(e.MbarrierTryWaitParityB64(e.Pred(), ptx.Shared(barrier, 0), parity)).Bra(again)
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
	loop, end := e.Label(role+"_tile"), e.Label(role+"_end")
	tiles, tilesM, tilesN := e.Param32("tiles"), e.Param32("tiles_m"), e.Param32("tiles_n")
	groupM := e.Param32("group_m")
	shift := asm.Log2(e.g.cluster)
	at, step := e.Shr(e.Special(ptx.CtaidX), shift), e.Shr(e.Special(ptx.NctaidX), shift)
	perMatrix, perGroup := e.Mul(tilesM, tilesN), e.Mul(groupM, tilesN)
	var s *stream
	if e.streams() {
		s = e.newStream(at)
	}
	e.Place(loop)
	if e.streams() {
		e.If(e.ended(s, at)).Bra(end)
	} else {
		e.If(e.SetpGeU32(e.Pred(), at, tiles)).Bra(end)
	}
	var t tile
	in := at // the tile in its split
	switch {
	case e.streams():
		in = e.streamed(s, at, &t)
	case e.splits():
		perSplit, each := e.Param32("per_split"), e.Param32("blocks_per_split")
		t.split = e.divide(e.B32(), at, perSplit)
		in = e.Mul(t.split, perSplit)
		e.SubS32(in, at, in)
		t.k0 = e.Mul(t.split, each)
		t.blocks = e.MinU32(e.B32(), e.Sub(e.Param32("k_blocks"), t.k0), each)
		e.MulLoS32(t.k0, t.k0, ptx.Int(e.s.Config.BlockK))
	default:
		t.k0, t.blocks = e.MovB32(e.B32(), ptx.Int(0)), e.Param32("k_blocks")
	}
	t.batch = e.divide(e.B32(), in, perMatrix)
	left := e.Mul(t.batch, perMatrix)
	e.SubS32(left, in, left)
	t.row, t.column = e.InGroups(e.divide, left, tilesM, groupM, perGroup)
	t.m0 = e.Mad(t.row, e.g.clusterM, e.rankM)
	e.MulLoS32(t.m0, t.m0, ptx.Int(e.s.Config.BlockM))
	t.n0 = e.Mad(t.column, e.g.clusterN, e.rankN)
	e.MulLoS32(t.n0, t.n0, ptx.Int(e.g.blockC))
	if e.g.cluster > 1 {
		m, n := e.Param32("m"), e.Param32("n")
		t.outside = e.SetpGeU32(e.Pred(), t.m0, m)
		e.IfNot(t.outside).SetpGeU32(t.outside, t.n0, n)
	}
	e.MinU32(t.m0, t.m0, e.Param32("last_m"))
	e.MinU32(t.n0, t.n0, e.Param32("last_n"))
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
	a, b := e.newCopies()
	r := e.newRing(1)
	a.all, b.all = e.sharers()
	copied := e.Param32("copied")
	e.eachTile("produce", func(t tile) {
		e.alongK(t, func(k ptx.Operand) {
			barrier := e.Mad(r.stage, barrierBytes, e.full)
			e.wait(e.Mad(r.stage, barrierBytes, e.empty), r.parity)
			e.MbarrierArriveExpectTxB64(ptx.Shared(barrier, 0), copied)
			to := e.Mad(r.stage, e.g.stageBytes, e.smem)
			e.copy(a, to, barrier, t.m0, k, t.batch)
			e.copy(b, to, barrier, t.n0, k, t.batch)
			e.next(r)
		})
	})
	e.Place(idle)
	e.BarWarpSync(ptx.Int(-1))
}

// alongK emits a loop over the blocks along K of a tile, in the order in which they are added to its sums. k is the
// first index of a block.
func (e *emitter) alongK(t tile, body func(k ptx.Operand)) {
	first, end := e.skewed(t)
	k, left := e.MovB32(e.B32(), first), e.MovB32(e.B32(), t.blocks)
	e.RepeatApart("produce_block", left, func() {
		body(k)
		e.AddS32(k, k, ptx.Int(e.s.Config.BlockK))
		e.SelpB32(k, t.k0, k, e.SetpEqS32(e.Pred(), k, end))
	})
}

// skewed returns the index along K at which the copies of a tile begin, and the end of the tile's part of K, behind
// which they go on at its beginning.
func (e *emitter) skewed(t tile) (first, end ptx.Operand) {
	blocks := e.Mul(e.Shr(e.Add(t.row, t.column), skewShift), e.Param32("skew"))
	whole := e.divide(e.B32(), blocks, t.blocks)
	e.MulLoS32(whole, whole, t.blocks)
	e.SubS32(blocks, blocks, whole)
	return e.Mad(blocks, e.s.Config.BlockK, t.k0), e.Mad(t.blocks, e.s.Config.BlockK, t.k0)
}

// skewShift is the logarithm of how many neighbouring tiles begin at the same block along K.
const skewShift = 3
