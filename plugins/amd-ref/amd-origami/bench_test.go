package amdorigami

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

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

// perSize measures an operation on each size in turn. It takes the median time of each size and reports the median and
// the maximum of these, besides the mean that the framework prints.
func perSize(b *testing.B, sizes []gemm.Problem, do func(gemm.Problem) error) {
	b.Helper()
	const readings = 4096
	times := make([][]time.Duration, len(sizes))
	for i := range times {
		times[i] = make([]time.Duration, 0, readings)
		if err := do(sizes[i]); err != nil { // allocates the buffers that later calls reuse
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, p := range sizes {
			start := time.Now()
			if err := do(p); err != nil {
				b.Fatal(err)
			}
			if d := time.Since(start); len(times[i]) < readings {
				times[i] = append(times[i], d)
			}
		}
	}
	medians := make([]float64, len(sizes))
	for i := range times {
		slices.Sort(times[i])
		medians[i] = float64(times[i][len(times[i])/2].Nanoseconds())
	}
	slices.Sort(medians)
	b.ReportMetric(medians[len(medians)/2], "ns/median-size")
	b.ReportMetric(medians[len(medians)-1], "ns/worst-size")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(sizes)), "ns/problem")
}

// BenchmarkRank150 ranks all 150 candidates and maps the pick, which is what tritonBLAS asks of AMD's library.
func BenchmarkRank150(b *testing.B) {
	a := open(b, "gfx942")
	ctx := context.Background()
	s := selector.New(a, arch.Space{})
	s.Map = 1
	var result selector.Result
	perSize(b, tritonBLASSizes(), func(p gemm.Problem) error { return s.Rank(ctx, p, 0, &result) })
}

// BenchmarkSelect picks one candidate, without its mapping.
func BenchmarkSelect(b *testing.B) {
	a := open(b, "gfx942")
	ctx := context.Background()
	s := selector.New(a, arch.Space{})
	var result selector.Result
	perSize(b, tritonBLASSizes(), func(p gemm.Problem) error { return s.Select(ctx, p, &result) })
}

// BenchmarkEstimate150 estimates all 150 candidates, without filter, sort and mapping.
func BenchmarkEstimate150(b *testing.B) {
	a := open(b, "gfx942")
	ctx := context.Background()
	configs := tritonBLASList(b, a)
	dst := make([]arch.Estimate, len(configs))
	perSize(b, tritonBLASSizes(), func(p gemm.Problem) error { return a.Estimate(ctx, dst, p, configs) })
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

// BenchmarkMapping maps the pick of each size.
func BenchmarkMapping(b *testing.B) {
	for _, mapping := range []string{"jan", "feb"} {
		b.Run(mapping, func(b *testing.B) {
			a := open(b, "gfx942", "mapping="+mapping)
			ctx := context.Background()
			picks := map[gemm.Problem]gemm.Config{}
			s := selector.New(a, arch.Space{})
			for _, p := range tritonBLASSizes() {
				var result selector.Result
				if err := s.Select(ctx, p, &result); err != nil {
					b.Fatal(err)
				}
				picks[p] = result.Entries[0].Config
			}
			perSize(b, tritonBLASSizes(), func(p gemm.Problem) error {
				_, err := a.Mapping(ctx, p, picks[p])
				return err
			})
		})
	}
}

// BenchmarkDivideAdd measures a chain of 1,000 divisions and additions, to relate figures from different machines.
func BenchmarkDivideAdd(b *testing.B) {
	x := 1.0
	for b.Loop() {
		for range 1000 {
			x = x/1.0000001 + 1e-9
		}
	}
	if x < 0 {
		b.Fatal(fmt.Sprint(x))
	}
}
