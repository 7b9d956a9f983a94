//go:build cuda

package cuda

import (
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// Nests of random indices, and random alpha and beta of nests and of matrices, are computed right.
func TestRandomNestsAndScalars(t *testing.T) {
	x, d := openGPU(t)
	for _, dtype := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP32, gemm.TF32, gemm.INT8} {
		t.Run(dtype.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(17, uint64(dtype)))
			all := make([]drawn, 18)
			for i := range all {
				p := randomProblem(random, dtype)
				if p.Alpha, p.Beta = float32(2+random.IntN(3)), float32(random.IntN(4)-2); i < 12 {
					p = randomNest(t, random, dtype)
					p.Alpha, p.Beta = float32(1+random.IntN(3)), float32(random.IntN(4)-2)
				}
				all[i] = drawn{problem: p.Canonical(), config: randomConfig(random)}
			}
			compileAll(t, x, all)
			checkAll(t, all)
		})
	}
	if d.target.CC != 90 {
		return
	}
	random := rand.New(rand.NewPCG(18, 1))
	checkDrawn(t, x, 8, func() drawn {
		p := addressable(random, gemm.FP16)
		p.Alpha, p.Beta = 0.5, float32(random.IntN(4)-2)
		return drawn{problem: p, config: randomWgmma(t, random)}
	})
}

// randomNest returns a problem of one to three indices in each dimension, with gaps behind them.
func randomNest(t *testing.T, random *rand.Rand, dtype gemm.DType) gemm.Problem {
	t.Helper()
	p := gemm.New(1, 1, 1)
	p.DType = dtype
	if dtype.Bytes() == 1 {
		p.SetTrans(false, true)
	} else {
		p.SetTrans(random.IntN(2) == 0, random.IntN(2) == 0)
	}
	var indices []gemm.NestIndex
	for _, dim := range []struct {
		name gemm.Dimension
		size *int
		most int
		in   [3]bool
	}{
		{gemm.DimM, &p.M, 8, [3]bool{true, false, true}}, {gemm.DimN, &p.N, 8, [3]bool{false, true, true}},
		{gemm.DimK, &p.K, 8, [3]bool{true, true, false}}, {gemm.DimBatch, &p.Batch, 2, [3]bool{true, true, true}},
	} {
		for range 1 + random.IntN(3) {
			v := gemm.NestIndex{Dim: dim.name, Size: 1 + random.IntN(dim.most)}
			*dim.size *= v.Size
			for o, has := range dim.in {
				if has {
					v.Strides[o] = 1 // the tensor has the index
				}
			}
			indices = append(indices, v)
		}
	}
	// The strides of each tensor in a random order of its indices.
	for o := range 3 {
		next := 1
		for _, i := range random.Perm(len(indices)) {
			if v := &indices[i]; v.Strides[o] != 0 {
				v.Strides[o] = next
				next *= v.Size + random.IntN(2)
			}
		}
	}
	p.Nest = must.Get(gemm.NewNest(indices...))(t)
	for o := gemm.A; o <= gemm.C; o++ {
		must.Do(t, p.SetAlign(o, p.Type(o).Bytes()))
	}
	return p.Canonical()
}
