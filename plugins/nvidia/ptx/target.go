package ptx

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

// deriveTarget finds the lowest target, and the first ISA version, that has all instructions. It reports the
// instructions that the requested target lacks.
func (a *assembly) deriveTarget() {
	k := &a.kernel
	k.Target, k.PTX = target.Target{CC: 50}, 60 // 64-bit addressing and what the directives need
	for i := range a.code {
		in := &a.code[i]
		if in.op < 0 {
			continue
		}
		needs := &inst.Table()[in.op].Needs
		least, ok := needs.Among(a.target)
		if !ok {
			a.failf("%q needs %s, the kernel is for %s", a.line(i), needs, a.target)
			continue
		}
		k.Target, k.PTX = a.both(k.Target, least), max(k.PTX, needs.PTX)
	}
	k.PTX = max(k.PTX, k.Target.PTX())
}

// both returns a target that covers two others, of which the requested target covers each: the lowest such target if
// one of the two covers the other.
func (a *assembly) both(x, y target.Target) target.Target {
	switch {
	case x.Covers(y):
		return x
	case y.Covers(x):
		return y
	default:
		return a.target
	}
}
