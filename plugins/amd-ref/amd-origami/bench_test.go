package amdorigami

import (
	"context"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// tritonBLASSizes are the 23 problem sizes in the report on tritonBLAS's NVIDIA port, with the layout that tritonBLAS
// uses on AMD.
func tritonBLASSizes() []gemm.Problem {
	var sizes []gemm.Problem
	for _, s := range [][3]int{
		{64, 64, 64}, {128, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048},
		{128, 4096, 4096}, {128, 4096, 14336}, {128, 14336, 4096}, {64, 16384, 4096}, {128, 8192, 4096},
		{8192, 128, 4096}, {16384, 64, 4096}, {128, 8192, 8192}, {128, 8192, 28672}, {128, 28672, 8192},
		{4096, 4096, 4096}, {4096, 4096, 14336}, {4096, 14336, 4096},
		{8192, 8192, 8192}, {8192, 14336, 4096}, {8192, 28672, 8192}, {8192, 53248, 16384},
	} {
		p := gemm.New(s[0], s[1], s[2])
		p.SetTrans(false, true)
		sizes = append(sizes, p)
	}
	return sizes
}

// BenchmarkRank150 ranks all 150 candidates of a size and maps the pick, as tritonBLAS asks of AMD's library.
func BenchmarkRank150(b *testing.B) {
	a := open(b, "gfx942")
	ctx := context.Background()
	s := selector.New(a, arch.Space{})
	s.Map = 1
	var result selector.Result
	sizes := tritonBLASSizes()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		err := s.Rank(ctx, sizes[i%len(sizes)], 0, &result)
		must.Do(b, err)
	}
}

// tritonBLASList returns the 150 fp16 configurations in order, including those that do not fit.
func tritonBLASList(t testing.TB, a *architecture) []gemm.Config {
	t.Helper()
	list := must.Get(a.Candidates(context.Background(), tritonBLASSizes()[0], arch.Space{}))(t)
	configs := slices.Clone(list.Configs)
	for _, r := range list.Rejected {
		configs = slices.Insert(configs, r.Position, r.Config)
	}
	return configs
}
