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

// consume multiplies and stores: of each tile it has the loop over the blocks along K, the sum over the parts of K, and
// the epilogue.
func (e *emitter) consume() {
	e.Comment("the warpgroups that multiply")
	if e.g.consumers > 1 {
		e.SetmaxnregIncSyncAlignedU32(ptx.Int(registerSplits[e.g.consumers].consumer))
	}
	m := e.newMultiplier()
	tiles := e.newTiles()
	m.before = e.MovB32(e.B32(), m.remote)
	e.eachTile("consume", func(t tile) {
		if e.levels() > 0 {
			e.addLeaves(t, m.sums, func(leaf tile, _ ptx.Operand) { m.loop(leaf) })
		} else {
			m.loop(t)
		}
		done := e.Label("tile_stored")
		if e.g.cluster > 1 {
			e.If(t.outside).Bra(done)
		}
		if e.splits() || e.streams() {
			e.reduce(t, m.sums, done)
		}
		e.store(t, m.sums, tiles)
		e.Place(done)
	})
	if e.s.TilesC {
		e.CpAsyncBulkWaitGroupRead(ptx.Int(0)) // it reads shared memory, which goes when the CTA ends
	}
}

// multiplier is how a warpgroup multiplies blocks.
type multiplier struct {
	*emitter
	a, b         operand
	baseA, baseB ptx.Operand // descriptors in the first stage
	// firstTiles are the tiles of a warpgroup that follow each other; the rest begins so many tiles further on.
	firstTiles, apart int
	// parts are the products of a block where they are added to the sums in fp32.
	sums, parts   [][]ptx.Operand
	r             ring
	always, never ptx.Operand // predicates of additions
	// tells says that the thread tells a CTA of the cluster that a stage is free, at its barriers remote. before is the
	// barrier of the stage that the last block was in.
	tells, remote, before ptx.Operand
}

func (e *emitter) newMultiplier() *multiplier {
	e.thread, e.consumer = e.And(e.tid, warpgroup-1), e.Add(e.group, ptx.Int(-1))
	m := &multiplier{emitter: e, remote: e.empty, firstTiles: e.g.tiles}
	// The first threads of the warpgroup tell the CTAs of the cluster, one each, that a stage is free.
	m.tells = e.SetpLtS32(e.Pred(), e.thread, ptx.Int(e.g.cluster))
	if e.g.cluster > 1 {
		m.remote = e.MapaSharedClusterU32(e.B32(), e.empty, e.And(e.thread, e.g.cluster-1))
	}
	c := e.s.Config
	m.a = newOperand(e.s.AMajor == gemm.MajorK, c.BlockM, c.BlockK)
	m.b = newOperand(e.s.BMajor == gemm.MajorK, c.BlockN, c.BlockK)
	atA, atB := 0, e.g.aBytes/16
	if e.g.turned { // Cᵀ = Bᵀ·Aᵀ
		m.a, m.b, atA, atB = m.b, m.a, atB, atA
		m.firstTiles, m.apart = e.g.tilesC, e.g.blockC/tileM-e.g.tilesC
	}
	base := e.Shr(e.And(e.smem, sharedWindow), 4) // the bits above are the CTA's rank
	m.baseA = e.Mad(e.consumer, m.firstTiles*m.a.tile, e.Add(base, ptx.Int(m.a.low+atA)))
	m.baseB = e.Add(base, ptx.Int(m.b.low+atB))
	m.sums, m.r = e.newSums(), e.newRing(0)
	m.always = e.SetpEqS32(e.Pred(), e.thread, e.thread)
	if e.g.parts > 0 {
		m.parts, m.never = e.newSums(), e.SetpNeS32(e.Pred(), e.thread, e.thread)
	}
	return m
}

// loop multiplies the blocks along K of a tile. A stage is free when the next block's multiplications have been issued.
func (m *multiplier) loop(t tile) {
	left := m.MovB32(m.B32(), t.blocks)
	if m.g.parts > 0 {
		m.Sums.Clear(m.sums)
	}
	m.RepeatApart("consume_block", left, func() {
		later := m.SetpNeS32(m.Pred(), left, t.blocks)
		m.wait(m.Mad(m.r.stage, barrierBytes, m.full), m.r.parity)
		stageA, stageB := m.Mad(m.r.stage, m.g.stageBytes/16, m.baseA), m.Mad(m.r.stage, m.g.stageBytes/16, m.baseB)
		m.WgmmaFenceSyncAligned()
		if m.g.parts > 0 {
			m.promote(stageA, stageB)
		} else {
			m.steps(0, m.sums, later, stageA, stageB)
			m.WgmmaCommitGroupSyncAligned()
			m.WgmmaWaitGroupSyncAligned(ptx.Int(1))
			m.free(m.before, m.AndPred(m.Pred(), m.tells, later))
			m.MadLoS32(m.before, m.r.stage, ptx.Int(barrierBytes), m.remote)
		}
		m.next(m.r)
	})
	if m.g.parts == 0 {
		m.WgmmaWaitGroupSyncAligned(ptx.Int(0))
		m.free(m.before, m.tells)
	}
}

// steps multiplies a block, step by step along K, for tiles from a number on. The first step adds to the sums if first.
func (m *multiplier) steps(from int, sums [][]ptx.Operand, first, stageA, stageB ptx.Operand) {
	for step := range m.s.Config.BlockK * m.s.DType.Bytes() / stepBytes {
		add := m.always
		if step == 0 {
			add = first
		}
		db := m.descriptor(m.b, stageB, m.b.offset(0, step))
		for i, of := range sums {
			i += from
			da := m.descriptor(m.a, stageA, m.a.offset(i+i/m.firstTiles*m.apart, step))
			m.multiply(of, da, db, add)
		}
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
func (m *multiplier) promote(stageA, stageB ptx.Operand) {
	for i := range m.parts {
		m.steps(i, m.parts[i:i+1], m.never, stageA, stageB)
		m.WgmmaCommitGroupSyncAligned()
	}
	for i, parts := range m.parts {
		m.WgmmaWaitGroupSyncAligned(ptx.Int(len(m.parts) - 1 - i))
		if i == len(m.parts)-1 {
			m.free(m.Mad(m.r.stage, barrierBytes, m.remote), m.tells)
		}
		for j, sum := range m.sums[i] {
			m.AddF32(sum, sum, parts[j])
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
func (m *multiplier) multiply(sums []ptx.Operand, a, b, add ptx.Operand) {
	var transposed []ptx.Operand
	if m.s.DType.Bytes() == 2 {
		transposed = []ptx.Operand{ptx.Int(m.a.transposed), ptx.Int(m.b.transposed)}
	}
	m.Wgmma(m.g.columns, operandTypes[m.s.DType], m.Vec(sums...), a, b, add, transposed...)
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
