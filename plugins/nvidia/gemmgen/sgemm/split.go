package sgemm

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// part finds this split's part of K: where it begins, and how long it is. The last splits may have none. They multiply
// a block of zeros.
func (e *emitter) part() {
	e.Comment("this split's part of K")
	per := e.Param32(e.p.kPerSplit)
	e.begin = e.B32()
	e.MulLoS32(e.begin, e.Special(ptx.CtaidY), per)
	e.SubS32(e.k, e.k, e.begin)
	e.MinS32(e.k, e.k, per)
	e.MaxS32(e.k, e.k, ptx.Int(0))
}

// reduceSplits sums over the splits of K. Every CTA writes its sums to the workspace. The CTA of an output tile that
// arrives last adds them in the order of the splits, so that the result does not depend on the order of arrival. The
// others end.
func (e *emitter) reduceSplits() {
	e.Comment("sum over the splits of K, by the CTA that arrives last")
	splits, slot := e.Special(ptx.NctaidY), e.B32() // the output tile, counted over the batch
	e.MulLoS32(slot, e.Param32(e.p.tilesM), e.Param32(e.p.tilesN))
	e.MadLoS32(slot, e.Special(ptx.CtaidZ), slot, e.Special(ptx.CtaidX))

	// The workspace has a block per tile and split, in which neighbouring threads have neighbouring sums.
	var sums []ptx.Operand
	for _, row := range e.sums {
		sums = append(sums, row...)
	}
	width := min(widest/wordBytes, len(sums))
	block, apart := e.g.blockM*e.g.blockN*wordBytes, e.g.threads*width*wordBytes
	first, index, mine := e.B64(), e.B64(), e.B64() // addresses of the tile's first block and of this split's
	e.CvtaToGlobalU64(first, e.Param64(e.p.partials))
	e.MulWideU32(index, slot, splits)
	e.MadLoS64(first, index, ptx.Int(block), first)
	e.AddS64(first, first, e.Wide(e.Shl(e.thread, asm.Log2(width*wordBytes))))
	e.MadLoS64(mine, e.Wide(e.Special(ptx.CtaidY)), ptx.Int(block), first)
	for i := 0; i < len(sums); i += width {
		e.Store(ptx.Global(mine, i/width*apart), sums[i:i+width])
	}
	e.FenceAcqRelGpu()
	e.BarSync(ptx.Int(0))
	e.ArriveLast(e.p.counters, slot, splits, e.thread, e.smem, e.exit)

	for _, sum := range sums {
		e.MovF32(sum, ptx.Float(0))
	}
	again, v := e.Label("add_split"), e.Regs(width, e.F32)
	e.Place(again)
	for i := 0; i < len(sums); i += width {
		e.Load(v, ptx.Global(first, i/width*apart))
		for j, x := range v {
			e.AddF32(sums[i+j], sums[i+j], x)
		}
	}
	e.AddS64(first, first, ptx.Int(block))
	e.If(e.CountDown(splits)).BraUni(again)
}
