package wgmma

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// reduce sums over the parts of an output tile along K, and goes to done where the sums are not complete. Each warp
// does so by itself: it writes its sums to the workspace and adds to its counter of the tile. The warp that arrives
// last resets the counter for the next launch and adds the sums in the order of K, so that the result does not depend
// on the order of arrival.
//
// A block of the workspace has block_m×block_n sums, and in it a part for each warp, in which four sums of each lane
// lie side by side.
func (e *emitter) reduce(t tile, thread, consumer ptx.Operand, sums [][]ptx.Operand, done ptx.Operand) {
	e.Comment("sum over the parts of K, by the warp that arrives last")
	var (
		p     parts
		whole ptx.Operand
	)
	if e.streams() {
		whole = e.Label("whole_tile")
		e.IfNot(t.partial).Bra(whole)
		p = e.streamParts(t)
	} else {
		p = e.splitParts(t)
	}
	warps := 4 * e.g.consumers
	lane := e.And(thread, 31)
	warp := e.ShflSyncIdxB32(e.B32(), e.Mad(consumer, 4, e.Shr(thread, 5)), ptx.Int(0))

	block := e.s.Config.BlockM * e.s.Config.BlockN * 4
	base := e.B64() // the lane's part of the first block
	e.CvtaToGlobalU64(base, e.Param64(e.p.partials))
	e.MadWideU32(base, warp, ptx.Int(block/warps), base)
	e.MadWideU32(base, lane, ptx.Int(16), base)
	mine := e.MadWideU32(e.B64(), p.mine, ptx.Int(block), base)
	from := e.MadWideU32(e.B64(), p.first, ptx.Int(block), base)
	next := e.MadWideU32(e.B64(), p.next, ptx.Int(block), base)
	e.eachFour(sums, func(v []ptx.Operand, at int) { e.StGlobalV4F32(ptx.Global(mine, at), e.Vec(v...)) })
	e.FenceAcqRelGpu()
	e.BarWarpSync(ptx.Int(-1))

	counter := e.CvtaToGlobalU64(e.B64(), e.Param64(e.p.counters))
	e.MadWideU32(counter, e.Mad(p.tile, warps, warp), ptx.Int(4), counter)
	isFirst := e.SetpEqS32(e.Pred(), lane, ptx.Int(0))
	arrived := e.MovB32(e.B32(), ptx.Int(0))
	e.If(isFirst).AtomAddU32(arrived, ptx.Global(counter, 0), p.arrives)
	e.ShflSyncIdxB32(arrived, arrived, ptx.Int(0))
	e.If(e.SetpNeS32(e.Pred(), e.Add(arrived, p.arrives), p.all)).Bra(done)
	e.If(isFirst).StGlobalB32(ptx.Global(counter, 0), ptx.Int(0))
	e.FenceAcqRelGpu()
	e.BarWarpSync(ptx.Int(-1)) // a shuffle does not order memory: what lane 0 saw, the others must see

	e.zero(sums)
	again := e.Label("add_part")
	v := e.Regs(4, e.F32)
	e.Place(again)
	e.eachFour(sums, func(sum []ptx.Operand, at int) {
		e.LdGlobalV4F32(e.Vec(v...), ptx.Global(from, at))
		for i := range v {
			e.AddF32(sum[i], sum[i], v[i])
		}
	})
	e.MovB64(from, next)
	e.AddS64(next, next, ptx.Int(p.step*block))
	e.If(e.CountDown(p.count)).Bra(again)
	if e.streams() {
		e.Place(whole)
	}
}

// eachFour calls f for each four sums of a lane, with their place in the warp's part of a block.
func (e *emitter) eachFour(sums [][]ptx.Operand, f func(v []ptx.Operand, at int)) {
	at := 0
	for _, tile := range sums {
		for i := 0; i < len(tile); i += 4 {
			f(tile[i:i+4], at)
			at += 32 * 16
		}
	}
}
