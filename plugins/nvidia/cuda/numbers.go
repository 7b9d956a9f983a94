//go:build cuda

package cuda

import (
	"math/rand/v2"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// Seeds of the random numbers of operands and of C.
const seedOperands, seedC = 0x6f726967616d69, 0x63

// normals returns random numbers of a type: standard normal ones, or integers from -127 to 127. A seed gives the same
// numbers in every run, so that a wrong result is reproducible.
func normals(seed uint64, t gemm.DType, n int) []byte {
	random := rand.New(rand.NewPCG(seed, uint64(t)))
	size := t.Bytes()
	host := make([]byte, 0, n*size)
	for range n {
		v := float64(random.IntN(255) - 127)
		if t != gemm.INT8 && t != gemm.INT32 {
			v = random.NormFloat64()
		}
		bits := gemmgen.Bits(t, v)
		for i := range size {
			host = append(host, byte(bits>>(8*i)))
		}
	}
	return host
}
