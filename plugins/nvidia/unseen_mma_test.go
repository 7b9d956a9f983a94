//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/wgmma"
)

// Picks are faster from lists with tiles whose rows 64 does not divide, on problems on which nothing was fitted. The
// worst are problems where such a tile is predicted to be faster, and is not.
func TestPicksWithTurnedTiles(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	for _, f := range []struct {
		set            string
		geomean, worst float64
	}{
		{"tail/wgmma-lost", 1.045, 0.885}, {"tail/wgmma-unseen", 1.07, 0.87}, {"rows/wgmma-test", 1.02, 0.935},
	} {
		q := gainOfPicks(t, a, f.set, considered, func(measured []dataset.Measurement) []dataset.Measurement {
			return slices.DeleteFunc(considered(measured), func(m dataset.Measurement) bool { return wgmma.Turned(m.Config) })
		})
		t.Logf("%s: picks are faster by %.4f (geomean), at least %.4f", f.set, q.Geomean, q.Worst)
		if !(q.Geomean >= f.geomean) || !(q.Worst >= f.worst) {
			t.Errorf("%s: picks are faster by %.4f, at least %.4f; it was at least %.4f and %.4f", f.set, q.Geomean, q.Worst,
				f.geomean, f.worst)
		}
	}
}

// Picks from lists with tiles that CTAs share along K are no slower than from those without them.
func TestPicksWithSharedTiles(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	for _, set := range []string{"tail/wgmma-lost", "tail/wgmma-unseen", "builtin/wgmma-builtin"} {
		q := gainOfPicks(t, a, set, func(measured []dataset.Measurement) []dataset.Measurement {
			return slices.DeleteFunc(slices.Clone(measured), func(m dataset.Measurement) bool {
				return m.Library != "" || !(m.Median > 0)
			})
		}, considered)
		t.Logf("%s: picks are faster by %.4f (geomean), at least %.4f", set, q.Geomean, q.Worst)
		if !(q.Geomean >= 0.9999) || !(q.Worst >= 0.99) {
			t.Errorf("%s: picks are faster by %.4f, at least %.4f; it was at least 1 and 0.99", set, q.Geomean, q.Worst)
		}
	}
}

// gainOfPicks is how many times as fast the picks from one list of the measured kernels are as those from another, over
// the problems of a set of h200-wgmma.
func gainOfPicks(
	t *testing.T, a arch.Architecture, set string, list, other func([]dataset.Measurement) []dataset.Measurement,
) stats.Quantiles {
	t.Helper()
	data := readSet(t, "h200-wgmma/"+set)
	var faster []float64
	for _, p := range data.Problems() {
		measured := data.Sweep(p)
		faster = append(faster, pickedTime(t, a, p, other(measured))/pickedTime(t, a, p, list(measured)))
	}
	return stats.QuantilesOf(faster)
}

// pickedTime is the measured time of the best predicted of the measured configurations.
func pickedTime(t *testing.T, a arch.Architecture, p gemm.Problem, measured []dataset.Measurement) float64 {
	t.Helper()
	pick, _ := pickOfMeasured(t, a, p, measured)
	fastest := slices.MinFunc(measured, func(a, b dataset.Measurement) int { return cmp.Compare(a.Median, b.Median) })
	return float64(fastest.Median) / pick
}

// considered are the measured kernels that a selection considers: tiles that CTAs share along K are for lists.
func considered(measured []dataset.Measurement) []dataset.Measurement {
	return slices.DeleteFunc(slices.Clone(measured), func(m dataset.Measurement) bool {
		shared, _ := m.Config.Axes.Get(wgmma.AxisStreamK)
		return m.Library != "" || !(m.Median > 0) || shared == "1"
	})
}
