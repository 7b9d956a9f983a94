package declare_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/declare"
)

// thousand returns the model with 1,024 candidates.
func thousand(t testing.TB) (arch.Architecture, []gemm.Config) {
	m := full()
	sizes := []int{16, 32, 48, 64, 80, 96, 112, 128}
	m.Kernels = []declare.Kernel{{
		Name: "tiled", Rules: m.Kernels[0].Rules,
		Space: arch.Space{
			BlockM: sizes, BlockN: sizes, BlockK: []int{16, 32},
			NumWarps: []int{4, 8}, NumStages: []int{1, 2}, SplitK: []int{1, 2},
		},
	}}
	a := open(t, arch.OpenRequest{}, m)
	list, err := a.Candidates(t.Context(), gemm.New(1, 1, 1), arch.Space{})
	if err != nil || len(list.Configs) != 1024 {
		t.Fatal(len(list.Configs), err)
	}
	return a, list.Configs
}

func TestEstimateAllocatesNothing(t *testing.T) {
	a, configs := thousand(t)
	est := make([]arch.Estimate, len(configs))
	n := testing.AllocsPerRun(20, func() {
		must.Do(t, a.Estimate(t.Context(), est, gemm.New(4096, 4096, 4096), configs))
	})
	must.That(t, n <= 1, "%v allocations for %d configurations", n, len(configs))
}
