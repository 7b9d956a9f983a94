//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"cmp"
	"os"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/wgmma"
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

// Problems of the family wgmma on which nothing was fitted. The limits are just beyond the scores of 2026-11-28, when
// its quantities were fitted for picks: these became faster on average, and times less exact by one to two per cent.
func TestFloorsOfUnseenWGMMA(t *testing.T) {
	floorsOfUnseen(t, []unseenFloor{
		{"h200-wgmma/skinny/wgmma-test", 0.975, 0.925, 0.065},
		{"h200-wgmma/large/wgmma-test", 0.985, 0.89, 0.09},
		{"h200-wgmma/fp8/wgmma-test", 0.975, 0.89, 0.075},
		{"h200-wgmma/skinny/wgmma-builtin-test", 0.975, 0.89, 0.095},
		{"h200-wgmma/large/wgmma-builtin-test", 0.98, 0.93, 0.07},
		{"h200-wgmma/tail/wgmma-unseen", 0.97, 0.9, 0.08},
		{"h200-wgmma/rows/wgmma-test", 0.974, 0.925, 0.075},
		{"h200-wgmma/bf16-skinny/wgmma-test", 0.975, 0.89, 0.065},
		{"h200-wgmma/bf16-large/wgmma-test", 0.985, 0.89, 0.085},
		{"h200-wgmma/bf16-rows/wgmma-test", 0.977, 0.92, 0.07},
		{"h200-wgmma/builtin-rows/wgmma-builtin", 0.96, 0.81, 0.09},
		{"h200-wgmma/splits/wgmma-test", 0.95, 0.8, 0.06},
		{"h200-wgmma/clusters/wgmma-test", 0.96, 0.89, 0.065},
		{"h200-wgmma/random/wgmma-test", 0.945, 0.85, 0.06},
		{"h200-wgmma/both/wgmma-builtin-test", 0.97, 0.86, 0.068},
	})
}

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
	data, err := dataset.Read(set, os.DirFS("data/h200-wgmma/"+set))
	if err != nil {
		t.Fatal(err)
	}
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
				pick, off := pickOfMeasured(t, a, p, considered(data.Sweep(p)))
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
