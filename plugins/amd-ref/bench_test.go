package amdref

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
)

// tritonBLASSizes are the 23 sizes that tritonBLAS's NVIDIA port report evaluates, with the layout that tritonBLAS uses on AMD.
func tritonBLASSizes() []gemm.Problem {
	var sizes []gemm.Problem
	for _, s := range [][3]int{
		{64, 64, 64}, {128, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048},
		{128, 4096, 4096}, {128, 4096, 14336}, {128, 14336, 4096}, {64, 16384, 4096}, {128, 8192, 4096}, {8192, 128, 4096},
		{16384, 64, 4096}, {128, 8192, 8192}, {128, 8192, 28672}, {128, 28672, 8192}, {4096, 4096, 4096}, {4096, 4096, 14336},
		{4096, 14336, 4096}, {8192, 8192, 8192}, {8192, 14336, 4096}, {8192, 28672, 8192}, {8192, 53248, 16384},
	} {
		p := gemm.New(s[0], s[1], s[2])
		p.SetTrans(false, true)
		sizes = append(sizes, p)
	}
	return sizes
}

// perSize measures one operation over all sizes in turn and reports, besides the mean that the framework prints, the median
// of the sizes' own times and the worst one.
func perSize(b *testing.B, sizes []gemm.Problem, do func(gemm.Problem) error) {
	b.Helper()
	const batch = 20 // calls per reading of the clock
	fastest := make([]time.Duration, len(sizes))
	b.ReportAllocs()
	for b.Loop() {
		for i, p := range sizes {
			start := time.Now()
			for range batch {
				if err := do(p); err != nil {
					b.Fatal(err)
				}
			}
			if d := time.Since(start); fastest[i] == 0 || d < fastest[i] {
				fastest[i] = d
			}
		}
	}
	slices.Sort(fastest)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(sizes)*batch), "ns/problem")
	b.ReportMetric(float64(fastest[len(fastest)/2].Nanoseconds())/batch, "ns/median-size")
	b.ReportMetric(float64(fastest[len(fastest)-1].Nanoseconds())/batch, "ns/worst-size")
}

// BenchmarkRank150 ranks all 150 candidates and maps the winner: what tritonBLAS asks of AMD's library per problem.
func BenchmarkRank150(b *testing.B) {
	a := open(b, "gfx942")
	ctx := context.Background()
	s := selector.New(a, arch.Space{})
	s.Map = 1
	var result selector.Result
	perSize(b, tritonBLASSizes(), func(p gemm.Problem) error { return s.Rank(ctx, p, 0, &result) })
}

// BenchmarkSelect is the same for the winner alone.
func BenchmarkSelect(b *testing.B) {
	a := open(b, "gfx942")
	ctx := context.Background()
	s := selector.New(a, arch.Space{})
	var result selector.Result
	perSize(b, tritonBLASSizes(), func(p gemm.Problem) error { return s.Select(ctx, p, &result) })
}

// BenchmarkEstimate150 scores the whole list, without filter, sort and mapping.
func BenchmarkEstimate150(b *testing.B) {
	a := open(b, "gfx942")
	ctx := context.Background()
	configs := tritonBLASList(b, a)
	dst := make([]arch.Estimate, len(configs))
	perSize(b, tritonBLASSizes(), func(p gemm.Problem) error { return a.Estimate(ctx, dst, p, configs) })
}

// tritonBLASList returns the 150 fp16 candidates, also those that do not fit, in their order.
func tritonBLASList(t testing.TB, a *architecture) []gemm.Config {
	t.Helper()
	list, err := a.Candidates(context.Background(), tritonBLASSizes()[0], arch.Space{})
	if err != nil {
		t.Fatal(err)
	}
	configs := slices.Clone(list.Configs)
	for _, r := range list.Rejected {
		configs = slices.Insert(configs, r.Position, r.Config)
	}
	return configs
}

// BenchmarkMapping maps the winner of each size.
func BenchmarkMapping(b *testing.B) {
	for _, mapping := range []string{"jan", "feb"} {
		b.Run(mapping, func(b *testing.B) {
			a := open(b, "gfx942", "mapping="+mapping)
			ctx := context.Background()
			winners := map[gemm.Problem]gemm.Config{}
			s := selector.New(a, arch.Space{})
			for _, p := range tritonBLASSizes() {
				var result selector.Result
				if err := s.Select(ctx, p, &result); err != nil {
					b.Fatal(err)
				}
				winners[p] = result.Entries[0].Config
			}
			perSize(b, tritonBLASSizes(), func(p gemm.Problem) error {
				_, err := a.Mapping(ctx, p, winners[p])
				return err
			})
		})
	}
}

// BenchmarkDivideAdd is the machine's own speed, to relate figures from different machines: a chain of 1,000 divisions and
// additions.
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
