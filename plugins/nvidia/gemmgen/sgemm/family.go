package sgemm

import (
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Name is the family's name in gemm.Config.Kernel.
const Name = "sgemm"

// Family is the kernel family.
type Family struct{}

var _ gemmgen.Family = Family{}

// Name implements gemmgen.Family.
func (Family) Name() string { return Name }

// Target implements gemmgen.Family: cp.async came with sm_80.
func (Family) Target() target.Target { return target.Target{CC: 80} }

// Axes implements gemmgen.Family. The result is shared.
func (Family) Axes() []gemm.Axis { return axes }

// Space implements gemmgen.Family: the configurations that can be fast on a GPU of today. Those of the lower rungs are
// not among them; they can be named.
func (Family) Space() arch.Space {
	return arch.Space{
		Kernel: Name, BlockM: []int{16, 32, 64, 128, 256}, BlockN: []int{16, 32, 64, 128, 256}, BlockK: []int{16},
		NumWarps: []int{2, 4, 8}, NumStages: []int{2, 3}, SplitK: []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32},
		Axes: []arch.AxisValues{
			{Name: axisStaging, Values: []string{stagingAsync, stagingRegisters}},
			{Name: axisThreadM, Values: []string{"8", "4", "16"}},
			{Name: axisLanesM, Values: []string{"4", "8"}},
			{Name: axisPad, Values: []string{"4"}},
		},
	}
}

// Types are the types that the family has kernels for. With fp16 operands it has those of math=wmma alone, which then
// converts nothing.
func Types() []gemm.Types {
	return []gemm.Types{{In: gemm.FP32, Out: gemm.FP32}, {In: gemm.FP16, Out: gemm.FP32}}
}

// Program implements gemmgen.Family.
func (Family) Program(
	call gemmgen.Call, out gemm.DType, c gemm.Config, limits gemmgen.Limits,
) (gemmgen.Program, arch.Reason, string) {
	s := SpecFor(call, c)
	switch p := &call.Problem; {
	case p.Nest != (gemm.Nest{}):
		return nil, arch.ReasonModelRule, "the family has no tables of offsets, which nested indices need"
	case p.Epilogue != (gemm.Epilogue{}):
		return nil, arch.ReasonModelRule, fmt.Sprintf("the family has no epilogue, as %s is", p.Epilogue)
	case out != gemm.FP32:
		return nil, arch.ReasonAtomShape, fmt.Sprintf("the family writes C in fp32, not %s", out)
	default:
		if instead, why := Guard(p, c); why != "" {
			return nil, ReasonGuard, fmt.Sprintf("%s; the rung %s computes it: %s", why, instead.Name, instead.Config)
		}
	}
	_, reason, detail := s.Check(limits)
	return s, reason, detail
}
