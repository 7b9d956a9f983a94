package mma

import (
	"maps"
	"math"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
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
	alpha, beta, err := s.scalars(call)
	if err != nil {
		return where(err)
	}
	values := map[string]uint64{
		"a": call.A.Address, "b": call.B.Address, "c": call.C.Address,
		"partials": call.Partials, "counters": call.Counters,
		"m": uint64(p.M), "n": uint64(p.N), "k": uint64(p.K),
		"tiles_m": uint64(t.TilesM), "tiles_n": uint64(t.TilesN), "group_m": uint64(t.GroupM),
		"k_per_split": uint64(t.KPerSplit), "bias": call.Bias, "alpha": uint64(alpha), "beta": uint64(beta),
	}
	maps.Copy(values, storage(&call))
	return gemmgen.Launch{
		GridX: t.TilesM * t.TilesN, GridY: t.Splits, GridZ: t.Batch,
		Threads: k.Threads, SharedMemory: k.SharedMemory, Params: gemmgen.Pack(k.Kernel, values),
	}, nil
}

// storage returns the parameters that say where the elements of the matrices are.
func storage(call *gemmgen.Call) map[string]uint64 {
	if call.Problem.Nest != (gemm.Nest{}) {
		return call.OffsetParams()
	}
	return map[string]uint64{
		"lda": uint64(call.A.LD), "ldb": uint64(call.B.LD), "ldc": uint64(call.C.LD),
		"stride_a": uint64(call.A.Stride), "stride_b": uint64(call.B.Stride), "stride_c": uint64(call.C.Stride),
	}
}

// scalars returns the bits of alpha and beta. They have the type of the sums.
func (s Spec) scalars(call gemmgen.Call) (alpha, beta uint32, err *diag.Error) {
	if !instructionOf(s.DType).integer {
		return math.Float32bits(call.Alpha), math.Float32bits(call.Beta), nil
	}
	for _, v := range []float32{call.Alpha, call.Beta} {
		if v != float32(int32(v)) || v >= math.MaxInt32 {
			return 0, 0, diag.Inputf("alpha is %g and beta %g, but sums of %s are integers", call.Alpha, call.Beta, s.DType).
				Do("give whole numbers")
		}
	}
	return uint32(int32(call.Alpha)), uint32(int32(call.Beta)), nil
}
