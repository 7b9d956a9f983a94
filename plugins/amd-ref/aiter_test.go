//go:build !race

package amdref_test

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
)

// On an MI355X, whose quantities are those of the MI300X, times are near those of AMD's aiter. No number was fitted to
// them, and most are of other kernels.
func TestAiterTimes(t *testing.T) {
	lines := csvtest.Read(t, "data/gfx950-aiter.csv.gz")
	provider, err := amdref.Provider()
	if err != nil {
		t.Fatal(err)
	}
	a := must.Get(provider.Open(t.Context(), arch.OpenRequest{Arch: "gfx950", Kernel: kernel.Name}))(t)
	s := selector.New(a, arch.Space{})
	classes := []int{1, 8, 16, 32, 64, 256, math.MaxInt} // of the smaller of M and N
	logs := make([][]float64, len(classes))
	for _, line := range lines[1:] {
		var v [3]int
		for i := range v {
			if v[i], err = strconv.Atoi(line[i]); err != nil {
				t.Fatal(err)
			}
		}
		p := gemm.New(v[0], v[1], v[2])
		p.DType = gemm.BF16
		p.SetTrans(false, true)
		if line[3] == "S" {
			p.Out = gemm.FP32
		}
		var result selector.Result
		must.Do(t, s.Select(t.Context(), p, &result))
		seconds := float64(result.Entries[0].Estimate.Cycles) / float64(a.Describe().Clock)
		class, _ := slices.BinarySearch(classes, min(p.M, p.N))
		logs[class] = append(logs[class], math.Log(seconds*1e6/number(line[4])))
	}
	for i, class := range logs {
		sum := 0.0
		for _, v := range class {
			sum += v
		}
		ratio := math.Exp(sum / float64(len(class)))
		t.Logf("M or N up to %d: %d sizes, predicted ÷ recorded %.2f", classes[i], len(class), ratio)
		if ratio < 0.8 || ratio > 1.4 {
			t.Errorf("M or N up to %d: predicted ÷ recorded is %.2f", classes[i], ratio)
		}
	}
}
