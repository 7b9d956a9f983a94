//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// ofKind are the sweeps that no quantity of the model was fitted to, by element type, layout and kernel family.
var ofKind = map[string]string{
	"triton fp16":      "sweeps/random-fp16/h200-test sweeps/random2-fp16/h200-test h200-triton-other",
	"triton bt":        "sweeps/random-bt/h200-test sweeps/random2-bt/h200-test h200-triton-bt",
	"triton split":     "sweeps/random-split/h200-test sweeps/random2-split/h200-test",
	"triton unaligned": "sweeps/random-unaligned/h200-test sweeps/random2-unaligned/h200-test",
	"triton bf16":      "sweeps/random-bf16/h200-test sweeps/random2-bf16/h200-test",
	"triton fp8":       "sweeps/random-fp8/h200-test sweeps/random2-fp8/h200-test",
	"triton int8":      "sweeps/random-int8/h200-test sweeps/random2-int8/h200-test",
	"triton tf32":      "sweeps/random-tf32/h200-test sweeps/random2-tf32/h200-test",
	"mma split":        "sweeps/split/mma-test sweeps/warps/mma-drawn",
	"mma fp8":          "sweeps/fp8/mma-test",
	"mma int8":         "sweeps/int8/mma-test",
	"mma tf32":         "sweeps/tf32/mma-test",
	"mma layouts":      "sweeps/layouts/mma-test",
	"mma unaligned":    "sweeps/unaligned/mma-test",
}

// The picks of a rung that knows more are no slower than those of a rung that knows less, by more than 0.2 % in the
// geometric mean over the sizes of a kind.
func TestMoreKnowledgePicksNoSlower(t *testing.T) {
	rungs := []arch.Rung{arch.RungSpec, arch.RungCalibrated, arch.RungCompiled, arch.RungCharacterized}
	const limit = 0.002
	models := make([]arch.Architecture, len(rungs))
	for i, rung := range rungs {
		models[i] = nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Rung: rung})
	}
	for _, kind := range slices.Sorted(maps.Keys(ofKind)) {
		picks := make([][]float64, len(rungs)) // logarithms of efficiencies
		for _, folder := range strings.Fields(ofKind[kind]) {
			sweep := score.SubsetOf(readSet(t, folder))
			for i, a := range models {
				for _, row := range evaluated(t, a, sweep) {
					picks[i] = append(picks[i], math.Log(row.Efficiency()))
				}
			}
		}
		for i := range rungs {
			for j := range i {
				lost, sizes := lostFrom(picks[j], picks[i])
				t.Logf("%s: %s loses %.2f %% to %s on %d sizes", kind, rungs[i], 100*lost, rungs[j], sizes)
				if sizes == 0 || lost > limit {
					t.Errorf("%s: picks of rung %s are slower by %.2f %% than those of %s, more than %.1f %%, on %d sizes",
						kind, rungs[i], 100*lost, rungs[j], 100*limit, sizes)
				}
			}
		}
	}
}

// lostFrom returns by how much picks are slower, from the logarithms of their efficiencies, over the sizes where both
// have one.
func lostFrom(poor, rich []float64) (lost float64, sizes int) {
	var sum float64
	for k := range poor {
		if ratio := poor[k] - rich[k]; !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
			sum, sizes = sum+ratio, sizes+1
		}
	}
	return 1 - math.Exp(-sum/float64(sizes)), sizes
}
