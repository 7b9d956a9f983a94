package pipelined

import "github.com/origami-gemm/origami/core/arch"

// busyEnough is the share of the total from which on a resource limits a kernel. A kernel that keeps none of them busy
// for so long waits: for instructions, loads, the start of CTAs or the launch.
const busyEnough = 0.5

// bound is the resource that is busy for most of the time, of the tensor cores, the L2 and DRAM.
func (t *timing) bound(k *kernelTerms, v *variantTerms, g *gridTerms) arch.Bound {
	full, tail := float64(t.fullWaves*v.ctasPerSm*t.steps), float64(t.tailCtas*t.steps)
	compute := max(float64(t.ctasOfSm*t.steps*k.tensorStep), g.computeFloor)
	if t.power > t.allWaves {
		compute = max(compute, t.power)
	}
	l2 := float64((full + tail) * (max(t.l2Step, t.repeatStep) + t.spillL2Step))
	dram := t.dramFloor + float64(full*t.fullSpillDramStep) + float64(tail*t.tailSpillDramStep)
	switch most := max(compute, l2, dram); {
	case most < busyEnough*t.total:
		return arch.BoundLatency
	case most == dram:
		return arch.BoundDRAM
	case most == l2:
		return arch.BoundL2
	default:
		return arch.BoundCompute
	}
}
