package tritonblas_test

import (
	"context"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// BenchmarkSelect selects from 122 candidates, in both phases, over the 23 sizes of the golden files. One operation is
// one problem.
func BenchmarkSelect(b *testing.B) {
	ctx := context.Background()
	s := selector.New(nvtest.Open(b, arch.OpenRequest{Model: "reference", Arch: "sm89"}), arch.Space{})
	var problems []gemm.Problem
	for _, row := range csvtest.Named(b, "testdata/golden/"+"sm89_selected.csv") {
		problems = append(problems, problem(b, row))
	}
	var result selector.Result
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		err := s.Select(ctx, problems[i%len(problems)], &result)
		must.Do(b, err)
	}
}

// BenchmarkDivideAdd runs a chain of a thousand divisions and additions, to relate figures from different machines.
func BenchmarkDivideAdd(b *testing.B) {
	x := 1.0
	for b.Loop() {
		for range 1000 {
			x = x/1.0000001 + 1e-9
		}
	}
	must.Need(b, x != 0, "unreachable")
}
