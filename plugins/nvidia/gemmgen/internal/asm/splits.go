package asm

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// Splits are the CTAs that share an output tile along K.
type Splits struct {
	// Threads is how many threads have sums, a power of two. If the CTA has more, Slice is 0 in those whose sums count;
	// otherwise it is no operand.
	Threads int
	Slice   ptx.Operand
	// SumBytes is the size of a tile's sums.
	SumBytes int
}

// AddSplits is the pass that sums over the splits of K, a thread's sums in groups of equal length. Every CTA writes its
// sums to the workspace and increments the counter of the output tile. The CTA that arrives last resets the counter for
// the next launch and adds the sums in the order of the splits, so that the result does not depend on the order of
// arrival. The other CTAs end. The first word of shared memory is overwritten.
func (c *CTA) AddSplits(s Splits, sums [][]ptx.Operand) {
	c.Comment("sum over the splits of K, by the CTA that arrives last")
	count := c.Special(ptx.NctaidY)
	slot := c.Mul(c.Param32("tiles_m"), c.Param32("tiles_n")) // the output tile, counted over the batch
	c.MadLoS32(slot, c.Special(ptx.CtaidZ), slot, c.Special(ptx.CtaidX))

	// The workspace has a block per tile and split. A block holds the groups of all threads side by side.
	group := sumBytes * len(sums[0])
	first := c.Pointer("partials") // of the tile's blocks
	c.MadLoS64(first, c.MulWideU32(c.B64(), slot, count), ptx.Int(s.SumBytes), first)
	c.AddS64(first, first, c.Wide(c.Shl(c.And(c.Thread, s.Threads-1), Log2(group))))
	own := c.MadLoS64(c.B64(), c.Wide(c.Special(ptx.CtaidY)), ptx.Int(s.SumBytes), first)
	var counts ptx.Operand
	if s.Slice != (ptx.Operand{}) {
		counts = c.SetpEqS32(c.Pred(), s.Slice, ptx.Int(0))
	}
	for i, v := range sums {
		c.When(counts).Store(ptx.Global(own, i*s.Threads*group), v)
	}
	c.FenceAcqRelGpu()
	c.BarSync(ptx.Int(0))
	c.arriveLast(slot, count)

	c.Sums.Clear(sums)
	read := c.Regs(len(sums[0]), c.Sums.Register)
	c.Repeat("add_split", count, func() {
		for i, v := range sums {
			c.Load(read, ptx.Global(first, i*s.Threads*group))
			for j, sum := range v {
				c.Sums.Add(sum, sum, read[j])
			}
		}
		c.AddS64(first, first, ptx.Int(s.SumBytes))
	})
}

// arriveLast increments the output tile's counter, at slot. The last split to arrive resets it and goes on; the other
// CTAs go to the exit. All threads of the CTA come here, behind a barrier.
func (c *CTA) arriveLast(slot, splits ptx.Operand) {
	counter := c.Pointer("counters")
	c.AddS64(counter, counter, c.MulWideU32(c.B64(), slot, ptx.Int(4)))
	counted := c.Label("counted")
	isThread0 := c.SetpEqS32(c.Pred(), c.Thread, ptx.Int(0))
	c.IfNot(isThread0).Bra(counted)
	arrived := c.AtomAddU32(c.B32(), ptx.Global(counter, 0), ptx.Int(1))
	c.StSharedB32(ptx.Shared(c.Smem, 0), arrived)
	c.Place(counted)
	c.BarSync(ptx.Int(0))
	c.LdSharedB32(arrived, ptx.Shared(c.Smem, 0))
	c.IfNot(c.SetpEqS32(c.Pred(), arrived, c.Add(splits, ptx.Int(-1)))).BraUni(c.Exit)
	c.If(isThread0).StGlobalB32(ptx.Global(counter, 0), ptx.Int(0))
	c.FenceAcqRelGpu()
	c.BarSync(ptx.Int(0)) // all have read the arrival count in shared memory before it is overwritten
}
