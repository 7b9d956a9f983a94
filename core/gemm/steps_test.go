package gemm_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestSteps(t *testing.T) {
	for _, x := range []struct{ in, want []int }{
		{[]int{3104}, []int{3104}},
		{[]int{64, 200}, []int{64, 128, 192}},
		{[]int{64, 96, 300}, []int{64, 160, 256}},
		// The axis of the first experiment on AMD's slides of 2017.
		{[]int{16, 16, 16, 5632}, []int{16, 32, 64, 112, 176, 256, 352, 464, 592, 736, 896, 1072, 1264, 1472, 1696, 1936,
			2192, 2464, 2752, 3056, 3376, 3712, 4064, 4432, 4816, 5216, 5632}},
		{[]int{5, 9, 1, 5}, []int{5}},
	} {
		got := must.Get(gemm.Steps(x.in...))(t)
		must.Equal(t, cmp.Diff(x.want, got), "", x.in)
	}
}

func TestStepsRefuses(t *testing.T) {
	for _, in := range [][]int{{}, {0}, {-1, 5}, {8, 4}, {1, 0, 9}, {1, 1, -1, 9}, {1, 2, 3, 4, 5}, {1, 1, 1 << 20},
		{1, 1, 1, 1<<63 - 1}, {1, 1<<63 - 1, 1<<63 - 1, 1 << 39}} {
		must.Fail(t, must.Err(gemm.Steps(in...)), "a range ")
	}
}

func TestStepsGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.IntRange(0, 5000), 1, 4).Draw(t, "range")
		got, err := gemm.Steps(in...)
		if err != nil {
			return
		}
		if !slices.IsSorted(got) || got[0] != in[0] || got[len(got)-1] > in[len(in)-1] {
			t.Fatalf("%v: %v", in, got)
		}
	})
}
