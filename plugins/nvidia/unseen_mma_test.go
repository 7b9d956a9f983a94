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
	floorsOfUnseen(t, []unseenFloor{
		{"sweeps/split/mma-test", 0.985, 0.97, 0.08},
		{"sweeps/fp8/mma-test", 0.985, 0.97, 0.11},
		{"sweeps/int8/mma-test", 0.985, 0.97, 0.08},
		{"sweeps/tf32/mma-test", 0.98, 0.93, 0.08},
		{"sweeps/fp32/mma-test", 0.945, 0.88, 0.06},
		{"sweeps/layouts/mma-test", 0.97, 0.8, 0.065},
		{"sweeps/unaligned/mma-test", 0.96, 0.9, 0.2},
	})
}

// Problems of the family wgmma on which nothing was fitted.
func TestFloorsOfUnseenWGMMA(t *testing.T) {
	floorsOfUnseen(t, []unseenFloor{
		{"h200-wgmma/skinny/wgmma-test", 0.965, 0.9, 0.06},
		{"h200-wgmma/large/wgmma-test", 0.98, 0.89, 0.12},
		{"h200-wgmma/fp8/wgmma-test", 0.98, 0.93, 0.09},
		{"h200-wgmma/skinny/wgmma-builtin-test", 0.96, 0.87, 0.08},
		{"h200-wgmma/large/wgmma-builtin-test", 0.97, 0.89, 0.09},
	})
}

// unseenFloor is what the picks of a data set reached at least, and how far its times were off at most.
type unseenFloor struct {
	set                   string
	geomean, worst, error float64
}

func floorsOfUnseen(t *testing.T, floors []unseenFloor) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	for _, f := range floors {
		t.Run(f.set, func(t *testing.T) {
			data, err := dataset.Read(f.set, os.DirFS("data/"+f.set))
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
