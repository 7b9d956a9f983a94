//go:build cuda

package cuda

import (
	"math"
	"math/rand/v2"

	"github.com/origami-gemm/origami/core/gemm"
)

// narrow rounds a finite number to the nearest of a float type, ties to even, and returns the bits. tf32 is rounded
// with ties away from zero, as kernels do. fp16 numbers below the smallest normal one become zero: of a standard normal
// distribution they do not matter, and none overflows.
func narrow(t gemm.DType, v float32) uint32 {
	bits := math.Float32bits(v)
	switch t {
	case gemm.FP32:
		return bits
	case gemm.TF32:
		return (bits + 1<<12) &^ (1<<13 - 1)
	case gemm.BF16:
		return (bits + 0x7FFF + bits>>16&1) >> 16
	case gemm.FP8:
		return narrow8(v, 3, -6)
	case gemm.FP8E5M2:
		return narrow8(v, 2, -14)
	default: // fp16
	}
	sign := bits >> 16 & 0x8000
	if exponent := int(bits>>23&0xFF) - 127 + 15; exponent <= 0 {
		return sign
	}
	magnitude := bits&0x7FFFFFFF - (127-15)<<23
	return sign | (magnitude+0xFFF+magnitude>>13&1)>>13
}

// narrow8 rounds to a type of 8 bits with so many of mantissa, and a smallest exponent of normal numbers.
func narrow8(v float32, mantissa, smallest int) uint32 {
	size := math.Abs(float64(v))
	exponent := smallest
	if size > 0 {
		_, e := math.Frexp(size)
		exponent = max(e-1, smallest)
	}
	// The bits of the numbers with an exponent begin with those of its power of two. Subnormal numbers are those of the
	// smallest exponent, below its power.
	steps := uint32(math.RoundToEven(math.Ldexp(size, mantissa-exponent)))
	bits := uint32(exponent-smallest)<<mantissa + steps
	if v < 0 {
		bits |= 0x80
	}
	return bits
}

// normals returns random numbers of a type. A fixed seed gives the same numbers in every run, so that a wrong result is
// reproducible.
func normals(t gemm.DType, n int) []byte {
	random := rand.New(rand.NewPCG(0x6f726967616d69, uint64(t)))
	size := t.Bytes()
	host := make([]byte, 0, n*size)
	for range n {
		bits := uint32(random.IntN(255) - 127)
		if t != gemm.INT8 {
			bits = narrow(t, float32(random.NormFloat64()))
		}
		for i := range size {
			host = append(host, byte(bits>>(8*i)))
		}
	}
	return host
}
