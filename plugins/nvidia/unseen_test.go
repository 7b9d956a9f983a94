//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"os"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/score"
)

// Sizes and a layout on which no quantity of the model was fitted. The floors are just below the scores of 2026-11-22.
// The terms were chosen with these scores in view.
func TestFloorsOfUnseenSizes(t *testing.T) {
	for _, f := range []struct {
		folder              string
		sizes               int
		rung                arch.Rung
		geomean, worst, tau float64
	}{
		{"h200-triton-other", 16, arch.RungCompiled, 0.982, 0.91, 0.9},
		{"h200-triton-other", 16, arch.RungCharacterized, 0.985, 0.93, 0.915},
		{"h200-triton-bt", 8, arch.RungCompiled, 0.98, 0.92, 0.885},
		{"h200-triton-bt", 8, arch.RungCharacterized, 0.99, 0.97, 0.9},
	} {
		t.Run(f.folder+" "+string(f.rung), func(t *testing.T) {
			data, err := dataset.Read(f.folder, os.DirFS("data/"+f.folder))
			if err != nil {
				t.Fatal(err)
			}
			r := score.SubsetOf(data)
			if len(r.Problems) != f.sizes {
				t.Fatalf("%d sizes", len(r.Problems))
			}
			s := score.SummariseEvaluations(scored(t, r, arch.OpenRequest{Rung: f.rung}), nil)
			t.Logf(
				"geomean %.4f, p10 %.4f, worst %.4f, first 8 %.4f, tau %.4f",
				s.Efficiency.Geomean,
				s.Efficiency.P10,
				s.Efficiency.Worst,
				s.Top[1].Geomean,
				s.TauMean,
			)
			if !(s.Efficiency.Geomean >= f.geomean) || !(s.Efficiency.Worst >= f.worst) || !(s.TauMean >= f.tau) {
				t.Errorf(
					"geomean %.4f, worst %.4f, tau %.4f; at least %.4f, %.4f, %.4f before",
					s.Efficiency.Geomean,
					s.Efficiency.Worst,
					s.TauMean,
					f.geomean,
					f.worst,
					f.tau,
				)
			}
		})
	}
}
