package asm

import (
	"math"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Activate applies an activation to x in place. Exponentials and reciprocals are the hardware's approximations, within
// 2^−22 and 2^−23, so that the result is within some 2^−20 of the larger of |x| and itself. A NaN stays one.
func (b Builder) Activate(x ptx.Operand, a gemm.Activation) {
	switch a.Single() {
	case gemm.ReLU:
		b.MaxNaNF32(x, x, ptx.Float(0))
	case gemm.ReLU2:
		b.MaxNaNF32(x, x, ptx.Float(0))
		b.MulF32(x, x, x)
	case gemm.QuickGELU:
		b.timesSigmoid(x, b.MulF32(b.F32(), x, ptx.Float(-1.702*math.Log2E)))
	case gemm.SiLU:
		b.timesSigmoid(x, b.MulF32(b.F32(), x, ptx.Float(-math.Log2E)))
	case gemm.GELUTanh:
		b.geluTanh(x)
	case gemm.GELU:
		b.gelu(x)
	default:
	}
}

// timesSigmoid is x = x ÷ (1 + 2^y).
func (b Builder) timesSigmoid(x, y ptx.Operand) {
	e := b.Ex2ApproxFtzF32(b.F32(), y)
	b.AddF32(e, e, ptx.Float(1))
	b.RcpApproxFtzF32(e, e)
	b.MulF32(x, x, e)
}

// geluTanh uses that 0.5·(1 + tanh(u)) is sigmoid(2u).
func (b Builder) geluTanh(x ptx.Operand) {
	const linear = -2 * math.Log2E * 0.7978845608028654 // √(2/π)
	u := b.MulF32(b.F32(), x, x)
	cubic := b.MovF32(b.F32(), ptx.Float(linear))
	b.FmaF32(u, u, ptx.Float(linear*0.044715), cubic)
	b.MulF32(u, u, x)
	b.timesSigmoid(x, u)
}

// gelu is max(x, 0) − |x|·erfc(|x|/√2)/2. The complementary error function is a polynomial in t = 1 ÷ (1 + p·z) times
// exp(−z²), within 1.5·10^−7. Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
func (b Builder) gelu(x ptx.Operand) {
	const p = 0.3275911
	coefficients := [...]float64{1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592}
	size := b.AbsF32(b.F32(), x)
	b.MinF32(size, size, ptx.Float(64)) // an infinity times the zero of the exponential is not a number
	one := b.MovF32(b.F32(), ptx.Float(1))
	t := b.FmaF32(b.F32(), size, ptx.Float(p*math.Sqrt2/2), one)
	b.RcpApproxFtzF32(t, t)
	sum := b.MovF32(b.F32(), ptx.Float(float32(coefficients[0])))
	for _, c := range coefficients[1:] {
		b.FmaF32(sum, sum, t, ptx.Float(float32(c)))
	}
	b.MulF32(sum, sum, t)
	e := b.MulF32(b.F32(), size, size)
	b.MulF32(e, e, ptx.Float(-math.Log2E/2))
	b.Ex2ApproxFtzF32(e, e)
	b.MulF32(sum, sum, e)
	b.MulF32(size, size, ptx.Float(-0.5))
	b.MaxNaNF32(x, x, ptx.Float(0))
	b.FmaF32(x, sum, size, x)
}
