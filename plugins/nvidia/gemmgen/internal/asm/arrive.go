package asm

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// ArriveLast increments the counter of an output tile, which is counters[slot]. The CTA that arrives as the last of so
// many splits resets it and goes on; the others go to exit. All threads of the CTA come here, behind a barrier. The
// first word at smem is overwritten.
func (b Builder) ArriveLast(counters, slot, splits, thread, smem, exit ptx.Operand) {
	counter, arrived, last := b.B64(), b.B32(), b.B32()
	b.CvtaToGlobalU64(counter, b.Param64(counters))
	offset := b.B64()
	b.MulWideU32(offset, slot, ptx.Int(4))
	b.AddS64(counter, counter, offset)
	counted := b.Label("counted")
	isThread0 := b.Pred()
	b.SetpEqS32(isThread0, thread, ptx.Int(0))
	b.IfNot(isThread0).Bra(counted)
	b.AtomAddU32(arrived, ptx.Global(counter, 0), ptx.Int(1))
	b.StSharedB32(ptx.Shared(smem, 0), arrived)
	b.Place(counted)
	b.BarSync(ptx.Int(0))
	b.LdSharedB32(arrived, ptx.Shared(smem, 0))
	b.AddS32(last, splits, ptx.Int(-1))
	isLast := b.Pred()
	b.SetpEqS32(isLast, arrived, last)
	b.IfNot(isLast).BraUni(exit)
	b.If(isThread0).StGlobalB32(ptx.Global(counter, 0), ptx.Int(0))
	b.FenceAcqRelGpu()
	b.BarSync(ptx.Int(0)) // all have read the arrival count in shared memory before it is overwritten
}
