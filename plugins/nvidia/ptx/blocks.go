package ptx

import (
	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

// block is a run of code[start:end] that control enters at its start only.
type block struct {
	start, end int
	next       []int
}

// splitBlocks finds the basic blocks and their successors.
func (a *assembly) splitBlocks() {
	starts := make([]bool, len(a.code)+1)
	starts[0] = true
	for i := range a.code {
		in := &a.code[i]
		switch {
		case in.op == opLabel:
			starts[i] = true
		case in.op >= 0 && inst.Table()[in.op].Flow != inst.Next && inst.Table()[in.op].Flow != inst.Barrier:
			starts[i+1] = true
		}
	}
	at := make(map[int]int) // block by its first instruction
	for i := range a.code {
		if starts[i] {
			at[i] = len(a.blocks)
			a.blocks = append(a.blocks, block{start: i})
		}
		a.blocks[len(a.blocks)-1].end = i + 1
	}
	for n := range a.blocks {
		bl := &a.blocks[n]
		last := a.code[bl.end-1]
		through := true
		if last.op >= 0 {
			switch row := inst.Table()[last.op]; row.Flow {
			case inst.Jump, inst.JumpSame:
				bl.next = append(bl.next, at[a.labels[a.operands[last.first].id].at])
				through = last.guard != 0
			case inst.Exit:
				through = last.guard != 0
			default: // falls through
			}
		}
		if through {
			bl.next = append(bl.next, n+1) // may be len(blocks): the end
		}
	}
}

// verifyEnds reports paths that run past the last instruction.
func (a *assembly) verifyEnds() {
	if len(a.blocks) == 0 {
		a.failf("the kernel is empty")
	}
	for n, bl := range a.blocks {
		for _, next := range bl.next {
			if next == len(a.blocks) {
				a.failf("control falls off the end after %q", a.line(a.blocks[n].end-1))
			}
		}
	}
}

// ends reports whether a path leads from one block to the end of the thread without passing through another.
func (a *assembly) ends(from, without int) bool {
	if a.exits(from) {
		return true
	}
	avoid, found := make([]bool, len(a.blocks)), false
	avoid[without] = true
	a.walk(from, avoid, func(n int) { found = found || a.exits(n) })
	return found
}

func (a *assembly) exits(n int) bool {
	last := a.code[a.blocks[n].end-1]
	return last.op >= 0 && inst.Table()[last.op].Flow == inst.Exit
}

// walk calls f for every block that a path from a block reaches without entering one to avoid. It calls f for that
// block itself only if a loop leads back to it.
func (a *assembly) walk(from int, avoid []bool, f func(n int)) {
	seen := make([]bool, len(a.blocks))
	todo := []int{from}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, next := range a.blocks[n].next {
			if !avoid[next] && !seen[next] {
				seen[next] = true
				f(next)
				todo = append(todo, next)
			}
		}
	}
}
