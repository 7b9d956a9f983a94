//go:build !race

package emulated

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
)

// rowsOf runs a kernel of mma on the first m rows of A, whose numbers are such that another order of sums gives other
// bits, and returns the rows of C in fp32.
func rowsOf(t *testing.T, config string, d gemm.DType, majors string, m, n, k int) [][]byte {
	t.Helper()
	p := gemm.New(m, n, k)
	p.DType = d
	p.SetTrans(majors[0] == 'm', majors[1] == 'k')
	call := gemmgen.NewCall(p)
	a, b, c := storedOf(p, gemm.A, d, 0, 0), storedOf(p, gemm.B, d, 0, 0), storedOf(p, gemm.C, gemm.FP32, 0, 0)
	call.A, call.B, call.C, call.Alpha = a.Matrix, b.Matrix, c.Matrix, 1
	// Three bits at exponents far apart: every type has these numbers, and fp32 rounds their sums. Row i of A is the same
	// for every m.
	draw := func(seed uint64) func() float64 {
		random := rand.New(rand.NewPCG(3, seed))
		return func() float64 {
			if d == gemm.INT8 {
				return float64(random.IntN(255) - 127)
			}
			return float64(random.IntN(7)-3) * math.Exp2(float64(random.IntN(12)-6))
		}
	}
	a.fill(1, m, k, p.TransA(), draw(4))
	b.fill(1, k, n, p.TransB(), draw(5))
	compute(t, mma.Family{}, call, gemm.FP32, configOf(t, config, mma.Family{}),
		Memory{a.Address: a.bytes, b.Address: b.bytes, c.Address: c.bytes}, how{cc: 90})
	return slices.Collect(slices.Chunk(c.bytes, 4*n))
}

// TestOrderOfSums: kernels that Sums calls invariant, with the same values on the axes that it names, compute a row
// of C to the same bits whatever M, the tile, the warps and the stages are. Others do not.
func TestOrderOfSums(t *testing.T) {
	sums := mma.Family{}.Sums()
	const n, k = 34, 136 // the last block along K is not full
	for i, d := range []gemm.DType{gemm.BF16, gemm.FP16, gemm.TF32, gemm.FP8, gemm.FP32} {
		majors := layoutsOf(d)[i%len(layoutsOf(d))]
		want := rowsOf(t, "64x32x64,stages=2,warp_count_k=1", d, majors, 68, n, k)
		differ := 0
		for _, c := range []struct {
			config string
			m      int
			same   bool
		}{
			{"64x32x64,stages=2,warp_count_k=1", 1, true},
			{"16x32x64,stages=3,warp_count_k=1", 7, true},
			{"16x64x64,stages=2,warps=8,warp_count_k=1", 16, true},
			{"32x32x64,stages=4,warp_count_k=1,warp_count_m=1", 33, true},
			{"32x32x64,stages=2,split=2,warp_count_k=1", 20, false},
			{"16x16x64,stages=2", 16, false}, // two warps along K
			{"32x32x32,stages=2,warp_count_k=1", 20, false},
		} {
			cfg := configOf(t, c.config, mma.Family{})
			invariant := sums.Has(&cfg, mma.Family{}.Axes())
			must.That(t, invariant == (c.same || cfg.BlockK != 64), "%s: invariant %t", c.config, invariant)
			got := rowsOf(t, c.config, d, majors, c.m, n, k)
			for i := range got {
				if bytes.Equal(got[i], want[i]) {
					continue
				}
				if differ++; c.same {
					t.Fatalf("%s of %d rows of %s %s: row %d has other bits", c.config, c.m, d, majors, i)
				}
			}
		}
		must.That(t, differ != 0, "%s %s: no order gives other bits, so that this test checks nothing", d, majors)
	}
}
