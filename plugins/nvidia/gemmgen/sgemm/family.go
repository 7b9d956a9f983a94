package sgemm

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Name is the family's name in gemm.Config.Kernel.
const Name = "sgemm"

// Family is the kernel family.
type Family struct{}

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
		Kernel: Name, BlockM: []int{32, 64, 128, 256}, BlockN: []int{32, 64, 128, 256}, BlockK: []int{8, 16, 32},
		NumWarps: []int{2, 4, 8}, NumStages: []int{2, 3, 4}, SplitK: []int{1},
		Axes: []arch.AxisValues{
			{Name: axisStaging, Values: []string{stagingAsync, stagingRegisters}},
			{Name: axisThreadM, Values: []string{"4", "8", "16"}},
			{Name: axisLanesM, Values: []string{"4", "8"}},
			{Name: axisPad, Values: []string{"0", "4"}},
		},
	}
}

// Types are the types that the family has kernels for. With fp16 operands it has those of math=wmma alone, which then
// converts nothing.
func Types() []gemm.Types {
	return []gemm.Types{{In: gemm.FP32, Out: gemm.FP32}, {In: gemm.FP16, Out: gemm.FP32}}
}
