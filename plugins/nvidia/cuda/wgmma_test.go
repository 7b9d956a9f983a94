//go:build cuda

package cuda

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/wgmma"
)

// TestRandomWgmma: kernels of the family compute random problems that tensor maps can describe: with ragged sizes, gaps
// between rows, batches, every layout and C of little alignment.
func TestRandomWgmma(t *testing.T) {
	x, d := openGPU(t)
	if !slices.Contains(d.describe().Kernels, wgmma.Name) {
		t.Skip("the device has no such kernels")
	}
	for _, dtype := range []gemm.DType{gemm.FP16, gemm.BF16} {
		t.Run(dtype.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(11, uint64(dtype)))
			built := 0
			for range 300 {
				if _, ok := checked(t, x, addressable(random, dtype), randomWgmma(t, random)); ok {
					built++
				}
			}
			if built < 75 {
				t.Errorf("only %d configurations could be built", built)
			}
		})
	}
}

// addressable returns a problem whose A and B tensor maps can describe.
func addressable(random *rand.Rand, d gemm.DType) gemm.Problem {
	p := gemm.New(1+random.IntN(700), 1+random.IntN(700), 1+random.IntN(900))
	p.Batch, p.DType = 1+random.IntN(3), d
	p.Out = d.Outputs()[random.IntN(len(d.Outputs()))]
	p.SetTrans(random.IntN(2) == 0, random.IntN(2) == 0)
	up := func(n int) int { return (n + 7) / 8 * 8 }
	if random.IntN(2) == 0 {
		p.N = up(p.N) // the copy engine can store C
	}
	p.LDA, p.LDB = up(p.LD(gemm.A)+random.IntN(9)), up(p.LD(gemm.B)+random.IntN(17))
	if random.IntN(3) == 0 {
		p.LDC = p.LD(gemm.C) + random.IntN(9)
	}
	return p.Canonical()
}

func randomWgmma(t *testing.T, random *rand.Rand) gemm.Config {
	pick := func(list []int) int { return list[random.IntN(len(list))] }
	space := wgmma.Family{}.Space()
	c := gemm.Config{
		BlockM: pick(space.BlockM), BlockN: pick(space.BlockN), BlockK: pick(space.BlockK),
		NumWarps: pick(space.NumWarps), NumStages: pick(space.NumStages),
		GroupM: 1 + random.IntN(8), SplitK: 1, Kernel: wgmma.Name,
	}
	if random.IntN(2) == 0 {
		axes, err := gemm.NewAxes(gemm.AxisValue{Name: "cluster", Value: "2"})
		if err != nil {
			t.Fatal(err)
		}
		c.Axes = axes
	}
	return c
}
