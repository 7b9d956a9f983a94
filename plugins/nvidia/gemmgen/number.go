package gemmgen

import (
	"math"

	"github.com/origami-gemm/origami/core/gemm"
)

// float is the bits of a floating-point type, without the sign.
type float struct {
	exponent, fraction int
	// finite says that the largest exponent is one of numbers, and only the largest fraction with it is NaN.
	finite bool
}

// narrowFloats are the floating-point types of 16 bits or fewer, by type. Sources: IEEE 754; OCP 8-bit Floating Point
// Specification.
var narrowFloats = map[gemm.DType]float{
	gemm.FP16: {5, 10, false}, gemm.BF16: {8, 7, false}, gemm.FP8: {4, 3, true}, gemm.FP8E5M2: {5, 2, false},
}

// limits returns the bits of infinity, or of the NaN of a type without it, and the exponent of the smallest normal
// number.
func (f float) limits() (top uint32, smallest int) {
	top = (1<<f.exponent - 1) << f.fraction
	if f.finite {
		top |= 1<<f.fraction - 1
	}
	return top, 2 - 1<<(f.exponent-1)
}

// Number returns the number that the bits of an element stand for. Elements of tf32 are fp32 in memory.
func Number(d gemm.DType, bits uint32) float64 {
	f, narrow := narrowFloats[d]
	switch {
	case d == gemm.INT8:
		return float64(int8(bits))
	case d == gemm.INT32:
		return float64(int32(bits))
	case !narrow:
		return float64(math.Float32frombits(bits))
	}
	top, smallest := f.limits()
	size, sign := bits&(1<<(f.exponent+f.fraction)-1), 1-2*int(bits>>(f.exponent+f.fraction)&1)
	exponent, fraction := int(size>>f.fraction), float64(size&(1<<f.fraction-1))
	switch {
	case size == top && !f.finite:
		return math.Inf(sign)
	case size >= top:
		return math.NaN()
	case exponent > 0:
		fraction, exponent = fraction+float64(int(1)<<f.fraction), exponent-1
	}
	return float64(sign) * math.Ldexp(fraction, smallest+exponent-f.fraction)
}

// Bits returns the bits of the number of a type that is nearest to v, the even one of two that are equally near. Of two
// numbers of tf32 it is the one that is further from zero, as kernels round.
func Bits(d gemm.DType, v float64) uint32 {
	f, narrow := narrowFloats[d]
	switch {
	case d == gemm.INT8:
		return uint32(uint8(int8(v)))
	case d == gemm.INT32:
		return uint32(int32(v))
	case d == gemm.TF32:
		return (math.Float32bits(float32(v)) + 1<<12) &^ (1<<13 - 1)
	case !narrow:
		return math.Float32bits(float32(v))
	}
	top, smallest := f.limits()
	bits := top
	if size := math.Abs(v); size != 0 && !math.IsInf(size, 0) && !math.IsNaN(size) {
		_, e := math.Frexp(size)
		exponent := max(e-1, smallest)
		// The bits of the numbers with an exponent begin with the bits of its power of two. Subnormal numbers are those of
		// the smallest exponent, below its power.
		steps := uint32(math.RoundToEven(math.Ldexp(size, f.fraction-exponent)))
		bits = min(uint32(exponent-smallest)<<f.fraction+steps, top)
	} else if size == 0 {
		bits = 0
	} else if math.IsNaN(v) {
		bits |= 1
	}
	if math.Signbit(v) {
		bits |= 1 << (f.exponent + f.fraction)
	}
	return bits
}
