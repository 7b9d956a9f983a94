package sgemm

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	generator "github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	family "github.com/origami-gemm/origami/plugins/nvidia/kernel/sgemm"
)

// counts are what a CTA does in a K step, over all of its warps, and what it needs, or the reason against it.
type counts struct {
	walked
	reason arch.Reason
	detail string // of the reason
}

// walked is what a kernel does, which is the same on all devices, but for the passes through L1: they depend on how far
// apart the lines of A and B are.
type walked struct {
	inputs
	global []globalAccess
}

// globalAccess is the instructions of a kernel for an operand in global memory.
type globalAccess struct {
	operand      gemm.Operand
	instructions float64
	least        float64 // passes of each through L1
	pattern      *pattern
}

// pattern is the places that a warp accesses in global memory.
type pattern struct {
	access generator.Access
	// conflicts are those of the access for lines that begin so many elements apart, modulo periodElements; 0 where nobody
	// asked yet.
	conflicts [periodElements]atomic.Uint32
}

// passes returns the passes through L1 of a K step, for lines that are so many elements apart.
func (w *walked) passes(apart *[2]int) (sum float64) {
	for i := range w.global {
		g := &w.global[i]
		at := apart[g.operand] % periodElements
		conflicts := g.pattern.conflicts[at].Load()
		if conflicts == 0 {
			conflicts = uint32(g.pattern.access.L1Conflicts(at * int(w.operandBytes)))
			g.pattern.conflicts[at].Store(conflicts)
		}
		sum += g.instructions * max(g.least, float64(conflicts))
	}
	return sum
}

// periodElements are so many elements, of 2 bytes at least, that the L1 has all of them in the same bank.
const periodElements = 64

// walks are what kernels do, and the patterns of their accesses: walking the addresses takes longer than all else.
var walks struct {
	sync.RWMutex
	kernels  map[counting]*walked
	patterns map[patternKey]*pattern
}

// counting is what a kernel does depends on.
type counting struct {
	operands kernel.Operands
	config   gemm.Config
}

// patternKey is what conflicts depend on, besides the distance of lines.
type patternKey struct {
	lanes, bytes int
	elementBytes float64
	global       [32]generator.Place
}

// mostKept bounds how many are kept.
const mostKept = 1 << 16

// apartOf returns how far apart the lines of A and B are, in elements.
func apartOf(p *gemm.Problem) [2]int { return [2]int{p.LD(gemm.A), p.LD(gemm.B)} }

// kernelOf returns the configuration with the counts of another: they do not depend on the launch order, and only on
// whether there is a split.
func kernelOf(c *gemm.Config) gemm.Config {
	k := *c
	k.GroupM, k.SplitK = 0, min(k.SplitK, 2)
	return k
}

// count returns the counts of a kernel for operands.
func (m *Model) count(o kernel.Operands, c gemm.Config) *counts {
	out := &counts{}
	f := family.Family{}
	need := f.Resources(m.gpu, o, c, false)
	if out.reason, out.detail = f.Check(m.gpu, o, c, need); out.reason != "" {
		return out
	}
	out.walked = *walk(counting{o, c})
	out.registers, out.sharedBytes = float64(need.Registers), float64(need.SharedMemory)
	return out
}

// walk returns what a kernel of the family does.
func walk(k counting) *walked {
	walks.RLock()
	w := walks.kernels[k]
	walks.RUnlock()
	if w != nil {
		return w
	}
	spec := family.Spec(k.operands, k.config)
	turn, _, _ := spec.Turn()
	walks.Lock()
	defer walks.Unlock()
	if walks.kernels == nil || len(walks.kernels) >= mostKept {
		walks.kernels, walks.patterns = map[counting]*walked{}, map[patternKey]*pattern{}
	}
	w = walkTurn(&turn, k.operands.DType)
	walks.kernels[k] = w
	return w
}

// walkTurn counts what a turn of the K loop does. Walks are locked.
func walkTurn(turn *generator.Turn, t gemm.DType) *walked {
	out := &walked{}
	out.operandBytes = 4
	if turn.WMMAs > 0 {
		out.operandBytes = 2
		out.converts = model.One(t == gemm.FP32)
	}
	warps := float64(turn.Warps)
	out.fmas, out.multiplications = float64(turn.FMAs)*warps, float64(turn.WMMAs)*warps
	out.barriers, out.ahead = float64(turn.Barriers), float64(turn.Ahead)
	staged := false
	for i := range turn.Accesses {
		staged = staged || turn.Accesses[i].Instruction == generator.LoadShared
		out.add(&turn.Accesses[i])
	}
	out.conflictDegree = max(out.conflictDegree, model.One(staged))
	return out
}

// wideBytes is what a lane of a wide access accesses.
const wideBytes = 16

// add counts an access.
func (w *walked) add(a *generator.Access) {
	c := &w.inputs
	instructions := float64(a.Count * a.Warps)
	if a.Bytes >= wideBytes {
		c.wideInstructions += instructions
	}
	if a.Instruction == generator.LoadGlobal || a.Instruction == generator.CopyAsync {
		c.globalInstructions += instructions
		if a.Instruction == generator.CopyAsync {
			c.asyncCopies += instructions
		}
		key := patternKey{a.Lanes, a.Bytes, c.operandBytes, a.Global}
		if walks.patterns[key] == nil {
			walks.patterns[key] = &pattern{access: *a}
		}
		w.global = append(w.global,
			globalAccess{a.Operand, instructions, float64(lines(a)) / linesPerPass, walks.patterns[key]})
		c.requestedBytes += float64(a.RequestedBytes())
	}
	if a.Instruction == generator.LoadShared || a.Instruction == generator.StoreShared {
		c.sharedInstructions += instructions
	}
	if a.Instruction != generator.LoadGlobal {
		least, most := a.Wavefronts()
		c.sharedWavefronts += instructions * math.Sqrt(float64(least)*float64(most))
		if a.Instruction == generator.LoadShared {
			c.conflictDegree = max(c.conflictDegree, a.Conflicts())
		}
	}
}

// farApart is a distance of lines of a matrix in bytes that no cache line spans.
const farApart = 1 << 12

// linesPerPass is how many cache lines a pass of a load through L1 touches at most, if they are in different banks.
// Source: at 511x1025x513 the uncoalesced kernel takes 9 to 10 cycles for a load of 32 lines on an H200, where lines
// are 513 words apart and every lane has a bank of its own. It takes 32 where lines are 512 words apart, in one bank.
const linesPerPass = 4

// lines returns how many cache lines a warp's access to global memory touches.
func lines(a *generator.Access) int {
	seen := make([]int, 0, 2*len(a.Global))
	for _, p := range a.Global[:a.Lanes] {
		first := p.Line*farApart + p.Byte
		for _, line := range [...]int{first / gpu.LineBytes, (first + a.Bytes - 1) / gpu.LineBytes} {
			if !slices.Contains(seen, line) {
				seen = append(seen, line)
			}
		}
	}
	return len(seen)
}
