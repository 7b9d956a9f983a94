package configs_test

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// The intensity at which the roofs of DRAM and of arithmetic meet, in FLOP/B, as data sheets give it.
func TestRidgePoints(t *testing.T) {
	for _, d := range []struct {
		sm     *gpu.SM
		file   string
		ridges map[string]float64
	}{
		{gpu.SM90, "sm90-h200", map[string]float64{"peak_fp32": 14, "peak_fp16": 206}},
		{gpu.SM89, "sm89-rtx4090", map[string]float64{"peak_fp32": 82, "peak_fp16": 164}},
		{gpu.SM86, "sm86-rtx3090", map[string]float64{"peak_fp32": 38}},
	} {
		params := gputest.Device(t, d.sm, d.file, nil).Params
		for peak, ridge := range d.ridges {
			got := params.Get(peak) / params.Get("dram_bandwidth")
			must.That(t, math.Round(got) == ridge, "%s: %s meets DRAM at %.1f FLOP/B, want %v", d.file, peak, got, ridge)
		}
	}
}
