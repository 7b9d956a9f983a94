//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// ptxas serialises the matrix instructions of kernels with 8 warps and 256 columns of a B that is contiguous along K.
// Their copies pass through the load path while the tensor cores wait. The ceiling is just above the error at the last
// change of the term. Nothing was fitted on these sizes.
func TestSerialisedKernels(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Rung: arch.RungCompiled})
	var errs []float64
	for _, set := range []string{"random-bt", "random2-bt"} {
		rows := evaluated(t, a, score.SubsetOf(readSet(t, "sweeps/"+set+"/h200-test")))
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
