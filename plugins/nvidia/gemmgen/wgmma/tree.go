package wgmma

import (
	"math/bits"
	"slices"

	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// levels returns how many levels of the tree over the leaves of K a CTA adds up by itself. The levels above are those
// of the splits.
func (s Spec) levels() int { return bits.Len(uint(Leaves(s.Config)/max(s.Config.SplitK, 1))|1) - 1 }

func (e *emitter) levels() int { return e.s.levels() }

const (
	// fourBytes are four sums of each thread of a warpgroup, which lie side by side.
	fourBytes = 16 * warpgroup
	// leafRegisters are the number of a leaf, and where sums wait.
	leafRegisters = 8
)

// stacks returns the bytes of the workspace in which resident CTAs keep sums that wait elsewhere than in registers and
// in shared memory. The blocks of the splits lie behind them.
func (s Spec) stacks(g geometry) int { return mostCTAs * g.consumers * g.inMemory * fourBytes }

// places finds where the sums wait of so many levels of a tree. The lowest level comes first, since it waits most
// often: half of all leaves do.
func (g *geometry) places(levels int) {
	all := levels * g.sums / 4
	g.inRegisters = min(all, max(0, g.registers-g.sums-g.parts-otherRegisters-leafRegisters)/4)
	g.inShared = min(all-g.inRegisters, g.staged+max(0, target.SharedOfSM90-g.waiting)/(fourBytes*g.consumers))
	g.inMemory = all - g.inRegisters - g.inShared
}

// enoughLoads is how many loads of four sums a thread has under way where the L2 is what they wait for, not its
// latency: 8 warps have 32 KB then. With one, 256x192x64 with two leaves took 1.14 times as long as without (an H200,
// 2026-11-29).
const enoughLoads = 8

// Apart returns how many sums of leaves, and of subtrees, wait in the workspace for each element of C, and one more. Of
// several CTAs that share the leaves, each has a part of these. Those that are read with fewer loads under way count as
// more.
func (s Spec) Apart() float64 {
	g, reason, _ := s.layout()
	if reason != "" {
		return 1
	}
	leaves := Leaves(s.Config)
	g.places(bits.Len(uint(leaves)) - 1)
	apart, room := 1., 4*(g.inRegisters+g.inShared)
	for often := leaves / 2; often > 0; often /= 2 {
		here := min(room, g.sums)
		room -= here
		apart += float64(often) * (1 - float64(here)/float64(g.sums)) * max(1, enoughLoads/float64(max(1, g.inRegisters)))
	}
	return apart
}

// addLeaves calls multiply for the leaves of a tile, one after the other, and adds their sums in a binary tree. Leaf i
// completes as many subtrees as i ends with ones in binary. What it completes is added to the sum that waits on that
// level, and the result waits on the next one, in registers, in shared memory or in the workspace. There each thread
// has its own place, so that nothing has to be ordered but what is staged of C.
func (e *emitter) addLeaves(t tile, sums [][]ptx.Operand, multiply func(leaf tile, number ptx.Operand)) {
	e.Comment("the leaves of K")
	held := make([][]ptx.Operand, e.g.inRegisters)
	for i := range held {
		held[i] = e.Regs(4, e.F32)
	}
	e.Sums.Clear(held)
	leaf := t
	leaf.blocks = e.Param32("blocks_per_leaf")
	number := e.MovB32(e.B32(), ptx.Int(0))
	again, next, whole := e.Label("leaf"), e.Label("leaf_waits"), e.Label("leaves_added")
	e.Place(again)
	multiply(leaf, number)
	// The places are found again for each leaf: in the loop above, registers are scarce.
	var inStaging, inShared, inMemory ptx.Operand
	threads := 32 // that stage C together
	if e.g.turned {
		threads = warpgroup
	}
	if min(e.g.staged, e.g.inShared) > 0 {
		e.CpAsyncBulkWaitGroupRead(ptx.Int(0)) // which reads C of the tile before
		if e.g.turned {
			e.BarSyncThreads(e.group, ptx.Int(warpgroup))
		} else {
			e.BarWarpSync(ptx.Int(-1))
		}
		inStaging = e.Mad(e.And(e.thread, threads-1), 16, e.Add(e.smem, ptx.Int(e.g.staging)))
		part := e.Mad(e.consumer, warpgroup/threads, e.Shr(e.thread, asm.Log2(threads)))
		inStaging = e.Mad(part, e.g.staged*16*threads, inStaging)
	}
	if more := e.g.inShared - e.g.staged; more > 0 {
		inShared = e.Add(e.smem, ptx.Int(e.g.waiting))
		inShared = e.Mad(e.consumer, more*fourBytes, e.Mad(e.thread, 16, inShared))
	}
	if e.g.inMemory > 0 {
		inMemory = e.Pointer("partials")
		e.MadWideU32(inMemory, e.Special(ptx.CtaidX), ptx.Int(e.g.consumers*e.g.inMemory*fourBytes), inMemory)
		e.MadWideU32(inMemory, e.consumer, ptx.Int(e.g.inMemory*fourBytes), inMemory)
		e.MadWideU32(inMemory, e.thread, ptx.Int(16), inMemory)
	}
	fours := slices.Collect(slices.Chunk(slices.Concat(sums...), 4))
	place := func(i int) ptx.Operand {
		switch i -= len(held); {
		case i >= e.g.inShared:
			return ptx.Global(inMemory, (i-e.g.inShared)*fourBytes)
		case i >= e.g.staged:
			return ptx.Shared(inShared, (i-e.g.staged)*fourBytes)
		}
		return ptx.Shared(inStaging, i*16*threads)
	}
	for level := range e.levels() {
		add := e.Label([]string{"add_leaf", "add_two", "add_four"}[level])
		e.If(e.SetpNeS32(e.Pred(), e.And(number, 1<<level), ptx.Int(0))).Bra(add)
		first := level * len(fours)
		near := min(max(0, len(held)-first), len(fours)) // these are in registers
		for i, sum := range fours {
			if i >= near {
				e.Store(place(first+i), sum)
				continue
			}
			for j, x := range sum {
				e.MovF32(held[first+i][j], x)
			}
		}
		e.BraUni(next)
		e.Place(add)
		plus := func(sums, waits [][]ptx.Operand) {
			for i, sum := range sums {
				for j, x := range sum {
					e.AddF32(x, waits[i][j], x)
				}
			}
		}
		plus(fours[:near], held[min(first, len(held)):])
		// What waited in registers on this level and below has been added, so that the rest can be read into those.
		free := held[:min(first+near, len(held))]
		if len(free) == 0 {
			free = [][]ptx.Operand{e.Regs(4, e.F32)}
		}
		at := first + near
		for some := range slices.Chunk(fours[near:], len(free)) {
			for i := range some {
				e.Load(free[i], place(at+i))
			}
			plus(some, free)
			at += len(some)
		}
	}
	e.BraUni(whole)
	e.Place(next)
	e.AddS32(number, number, ptx.Int(1))
	e.BraUni(again)
	e.Place(whole)
}

// mostLoads4 is how many loads of four sums are under way at once where splits are added.
const mostLoads4 = 32

// addInTree adds the sums of the splits, whose blocks begin at from, in a binary tree. It first does so in the
// workspace, in a loop: unrolled, an assembler moves more loads ahead than there are registers.
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
