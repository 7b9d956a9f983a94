//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia"
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
		s := score.SubsetOf(readSet(t, "sweeps/"+set+"/h200-test"))
		rows, inSet, points := evaluated(t, a, s), 0, 0
		for i := range rows {
			if a.Describe().InSample(rows[i].Problem, s.Kernel) {
				continue
			}
			h, n := score.Held(rows[i].Rows, scope)
			inSet, points = inSet+h, points+n
			if regret, ok := rows[i].Regret(); ok && strings.HasPrefix(set, "random") {
				sigma := scope(&rows[i].Problem, 1).Uncertainty.Sigma
				expected, recorded = expected+measure.ExpectedRegret(rows[i].Leading, sigma, 1), recorded+regret
				sizes++
			}
		}
		share := float64(inSet) / float64(points) // seven sizes can have much in common
		must.Hold(t, points >= 100 && share >= 0.75, "%s: the 90 %% intervals hold %.3f of %d times", set, share, points)
		held, of = held+inSet, of+points
	}
	share := float64(held) / float64(of)
	must.Hold(t, share >= 0.85, "the 90 %% intervals hold %.3f of all times", share)
	must.Hold(t, sizes >= 100 && expected >= recorded*2/3 && expected <= 2*recorded, "mean regret of %d picks: %.4f "+
		"recorded, %.4f expected", sizes, recorded/float64(sizes), expected/float64(sizes))
}

// heldByOthers returns the share of kernels' times that lie in the intervals of a grade of evidence, without what
// was found on the kernels themselves.
func heldByOthers(
	t *testing.T, d *arch.Description, set, kernel string, rows []score.Evaluation, want arch.Evidence,
) float64 {
	t.Helper()
	without := *d
	without.Uncertainty = slices.DeleteFunc(slices.Clone(d.Uncertainty), func(u arch.Uncertainty) bool {
		return u.Checked.DataSet == set && u.Evidence != arch.EvidenceUnchecked
	})
	share, width := 0.0, []float64{}
	for i := range rows {
		r := &rows[i]
		held := 0
		for _, p := range r.Rows {
			scope := without.Scope(kernel, &r.Problem, p.Config.SplitK)
			low, high, ok := scope.Interval(p.Estimate(), p.Predicted)
			if !ok || scope.Evidence != want {
				t.Fatalf("%s of %s: %s, want %s", kernel, r.Problem, scope.Evidence, want)
			}
			if low <= p.Measured && p.Measured <= high {
				held++
			}
			width = append(width, float64(high/low))
		}
		share += float64(held) / float64(len(r.Rows)) / float64(len(rows))
	}
	t.Logf("%s, %s: %s intervals hold %.3f of %d sizes, median high ÷ low %.2f", d.ID(), set, want, share, len(rows),
		stats.Median(width))
	return share
}

// kernels are the times of a set with one kernel per problem, those of launches left out where the set lists the
// others.
func kernels(t *testing.T, a arch.Architecture, set string) []score.Evaluation {
	t.Helper()
	s := score.SubsetOf(readSet(t, set))
	all := must.Get(s.Rows(t.Context(), a, s.Problems...))(t)
	if strings.HasSuffix(set, "-published") {
		all = slices.DeleteFunc(all, func(s score.Row) bool { return s.Measured < leastPublished })
	}
	return score.EachAlone(all)
}

// The times of a sister, between events as pipelined predicts them, and to which nothing was fitted, are in the
// intervals that the measured device gives it.
func TestSisters(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h100"})
	for _, kernel := range []string{"triton", "wgmma"} {
		set := "h100/" + kernel
		rows := kernels(t, a, set)
		held := heldByOthers(t, a.Describe(), set, kernel, rows, arch.EvidenceSister)
		must.That(t, len(rows) == 40 && held >= 0.9, "%s: the 90 %% intervals hold %.3f of %d times", kernel, held, len(rows))
	}
}

// The times of other generations, to which nothing was fitted, are in the intervals that the H200 gives them, and
// otherWidening is what the medians of three devices say of a fourth.
func TestOtherGenerations(t *testing.T) {
	var medians []float64
	for _, device := range []struct {
		arch, device, set string
		kernels           int
	}{
		{"sm90", "h100", "h100/triton", 40}, {"sm89", "rtx4090", "rtx4090-triton-published", 15},
		{"sm86", "rtx3090", "rtx3090-triton-published", 17},
	} {
		a := nvtest.Open(t, arch.OpenRequest{Arch: device.arch, Device: device.device})
		rows := kernels(t, a, device.set)
		var errors []float64
		for i := range rows {
			p := &rows[i].Rows[0]
			errors = append(errors, math.Log(float64(p.Predicted/p.Measured)))
		}
		medians = append(medians, stats.Median(errors))
		must.That(t, len(rows) == device.kernels, "%s has %d kernels", device.set, len(rows))
		if device.arch == "sm90" {
			continue
		}
		held := heldByOthers(t, a.Describe(), device.set, "triton", rows, arch.EvidenceUnchecked)
		must.That(t, held >= 0.9, "%s: the 90 %% intervals hold %.3f", device.set, held)
	}
	mean, square := 0.0, 0.0
	for _, m := range medians {
		mean += m / 3
	}
	for _, m := range medians {
		square += (m - mean) * (m - mean) / 2
	}
	const student = 2.92 // of 2 degrees of freedom, 90 %
	factor := math.Exp(student * math.Sqrt(square*(1+1./3)))
	must.That(t, math.Abs(factor-nvidia.OtherWidening) <= 0.02,
		"medians of %.3f: a fourth lies within %.3f, and otherWidening is %v", medians, factor, nvidia.OtherWidening)
}

// Times in layouts of the H200 are in the intervals that its other layouts give them.
func TestOtherLayouts(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	for _, set := range []struct{ kernel, file string }{
		{"triton", "h200-fit"}, {"triton", "h200-test"}, {"mma", "mma-fit"},
	} {
		folder := "sweeps/layouts/" + set.file
		rows := evaluated(t, a, score.SubsetOf(readSet(t, folder)))
		fit := "sweeps/layouts/h200-fit"
		if set.kernel == "mma" {
			fit = "sweeps/layouts/mma-fit"
		}
		held := heldByOthers(t, a.Describe(), fit, set.kernel, rows, arch.EvidenceRelated)
		must.That(t, held >= 0.85, "%s: the 90 %% intervals hold %.3f", folder, held)
	}
}
