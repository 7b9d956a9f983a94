//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"os"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/plugins/nvidia/internal/nvtest"
)

// Problems of the family mma on which nothing was fitted: the pick among the configurations that were measured, and
// the times of all. The limits are just beyond the scores of 2026-11-22.
func TestFloorsOfUnseenMMA(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	for _, f := range []struct {
		set                   string
		geomean, worst, error float64
	}{
		{"split", 0.985, 0.97, 0.08},
		{"fp8", 0.985, 0.97, 0.11},
		{"int8", 0.985, 0.97, 0.08},
		{"tf32", 0.98, 0.93, 0.08},
		{"fp32", 0.945, 0.88, 0.06},
		{"layouts", 0.97, 0.8, 0.065},
		{"unaligned", 0.96, 0.9, 0.2},
	} {
		t.Run(f.set, func(t *testing.T) {
			data, err := dataset.Read(f.set, os.DirFS("data/sweeps/"+f.set+"/mma-test"))
			if err != nil {
				t.Fatal(err)
			}
			var picks, errors []float64
			for _, p := range data.Problems() {
				library := func(m dataset.Measurement) bool { return m.Library != "" || !(m.Median > 0) }
				pick, off := pickOfMeasured(t, a, p, slices.DeleteFunc(slices.Clone(data.Sweep(p)), library))
				picks, errors = append(picks, pick), append(errors, off...)
			}
			slices.Sort(errors)
			q, off := stats.QuantilesOf(picks), stats.Quantile(errors, 0.5)
			t.Logf("geomean %.4f, worst %.4f, median error %.4f", q.Geomean, q.Worst, off)
			if !(q.Geomean >= f.geomean) || !(q.Worst >= f.worst) || !(off <= f.error) {
				t.Errorf("geomean %.4f, worst %.4f, median error %.4f; it was at least %.4f, %.4f and at most %.4f",
					q.Geomean, q.Worst, off, f.geomean, f.worst, f.error)
			}
		})
	}
}
