//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"math"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// What the warp grid as a choice is worth on an H200, and that the intervals of the model, which nobody fitted to it,
// hold for chosen grids. The figures are those of experiments/kernel-parameters-on-h200.
func TestWarpGrids(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	inside, all := 0, 0
	for set, wins := range map[string]map[string]float64{
		"mma-fp16": {"128x4096x14336 fp16": 0.93, "512x512x16384 fp16": 0.96, "1024x1024x1024 fp16": 1},
		"mma-fp32": {
			"1024x1024x1024 fp32": 0.92, "512x512x4096 fp32": 0.95, "2048x2048x2048 fp32": 0.92, "128x2048x4096 fp32": 0.95,
		},
	} {
		data := readSet(t, "sweeps/warps/"+set)
		for _, p := range data.Problems() {
			derived, chosen := unit.Seconds(1), unit.Seconds(1)
			for _, m := range data.Sweep(p) {
				if m.Library != "" || m.Status != dataset.OK {
					continue
				}
				if m.Config.Axes == (gemm.Axes{}) {
					derived = min(derived, m.Median)
					continue
				}
				chosen = min(chosen, m.Median)
				if low, high, ok := interval(t, a, p, m.Config); ok {
					all++
					if low <= m.Median && m.Median <= high {
						inside++
					}
				}
			}
			most, listed := wins[p.String()]
			if ratio := float64(chosen / derived); !listed || ratio > most {
				t.Errorf("%s: chosen ÷ derived %.3f, want at most %g", p, ratio, most)
			} else {
				t.Logf("%s: chosen ÷ derived %.3f", p, ratio)
			}
		}
	}
	t.Logf("%d of %d in the 90 %% interval", inside, all)
	if all < 600 || float64(inside) < 0.9*float64(all) {
		t.Errorf("90 %% intervals hold %d of %d times of chosen grids", inside, all)
	}
}

// Warps that divide the K steps of a tile, as many as are derived, one, two and four, on 24 problems that were listed
// before they were measured. The fastest kernel is hardly faster than the fastest with derived grids. The model favours
// more warps along K, and its picks among all grids are slower than those among derived ones.
func TestWarpsAlongK(t *testing.T) {
	a, d := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"}), readSet(t, "sweeps/warps/mma-drawn")
	var gain, derived, all []float64
	for _, p := range d.Problems() {
		// The fastest, and the pick, among derived grids and among all.
		best, pick, least := [2]float64{1, 1}, [2]float64{}, [2]float64{math.Inf(1), math.Inf(1)}
		for _, m := range d.Sweep(p) {
			if m.Library != "" || m.Status != dataset.OK {
				continue
			}
			var e [1]arch.Estimate
			must.Do(t, a.Estimate(t.Context(), e[:], p, []gemm.Config{m.Config}))
			for i := range 2 {
				if i == 0 && m.Config.Axes != (gemm.Axes{}) {
					continue
				}
				best[i] = min(best[i], float64(m.Median))
				if c := float64(e[0].Cycles); c < least[i] {
					least[i], pick[i] = c, float64(m.Median)
				}
			}
		}
		t.Logf("%s: derived ÷ fastest %.3f, picks %.3f, %.3f", p, best[0]/best[1], pick[0]/best[1], pick[1]/best[1])
		gain = append(gain, best[0]/best[1])
		derived, all = append(derived, pick[0]/best[1]), append(all, pick[1]/best[1])
	}
	g, x, y := stats.Geomean(gain), stats.Geomean(derived), stats.Geomean(all)
	t.Logf("%d problems: derived ÷ fastest %.3f, at most %.3f; picks among derived grids %.3f, among all %.3f", len(gain), g,
		slices.Max(gain), x, y)
	if len(gain) < 24 || g > 1.015 || slices.Max(gain) > 1.09 || y < x {
		t.Errorf("%d problems: the fastest grid is %.3f times as fast as the derived, the picks take %.3f and %.3f", len(gain),
			g, x, y)
	}
}

// interval returns that of a kernel, and false if the model states none.
func interval(t *testing.T, a arch.Architecture, p gemm.Problem, c gemm.Config) (low, high unit.Seconds, ok bool) {
	t.Helper()
	var e [1]arch.Estimate
	if err := a.Estimate(t.Context(), e[:], p, []gemm.Config{c}); err != nil || e[0].Reject != "" {
		t.Fatalf("%s of %s: %s %v", c, p, e[0].Reject, err)
	}
	d := a.Describe()
	predicted := unit.Seconds(float64(e[0].Cycles) / float64(d.Clock))
	return d.Scope(c.Kernel, &p, c.SplitK).Interval(e[0], predicted)
}
