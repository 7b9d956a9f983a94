package wgmma

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// operand is how wgmma reads an operand tile in the 128-byte swizzle. Source: PTX ISA, "Asynchronous Warpgroup Level
// Matrix Instructions", matrix descriptor and canonical layouts.
type operand struct {
	// low and high are the halves of the descriptor. The address, in units of 16 bytes, is added to low.
	low, high int
	// step is how far the address moves along K from one multiplication to the next, tile from one 64 rows or columns to
	// the next, in units of 16 bytes. After perSlab multiplications along K the next slab begins, slab units on.
	step, tile, perSlab, slab int
	// transposed is 1 if the tile is contiguous along M or N.
	transposed int
}

// sharedWindow is what a descriptor takes of an address. Source: PTX ISA, matrix-descriptor-encode.
const sharedWindow = 0x3FFFF

// newOperand describes a tile of so many rows along K, or with rows along M or N that are cut into slices of 64
// elements. blockK is the block's indices along K.
func newOperand(alongK bool, rows, blockK int) operand {
	const (
		swizzle128 = 1 << 30 // bits 62 and 63
		period     = swizzleBytes / 16
		row        = rowBytes / 16
	)
	if alongK {
		return operand{low: 1 << 16, high: swizzle128 | period, step: stepBytes / 16, tile: tileM * row,
			perSlab: rowBytes / stepBytes, slab: rows * row}
	}
	const step = stepBytes / 2 // only elements of 16 bits
	return operand{low: blockK * row << 16, high: swizzle128 | period, step: step * row, tile: blockK * row,
		perSlab: blockK / step, transposed: 1}
}

// offset is where a multiplication begins: 64 rows and the indices of one step along K.
func (o operand) offset(tile, step int) int {
	return tile*o.tile + step/o.perSlab*o.slab + step%o.perSlab*o.step
}

// descriptor returns the descriptor of a tile whose address in units of 16 bytes, with operand.low added, is at.
func (e *emitter) descriptor(o operand, at ptx.Operand, offset int) ptx.Operand {
	high := e.MovB32(e.B32(), ptx.Int(o.high))
	low := at
	if offset > 0 {
		low = e.Add(at, ptx.Int(offset))
	}
	return e.MovB64Pack(e.B64(), e.Vec(low, high))
}

// consume multiplies and stores.
func (e *emitter) consume() {
	e.Comment("the warpgroups that multiply")
	if e.g.consumers > 1 {
		e.SetmaxnregIncSyncAlignedU32(ptx.Int(registerSplits[e.g.consumers].consumer))
	}
	e.thread, e.consumer = e.And(e.tid, warpgroup-1), e.Add(e.group, ptx.Int(-1))
	// The first threads of the warpgroup tell the CTAs of the cluster, one each, that a stage is free.
	remote := e.empty
	tells := e.SetpLtS32(e.Pred(), e.thread, ptx.Int(e.g.cluster))
	if e.g.cluster > 1 {
		remote = e.MapaSharedClusterU32(e.B32(), e.empty, e.And(e.thread, e.g.cluster-1))
	}
	c := e.s.Config
	a := newOperand(e.s.AMajor == gemm.MajorK, c.BlockM, c.BlockK)
	b := newOperand(e.s.BMajor == gemm.MajorK, c.BlockN, c.BlockK)
	atA, atB := 0, e.g.aBytes/16
	if e.g.turned { // Cᵀ = Bᵀ·Aᵀ
		a, b, atA, atB = b, a, atB, atA
	}
	firstTiles, apart := e.g.tiles, 0 // of a warpgroup, and how much further on the rest begins
	if e.g.turned {
		firstTiles, apart = e.g.tilesC, e.g.blockC/tileM-e.g.tilesC
	}
	base := e.Shr(e.And(e.smem, sharedWindow), 4) // the bits above are the CTA's rank
	baseA := e.Mad(e.consumer, firstTiles*a.tile, e.Add(base, ptx.Int(a.low+atA)))
	baseB := e.Add(base, ptx.Int(b.low+atB))
	sums := e.newSums()
	parts := sums // what the tensor cores add to
	if e.g.parts > 0 {
		parts = e.newSums()
	}
	r := e.newRing(0)
	always, never := e.SetpEqS32(e.Pred(), e.thread, e.thread), ptx.Operand{}
	if e.g.parts > 0 {
		never = e.SetpNeS32(e.Pred(), e.thread, e.thread)
	}
	tiles := e.newTiles()
	before := e.MovB32(e.B32(), remote) // the barrier of the stage that the last block was in
	multiply := func(step, i int, stageA, db, add ptx.Operand) {
		da := e.descriptor(a, stageA, a.offset(i+i/firstTiles*apart, step))
		e.multiply(parts[i], da, db, add, a.transposed, b.transposed)
	}
	steps := c.BlockK * e.s.DType.Bytes() / stepBytes
	e.eachTile("consume", func(t tile) {
		left := e.MovB32(e.B32(), t.blocks)
		if e.g.parts > 0 {
			e.Sums.Clear(sums)
		}
		e.RepeatApart("consume_block", left, func() {
			later := e.SetpNeS32(e.Pred(), left, t.blocks)
			e.wait(e.Mad(r.stage, barrierBytes, e.full), r.parity)
			stageA, stageB := e.Mad(r.stage, e.g.stageBytes/16, baseA), e.Mad(r.stage, e.g.stageBytes/16, baseB)
			e.WgmmaFenceSyncAligned()
			if e.g.parts > 0 {
				e.promote(sums, parts, func(i int) {
					for step := range steps {
						add := always
						if step == 0 {
							add = never
						}
						multiply(step, i, stageA, e.descriptor(b, stageB, b.offset(0, step)), add)
					}
				}, func() { e.free(e.Mad(r.stage, barrierBytes, remote), tells) })
				e.next(r)
				return
			}
			for step := range steps {
				add := always
				if step == 0 {
					add = later
				}
				db := e.descriptor(b, stageB, b.offset(0, step))
				for i := range sums {
					multiply(step, i, stageA, db, add)
				}
			}
			e.WgmmaCommitGroupSyncAligned()
			e.WgmmaWaitGroupSyncAligned(ptx.Int(1))
			e.free(before, e.AndPred(e.Pred(), tells, later))
			e.MadLoS32(before, r.stage, ptx.Int(barrierBytes), remote)
			e.next(r)
		})
		if e.g.parts == 0 {
			e.WgmmaWaitGroupSyncAligned(ptx.Int(0))
			e.free(before, tells)
		}
		done := e.Label("tile_stored")
		if e.g.cluster > 1 {
			e.If(t.outside).Bra(done)
		}
		if e.splits() || e.streams() {
			e.reduce(t, sums, done)
		}
		e.store(t, sums, tiles)
		e.Place(done)
	})
	if e.s.TilesC {
		e.CpAsyncBulkWaitGroupRead(ptx.Int(0)) // it reads shared memory, which goes when the CTA ends
	}
}

// newSums returns registers for the sums of a warpgroup's tiles.
func (e *emitter) newSums() [][]ptx.Operand {
	sums := make([][]ptx.Operand, e.g.tiles)
	for i := range sums {
		sums[i] = e.Regs(e.g.columns/2, e.F32)
	}
	return sums
}

// promote multiplies a block into parts, and adds these to the sums. While the parts of a tile are added, the tensor
// cores multiply the next tile, or another warpgroup's. The stage is free when the last tile is multiplied.
func (e *emitter) promote(sums, parts [][]ptx.Operand, multiply func(tile int), free func()) {
	for i := range parts {
		multiply(i)
		e.WgmmaCommitGroupSyncAligned()
	}
	for i := range parts {
		e.WgmmaWaitGroupSyncAligned(ptx.Int(len(parts) - 1 - i))
		if i == len(parts)-1 {
			free()
		}
		for j, sum := range sums[i] {
			e.AddF32(sum, sum, parts[i][j])
		}
	}
}

// free tells a CTA that a stage is free. Nothing was written, so there is nothing to order: an arrival that orders the
// memory of the cluster costs a fence per block (observed on an H200: 623 instead of 740 TFLOP/s).
func (e *emitter) free(barrier, tells ptx.Operand) {
	if e.g.cluster > 1 {
		e.If(tells).MbarrierArriveClusterB64(ptx.Shared(barrier, 0))
		return
	}
	e.If(tells).MbarrierArriveB64(ptx.Shared(barrier, 0))
}

// multiply adds a tile of 64 rows times one of so many columns, 32 bytes along K each.
func (e *emitter) multiply(sums []ptx.Operand, a, b, add ptx.Operand, transA, transB int) {
	var transposed []ptx.Operand
	if e.s.DType.Bytes() == 2 {
		transposed = []ptx.Operand{ptx.Int(transA), ptx.Int(transB)}
	}
	e.Wgmma(e.g.columns, operandTypes[e.s.DType], e.Vec(sums...), a, b, add, transposed...)
}

// store writes the warpgroup's tiles, through the copy engine if the kernel has tiles.
func (e *emitter) store(t tile, sums [][]ptx.Operand, tiles storesTiles) {
	e.alpha = e.ParamF32("alpha")
	if e.s.scales() {
		e.scale(t, sums)
	}
	if e.finishes() {
		sums = e.finish(t, sums)
	}
	if e.s.TilesC {
		tiles(t, sums)
		return
	}
	w := e.newWriter("c", t)
	if !e.s.PairsC {
		w.each(sums, w.single)
		return
	}
	edge, stored := e.Label("edge"), e.Label("stored")
	e.If(e.SetpLtS32(e.Pred(), e.Sub(e.Param32("n"), t.n0), ptx.Int(e.g.blockC))).Bra(edge)
	w.each(sums, w.pair)
	e.BraUni(stored)
	e.Place(edge)
	w.each(sums, w.single)
	e.Place(stored)
}
