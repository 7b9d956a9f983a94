package sgemm

import (
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
	need := SpecFor(call, s.Config)
	if need.AlignA < s.AlignA || need.AlignB < s.AlignB || need.AlignC < s.AlignC {
		return where(diag.Inputf("rows of A, B and C are aligned to %d, %d and %d bytes, the kernel needs %d, %d and %d",
			need.AlignA, need.AlignB, need.AlignC, s.AlignA, s.AlignB, s.AlignC).Do("emit a kernel for the call"))
	}
	need.AlignA, need.AlignB, need.AlignC = s.AlignA, s.AlignB, s.AlignC
	if need.Key() != k.Key {
		return where(diag.Inputf("the kernel is not for %s with config %s", p, s.Config).
			Do("emit a kernel for the call"))
	}
	t, err := call.Tile(s.Config)
	if err != nil {
		return where(err)
	}
	before, err := s.before(k, &call)
	if err != nil {
		return where(err)
	}
	return gemmgen.Launch{
		GridX: t.TilesM * t.TilesN, GridY: t.Splits, GridZ: t.Batch,
		Threads: k.Threads, SharedMemory: k.SharedMemory, Params: gemmgen.Pack(k.Kernel, call.Params(t)),
		Before: before,
	}, nil
}

// before returns the launch that rounds A and B of a call for math=wmma, nil if there is none, and puts what it writes
// into the call.
func (s Spec) before(k *gemmgen.Kernel, call *gemmgen.Call) (*gemmgen.Launch, *diag.Error) {
	if choicesOf(&s.Config).math != mathWMMA {
		return nil, nil
	}
	if _, why := Guard(&call.Problem, s.Config); why != "" {
		return nil, diag.Inputf("%s", why).Do("use the rung that Guard returns")
	}
	addresses := call.C.Address
	if k.Before == nil { // A and B are loaded where they are
		addresses |= call.A.Address | call.B.Address
	}
	if addresses%wmmaAlign != 0 {
		return nil, diag.Inputf("A, B or C does not begin at a multiple of %d bytes", wmmaAlign).Do("move it")
	}
	if k.Before == nil {
		return nil, nil
	}
	l, a, b, err := convert(k.Before, *call)
	if err != nil {
		return nil, err
	}
	call.A, call.B = a, b
	return &l, nil
}
