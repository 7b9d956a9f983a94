//go:build !race

package emulated

import (
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
)

// turns are the layouts.
var turns = []string{"kn", "mn", "kk", "mk"}

func fp32(m, n, k int) gemm.Problem {
	p := gemm.New(m, n, k)
	p.DType, p.Out = gemm.FP32, gemm.FP32
	return p
}

// TestEveryRungComputes runs every rung on odd, tiny and aligned problems, in all layouts, with a batch, beta and gaps
// between rows.
func TestEveryRungComputes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i, rung := range sgemm.Rungs() {
		for j, r := range []trial{
			{m: 40, n: 36, k: 20},
			{m: 33, n: 35, k: 37, pad: 1},
			{m: 12, n: 140, k: 12, pad: 4, batch: 2},
			{m: 1, n: 1, k: 1},
			{m: 7, n: 66, k: 5, pad: 3, offset: 1},
		} {
			if (i+j)%2 == 1 && j != 1 { // every rung on odd sizes, and on half of the others
				continue
			}
			r.family, r.config, r.alpha, r.batch, r.target = sgemm.Family{}, rung.Config.String(), 1, max(r.batch, 1), 80
			r.in, r.out, r.majors = gemm.FP32, gemm.FP32, turns[(i+j)%4]
			if j%2 == 1 {
				r.alpha, r.beta = 2, -1
			}
			p := fp32(r.m, r.n, r.k)
			p.LDC = r.n + r.pad
			if _, why := sgemm.Guard(&p, rung.Config); why != "" {
				r.m, r.n, r.k, r.pad, r.offset = 48, 32, 64, r.pad/4*4, 0
			}
			r.run(t, random, j%2 == 0, nil)
		}
	}
}

// TestEveryAxisComputes runs configurations that are no rungs.
func TestEveryAxisComputes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for i, config := range []string{
		"32x64x8,warps=2,stages=2,thread_m=4", "64x32x16,warps=2,stages=3,pad=4", "64x64x8,warps=2,stages=4,lane_map=quad",
		"64x64x16,warps=4,stages=3,shared_a=k,thread_m=4", "32x64x8,warps=1,stages=2,staging=registers,thread_m=16,lanes_m=2",
		"64x64x4,warps=4,stages=2,staging=registers,copy_width=2,read_width=2,thread_m=4,pad=2",
		"64x64x2,warps=4,stages=2,thread_m=4,copy_width=2",
		"64x32x4,warps=2,stages=1,staging=registers,shared_a=k,read_width=a1b4,copy_width=2",
		"64x64x8,warps=2,stages=1,staging=none", "32x64x32,warps=2,stages=5,pad=8,copy_width=1,read_width=1",
		"32x64x8,warps=2,stages=3,thread_m=4,split=3", "32x32x4,warps=32,stages=1,staging=registers,thread_m=1,split=8",
		"64x64x8,warps=2,stages=2,staging=registers,shared_a=k,split=2",
	} {
		for j := i % 2; j < 4; j += 2 { // half of the layouts each
			r := trial{
				family: sgemm.Family{}, config: config, in: gemm.FP32, out: gemm.FP32, majors: turns[j], target: 80,
				m: []int{64, 45}[(i+j)%2], n: []int{68, 97, 64}[(i+j)%3], k: []int{40, 21, 8}[(i+j)%3], batch: 1,
				alpha: 1, pad: []int{0, 4, 1}[i%3],
			}
			r.run(t, random, i%2 == 0, nil)
		}
	}
}
