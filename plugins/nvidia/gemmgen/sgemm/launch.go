package sgemm

import (
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// Launch implements gemmgen.Program. A kernel for narrow rows computes calls with wider ones too.
func (s Spec) Launch(k *gemmgen.Kernel, call gemmgen.Call) (gemmgen.Launch, error) {
	return gemmgen.Start(k, call, s.Config, func() (any, *diag.Error) {
		need := SpecFor(call, s.Config)
		if need.AlignA < s.AlignA || need.AlignB < s.AlignB || need.AlignC < s.AlignC {
			return nil, gemmgen.Narrow(need.AlignA, need.AlignB, need.AlignC, s.AlignA, s.AlignB, s.AlignC)
		}
		need.AlignA, need.AlignB, need.AlignC = s.AlignA, s.AlignB, s.AlignC
		return need.Key(), nil
	}, func(l *gemmgen.Launch, call *gemmgen.Call, _ gemmgen.Tiling) (_ map[string]uint64, err *diag.Error) {
		l.Before, err = s.before(k, call)
		return nil, err
	})
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
