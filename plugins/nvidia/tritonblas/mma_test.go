package tritonblas_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
)

// The candidates of mma are the kernels that gemmgen builds for the device, each once. The others have gemmgen's
// reason. Estimate rejects the same configurations as the list.
func TestMMACandidatesAreWhatGemmgenBuilds(t *testing.T) {
	ctx := context.Background()
	all := must.Get(arch.Space{}.Enumerate(mma.Family{}.Space()))(t)
	for _, request := range nvtest.Devices(t, "reference", "mma") {
		a := nvtest.Open(t, request)
		id := a.Describe().ID()
		list := nvtest.Candidates(t, a, arch.Space{Kernel: "mma"})
		must.Hold(t, len(list.Configs) >= 500 && len(list.Configs)+len(list.Rejected) == len(all),
			"%s: %d candidates and %d rejected of %d", id, len(list.Configs), len(list.Rejected), len(all))
		check := func(c gemm.Config) (arch.Reason, string) {
			d := a.Describe()
			limits := gemmgen.Limits{
				RegistersPerThread: d.RegistersPerThread, RegisterFile: d.RegisterFile, SharedMemory: d.SharedMemory,
			}
			_, reason, detail := mma.Family{}.Program(gemmgen.NewCall(gemm.New(64, 64, 64)), gemm.FP16, c, limits)
			return reason, detail
		}
		seen := map[gemm.Config]bool{}
		for _, c := range list.Configs {
			reason, detail := check(c)
			must.That(t, reason == "" && !seen[c] && c.Kernel == "mma", "%s %s: %s: %s", id, c, reason, detail)
			seen[c] = true
		}
		var rejected []gemm.Config
		for _, r := range list.Rejected {
			reason, detail := check(r.Config)
			must.That(t, reason != "" && reason == r.Reason && detail == r.Detail && detail != "" && !seen[r.Config],
				"%s %s: rejected for %q (%q), gemmgen says %q (%q)", id, r.Config, r.Reason, r.Detail, reason, detail)
			seen[r.Config] = true
			rejected = append(rejected, r.Config)
		}
		estimates := make([]arch.Estimate, len(rejected))
		must.Do(t, a.Estimate(ctx, estimates, gemm.New(4096, 4096, 4096), rejected))
		for i, e := range estimates {
			if e.Reject != list.Rejected[i].Reason || e.Cycles != 0 {
				t.Errorf("%s %s: estimate %+v, rejected for %s", id, rejected[i], e, list.Rejected[i].Reason)
			}
		}
	}
}

// A tile takes as long as in triton, for any warps and stages, and Terms gives the same total.
func TestMMAKnowsTilesOnly(t *testing.T) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(7, 8))
	a := nvtest.Open(t, arch.OpenRequest{Model: "reference", Arch: "sm90", Device: "h200"})
	list := nvtest.Candidates(t, a, arch.Space{Kernel: "mma"})
	triton := make([]gemm.Config, len(list.Configs))
	for i, c := range list.Configs {
		triton[i] = gemm.Config{
			BlockM: c.BlockM, BlockN: c.BlockN, BlockK: c.BlockK,
			NumWarps: 8, NumStages: 2, SplitK: 1, Kernel: "triton",
		}
	}
	got, want := make([]arch.Estimate, len(triton)), make([]arch.Estimate, len(triton))
	width := len(a.Describe().Terms)
	terms := make([]float64, len(triton)*width)
	for range 50 {
		p := nvtest.RandomProblem(rng)
		must.Do(t, a.Estimate(ctx, got, p, list.Configs))
		must.Do(t, a.Estimate(ctx, want, p, triton))
		must.Do(t, a.Terms(ctx, terms, p, list.Configs))
		for i := range got {
			total := terms[i*width+nvtest.TotalColumn(a)]
			if got[i] != want[i] || math.Float64bits(total) != math.Float64bits(float64(got[i].Cycles)) {
				t.Fatalf("%s %s: %+v, triton %+v, terms %v", p, list.Configs[i], got[i], want[i], total)
			}
		}
	}
}

// Of equal tiles the pick has the most suitable warps and stages: the deepest pipeline of at most four that fits.
func TestMMAPicksSensibleLaunches(t *testing.T) {
	for _, tc := range []struct{ arch, tile, want string }{
		{"sm90", "128x256x64", "w8 s4"},
		{"sm80", "128x256x64", "w8 s3"}, // 48 KiB a stage, 163 KiB
		{"sm89", "128x256x64", "w8 s2"}, // 99 KiB
		{"sm89", "128x128x32", "w8 s4"},
		{"sm89", "128x64x32", "w8 s4"}, // 32x32 parts: as many operations per byte as an SM does
		{"sm89", "64x64x32", "w4 s4"},
		{"sm90", "16x16x64", "w4 s4"},
		{"sm86", "32x256x64", "w8 s2"},
		{"sm86", "16x256x16", "w4 s4"},
	} {
		c := must.Get(gemm.ParseConfig(tc.tile, gemm.Config{}))(t)
		a := nvtest.Open(t, arch.OpenRequest{Model: "reference", Arch: tc.arch})
		var result selector.Result
		s := selector.New(a, arch.Space{
			Kernel: "mma", BlockM: []int{c.BlockM}, BlockN: []int{c.BlockN}, BlockK: []int{c.BlockK},
		})
		if err := s.Select(context.Background(), gemm.New(4096, 4096, 4096), &result); err != nil {
			t.Errorf("%s %s: %v", tc.arch, tc.tile, err)
			continue
		}
		got := result.Entries[0].Config
		must.That(t, strings.HasPrefix(got.String(), tc.tile+" "+tc.want+" ") && got.GroupM != 0,
			"%s %s: %s, want %s", tc.arch, tc.tile, got, tc.want)
	}
}
