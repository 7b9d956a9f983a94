package wgmma

import (
	"math/bits"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// levels returns how many levels of the tree over the leaves of K a CTA adds up by itself. The levels above are those of
// the splits.
func (s Spec) levels() int { return bits.Len(uint(Leaves(s.Config)/max(s.Config.SplitK, 1))) - 1 }

func (e *emitter) levels() int { return e.s.levels() }

// stacks returns the bytes of the workspace in which resident CTAs keep sums of leaves, a block for each level. The
// blocks of the splits lie behind them.
func (s Spec) stacks() int { return mostCTAs * s.levels() * s.Config.BlockM * s.Config.BlockN * 4 }

// tree multiplies the leaves of a tile one after the other, and adds their sums in a binary tree. Leaf i completes as many
// subtrees as i ends with ones in binary. What it completes is added to the sum that waits on that level, and the result
// waits on the next one. Each thread has its own place for what waits, so that nothing has to be ordered.
func (m *multiplier) tree(t tile) {
	m.Comment("the leaves of K")
	block := m.s.Config.BlockM * m.s.Config.BlockN * 4
	leaf := t
	leaf.blocks = m.Param32("blocks_per_leaf")
	number := m.MovB32(m.B32(), ptx.Int(0))
	again, next, whole := m.Label("leaf"), m.Label("leaf_waits"), m.Label("leaves_added")
	m.Place(again)
	m.loop(leaf)
	waiting := m.Pointer("partials") // found again for each leaf: in the loop above, registers are scarce
	m.MadWideU32(waiting, m.Special(ptx.CtaidX), ptx.Int(m.levels()*block), waiting)
	m.MadWideU32(waiting, m.consumer, ptx.Int(block/m.g.consumers), waiting)
	m.MadWideU32(waiting, m.thread, ptx.Int(16), waiting)
	v := m.Regs(4, m.F32)
	for level := range m.levels() {
		add := m.Label([]string{"add_leaf", "add_two", "add_four"}[level])
		m.If(m.SetpNeS32(m.Pred(), m.And(number, 1<<level), ptx.Int(0))).Bra(add)
		m.eachFourOf(warpgroup, m.sums, func(sum []ptx.Operand, at int) { m.Store(ptx.Global(waiting, level*block+at), sum) })
		m.BraUni(next)
		m.Place(add)
		m.eachFourOf(warpgroup, m.sums, func(sum []ptx.Operand, at int) {
			m.Load(v, ptx.Global(waiting, level*block+at))
			for i := range v {
				m.AddF32(sum[i], v[i], sum[i])
			}
		})
	}
	m.BraUni(whole)
	m.Place(next)
	m.AddS32(number, number, ptx.Int(1))
	m.BraUni(again)
	m.Place(whole)
}

// loadsAhead is how many loads of four sums are under way at once where splits are added: without a bound, the assembler
// moves more of them ahead than there are registers.
const loadsAhead = 16

// addInTree adds the sums of the splits, whose blocks begin at from, in a binary tree.
func (e *emitter) addInTree(sums [][]ptx.Operand, from ptx.Operand, block int) {
	parts := make([][]ptx.Operand, e.s.Config.SplitK)
	for i := range parts {
		parts[i] = e.Regs(4, e.F32)
	}
	loads := 0
	e.eachFour(sums, func(sum []ptx.Operand, at int) {
		if loads += len(parts); loads > loadsAhead {
			e.BarWarpSync(ptx.Int(-1))
			loads = len(parts)
		}
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
