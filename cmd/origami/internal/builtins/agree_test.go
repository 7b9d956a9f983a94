package builtins

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// mostApart is how far the predictions of two families of a device may be apart.
const mostApart = 1.3

// slower are families that recorded times, or the instruction set, show to be slower than the library: only how much
// faster they are is tested.
var slower = map[string]string{
	"sm90 mma":  "mma.sync reaches 0.62 of a Hopper SM's rate (recorded on an H200)",
	"sm100 mma": "mma.sync reaches a quarter of a B200's matrix units",
	"sm103 mma": "the same",
	// vLLM's layer of experts reaches 0.4 of a B200's peak with 128x128x64 (published times).
	"sm100 triton":            "operands come through the load path of the SM, which feeds no more of the matrix units",
	"sm103 triton":            "the same",
	"sm100 triton_persistent": "the same",
	"sm103 triton_persistent": "the same",
	// The fastest of its kernels take up to 1.23 times as long as torch.matmul (recorded on an H100).
	"sm90 triton_persistent":  "one CTA per SM computes tile after tile, and nothing hides their starts",
	"sm120 triton_persistent": "the same, with 99 KiB of shared memory per CTA",
	"sm121 triton_persistent": "the same, with 99 KiB of shared memory per CTA",
}

// The kernel families of a device and the library predict times that fit together. Where no times of a family were
// recorded or published, none is ahead of the library.
func TestFamiliesAgree(t *testing.T) {
	ctx := t.Context()
	conn := must.Get(Connect(ctx, config.Settings{InProcess: true}, nil))(t)
	sizes := [][3]int{
		{1, 4096, 4096}, {16, 14336, 4096}, {64, 6144, 2048}, {256, 4096, 4096}, {512, 14336, 4096}, {1024, 4096, 14336},
		{2048, 6144, 2048}, {4096, 4096, 4096}, {8192, 4096, 4096}, {256, 256, 256}, {1024, 1024, 1024}, {8192, 8192, 8192},
	}
	problems := func(sizes [][3]int, types ...gemm.DType) (grid []gemm.Problem) {
		for _, t := range types {
			for _, size := range sizes {
				p := gemm.New(size[0], size[1], size[2])
				p.DType = t
				p.SetTrans(false, true)
				grid = append(grid, p)
			}
		}
		return grid
	}
	grid := problems(sizes, gemm.FP16)
	// AMD's families predict one library, at sizes that fill no tile and at long K too.
	amd := problems(append(sizes, [][3]int{
		{1, 8192, 8192}, {7, 1000, 4104}, {333, 5000, 1032}, {4096, 32768, 128}, {1023, 1025, 2056}, {512, 512, 65536},
		{16, 16384, 16384},
	}...), gemm.FP16)
	eight := append(amd, problems(sizes, gemm.FP8)...)
	manifests := must.Get(conn.Manifests(ctx))(t)
	compared := 0
	for _, m := range manifests {
		for _, a := range m.Archs {
			for _, d := range a.Devices {
				open := func(model string) (arch.Architecture, error) {
					return conn.Open(ctx, arch.OpenRequest{Arch: a.ID, Device: d.ID, Model: model})
				}
				refined, err := open(map[string]string{"nvidia": "pipelined", "amd-ref": "tensile"}[m.Name])
				if err != nil {
					continue // its only family is the library
				}
				// Its terms, which own families were chosen beside; published times near a problem correct the library alone.
				library := must.Get(conn.Open(ctx, arch.OpenRequest{Arch: a.ID, Device: d.ID, Model: "library",
					Options: map[string]string{"nearby": "none"}}))(t)
				grid := grid
				switch {
				case a.ID == "gfx942" || a.ID == "gfx950":
					grid = eight
				case m.Name == "amd-ref":
					grid = amd
				}
				of := times(t, library, "library", grid)
				for _, family := range refined.Describe().Kernels {
					low := 1 / mostApart
					if m.Name == "nvidia" && a.ID != "sm90" && !slices.Contains(data.AheadOfLibrary, d.ID) {
						low = 0.95
					}
					for i, own := range times(t, refined, family, grid) {
						compared++
						_, exempt := slower[a.ID+" "+family]
						if ratio := own / of[i]; ratio < low || ratio > mostApart && !exempt {
							t.Errorf("%s@%s %s %s: %.2f of the library's time", a.ID, d.ID, family, &grid[i], ratio)
						}
					}
				}
			}
		}
	}
	must.That(t, compared >= 500, "%d compared", compared)
}

// times returns the time of the fastest kernel of a family for each problem, in the timing model.
func times(t *testing.T, a arch.Architecture, family string, grid []gemm.Problem) (seconds []float64) {
	t.Helper()
	r := must.Get(selector.Rank(t.Context(), timing.In(a, timing.Model),
		selector.Request{Problems: grid, Space: arch.Space{Kernel: family}, Top: 1}))(t)
	for i := range r {
		if r[i].Err != nil {
			t.Fatal(r[i].Err)
		}
		seconds = append(seconds, float64(r[i].Entries[0].Estimate.Cycles.At(a.Describe().Clock)))
	}
	return seconds
}

// A card with the same die and more of something never takes longer by more than 1 %, in any family that a user can
// configure, by the terms alone: one of them may have times of its own. The library has a test of its own. Cards of
// other generations than Hopper with another bandwidth of DRAM are left out: what lines take to leave their L2 was not
// measured, and up to 5 % of a small time depends on it.
func TestBetterCardsAreNeverSlowerInAnyFamily(t *testing.T) {
	conn := must.Get(Connect(t.Context(), config.Settings{InProcess: true}, nil))(t)
	rng, grid := rand.New(rand.NewPCG(7, 8)), []gemm.Problem{}
	for range 40 {
		size := func(most float64) int { return 8 * int(math.Exp(rng.Float64()*math.Log(most))) }
		p := gemm.New(size(1024), size(2048), size(1024))
		p.DType = gemm.BF16
		p.SetTrans(false, true)
		grid = append(grid, p)
	}
	for _, pair := range [][2]string{
		{"sm90@h200", "sm90@h100"}, {"sm90@gh200", "sm90@h100"}, {"sm90@h20-3e", "sm90@h20"}, {"sm100@gb200", "sm100@b200"},
		{"sm80@a100", "sm80@a800"}, {"sm89@rtx4090", "sm89@rtx4090d"},
	} {
		open := func(name string) arch.Architecture {
			id, device, _ := strings.Cut(name, "@")
			a := must.Get(conn.Open(t.Context(), arch.OpenRequest{Arch: id, Device: device, Model: "pipelined",
				Options: map[string]string{residual.Nearby: residual.None}}))(t)
			return a
		}
		better, other := open(pair[0]), open(pair[1])
		for _, family := range better.Describe().Kernels {
			fast, slow := times(t, better, family, grid), times(t, other, family, grid)
			for i := range grid {
				if fast[i] > 1.01*slow[i] {
					t.Errorf("%s takes %.3f of the time of %s, %s of %s", pair[0], fast[i]/slow[i], pair[1], family, &grid[i])
				}
			}
		}
	}
}
