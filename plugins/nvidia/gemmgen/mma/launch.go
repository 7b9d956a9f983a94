package mma

import (
	"math"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// Launch implements gemmgen.Program. A kernel for narrow rows computes calls with wider ones too.
func (s Spec) Launch(k *gemmgen.Kernel, call gemmgen.Call) (gemmgen.Launch, error) {
	p := call.Problem
	if err := p.Validate(); err != nil {
		return gemmgen.Launch{}, err
	}
	where := func(err *diag.Error) (gemmgen.Launch, error) { return gemmgen.Launch{}, err.At("launch of %s", k.Name) }
	need := SpecFor(call, s.Out, s.Config)
	if !s.computes(call) {
		alignA, alignB, alignC := call.Alignment(s.Out)
		return where(diag.Inputf(
			"rows of A, B and C are aligned to %d, %d and %d bytes, the kernel needs %d, %d and %d",
			alignA, alignB, alignC, s.AlignA, s.AlignB, s.AlignC).Do("emit a kernel for the call"))
	}
	need.AlignA, need.AlignB, need.AlignC = s.AlignA, s.AlignB, s.AlignC
	need.RaggedA, need.RaggedB, need.RaggedC = s.RaggedA, s.RaggedB, s.RaggedC
	if need.Key() != k.Key {
		return where(diag.Inputf("the kernel is not for %s with config %s", p, s.Config).
			Do("emit a kernel for the call"))
	}
	t, err := call.Tile(s.Config)
	if err != nil {
		return where(err)
	}
	if s.Nested && call.Offsets == 0 {
		return where(diag.Inputf("the problem has a nest, and the call no tables of offsets").
			Do("write what Offsets returns to the device"))
	}
	values := call.Params(t)
	if instructionOf(s.DType).integer {
		for name, v := range map[string]float32{"alpha": call.Alpha, "beta": call.Beta} {
			if v != float32(int32(v)) || v >= math.MaxInt32 {
				return where(diag.Inputf("alpha is %g and beta %g, but sums of %s are integers", call.Alpha, call.Beta, s.DType).
					Do("give whole numbers"))
			}
			values[name] = uint64(uint32(int32(v)))
		}
	}
	return gemmgen.Launch{
		GridX: t.TilesM * t.TilesN, GridY: t.Splits, GridZ: t.Batch,
		Threads: k.Threads, SharedMemory: k.SharedMemory, Params: gemmgen.Pack(k.Kernel, values),
	}, nil
}
