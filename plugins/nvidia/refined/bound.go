package refined

import "github.com/origami-gemm/origami/core/arch"

// bound is what limits most of the time.
func (t *timing) bound(k *kernelTerms) arch.Bound {
	busy, alone, l2, dram, repeat := t.fullBusy, t.fullAlone, t.fullL2Step, t.fullDramStep, t.fullRepeatStep
	if t.fullWaves == 0 || float64(t.fullWaves*t.fullLoop) < t.tailLoop {
		busy, alone, l2, dram, repeat = t.tailBusy, t.tailAlone, t.tailL2Step, t.tailDramStep, t.tailRepeatStep
	}
	l2 = max(l2, repeat)
	chip := max(k.tensorStep, k.sharedStep, k.issueStep, k.lineStep)
	switch {
	case t.power > t.allWaves && t.power > t.dramFloor:
		return arch.BoundCompute
	case t.dramFloor > t.allWaves:
		return arch.BoundDRAM
	case t.loop < t.total/2 || fourth(alone) > busy:
		return arch.BoundLatency
	case dram > max(l2, chip):
		return arch.BoundDRAM
	case l2 > chip:
		return arch.BoundL2
	default:
		return arch.BoundCompute
	}
}
