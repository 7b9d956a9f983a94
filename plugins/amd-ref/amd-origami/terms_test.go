package amdorigami

import (
	"context"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// Each formula yields the value of its column, from the preceding columns of the row, the parameters and the constants.
func TestFormulas(t *testing.T) {
	ctx := context.Background()
	const kMajor, mMajor, nMajor = gemm.MajorK, gemm.MajorM, gemm.MajorN
	for _, c := range []struct {
		arch string
		opts []string
		p    gemm.Problem
	}{
		{"gfx942", nil, gemm.Problem{
			M: 1000, N: 3000, K: 777, Batch: 1, AMajor: kMajor, BMajor: kMajor, DType: gemm.FP16,
		}},
		{"gfx942", []string{"occ=4"}, gemm.Problem{
			M: 77, N: 640, K: 4096, Batch: 5, AMajor: mMajor, BMajor: nMajor, DType: gemm.FP8,
		}},
		{"gfx942", []string{"grid=k_split_aware"}, gemm.Problem{
			M: 256, N: 256, K: 65536, Batch: 1, AMajor: kMajor, BMajor: nMajor, DType: gemm.BF16,
		}},
		{"gfx950", nil, gemm.Problem{
			M: 128, N: 256, K: 8192, Batch: 1, AMajor: kMajor, BMajor: kMajor, DType: gemm.TF32,
		}},
		{"gfx90a", nil, gemm.Problem{
			M: 8192, N: 8192, K: 100, Batch: 1, AMajor: mMajor, BMajor: kMajor, DType: gemm.INT8,
		}},
		{"gfx942", nil, gemm.Problem{ // exceeds 1024 times the L2's capacity
			M: 60_000_000, N: 512, K: 64, Batch: 1, AMajor: kMajor, BMajor: kMajor, DType: gemm.FP16,
		}},
	} {
		a := open(t, c.arch, c.opts...)
		list := must.Get(a.Candidates(ctx, c.p, arch.Space{
			BlockM: []int{16, 64, 256},
			BlockN: []int{32, 96},
			BlockK: []int{16, 32, 80, 512},
			SplitK: []int{1, 3},
		}))(t)
		configs := list.Configs
		for _, r := range list.Rejected {
			configs = append(configs, r.Config)
		}
		for _, cfg := range configs {
			archtest.Formulas(t, a, c.p, cfg, 1e-12)
		}
	}
}
