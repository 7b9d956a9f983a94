//go:build !race

package amdref_test

import (
	"math"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
)

// On an MI355X, whose quantities are those of the MI300X, times are near those of AMD's aiter. No number was fitted to
// them, and most are of other kernels.
func TestAiterTimes(t *testing.T) {
	p := must.Get(amdref.Provider())(t)
	a := must.Get(p.Open(t.Context(), arch.OpenRequest{Arch: "gfx950", Kernel: kernel.Name}))(t)
	s := selector.New(a, arch.Space{})
	classes := []int{1, 8, 16, 32, 64, 256, math.MaxInt} // of the smaller of M and N
	ratios := make([][]float64, len(classes))
	for _, line := range csvtest.Read(t, "data/gfx950-aiter.csv.gz")[1:] {
		v := csvtest.Ints(t, line[:3])
		p := gemm.New(v[0], v[1], v[2])
		p.DType = gemm.BF16
		p.SetTrans(false, true)
		if line[3] == "S" {
			p.Out = gemm.FP32
		}
		class, _ := slices.BinarySearch(classes, min(p.M, p.N))
		ratios[class] = append(ratios[class], pickTime(t, a, s, p)*1e6/number(line[4]))
	}
	for i, class := range ratios {
		ratio := stats.Geomean(class)
		must.Hold(t, ratio >= 0.8 && ratio <= 1.4, "M or N up to %d: %d sizes, predicted ÷ recorded %.2f", classes[i],
			len(class), ratio)
	}
}
