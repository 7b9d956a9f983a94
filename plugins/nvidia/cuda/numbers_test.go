//go:build cuda

package cuda

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
)

// widened is the number that the bits of a float type stand for, by the definition of the type. fp16 has no subnormal
// numbers here.
func widened(d gemm.DType, bits uint32) float64 {
	switch d {
	case gemm.FP32, gemm.TF32:
		return float64(math.Float32frombits(bits))
	case gemm.BF16:
		return float64(math.Float32frombits(bits << 16))
	}
	mantissa := map[gemm.DType]int{gemm.FP16: 10, gemm.FP8: 3, gemm.FP8E5M2: 2}[d]
	sign, exponents := 1.0, d.Bits()-1-mantissa
	if bits>>(d.Bits()-1) == 1 {
		sign = -1
	}
	exponent, fraction := int(bits>>mantissa)&(1<<exponents-1), float64(bits&(1<<mantissa-1))
	bias := 1<<(exponents-1) - 1
	if exponent == 0 && d != gemm.FP16 {
		return sign * math.Ldexp(fraction, 1-bias-mantissa)
	}
	return sign * math.Ldexp(1+fraction/float64(int(1)<<mantissa), exponent-bias)
}

// narrow agrees with the definition: the nearest number of the type, the even one of two that are equally near.
func TestNarrow(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for range 100000 {
		v := float32(random.NormFloat64())
		for _, d := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.TF32, gemm.FP8, gemm.FP8E5M2} {
			bits, last := narrow(d, v), uint32(1)
			if d == gemm.FP16 && math.Abs(float64(v)) < 0x1p-14 {
				if bits&0x7FFF != 0 {
					t.Fatalf("%g became %#x", v, bits)
				}
				continue
			}
			if d == gemm.TF32 {
				last = 1 << 13
			}
			if bits&(last-1) != 0 {
				t.Fatalf("%s: %g became %#x", d, v, bits)
			}
			off := math.Abs(widened(d, bits) - float64(v))
			for _, near := range []uint32{bits - last, bits + last} {
				if bits<<(33-d.Bits()) == 0 {
					near = last // of zero, the smallest
				}
				other := math.Abs(widened(d, near) - float64(v))
				if other < off && (bits^near)>>(d.Bits()-1) == 0 || other == off && bits/last&1 == 1 && d != gemm.TF32 {
					t.Fatalf("%s: %g became %g, %g is nearer", d, v, widened(d, bits), widened(d, near))
				}
			}
		}
	}
}
