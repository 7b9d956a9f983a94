package wgmma

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// reduce sums over the parts of an output tile along K, and goes to done where the sums are not complete. Each warp
// does so by itself: it writes its sums to the workspace and adds to its counter of the tile. The warp that arrives
// last resets the counter for the next launch and adds the sums in the order of K, so that the result does not depend
// on the order of arrival.
//
// A block of the workspace has block_m×block_n sums, and in it a part for each warp, in which four sums of each lane
// lie side by side.
func (e *emitter) reduce(t tile, sums [][]ptx.Operand, done ptx.Operand) {
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
	lane := e.And(e.thread, 31)
	warp := e.ShflSyncIdxB32(e.B32(), e.Mad(e.consumer, 4, e.Shr(e.thread, 5)), ptx.Int(0))

	block := e.s.Config.BlockM * e.s.Config.BlockN * 4
	base := e.Pointer("partials") // the lane's part of the first block
	e.MadWideU32(base, warp, ptx.Int(block/warps), base)
	e.MadWideU32(base, lane, ptx.Int(16), base)
	if stacks := e.s.stacks(e.g); stacks > 0 {
		e.AddS64(base, base, ptx.Int(stacks))
	}
	mine, from, next := e.At(p.mine, block, base), e.At(p.first, block, base), e.At(p.next, block, base)
	e.eachFour(sums, func(v []ptx.Operand, at int) { e.Store(ptx.Global(mine, at), v) })
	e.FenceAcqRelGpu()
	e.BarWarpSync(ptx.Int(-1))

	counter := e.Pointer("counters")
	e.MadWideU32(counter, e.Mad(p.tile, warps, warp), ptx.Int(4), counter)
	isFirst := e.SetpEqS32(e.Pred(), lane, ptx.Int(0))
	arrived := e.MovB32(e.B32(), ptx.Int(0))
	e.If(isFirst).AtomAddU32(arrived, ptx.Global(counter, 0), p.arrives)
	e.ShflSyncIdxB32(arrived, arrived, ptx.Int(0))
	e.If(e.SetpNeS32(e.Pred(), e.Add(arrived, p.arrives), p.all)).Bra(done)
	e.If(isFirst).StGlobalB32(ptx.Global(counter, 0), ptx.Int(0))
	e.FenceAcqRelGpu()
	e.BarWarpSync(ptx.Int(-1)) // a shuffle does not order memory: what lane 0 saw, the others must see

	if e.s.Config.SplitK > 1 && Leaves(e.s.Config) > 1 {
		e.addInTree(sums, from, block)
		return
	}
	e.Sums.Clear(sums)
	v := e.Regs(4, e.F32)
	e.RepeatApart("add_part", p.count, func() {
		e.eachFour(sums, func(sum []ptx.Operand, at int) {
			e.Load(v, ptx.Global(from, at))
			for i := range v {
				e.AddF32(sum[i], sum[i], v[i])
			}
		})
		e.MovB64(from, next)
		e.AddS64(next, next, ptx.Int(p.step*block))
	})
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
