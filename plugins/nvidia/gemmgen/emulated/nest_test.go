//go:build !race

package emulated

import (
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
)

// The problem types of AMD's slides on Tensile, those of Tensile's tests of 2017, and others that are hard to walk.
var nests = []struct{ what, text, sizes string }{
	{"gemm", "Cij_Aik_Bkj", "i=37,j=19,k=21"},
	{"batched gemm", "Cijk_Ailk_Bjlk", "i=18,j=33,k=3,l=17"},
	{"sum over three indices", "Cijk_Ailmnk_Bjlmnk", "i=17,j=20,k=2,l=3,m=4,n=5"},
	{"the same in another layout", "Cijk_Ainlkm_Bmjlkn", "i=17,j=15,k=2,l=3,m=4,n=5"},
	{"sum over two indices", "Cij_Akil_Bkjl", "i=33,j=17,k=5,l=7"},
	{"convolution in four dimensions", "Cijkl_Aonijml_Bonjmkl", "i=9,j=3,k=17,l=2,m=3,n=3,o=2"},
	{"outer product", "i,j->ij", "i=17,j=33"},
	{"inner product", "i,i->", "i=129"},
	{"a batch of numbers", "ab,ab->ba", "a=3,b=5"},
	{"rows of C along A", "ik,jk->ji", "i=33,j=5,k=9"},
}

func TestNestsCompute(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for i, x := range nests {
		for j, types := range []gemm.Types{{In: gemm.FP32, Out: gemm.FP32}, {In: gemm.FP16, Out: gemm.FP16},
			{In: gemm.BF16, Out: gemm.FP32}, {In: gemm.INT8, Out: gemm.INT32}, {In: gemm.TF32, Out: gemm.FP32}} {
			if j > 2 && i != 4 { // differ from the others in what every kernel does
				continue
			}
			config := []string{"16x32x32,stages=3", "32x16x64,stages=2", "64x32x32,stages=4,split=2"}[(i+j)%3]
			runNest(t, random, x.text, x.sizes, types, config, float32(i%2)*2+1, float32(j%2))
		}
	}
}

// strided returns the strides of a tensor with gaps behind each index.
func strided(s *contract.Shape, o gemm.Operand) contract.Strides {
	strides, next := contract.Strides{}, 1
	for _, x := range []byte(s.Tensor(o)) {
		strides = append(strides, next)
		next *= s.Size(x) + 1
	}
	return strides
}

func runNest(
	t *testing.T, random *rand.Rand, text, sizes string, types gemm.Types, config string, alpha, beta float32,
) {
	t.Helper()
	c, err := contract.Parse(text)
	must.Do(t, err)
	list := must.Get(contract.ParseSizes(sizes))(t)
	s := must.Get(c.Shape(list, nil, nil, nil))(t)
	if s, err = c.Shape(list, strided(s, gemm.A), strided(s, gemm.B), strided(s, gemm.C)); err != nil {
		t.Fatal(err)
	}
	plan := must.Get(s.Nested(types))(t)
	p := plan.Problem
	p.Alpha, p.Beta = alpha, beta
	a, b, was := drawn(random, s.Len(gemm.A)), drawn(random, s.Len(gemm.B)), drawn(random, s.Len(gemm.C))
	memory := Memory{1 << 32: inMemory(types.In, a), 2 << 32: inMemory(types.In, b), 3 << 32: inMemory(types.Out, was),
		6 << 32: gemmgen.Offsets(p)}
	call := gemmgen.NewCall(p)
	call.A.Address, call.B.Address, call.C.Address, call.Offsets = 1<<32, 2<<32, 3<<32, 6<<32
	if plan.Swapped {
		call.A.Address, call.B.Address = call.B.Address, call.A.Address
	}
	compute(t, mma.Family{}, call, types.Out, configOf(t, config, mma.Family{}), memory, how{cc: 90})
	s.Reference(float64(alpha), a, b, float64(beta), was)
	for i, v := range inMemory(types.Out, was) {
		got := memory[3<<32][i]
		must.Need(t, got == v, "%s %s %s: byte %d of C is %#x, want %#x", text, types.Text(), p, i, got, v)
	}
}

// drawn returns small integers, whose products and sums are exact in every type.
func drawn(random *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(random.IntN(5) - 2)
	}
	return v
}

// inMemory returns numbers as they lie in memory.
func inMemory(d gemm.DType, v []float64) []byte {
	out := make([]byte, len(v)*d.Bytes())
	for i, x := range v {
		put(out[i*d.Bytes():(i+1)*d.Bytes()], d, x)
	}
	return out
}
