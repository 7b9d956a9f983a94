//go:build !race

package emulated

import (
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
)

// mmaOutputs are the types of C for operands of a type.
func mmaOutputs(d gemm.DType) []gemm.DType {
	if d == gemm.INT8 {
		return []gemm.DType{gemm.INT32}
	}
	return []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP32}
}

// layoutsOf are the layouts that the family has for a type.
func layoutsOf(d gemm.DType) []string {
	if d.Bytes() == 1 {
		return []string{"kk"}
	}
	return []string{"kn", "kk", "mn", "mk"}
}

var allTypes = []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP8, gemm.FP8E5M2, gemm.INT8, gemm.TF32, gemm.FP32}

// TestEveryTypeComputes runs kernels of every type and layout on aligned and unaligned problems.
func TestEveryTypeComputes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, d := range allTypes {
		for i, majors := range layoutsOf(d) {
			out := mmaOutputs(d)[i%len(mmaOutputs(d))]
			for j, r := range []trial{
				{config: "32x64x32,stages=3", m: 64, n: 64, k: 96},
				{config: "16x32x64,stages=2", m: 33, n: 35, k: 71},
				{config: "64x16x32,stages=4", m: 50, n: 34, k: 70, pad: 2},
				{config: "32x32x64,stages=2,split=3", m: 36, n: 28, k: 200, pad: 4, batch: 2},
				{config: "16x16x128,stages=2", m: 7, n: 9, k: 5, pad: 3, offset: 1},
				{config: "32x64x32,stages=3,split=2", m: 45, n: 37, k: 77, pad: 3, batch: 2}, // ragged, all aligned to 16 bytes
				{config: "64x32x32,stages=2", m: 45, n: 85, k: 13, pad: 3},
				{config: "64x64x32,stages=2,warps=8", m: 1, n: 1, k: 1},
			} {
				r.family, r.majors, r.in, r.out, r.alpha, r.batch = mma.Family{}, majors, d, out, 1, max(r.batch, 1)
				if j%2 == 1 {
					r.alpha, r.beta = 2, -1
				}
				if (d == gemm.BF16 || d == gemm.FP8E5M2) && j%3 != 1 {
					continue // differ from fp16 and fp8 in the name of the instruction alone
				}
				r.target = []int{89, 90}[j/2%2] // without and with fp8 as fp16
				r.run(t, random, j%2 == 0, nil)
			}
		}
	}
}

// TestEveryWarpGridComputes runs kernels whose warps share a tile in another way than the family derives.
func TestEveryWarpGridComputes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for i, config := range []string{
		"64x32x32,stages=2,warp_count_m=1", "64x32x32,stages=3,warp_count_m=2", "32x64x64,stages=2,warp_count_k=2",
		"32x64x128,stages=2,warp_count_k=4", "64x64x64,stages=2,warps=8,warp_count_m=1",
		"16x64x128,stages=2,warp_count_k=4,split=2",
		"64x64x64,stages=2,warps=8,warp_count_m=4,warp_count_k=2",
	} {
		for j, d := range []gemm.DType{gemm.FP16, gemm.TF32, gemm.FP32, gemm.INT8} {
			if (i+j)%2 == 0 && d != gemm.FP16 {
				continue
			}
			majors := layoutsOf(d)[i%len(layoutsOf(d))]
			trial{
				family: mma.Family{}, config: config, majors: majors, in: d, out: mmaOutputs(d)[0], m: 40, n: 34 + 2*j, k: 150,
				batch: 1, pad: 2 * j,
				alpha: 1, target: 80,
			}.run(t, random, i%2 == 0, nil)
		}
	}
}

// TestEpiloguesCompute: the bias is added after alpha, beta and the splits of K, and the activation comes last.
func TestEpiloguesCompute(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for i, d := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP8, gemm.FP32} {
		for j, r := range []trial{
			{config: "32x64x32,stages=3", m: 33, n: 40, k: 70, epilogue: gemm.Epilogue{Bias: true}},
			{config: "16x32x64,stages=2,split=3", m: 20, n: 35, k: 200, beta: 2,
				epilogue: gemm.Epilogue{Bias: true, Activation: gemm.ReLU}},
			{config: "64x256x32,stages=2,warps=8", m: 40, n: 201, k: 33, pad: 3, beta: -1,
				epilogue: gemm.Epilogue{Activation: gemm.ReLU}},
			{config: "32x32x32,stages=2", m: 31, n: 33, k: 20, batch: 2,
				epilogue: gemm.Epilogue{Bias: true, Activation: gemm.ReLU}},
		} {
			outputs := mmaOutputs(gemm.FP16)
			r.family, r.majors, r.in, r.out = mma.Family{}, layoutsOf(d)[0], d, outputs[(i+j)%len(outputs)]
			r.alpha, r.batch, r.target = 2, max(r.batch, 1), 90
			r.run(t, random, j%2 == 0, nil)
		}
	}
}

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
