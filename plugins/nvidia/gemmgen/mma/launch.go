package mma

import (
	"math"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// Launch implements gemmgen.Program. A kernel for narrow rows computes calls with wider ones too.
func (s Spec) Launch(k *gemmgen.Kernel, call gemmgen.Call) (gemmgen.Launch, error) {
	return gemmgen.Start(k, call, s.Config, func() (any, *diag.Error) {
		if !s.computes(call) {
			alignA, alignB, alignC := call.Alignment(s.Out)
			return nil, gemmgen.Narrow(alignA, alignB, alignC, s.AlignA, s.AlignB, s.AlignC)
		}
		need := SpecFor(call, s.Out, s.Config)
		need.AlignA, need.AlignB, need.AlignC = s.AlignA, s.AlignB, s.AlignC
		need.RaggedA, need.RaggedB, need.RaggedC = s.RaggedA, s.RaggedB, s.RaggedC
		return need.Key(), nil
	}, func(_ *gemmgen.Launch, call *gemmgen.Call, _ gemmgen.Tiling) (map[string]uint64, *diag.Error) {
		if s.Nested && call.Offsets == 0 {
			return nil, diag.Inputf("the problem has a nest, and the call no tables of offsets").
				Do("write what Offsets returns to the device")
		}
		scalars := map[string]uint64{}
		if instructionOf(s.DType).integer {
			for name, v := range map[string]float32{"alpha": call.Alpha, "beta": call.Beta} {
				if v != float32(int32(v)) || v >= math.MaxInt32 {
					return nil, diag.Inputf("alpha is %g and beta %g, but sums of %s are integers", call.Alpha, call.Beta,
						s.DType).Do("give whole numbers")
				}
				scalars[name] = uint64(uint32(int32(v)))
			}
		}
		return scalars, nil
	})
}
