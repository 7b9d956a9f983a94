package example_test

import (
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/sdk/example"
)

// The expected values are computed by hand from the formulas of the model.
func TestRoofline(t *testing.T) {
	provider, err := example.Provider()
	if err != nil {
		t.Fatal(err)
	}
	a, err := provider.Open(t.Context(), arch.OpenRequest{Arch: "example", Device: "abstract"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		p    gemm.Problem
		c    gemm.Config
		want map[string]float64
	}{
		{
			gemm.New(4096, 4096, 4096),
			gemm.Config{BlockM: 128, BlockN: 64, BlockK: 32, NumWarps: 1, NumStages: 1, SplitK: 1},
			map[string]float64{
				"waves":   32 * 64 / 16,
				"compute": 128 * 64 * 32 / 512,
				"memory":  16 * (128 + 64) * 32 * 2 / 256,
				"total":   128 * 128 * 768,
			},
		},
		// One tile on one unit, with the full memory bandwidth. The partial last K step counts as a whole one.
		{
			gemm.New(1, 1, 65),
			gemm.Config{BlockM: 128, BlockN: 128, BlockK: 64, NumWarps: 1, NumStages: 1, SplitK: 1},
			map[string]float64{"waves": 1.0 / 16, "compute": 2048, "memory": 128, "total": 2 * 2048},
		},
	} {
		terms := a.Describe().Terms
		row := make([]float64, len(terms))
		if err := a.Terms(t.Context(), row, test.p, []gemm.Config{test.c}); err != nil {
			t.Fatal(err)
		}
		for name, want := range test.want {
			i := slices.IndexFunc(terms, func(term arch.Term) bool { return term.Name == name })
			if i < 0 || row[i] != want {
				t.Errorf("%s of %s for %s: %v, want %v", name, test.c, test.p, row, want)
			}
		}
	}
}
