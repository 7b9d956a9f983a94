package kernel_test

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
)

// Waves share a tile so that they read as little as possible from LDS; with FMA, threads do.
func TestLayouts(t *testing.T) {
	matrix, fma := &kernel.CU{}, &kernel.CU{FMA: true}
	for _, test := range []struct {
		cu    *kernel.CU
		c     gemm.Config
		split int
		want  kernel.Layout
	}{
		{matrix, gemm.Config{BlockM: 256, BlockN: 256, NumWarps: 4}, 1, kernel.Layout{WavesM: 2, WavesN: 2}},
		{matrix, gemm.Config{BlockM: 16, BlockN: 128, NumWarps: 4}, 1, kernel.Layout{WavesM: 1, WavesN: 4}},
		{matrix, gemm.Config{BlockM: 32, BlockN: 32, NumWarps: 4}, 4, kernel.Layout{WavesM: 1, WavesN: 1}},
		{fma, gemm.Config{BlockM: 128, BlockN: 128, NumWarps: 4}, 1,
			kernel.Layout{WavesM: 1, WavesN: 1, ThreadM: 8, ThreadN: 8}},
		{fma, gemm.Config{BlockM: 64, BlockN: 32, NumWarps: 2}, 1,
			kernel.Layout{WavesM: 1, WavesN: 1, ThreadM: 4, ThreadN: 4}},
	} {
		got, ok := test.cu.LayoutOf(&test.c, test.split)
		must.That(t, ok && got == test.want, "%s, split %d: %+v, %v, want %+v", test.c, test.split, got, ok, test.want)
	}
	for _, none := range []struct {
		cu    *kernel.CU
		c     gemm.Config
		split int
	}{
		{matrix, gemm.Config{BlockM: 16, BlockN: 16, NumWarps: 4}, 1}, // one matrix instruction
		{matrix, gemm.Config{BlockM: 32, BlockN: 32, NumWarps: 1}, 4}, // fewer waves than shares
		{fma, gemm.Config{BlockM: 128, BlockN: 128, NumWarps: 1}, 1},  // more than 8 × 8 per thread
	} {
		got, ok := none.cu.LayoutOf(&none.c, none.split)
		must.That(t, !ok, "%s, split %d: %+v", none.c, none.split, got)
	}
}

// Kernels that no library has are refused with the rule.
func TestMissing(t *testing.T) {
	cu := &kernel.CU{}
	for _, test := range []struct {
		c                   gemm.Config
		streamK, localSplit bool
		says                string
	}{
		{gemm.Config{BlockM: 128, BlockN: 256, NumWarps: 4, SplitK: 1}, true, false, ""},
		{gemm.Config{BlockM: 128, BlockN: 256, NumWarps: 4, SplitK: 2}, true, false, "split_k must be 1"},
		{gemm.Config{BlockM: 96, BlockN: 256, NumWarps: 4, SplitK: 1}, true, false, "stream-K kernels have four waves"},
		{gemm.Config{BlockM: 128, BlockN: 64, NumWarps: 4, SplitK: 1}, false, true, "at most 2048 elements"},
		{gemm.Config{BlockM: 64, BlockN: 64, NumWarps: 1, SplitK: 1}, false, false, "at most 512 elements"},
	} {
		got := cu.Missing(&test.c, 2, test.streamK, test.localSplit)
		must.That(t, (test.says != "" || got == "") && strings.Contains(got, test.says),
			"%s: %q, want %q", test.c, got, test.says)
	}
}
