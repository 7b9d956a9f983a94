package asm

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// Splits are the CTAs that share an output tile along K, and where they meet.
type Splits struct {
	Partials, Counters, TilesM, TilesN ptx.Operand // parameters of the kernel
	Thread, Smem, Exit                 ptx.Operand // the first word at Smem is overwritten
	// Threads is how many threads have sums, a power of two. If the CTA has more, Slice is 0 in those whose sums count;
	// otherwise it is no operand.
	Threads int
	Slice   ptx.Operand
	// SumBytes is the size of a tile's sums.
	SumBytes int
	Register func() ptx.Operand
	Clear    func(ptx.Operand)
	Add      func(d, a, b ptx.Operand) ptx.Operand
}

// AddSplits sums over the splits of K, a thread's sums in groups of equal length. Every CTA writes its sums to the
// workspace and increments the counter of the output tile. The CTA that arrives last resets the counter for the next
// launch and adds the sums in the order of the splits, so that the result does not depend on the order of arrival. The
// other CTAs end.
func (b Builder) AddSplits(s *Splits, sums [][]ptx.Operand) {
	b.Comment("sum over the splits of K, by the CTA that arrives last")
	count := b.Special(ptx.NctaidY)
	slot := b.B32() // the output tile, counted over the batch
	b.MulLoS32(slot, b.Param32(s.TilesM), b.Param32(s.TilesN))
	b.MadLoS32(slot, b.Special(ptx.CtaidZ), slot, b.Special(ptx.CtaidX))

	// The workspace has a block per tile and split. A block holds the groups of all threads side by side.
	group := 4 * len(sums[0])        // bytes
	split, first := b.B64(), b.B64() // addresses of this split's block and of the tile's first
	b.CvtaToGlobalU64(first, b.Param64(s.Partials))
	index := b.MulWideU32(b.B64(), slot, count)
	b.MadLoS64(first, index, ptx.Int(s.SumBytes), first)
	b.AddS64(first, first, b.Wide(b.Shl(b.And(s.Thread, s.Threads-1), Log2(group))))
	b.MadLoS64(split, b.Wide(b.Special(ptx.CtaidY)), ptx.Int(s.SumBytes), first)
	counts, all := b.Pred(), s.Slice == (ptx.Operand{})
	if !all {
		b.SetpEqS32(counts, s.Slice, ptx.Int(0))
	}
	for i, v := range sums {
		if !all {
			b.If(counts)
		}
		b.Store(ptx.Global(split, i*s.Threads*group), v)
	}
	b.FenceAcqRelGpu()
	b.BarSync(ptx.Int(0))
	b.arriveLast(s, slot, count)

	for _, v := range sums {
		for _, sum := range v {
			s.Clear(sum)
		}
	}
	again := b.Label("add_split")
	read := b.Regs(len(sums[0]), s.Register)
	b.Place(again)
	for i, v := range sums {
		b.Load(read, ptx.Global(first, i*s.Threads*group))
		for j, sum := range v {
			s.Add(sum, sum, read[j])
		}
	}
	b.AddS64(first, first, ptx.Int(s.SumBytes))
	b.If(b.CountDown(count)).BraUni(again)
}

// arriveLast increments the output tile's counter, at slot. The last split to arrive resets it and goes on; the other
// CTAs go to the exit. All threads of the CTA come here, behind a barrier.
func (b Builder) arriveLast(s *Splits, slot, splits ptx.Operand) {
	counter := b.CvtaToGlobalU64(b.B64(), b.Param64(s.Counters))
	offset := b.MulWideU32(b.B64(), slot, ptx.Int(4))
	b.AddS64(counter, counter, offset)
	counted := b.Label("counted")
	isThread0 := b.SetpEqS32(b.Pred(), s.Thread, ptx.Int(0))
	b.IfNot(isThread0).Bra(counted)
	arrived := b.AtomAddU32(b.B32(), ptx.Global(counter, 0), ptx.Int(1))
	b.StSharedB32(ptx.Shared(s.Smem, 0), arrived)
	b.Place(counted)
	b.BarSync(ptx.Int(0))
	b.LdSharedB32(arrived, ptx.Shared(s.Smem, 0))
	last := b.AddS32(b.B32(), splits, ptx.Int(-1))
	b.IfNot(b.SetpEqS32(b.Pred(), arrived, last)).BraUni(s.Exit)
	b.If(isThread0).StGlobalB32(ptx.Global(counter, 0), ptx.Int(0))
	b.FenceAcqRelGpu()
	b.BarSync(ptx.Int(0)) // all have read the arrival count in shared memory before it is overwritten
}
