package triton

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// TileSpace is the candidate list of a model that distinguishes only tiles. Warps and stages are those of
// tritonBLAS's NVIDIA port: 8 and 2.
func (f Family) TileSpace() arch.Space {
	s := f.Space()
	s.NumWarps, s.NumStages, s.SplitK = []int{8}, []int{2}, []int{1}
	return s
}

// SortLaunches leaves the order to the candidate list.
func (Family) SortLaunches(*gpu.Device, kernel.Operands, []gemm.Config) {}

// CheckTile is the check of tritonBLAS's NVIDIA port: whatever the stages, one buffer of the operands of a K step
// must fit into the shared memory of a CTA.
func (Family) CheckTile(d *gpu.Device, o kernel.Operands, c *gemm.Config) (arch.Reason, string) {
	a, b := operandBytes(o.DType, c)
	if compiles(d.SM, o.DType, c) && unit.Bytes(a+b) <= d.SharedMemory {
		return "", ""
	}
	if reason, detail := checkShape(d.SM, o.DType, c); reason != "" {
		return reason, detail
	}
	return kernel.CheckShared(d, unit.Bytes(a+b))
}
