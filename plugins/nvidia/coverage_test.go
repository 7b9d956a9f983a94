//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"os"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// The intervals hold on problems that neither they nor the model were found on, of every kind that they are stated for,
// and the regret that is expected of picks is that of the sizes drawn at random.
func TestIntervalsOfUnseenProblems(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Rung: arch.RungCompiled})
	scope := func(p *gemm.Problem, split int) arch.Scope { return a.Describe().Scope("triton", p, split) }
	held, of := 0, 0
	expected, recorded, sizes := 0.0, 0.0, 0
	for _, set := range []string{
		"bf16", "layouts", "split", "unaligned", "fp8", "int8", "tf32", "random-fp16", "random-bt", "random-bf16",
		"random-split", "random-unaligned", "random-fp8", "random-int8", "random-tf32", "random2-fp16", "random2-bt",
		"random2-bf16", "random2-split", "random2-unaligned", "random2-fp8", "random2-int8", "random2-tf32",
	} {
		folder := "data/sweeps/" + set + "/h200-test"
		data, err := dataset.Read(folder, os.DirFS(folder))
		if err != nil {
			t.Fatal(err)
		}
		s := score.SubsetOf(data)
		rows, bad, err := score.Evaluate(t.Context(), a, s, s.Problems)
		if err != nil {
			t.Fatal(err)
		}
		inSet, points := 0, 0
		for i := range rows {
			if bad[i] != nil {
				t.Error(bad[i])
			}
			if a.Describe().InSample(rows[i].Problem, s.Kernel) {
				continue
			}
			h, n := rows[i].PointsCovered(scope)
			inSet, points = inSet+h, points+n
			if regret, ok := rows[i].Regret(); ok && strings.HasPrefix(set, "random") {
				sigma := scope(&rows[i].Problem, 1).Uncertainty.Sigma
				expected, recorded = expected+measure.ExpectedRegret(rows[i].Leading, sigma, 1), recorded+regret
				sizes++
			}
		}
		t.Logf("%-9s the 90 %% intervals hold %.3f of %d times", set, float64(inSet)/float64(points), points)
		// Seven sizes can have much in common.
		if share := float64(inSet) / float64(points); points < 100 || share < 0.75 {
			t.Errorf("%s: the 90 %% intervals hold %.3f of %d times", set, share, points)
		}
		held, of = held+inSet, of+points
	}
	if share := float64(held) / float64(of); share < 0.85 {
		t.Errorf("the 90 %% intervals hold %.3f of all times", share)
	}
	t.Logf("mean regret of %d picks: %.4f recorded, %.4f expected", sizes, recorded/float64(sizes),
		expected/float64(sizes))
	if ratio := expected / recorded; sizes < 100 || ratio < 2./3 || ratio > 2 {
		t.Errorf("the expected regret of %d picks is %.2f of the recorded one", sizes, ratio)
	}
}

// The times of a sister, between events as pipelined predicts them, and to which nothing was fitted, are in the
// intervals that the measured device gives it.
func TestSisters(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h100"})
	for _, kernel := range []string{"triton", "wgmma"} {
		folder := "data/h100/" + kernel
		data, err := dataset.Read(folder, os.DirFS(folder))
		if err != nil {
			t.Fatal(err)
		}
		s := score.SubsetOf(data)
		rows, err := score.Singles(t.Context(), a, s, s.Problems)
		if err != nil {
			t.Fatal(err)
		}
		held := 0
		for i := range rows {
			r := &rows[i]
			scope := a.Describe().Scope(kernel, &r.Problem, r.Config.SplitK)
			if scope.Evidence != arch.EvidenceSister {
				t.Errorf("%s %s: %s", kernel, r.Problem, scope.Evidence)
			}
			low, high, ok := scope.Interval(r.Bound, r.Predicted)
			if ok && low <= r.Measured && r.Measured <= high {
				held++
			}
		}
		t.Logf("%s: %d of %d held", kernel, held, len(rows))
		if len(rows) != 40 || held < 36 {
			t.Errorf("%s: the 90 %% intervals hold %d of %d times", kernel, held, len(rows))
		}
	}
}
