package wgmma

import (
	"math/bits"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// levels returns how many levels of the tree over the leaves of K a CTA adds up by itself. The levels above are those of
// the splits.
func (s Spec) levels() int { return bits.Len(uint(Leaves(s.Config)/max(s.Config.SplitK, 1))|1) - 1 }

func (e *emitter) levels() int { return e.s.levels() }

// stacks returns the bytes of the workspace in which resident CTAs keep sums of leaves, a block for each level. The
// blocks of the splits lie behind them.
func (s Spec) stacks() int { return mostCTAs * s.levels() * s.Config.BlockM * s.Config.BlockN * 4 }

// addLeaves calls multiply for the leaves of a tile, one after the other, and adds their sums in a binary tree. Leaf i completes as many
// subtrees as i ends with ones in binary. What it completes is added to the sum that waits on that level, and the result
// waits on the next one. Each thread has its own place for what waits, so that nothing has to be ordered.
func (e *emitter) addLeaves(t tile, sums [][]ptx.Operand, multiply func(leaf tile, number ptx.Operand)) {
	e.Comment("the leaves of K")
	block := e.s.Config.BlockM * e.s.Config.BlockN * 4
	leaf := t
	leaf.blocks = e.Param32("blocks_per_leaf")
	number := e.MovB32(e.B32(), ptx.Int(0))
	again, next, whole := e.Label("leaf"), e.Label("leaf_waits"), e.Label("leaves_added")
	e.Place(again)
	multiply(leaf, number)
	waiting := e.Pointer("partials") // found again for each leaf: in the loop above, registers are scarce
	e.MadWideU32(waiting, e.Special(ptx.CtaidX), ptx.Int(e.levels()*block), waiting)
	e.MadWideU32(waiting, e.consumer, ptx.Int(block/e.g.consumers), waiting)
	e.MadWideU32(waiting, e.thread, ptx.Int(16), waiting)
	v := e.Regs(4, e.F32)
	for level := range e.levels() {
		add := e.Label([]string{"add_leaf", "add_two", "add_four"}[level])
		e.If(e.SetpNeS32(e.Pred(), e.And(number, 1<<level), ptx.Int(0))).Bra(add)
		e.eachFourOf(warpgroup, sums, func(sum []ptx.Operand, at int) { e.Store(ptx.Global(waiting, level*block+at), sum) })
		e.BraUni(next)
		e.Place(add)
		e.eachFourOf(warpgroup, sums, func(sum []ptx.Operand, at int) {
			e.Load(v, ptx.Global(waiting, level*block+at))
			for i := range v {
				e.AddF32(sum[i], v[i], sum[i])
			}
		})
	}
	e.BraUni(whole)
	e.Place(next)
	e.AddS32(number, number, ptx.Int(1))
	e.BraUni(again)
	e.Place(whole)
}

// lead is how many blocks along K a warpgroup is ahead of the next one. While it puts the sums of a leaf aside, the next one
// has the tensor cores for itself, and the other way round.
const lead = 2

// fallBehind makes a warpgroup wait behind the first copies for as long as those before it multiply so many blocks.
func (m *multiplier) fallBehind() {
	m.Comment("so that not all warpgroups put sums aside at the same time")
	m.wait(m.full, ptx.Int(0))
	const widest = 2 // columns per cycle and 64 rows by 16 indices: the rate of the tensor cores
	block := m.g.tiles * m.g.columns / widest * m.s.Config.BlockK * m.s.DType.Bytes() / stepBytes
	clock := func() ptx.Operand { return m.CvtU32U64(m.B32(), m.MovU64(m.B64(), ptx.Clock64)) }
	start, again := clock(), m.Label("behind")
	m.Place(again)
	passed := m.Sub(clock(), start)
	m.If(m.SetpLtU32(m.Pred(), passed, m.Mul(m.consumer, ptx.Int(lead*block)))).Bra(again)
}

// addInTree adds the sums of the splits, whose blocks begin at from, in a binary tree.
func (e *emitter) addInTree(sums [][]ptx.Operand, from ptx.Operand, block int) {
	parts := make([][]ptx.Operand, e.s.Config.SplitK)
	for i := range parts {
		parts[i] = e.Regs(4, e.F32)
	}
	e.eachFour(sums, func(sum []ptx.Operand, at int) {
		for i, part := range parts {
			e.Load(part, ptx.Global(from, i*block+at))
		}
		for step := 1; step < len(parts); step *= 2 {
			for i := 0; i < len(parts); i += 2 * step {
				for j, v := range parts[i] {
					e.AddF32(v, v, parts[i+step][j])
				}
			}
		}
		for j, v := range parts[0] {
			e.MovF32(sum[j], v)
		}
	})
}
