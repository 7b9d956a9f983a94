package selector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/unit"
)

// The integrals against a simulation of what they are the mean of.
func TestLossAgainstSimulation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		name   string
		times  []unit.Seconds
		spread float64
	}{
		{"two alike", []unit.Seconds{1e-3, 1e-3}, 0.1},
		{"one far behind", []unit.Seconds{1e-3, 1.5e-3}, 0.05},
		{"many", []unit.Seconds{1, 1.01, 1.02, 1.02, 1.05, 1.1, 1.1, 1.2, 1.3, 1.5}, 0.08},
		{"the first is not the fastest", []unit.Seconds{1.005, 1, 1.2}, 0.02},
		{"wide", []unit.Seconds{1e-6, 2e-6, 3e-6, 3e-6, 3e-6}, 0.5},
	} {
		const runs = 200_000
		loss := 0.0
		gains := make([]float64, len(tc.times))
		for range runs {
			first, others, fastest := 0.0, math.Inf(1), math.Inf(1)
			for i, p := range tc.times {
				l := math.Log(float64(p)) + tc.spread*random.NormFloat64()
				if i == 0 {
					first = l
				} else {
					others = min(others, l)
					gains[i-1] += max(0, fastest-l) / runs
				}
				fastest = min(fastest, l)
			}
			loss += max(0, math.Exp(first-others)-1) / runs
		}
		if got := ExpectedLoss(tc.times, tc.spread); math.Abs(got-loss) > 0.02*loss+1e-4 {
			t.Errorf("%s: expected loss %v, simulated %v", tc.name, got, loss)
		}
		// Just above what the n-th more brings, n are worth it; just below, one more is.
		for n := 1; n < len(tc.times); n++ {
			if gains[n-1] < 1e-4 {
				break
			}
			above, below := WorthMeasuring(tc.times, tc.spread, gains[n-1]*1.05), WorthMeasuring(tc.times, tc.spread, gains[n-1]*0.95)
			if above > n || below <= n {
				t.Errorf("%s: with noise about the gain of measuring %d, %d and %d are worth it", tc.name, n+1, above, below)
			}
		}
	}
}

func TestLossWithoutDoubt(t *testing.T) {
	times := []unit.Seconds{1, 1.1, 1.2}
	if ExpectedLoss(times, 0) != 0 || ExpectedLoss(times[:1], 0.1) != 0 || ExpectedLoss(nil, 0.1) != 0 {
		t.Error("there is a loss where there is no doubt, or no other")
	}
	if WorthMeasuring(times, 0, 0.01) != 1 || WorthMeasuring(times[:1], 0.1, 0.01) != 1 || WorthMeasuring(nil, 0.1, 0.01) != 0 {
		t.Error("something is worth measuring where there is no doubt, or no other")
	}
	many := make([]unit.Seconds, 1000)
	for i := range many {
		many[i] = 1
	}
	if n := WorthMeasuring(many, 0.3, 0); n != LossCandidates {
		t.Errorf("without noise %d are worth it", n)
	}
}

func BenchmarkExpectedLoss(b *testing.B) {
	times := make([]unit.Seconds, LossCandidates)
	for i := range times {
		times[i] = unit.Seconds(1 + 0.01*float64(i))
	}
	for b.Loop() {
		ExpectedLoss(times, 0.05)
	}
}
