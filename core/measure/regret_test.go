//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// The integrals agree with a simulation.
func TestExpectedRegretAgainstSimulation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		name  string
		times []unit.Seconds
		sigma float64
	}{
		{"two alike", []unit.Seconds{1e-3, 1e-3}, 0.1},
		{"one far behind", []unit.Seconds{1e-3, 1.5e-3}, 0.05},
		{"many", []unit.Seconds{1, 1.01, 1.02, 1.02, 1.05, 1.1, 1.1, 1.2, 1.3, 1.5}, 0.08},
		{"the first is not the fastest", []unit.Seconds{1.005, 1, 1.2}, 0.02},
		{"wide", []unit.Seconds{1e-6, 2e-6, 3e-6, 3e-6, 3e-6}, 0.5},
	} {
		const runs = 200_000
		regrets := make([]float64, len(tc.times)) // after measuring n+1
		logs := make([]float64, len(tc.times))
		for range runs {
			for i, p := range tc.times {
				logs[i] = math.Log(float64(p)) + tc.sigma*random.NormFloat64()
			}
			for n := 1; n < len(logs); n++ {
				regrets[n-1] += max(0, math.Exp(slices.Min(logs[:n])-slices.Min(logs[n:]))-1) / runs
			}
		}
		for n := 1; n < len(regrets); n++ {
			regret := regrets[n-1]
			if got := ExpectedRegret(tc.times, tc.sigma, n); math.Abs(got-regret) > 0.02*regret+1e-4 {
				t.Errorf("%s: expected regret %v after %d, simulated %v", tc.name, got, n, regret)
			}
			if regret < 1e-3 {
				break
			}
			// At a noise just above the regret that is left, n candidates are worth measuring, and more at a noise
			// just below.
			above := WorthMeasuring(tc.times, tc.sigma, regret*1.05)
			below := WorthMeasuring(tc.times, tc.sigma, regret*0.95)
			must.That(t, above <= n && below > n,
				"%s: at a noise about the regret after %d, %d and %d are worth measuring", tc.name, n, above, below)
		}
	}
}

func TestRegretWithoutUncertainty(t *testing.T) {
	times := []unit.Seconds{1, 1.1, 1.2}
	must.That(t, ExpectedRegret(times, 0, 1) == 0 && ExpectedRegret(times[:1], 0.1, 1) == 0 &&
		ExpectedRegret(nil, 0.1, 1) == 0 && ExpectedRegret(times, 0.1, 3) == 0,
		"a regret without uncertainty, or without another candidate")
	must.That(t, WorthMeasuring(times, 0, 0.01) == 1 && WorthMeasuring(times[:1], 0.1, 0.01) == 1 &&
		WorthMeasuring(nil, 0.1, 0.01) == 0, "something is worth measuring without uncertainty, or without another candidate")
	many := make([]unit.Seconds, 1000)
	for i := range many {
		many[i] = 1
	}
	must.Equal(t, WorthMeasuring(many, 0.3, 0), RegretCandidates)
}
