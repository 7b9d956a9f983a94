package pipelined_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// BenchmarkRefinedSelect is a select with the default model, both phases, per family and per 1,000 candidates.
func BenchmarkRefinedSelect(b *testing.B) {
	for _, family := range []string{"triton", "mma", "wgmma"} {
		b.Run(family, func(b *testing.B) {
			a := nvtest.Open(b, arch.OpenRequest{Arch: "sm90", Device: "h200"})
			s := selector.New(a, arch.Space{Kernel: family})
			problems := []gemm.Problem{gemm.New(4096, 4096, 4096), gemm.New(100, 3000, 777), gemm.New(16, 4096, 11008)}
			var result selector.Result
			if err := s.Select(b.Context(), problems[0], &result); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				err := s.Select(b.Context(), problems[i%len(problems)], &result)
				must.Do(b, err)
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(result.Feasible)
			b.ReportMetric(each*1000, "ns/1000candidates")
		})
	}
}
