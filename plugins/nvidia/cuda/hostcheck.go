//go:build cuda

package cuda

import (
	"fmt"
	"math"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// hostProducts is the most products that the host computes for a check: less than a second.
const hostProducts = 1 << 26

// onHost reports whether a problem is checked on the host: its tensors are no matrices, or C is not A·B alone.
func onHost(p gemm.Problem) bool {
	alpha, beta := p.Scalars()
	return p.Nest != (gemm.Nest{}) || alpha != 1 || beta != 0 || p.Epilogue != (gemm.Epilogue{})
}

// tolerance is the error that a correct result of standard normal operands may have, relative to |want| + √K. It is the
// rounding of the output, 2^−11 for fp16 and 2^−8 for bf16, plus the loss of adding K products in fp32. Sums of int8
// are exact.
//
// Tensor cores truncate: they align 16 products at a time to the largest and add them to the sum, which loses up to
// 2^−23 of it each time, always downwards. K/16 such steps on sums of the order of √K lose at most K·2^−27 of √K. The
// tolerance allows twice that. A missing product is an error of 1/√K for a third of the elements, above the tolerance
// for any K below 2^17. A step of tf32 has 8 products, so there are twice as many. FMA rounds each sum by up to 2^−24
// of it, up or down. That adds up to less, but where K is small, the sums on the way can be larger than their end.
//
// For fp8 the tensor cores of some architectures align 32 products and the sum to 13 bits below the largest. The sum
// loses K/32 times 2^−13 of itself, always towards zero. What the products lose has either sign, and the largest may be
// several times √K, or than all of √K where K is small: √(K/32) times 2^−9 is 1.4 times the largest error of 600 random
// kernels of the family wgmma on an H200. A missing step of 32 products is above the tolerance for any K below 2^13.
func tolerance(t gemm.Types, k int) float64 {
	rounding := map[gemm.DType]float64{gemm.FP16: 0x1p-11, gemm.BF16: 0x1p-8, gemm.FP32: 0x1p-23}[t.Out]
	switch t.In {
	case gemm.FP32:
		return rounding + 0x1p-21 + float64(k)*0x1p-26
	case gemm.INT8:
		return 0
	case gemm.FP8, gemm.FP8E5M2:
		return rounding + float64(k)*0x1p-18 + math.Sqrt(float64(k)/32)*0x1p-9
	case gemm.TF32:
		return rounding + float64(k)*0x1p-25
	default:
		return rounding + float64(k)*0x1p-26
	}
}

// withActivation is the tolerance behind an activation: errors grow with its slope, which is at most 1.13, that of
// GELU, and the instructions that compute it are within 2^−20.
func withActivation(tolerance float64, a gemm.Activation) float64 {
	if a == gemm.Identity {
		return tolerance
	}
	return 1.13*tolerance + 0x1p-20
}

// checkOnHost is check for the problems of onHost.
func (d *device) checkOnHost(o *operands, run func() error) (n exec.Numerics, err error) {
	if err := cu.MemsetD8Async(o.c.at, poison, int64(o.c.bytes), d.stream); err != nil {
		return n, err
	}
	if err := o.fillC(); err != nil {
		return n, err
	}
	if err := d.stream.Synchronize(); err != nil {
		return n, err
	}
	if err := o.referOnHost(); err != nil {
		return n, err
	}
	if err := run(); err != nil {
		return n, err
	}
	if err := d.stream.Synchronize(); err != nil {
		return n, err
	}
	after, err := o.download(gemm.C)
	if err != nil {
		return n, err
	}
	n.Tolerance = withActivation(tolerance(o.problem.Types(), o.problem.K), o.problem.Epilogue.Activation)
	v := o.hostReference.Compare(after, n.Tolerance)
	n.MaxError, n.Checked, n.Wrong, n.Reference = v.MaxError, v.Checked, v.Wrong, "float64 on the host"
	if v.Checked < v.Elements {
		n.Reference += fmt.Sprintf(", %d of %d elements", v.Checked, v.Elements)
	}
	n.OutOfBounds, err = o.outside()
	n.OutOfBounds += v.OutOfBounds
	return n, err
}

// referOnHost computes the right values, once per problem.
func (o *operands) referOnHost() error {
	if o.hostReference != nil {
		return nil
	}
	var host [3][]byte
	for m := gemm.A; m <= gemm.C; m++ {
		var err error
		if host[m], err = o.download(m); err != nil {
			return err
		}
	}
	o.hostReference = gemmgen.NewHostReference(o.problem, host[gemm.A], host[gemm.B], host[gemm.C], o.biases, hostProducts)
	return nil
}

// download copies a tensor to the host.
func (o *operands) download(m gemm.Operand) ([]byte, error) {
	host := make([]byte, int(o.bytes(m)))
	if err := download(host, cu.DevicePtr(o.first[m])); err != nil {
		return nil, fmt.Errorf("reading %s: %w", m, err)
	}
	return host, nil
}

// outside counts the bytes that a kernel overwrote around C: in its fences and between its rows. The caller holds
// d.running and has the context.
func (o *operands) outside() (int64, error) {
	p := o.problem
	start, end := o.start(gemm.C), o.start(gemm.C)+o.bytes(gemm.C)
	wrong, err := o.overwritten(0, start)
	if err != nil {
		return 0, err
	}
	after, err := o.overwritten(end, end+fence)
	if err != nil {
		return 0, err
	}
	wrong += after
	if p.LD(gemm.C) == p.N || onHost(p) { // Compare looks between the rows
		return wrong, nil
	}
	size := unit.Bytes(p.Output().Bytes())
	row, pitch := size*unit.Bytes(p.N), size*unit.Bytes(p.LD(gemm.C))
	for i := range p.Batch*p.M - 1 {
		at := start + unit.Bytes(i)*pitch
		n, err := o.overwritten(at+row, at+pitch)
		if err != nil {
			return 0, err
		}
		wrong += n
	}
	return wrong, nil
}

// overwritten counts the bytes of a part of C's region that are not poison.
func (o *operands) overwritten(from, to unit.Bytes) (n int64, err error) {
	band := make([]byte, int(to-from))
	if err := download(band, cu.DevicePtr(o.c.address(from))); err != nil {
		return 0, fmt.Errorf("reading what surrounds C: %w", err)
	}
	for _, b := range band {
		if b != poison {
			n++
		}
	}
	return n, nil
}
