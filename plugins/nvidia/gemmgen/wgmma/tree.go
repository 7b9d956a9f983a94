package wgmma

import (
	"math/bits"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// levels returns how many levels of the tree over the leaves of K a CTA adds up by itself. The levels above are those of
// the splits.
func (s Spec) levels() int { return bits.Len(uint(Leaves(s.Config)/max(s.Config.SplitK, 1))|1) - 1 }

func (e *emitter) levels() int { return e.s.levels() }

// stacks returns the bytes of the workspace in which resident CTAs keep sums that wait and have no registers, a block for
// each level. The blocks of the splits lie behind them.
func (s Spec) stacks(g geometry) int {
	return mostCTAs * (s.levels() - g.held) * s.Config.BlockM * s.Config.BlockN * 4
}

// holds returns how many levels of a tree, the lowest first, can wait in registers, of which so many are available. The
// lowest waits most often: half of all leaves do.
func (g geometry) holds(available int) int {
	return max(0, (available-g.parts-otherRegisters)/g.sums-1)
}

// Apart returns how many sums of leaves, and of subtrees, of a tile of C cannot wait in registers, and one more. Of several
// CTAs that share the leaves, each has a part of these.
func (s Spec) Apart() float64 {
	g, reason, _ := s.layout()
	if reason != "" {
		return 1
	}
	return float64(Leaves(s.Config)) / float64(int(1)<<g.holds(g.registers))
}

// addLeaves calls multiply for the leaves of a tile, one after the other, and adds their sums in a binary tree. Leaf i
// completes as many subtrees as i ends with ones in binary. What it completes is added to the sum that waits on that level,
// and the result waits on the next one, in registers or in the workspace. There each thread has its own place, so that
// nothing has to be ordered.
func (e *emitter) addLeaves(t tile, sums [][]ptx.Operand, multiply func(leaf tile, number ptx.Operand)) {
	e.Comment("the leaves of K")
	block := e.s.Config.BlockM * e.s.Config.BlockN * 4
	held := make([][][]ptx.Operand, e.g.held)
	for i := range held {
		held[i] = e.newSums()
		e.Sums.Clear(held[i])
	}
	leaf := t
	leaf.blocks = e.Param32("blocks_per_leaf")
	number := e.MovB32(e.B32(), ptx.Int(0))
	again, next, whole := e.Label("leaf"), e.Label("leaf_waits"), e.Label("leaves_added")
	e.Place(again)
	multiply(leaf, number)
	var waiting ptx.Operand
	if apart := e.levels() - e.g.held; apart > 0 { // found again for each leaf: in the loop above, registers are scarce
		waiting = e.Pointer("partials")
		e.MadWideU32(waiting, e.Special(ptx.CtaidX), ptx.Int(apart*block), waiting)
		e.MadWideU32(waiting, e.consumer, ptx.Int(block/e.g.consumers), waiting)
		e.MadWideU32(waiting, e.thread, ptx.Int(16), waiting)
	}
	v := e.Regs(4, e.F32)
	for level := range e.levels() {
		add := e.Label([]string{"add_leaf", "add_two", "add_four"}[level])
		e.If(e.SetpNeS32(e.Pred(), e.And(number, 1<<level), ptx.Int(0))).Bra(add)
		each := func(put bool) {
			if level < e.g.held {
				for i, of := range sums {
					for j, sum := range of {
						if put {
							e.MovF32(held[level][i][j], sum)
						} else {
							e.AddF32(sum, held[level][i][j], sum)
						}
					}
				}
				return
			}
			e.eachFourOf(warpgroup, sums, func(sum []ptx.Operand, at int) {
				at += (level - e.g.held) * block
				if put {
					e.Store(ptx.Global(waiting, at), sum)
					return
				}
				e.Load(v, ptx.Global(waiting, at))
				for i := range v {
					e.AddF32(sum[i], v[i], sum[i])
				}
			})
		}
		each(true)
		e.BraUni(next)
		e.Place(add)
		each(false)
	}
	e.BraUni(whole)
	e.Place(next)
	e.AddS32(number, number, ptx.Int(1))
	e.BraUni(again)
	e.Place(whole)
}

// mostLoads4 is how many loads of four sums are under way at once where splits are added.
const mostLoads4 = 32

// addInTree adds the sums of the splits, whose blocks begin at from, in a binary tree. It first does so in the workspace, in
// a loop: unrolled, an assembler moves more loads ahead than there are registers.
func (e *emitter) addInTree(sums [][]ptx.Operand, from ptx.Operand, block int) {
	splits, fours := e.s.Config.SplitK, e.g.sums/4
	together := max(1, mostLoads4/splits)
	for fours%together != 0 {
		together--
	}
	parts := make([][]ptx.Operand, together*splits)
	for i := range parts {
		parts[i] = e.Regs(4, e.F32)
	}
	at, left := e.MovB64(e.B64(), from), e.MovB32(e.B32(), ptx.Int(fours/together))
	e.RepeatApart("add_parts", left, func() {
		for i, part := range parts {
			e.Load(part, ptx.Global(at, i%splits*block+i/splits*32*16))
		}
		for i := 0; i < len(parts); i += splits {
			of := parts[i : i+splits]
			for step := 1; step < splits; step *= 2 {
				for j := 0; j < splits; j += 2 * step {
					for n, v := range of[j] {
						e.AddF32(v, v, of[j+step][n])
					}
				}
			}
			e.Store(ptx.Global(at, i/splits*32*16), of[0])
		}
		e.AddS64(at, at, ptx.Int(together*32*16))
	})
	e.eachFour(sums, func(sum []ptx.Operand, at int) { e.Load(sum, ptx.Global(from, at)) })
}
