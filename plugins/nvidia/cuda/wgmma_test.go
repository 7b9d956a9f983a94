//go:build cuda

package cuda

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/wgmma"
)

// TestRandomWgmma: kernels of the family compute random problems that tensor maps can describe: with ragged sizes, gaps
// between rows, batches, every layout, splits of K and C of little alignment.
func TestRandomWgmma(t *testing.T) {
	x, d := openGPU(t)
	if !slices.Contains(d.describe().Kernels, wgmma.Name) {
		t.Skip("the device has no such kernels")
	}
	for _, dtype := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP8, gemm.FP8E5M2} {
		for _, split := range []bool{false, true} {
			name := dtype.String()
			if split {
				name += "-split"
			}
			t.Run(name, func(t *testing.T) { randomKernels(t, x, dtype, split) })
		}
	}
}

// randomKernels checks kernels of a type.
func randomKernels(t *testing.T, x *executor, dtype gemm.DType, split bool) {
	random := rand.New(rand.NewPCG(11, uint64(dtype)))
	checkDrawn(t, x, 60, func() drawn {
		one := drawn{problem: addressable(random, dtype), config: randomWgmma(t, random)}
		if split && !wgmma.Streams(one.config) {
			one.config.SplitK = 2 + random.IntN(6)
		}
		if dtype.Bytes() == 1 {
			one.config.BlockK = 128
		}
		return one
	})
}

// addressable returns a problem whose A and B tensor maps can describe.
func addressable(random *rand.Rand, d gemm.DType) gemm.Problem {
	p := gemm.New(1+random.IntN(700), 1+random.IntN(700), 1+random.IntN(900))
	p.Batch, p.DType = 1+random.IntN(3), d
	p.Out = d.Outputs()[random.IntN(len(d.Outputs()))]
	p.SetTrans(random.IntN(2) == 0, random.IntN(2) == 0)
	each := 16 / d.Bytes() // elements to which distances are aligned
	if d.Bytes() == 1 {
		p.SetTrans(false, true)
	}
	up := func(n int) int { return (n + each - 1) / each * each }
	if random.IntN(2) == 0 {
		p.N = up(p.N) // the copy engine can store C
	}
	p.LDA, p.LDB = up(p.LD(gemm.A)+random.IntN(9)), up(p.LD(gemm.B)+random.IntN(17))
	if random.IntN(3) == 0 {
		p.LDC = p.LD(gemm.C) + random.IntN(9)
	}
	return p.Canonical()
}

// TestRandomEpilogues: kernels of both families scale, add to C, add a bias and apply activations, with and without
// splits of K.
func TestRandomEpilogues(t *testing.T) {
	x, d := openGPU(t)
	for _, family := range []string{mma.Name, wgmma.Name} {
		if !slices.Contains(d.describe().Kernels, family) {
			continue
		}
		t.Run(family, func(t *testing.T) {
			random := rand.New(rand.NewPCG(12, 1))
			epilogues := slices.DeleteFunc(gemm.Epilogues(),
				func(e gemm.Epilogue) bool {
					return e.Residual || e.Activation.Gated() || e.Scales || e.BiasType != 0
				})
			i := -1
			checkDrawn(t, x, 2*len(epilogues), func() drawn {
				i++
				p := addressable(random, []gemm.DType{gemm.FP16, gemm.BF16}[i%2])
				p.M, p.N, p.K = 1+p.M/3, 1+p.N/3, 1+p.K/3 // the host computes the right values
				p.Epilogue = epilogues[i%len(epilogues)]
				if i%3 > 0 {
					p.Alpha, p.Beta = 0.5, float32(i%3-1)
				}
				c := randomWgmma(t, random)
				if !wgmma.Streams(c) {
					c.SplitK = 1 + i%4/2*(1+i%3)
				}
				if family == mma.Name {
					c = gemm.Config{BlockM: 64, BlockN: 32 << (i % 3), BlockK: 32, NumWarps: 4, NumStages: 3, GroupM: 4,
						SplitK: c.SplitK, Kernel: family}
				}
				return drawn{problem: p.Canonical(), config: c}
			})
		})
	}
}

func randomWgmma(t *testing.T, random *rand.Rand) gemm.Config {
	pick := func(list []int) int { return list[random.IntN(len(list))] }
	space := wgmma.Family{}.Space()
	c := gemm.Config{
		BlockM: pick(space.BlockM), BlockN: 64 * (1 + random.IntN(4)), BlockK: pick(space.BlockK),
		NumWarps: pick(space.NumWarps), NumStages: pick(space.NumStages),
		GroupM: 1 + random.IntN(8), SplitK: 1, Kernel: wgmma.Name,
	}
	if random.IntN(2) == 0 {
		c.BlockM, c.BlockN = c.BlockN, c.BlockM
	}
	var axes []gemm.AxisValue
	if along := random.IntN(3); along > 0 {
		axes = append(axes, gemm.AxisValue{Name: []string{wgmma.AxisCluster, wgmma.AxisClusterN}[along-1], Value: "2"})
	}
	if random.IntN(3) == 0 {
		axes = append(axes, gemm.AxisValue{Name: wgmma.AxisStreamK, Value: "1"})
	}
	c.Axes = must.Get(gemm.NewAxes(axes...))(t)
	return c
}
