package arch

import (
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestEnumerate(t *testing.T) {
	defaults := Space{Kernel: "triton", BlockM: []int{16, 32}, BlockN: []int{64}, BlockK: []int{16, 32},
		NumWarps: []int{4}, NumStages: []int{2}, SplitK: []int{1}}
	got := must.Get(Space{NumWarps: []int{4, 8}}.Enumerate(defaults))(t)
	var want []gemm.Config
	for _, m := range []int{16, 32} {
		for _, k := range []int{16, 32} {
			for _, warps := range []int{4, 8} {
				want = append(want, gemm.Config{BlockM: m, BlockN: 64, BlockK: k, NumWarps: warps, NumStages: 2, SplitK: 1,
					Kernel: "triton"})
			}
		}
	}
	must.Need(t, len(got) == len(want), "%d configurations, want %d", len(got), len(want))
	for i := range want {
		must.Equal(t, got[i], want[i], i)
	}

	long := make([]int, 2000)
	for i := range long {
		long[i] = 1 + i
	}
	for name, s := range map[string]Space{
		"a block of 0":           {BlockK: []int{0}},
		"a negative split":       {SplitK: []int{-1}},
		"a block beyond 4096":    {BlockM: []int{4097}},
		"four million":           {BlockM: long, BlockN: long},
		"a product beyond int64": {BlockM: long, BlockN: long, BlockK: long, NumWarps: long, NumStages: long, SplitK: long},
	} {
		configs, err := s.Enumerate(defaults)
		must.That(t, diag.KindOf(err) == diag.Input, "%s: %d configurations, %v", name, len(configs), err)
	}
}

func TestBandwidth(t *testing.T) {
	linear := Bandwidth{Peak: 1896, Units: 128, Linear: true}
	must.Equal(t, linear.At(64), 948)
	saturating := Bandwidth{Peak: 1000, Units: 304, C1: 0.015}
	for active, want := range map[int]float64{1: 0.015, 66: 0.99, 67: 1, 304: 1, 305: 1} {
		must.Equal(t, saturating.Fraction(active), want, active)
	}
	must.Equal(t, (Bandwidth{Units: 10, C0: 0.01, C1: 0.02, C2: 0.1}).Fraction(2), 0.01*4+0.02*2+0.1)
}

func TestBoundNames(t *testing.T) {
	for b, want := range map[Bound]string{BoundCompute: "compute", BoundL2: "l2", BoundMALL: "mall", BoundDRAM: "dram",
		BoundLatency: "latency", BoundL1: "l1", BoundSharedMemory: "shared_memory", BoundIssue: "issue",
		BoundUnknown: "unknown", 200: "unknown"} {
		must.Equal(t, b.String(), want, uint8(b), b)
	}
}
