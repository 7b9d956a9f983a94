package configs_test

import (
	"io/fs"
	"math"
	"testing"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// The intensity at which the roofs of DRAM and of arithmetic meet, in FLOP/B, as data sheets give it.
func TestRidgePoints(t *testing.T) {
	for file, want := range map[string]map[string]float64{
		"sm90-h200.yaml":    {"peak_fp32": 14, "peak_fp16": 206},
		"sm89-rtx4090.yaml": {"peak_fp32": 82, "peak_fp16": 164},
		"sm86-rtx3090.yaml": {"peak_fp32": 38},
	} {
		data, err := fs.ReadFile(configs.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		sheet, err := hw.DecodeSheet(file, data)
		if err != nil {
			t.Fatal(err)
		}
		params, err := hw.Resolve(gpu.Specs, sheet, gpu.Derive, nil)
		if err != nil {
			t.Fatal(err)
		}
		for peak, ridge := range want {
			if got := params.Get(peak) / params.Get("dram_bandwidth"); math.Round(got) != ridge {
				t.Errorf("%s: %s meets DRAM at %.1f FLOP/B, want %v", file, peak, got, ridge)
			}
		}
	}
}
