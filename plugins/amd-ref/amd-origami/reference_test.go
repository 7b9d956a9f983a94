package amdorigami

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/amd-ref/amd-origami/terms"
)

// The matrix instructions are those that tritonBLAS uses, if it specifies them. The element types are those that the
// hardware or the library supports.
func TestAtoms(t *testing.T) {
	for id, want := range map[string]string{
		"gfx90a": "fp16 16x16x16/32 bf16 16x16x16/16 fp32 16x16x4/32 tf32 16x16x16/48 int8 16x16x16/32",
		"gfx942": "fp16 16x16x16/16 bf16 16x16x16/16 fp32 16x16x4/32" +
			" tf32 16x16x32/16 fp8 16x16x32/16 int8 16x16x32/16",
		"gfx950": "fp16 16x16x32/16 bf16 16x16x32/16 fp32 16x16x4/32" +
			" tf32 16x16x32/48 fp8 16x16x128/32 int8 16x16x32/16",
	} {
		var got []string
		for _, a := range open(t, id).Describe().Atoms {
			got = append(got, fmt.Sprintf("%s %dx%dx%d/%v", a.DType, a.M, a.N, a.K, float64(a.Latency)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", id, strings.Join(got, " "), want)
		}
	}
}

func TestCandidates(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		arch    string
		dtype   gemm.DType
		configs int
		fit     int
	}{
		{"gfx942", gemm.FP16, 150, 104},
		{"gfx950", gemm.FP16, 150, 135},
		{"gfx90a", gemm.BF16, 150, 104},
		{"gfx942", gemm.INT8, 216, 158},
		{"gfx942", gemm.FP8, 216, 158},
		{"gfx950", gemm.FP8, 96, 93},
		{"gfx90a", gemm.INT8, 150, 125},
	} {
		p := gemm.New(512, 512, 512)
		p.DType = c.dtype
		list := must.Get(open(t, c.arch).Candidates(ctx, p, arch.Space{}))(t)
		if len(list.Configs)+len(list.Rejected) != c.configs || len(list.Configs) != c.fit {
			t.Errorf("%s %s: %d of %d candidates fit, want %d of %d", c.arch, c.dtype, len(list.Configs),
				len(list.Configs)+len(list.Rejected), c.fit, c.configs)
		}
		seen := map[gemm.Config]bool{}
		for _, cfg := range list.Configs {
			must.That(t, !seen[cfg], "%s is listed twice", cfg)
			seen[cfg] = true
		}
	}

	a := open(t, "gfx942")
	list := must.Get(a.Candidates(ctx, gemm.New(512, 512, 512), arch.Space{
		BlockM:    []int{64, 256},
		BlockN:    []int{256},
		BlockK:    []int{64, 128},
		NumWarps:  []int{4, 8},
		NumStages: []int{1},
		SplitK:    []int{1, 4},
	}))(t)
	must.That(t, len(list.Configs) == 8 && list.Configs[1].SplitK == 4 && list.Configs[2].NumWarps == 8 &&
		list.Configs[0].NumStages == 1, "axes of the space are not used: %v", list.Configs)
	if r := list.Rejected[0]; len(list.Rejected) != 8 || r.Position != 4 || r.Reason != arch.ReasonSharedMemory ||
		r.Detail != "needs 81920 B of LDS for one tile of A and B, 65536 B available" {
		t.Errorf("first of %d rejections: %+v", len(list.Rejected), r)
	}
}

func TestRefusals(t *testing.T) {
	ctx := context.Background()
	fp8 := gemm.New(64, 64, 64)
	fp8.DType = gemm.FP8
	_, err := open(t, "gfx90a").Candidates(ctx, fp8, arch.Space{})
	wantError(t, err, "gfx90a has no matrix instructions for fp8; use one of fp16, bf16, fp32, tf32, int8")
	err = open(t, "gfx90a").Estimate(ctx, nil, fp8, nil)
	wantError(t, err, "gfx90a has no matrix instructions for fp8; use one of fp16, bf16, fp32, tf32, int8")
	_, err = open(t, "gfx942", "mi=32x32x8").Candidates(ctx, fp8, arch.Space{})
	wantError(t, err, "option mi: gfx942 has no 32x32x8 matrix instruction for fp8; use one of 16x16x32, 32x32x16")
	fp4 := gemm.New(64, 64, 64)
	fp4.DType = gemm.FP4
	_, err = open(t, "gfx942").Candidates(ctx, fp4, arch.Space{})
	wantError(t, err, "gfx942 has no matrix instructions for fp4; use one of fp16, bf16, fp32, tf32, fp8, int8")
	_, err = open(t, "gfx942", "mi=32x32x8").Candidates(ctx, fp4, arch.Space{})
	wantError(t, err, "gfx942 has no matrix instructions for fp4; use one of fp16, bf16")

	a := open(t, "gfx942")
	p := gemm.New(64, 64, 64)
	_, err = a.Candidates(ctx, p, arch.Space{Kernel: "cutlass"})
	wantError(t, err, `the amd-origami model of gfx942@mi300x does not predict the kernel family "cutlass"; use triton`)
	_, err = a.Candidates(ctx, p, arch.Space{BlockK: []int{64, 0}})
	wantError(t, err,
		"config 16x16x0 w8 s2 has a number outside 1 to 4096; give whole numbers in that range")
	good := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, SplitK: 1, NumWarps: 8, NumStages: 2, Kernel: "triton"}
	for _, bad := range []func(c *gemm.Config){
		func(c *gemm.Config) { c.BlockM = 0 },
		func(c *gemm.Config) { c.BlockN = -64 },
		func(c *gemm.Config) { c.BlockK = 4097 },
		func(c *gemm.Config) { c.SplitK = -1 },
		func(c *gemm.Config) { c.SplitK = 1 << 20 },
		func(c *gemm.Config) { c.Kernel = "cutlass" },
	} {
		c := good
		bad(&c)
		err := a.Estimate(ctx, make([]arch.Estimate, 1), p, []gemm.Config{c})
		must.That(t, diag.KindOf(err) == diag.Input, "Estimate of %s: %v", c, err)
		err = a.Terms(ctx, make([]float64, len(terms.Terms)), p, []gemm.Config{c})
		must.That(t, diag.KindOf(err) == diag.Input, "Terms of %s: %v", c, err)
		_, err = a.Mapping(ctx, p, c)
		must.That(t, diag.KindOf(err) == diag.Input, "Mapping of %s: %v", c, err)
	}
	err = a.Estimate(ctx, make([]arch.Estimate, 1), gemm.Problem{}, []gemm.Config{good})
	must.That(t, diag.KindOf(err) == diag.Input, "Estimate of an empty problem: %v", err)
	_, err = a.Candidates(ctx, gemm.Problem{}, arch.Space{})
	must.That(t, diag.KindOf(err) == diag.Input, "Candidates of an empty problem: %v", err)
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	must.That(t, err != nil && err.Error() == want && diag.KindOf(err) == diag.Input, "error %v, want %s", err, want)
}
