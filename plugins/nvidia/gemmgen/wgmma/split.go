package wgmma

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// reduce sums over the splits of an output tile, and goes to done where the sums are not complete. Each warp does so by
// itself: it writes its sums to the workspace and increments its counter of the tile. The warp that arrives last resets
// the counter for the next launch and adds the sums in the order of the splits, so that the result does not depend on
// the order of arrival.
//
// The workspace has a block of block_m×block_n sums for each output tile and split, and in it a part for each warp,
// in which four sums of each lane lie side by side.
func (e *emitter) reduce(t tile, thread, consumer ptx.Operand, sums [][]ptx.Operand, done ptx.Operand) {
	e.Comment("sum over the splits of K, by the warp that arrives last")
	splits := e.Param32(e.p.splits)
	blockM, blockN, warps := e.s.Config.BlockM, e.s.Config.BlockN, 4*e.g.consumers
	tilesM := e.Shr(e.Add(e.Param32(e.p.m), ptx.Int(blockM-1)), asm.Log2(blockM))
	slot := e.B32() // the output tile, counted over the batch
	e.MadLoS32(slot, t.batch, tilesM, e.Mad(t.row, e.g.cluster, e.rank))
	e.MadLoS32(slot, slot, e.Param32(e.p.tilesN), t.column)
	lane, warp := e.And(thread, 31), e.B32()
	e.ShflSyncIdxB32(warp, e.Mad(consumer, 4, e.Shr(thread, 5)), ptx.Int(0))

	block := blockM * blockN * 4
	first, mine := e.B64(), e.B64() // the lane's part of the tile's first split, and of this one
	e.CvtaToGlobalU64(first, e.Param64(e.p.partials))
	index := e.B64()
	e.MulWideU32(index, slot, splits)
	e.MadLoS64(first, index, ptx.Int(block), first)
	e.MadWideU32(first, warp, ptx.Int(block/warps), first)
	e.MadWideU32(first, lane, ptx.Int(16), first)
	e.MadWideU32(mine, t.split, ptx.Int(block), first)
	e.eachFour(sums, func(v []ptx.Operand, at int) { e.StGlobalV4F32(ptx.Global(mine, at), e.Vec(v...)) })
	e.FenceAcqRelGpu()
	e.BarWarpSync(ptx.Int(-1))

	counter, arrived, others := e.B64(), e.B32(), e.Pred()
	e.CvtaToGlobalU64(counter, e.Param64(e.p.counters))
	e.MadWideU32(counter, e.Mad(slot, warps, warp), ptx.Int(4), counter)
	isFirst := e.Pred()
	e.SetpEqS32(isFirst, lane, ptx.Int(0))
	e.MovB32(arrived, ptx.Int(0))
	e.If(isFirst).AtomAddU32(arrived, ptx.Global(counter, 0), ptx.Int(1))
	e.ShflSyncIdxB32(arrived, arrived, ptx.Int(0))
	e.SetpNeS32(others, e.Add(arrived, ptx.Int(1)), splits)
	e.If(others).Bra(done)
	e.If(isFirst).StGlobalB32(ptx.Global(counter, 0), ptx.Int(0))
	e.FenceAcqRelGpu()
	e.BarWarpSync(ptx.Int(-1)) // a shuffle does not order memory: what lane 0 saw, the others must see

	for _, tile := range sums {
		for _, v := range tile {
			e.MovF32(v, ptx.Float(0))
		}
	}
	again, more := e.Label("add_split"), e.Pred()
	v := e.Regs(4, e.F32)
	e.Place(again)
	e.eachFour(sums, func(sum []ptx.Operand, at int) {
		e.LdGlobalV4F32(e.Vec(v...), ptx.Global(first, at))
		for i := range v {
			e.AddF32(sum[i], sum[i], v[i])
		}
	})
	e.AddS64(first, first, ptx.Int(block))
	e.AddS32(splits, splits, ptx.Int(-1))
	e.SetpGtS32(more, splits, ptx.Int(0))
	e.If(more).Bra(again)
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
