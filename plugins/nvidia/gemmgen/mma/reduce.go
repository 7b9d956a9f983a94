package mma

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// reduceWarps adds the sums of the warps that share an output tile to the sums of K slice 0, in the order of the
// slices. Slices 1 and up pass their sums through shared memory, each register of a slice's threads side by side.
func (e *emitter) reduceWarps() {
	g := e.g
	e.Comment("sum over the K slices of the warps")
	slice := 32 * g.warpsM * g.warpsN // threads
	receive, received := e.Label("receive"), e.Label("received")
	isFirst := e.Pred()
	e.SetpEqS32(isFirst, e.warpK, ptx.Int(0))
	at := e.Mad(e.And(e.tid, slice-1), 4, e.smem)
	e.If(isFirst).Bra(receive)
	registers := 4 * len(e.acc)
	to := e.Mad(e.warpK, registers*slice*4, at)
	for i := range registers {
		e.Store(ptx.Shared(to, (i-registers)*slice*4), e.acc[i/4][i%4:][:1])
	}
	e.Place(receive)
	e.BarSync(ptx.Int(0))
	e.IfNot(isFirst).Bra(received)
	x := []ptx.Operand{e.sums.register()}
	for s := range g.warpsK - 1 {
		for i := range registers {
			sum := e.acc[i/4][i%4]
			e.Load(x, ptx.Shared(at, (s*registers+i)*slice*4))
			e.sums.add(sum, sum, x[0])
		}
	}
	e.Place(received)
	e.BarSync(ptx.Int(0))
}

// reduceSplits sums over the splits of K. Every CTA writes its sums to the workspace and increments the counter of
// the output tile. The CTA that arrives last resets the counter for the next launch and adds the sums in the order of
// the splits, so that the result does not depend on the order of arrival. The other CTAs end.
func (e *emitter) reduceSplits() {
	g := e.g
	e.Comment("sum over the splits of K, by the CTA that arrives last")
	slice := 32 * g.warpsM * g.warpsN // threads
	splits := e.Special(ptx.NctaidY)
	slot := e.B32() // the output tile, counted over the batch
	e.MulLoS32(slot, e.Param32(e.p.tilesM), e.Param32(e.p.tilesN))
	e.MadLoS32(slot, e.Special(ptx.CtaidZ), slot, e.Special(ptx.CtaidX))

	// The workspace has a block per tile and split. A block holds the four sums of each mma tile of all threads side
	// by side.
	split, first := e.B64(), e.B64() // addresses of this split's block and of the tile's first
	e.CvtaToGlobalU64(first, e.Param64(e.p.partials))
	block := e.s.Config.BlockM * e.s.Config.BlockN * 4
	index := e.B64()
	e.MulWideU32(index, slot, splits)
	e.MadLoS64(first, index, ptx.Int(block), first)
	e.AddS64(first, first, e.Wide(e.Shl(e.And(e.tid, slice-1), 4)))
	e.MadLoS64(split, e.Wide(e.Special(ptx.CtaidY)), ptx.Int(block), first)
	isFirst := e.Pred()
	if g.warpsK > 1 {
		e.SetpEqS32(isFirst, e.warpK, ptx.Int(0))
	}
	for i, acc := range e.acc {
		if g.warpsK > 1 {
			e.If(isFirst)
		}
		e.Store(ptx.Global(split, i*slice*16), acc)
	}
	e.FenceAcqRelGpu()
	e.BarSync(ptx.Int(0))
	e.ArriveLast(e.p.counters, slot, splits, e.tid, e.smem, e.exit)

	for _, acc := range e.acc {
		for _, r := range acc {
			e.sums.clear(r)
		}
	}
	again := e.Label("add_split")
	v := e.Regs(4, e.sums.register)
	e.Place(again)
	for i, acc := range e.acc {
		e.Load(v, ptx.Global(first, i*slice*16))
		for j, r := range acc {
			e.sums.add(r, r, v[j])
		}
	}
	e.AddS64(first, first, ptx.Int(block))
	e.If(e.CountDown(splits)).BraUni(again)
}
