package sgemm

import (
	"math"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/tabled"
	generator "github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	family "github.com/origami-gemm/origami/plugins/nvidia/kernel/sgemm"
)

// counts are what a CTA does in a K step, over all of its warps, and what it needs, or the reason against it.
type counts struct {
	inputs
	reason arch.Reason
	detail string // of the reason
}

// counting is what counts depend on.
type counting struct {
	operands operands
	config   gemm.Config
}

// operands are the properties of a problem that counts depend on: those that kernels are compiled for, and how far
// apart the lines of A and B are, in elements modulo those of periodElements. Lanes that read several lines read other
// banks of the L1 then.
type operands struct {
	kernel.Operands
	apart [2]int
}

// periodElements are so many elements, of 2 bytes at least, that the L1 has all of them in the same bank.
const periodElements = 64

// kept are values of countings that were needed once.
type kept[T any] struct {
	mu     sync.RWMutex
	values map[counting]T
}

// mostKept bounds how many are kept.
const mostKept = 1 << 16

// get returns the value of a counting, from compute if it is not there.
func (k *kept[T]) get(of *counting, compute func(o operands, c gemm.Config) T) T {
	k.mu.RLock()
	value, ok := k.values[*of]
	k.mu.RUnlock()
	if ok {
		return value
	}
	value = compute(of.operands, of.config)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.values == nil || len(k.values) >= mostKept {
		k.values = map[counting]T{}
	}
	k.values[*of] = value
	return value
}

// walked has what the kernels do, which is the same on all devices: walking the addresses takes longer than all else.
var walked kept[inputs]

// operandsOf returns what a problem's kernels are compiled for.
func operandsOf(p *gemm.Problem) operands {
	return operands{kernel.OperandsOf(p).WithWidths(family.Family{}, p),
		[2]int{p.LD(gemm.A) % periodElements, p.LD(gemm.B) % periodElements}}
}

// count returns the counts of a configuration for the operands of a problem.
func (m *Model) count(o *operands, c *gemm.Config) *counts {
	key := counting{*o, *c}
	key.config.GroupM, key.config.SplitK = 0, min(key.config.SplitK, 2)
	return m.counts.get(&key, m.countAnew)
}

func (m *Model) countAnew(o operands, c gemm.Config) *counts {
	out := &counts{}
	f := family.Family{}
	need := f.Resources(m.gpu, o.Operands, c, false)
	if out.reason, out.detail = f.Check(m.gpu, o.Operands, c, need); out.reason != "" {
		return out
	}
	out.inputs = walked.get(&counting{o, c}, walk)
	out.registers, out.sharedBytes = float64(need.Registers), float64(need.SharedMemory)
	return out
}

// walk counts what a kernel of the family does.
func walk(o operands, c gemm.Config) (out inputs) {
	spec := family.Spec(o.Operands, c)
	turn, _, _ := spec.Turn()
	out.operandBytes = 4
	if turn.WMMAs > 0 {
		out.operandBytes = 2
		out.converts = tabled.One(o.DType == gemm.FP32)
	}
	warps := float64(turn.Warps)
	out.fmas, out.multiplications = float64(turn.FMAs)*warps, float64(turn.WMMAs)*warps
	out.barriers, out.ahead = float64(turn.Barriers), float64(turn.Ahead)
	staged := false
	for i := range turn.Accesses {
		staged = staged || turn.Accesses[i].Instruction == generator.LoadShared
		a := &turn.Accesses[i]
		apart := 0
		if a.Instruction == generator.LoadGlobal || a.Instruction == generator.CopyAsync {
			apart = o.apart[a.Operand] * int(out.operandBytes)
		}
		out.add(a, apart)
	}
	out.conflictDegree = max(out.conflictDegree, tabled.One(staged))
	return out
}

// wideBytes is what a lane of a wide access accesses.
const wideBytes = 16

// add counts an access. Lines of its matrix are so many bytes apart, modulo those of all banks.
func (c *inputs) add(a *generator.Access, apart int) {
	instructions := float64(a.Count * a.Warps)
	if a.Bytes >= wideBytes {
		c.wideInstructions += instructions
	}
	if a.Instruction == generator.LoadGlobal || a.Instruction == generator.CopyAsync {
		c.globalInstructions += instructions
		if a.Instruction == generator.CopyAsync {
			c.asyncCopies += instructions
		}
		c.l1Passes += instructions * max(float64(lines(a))/linesPerPass, float64(a.L1Conflicts(apart)))
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
