package stats

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"math"
	"math/rand/v2"
	"testing"
)

func TestQuantilesOf(t *testing.T) {
	s := QuantilesOf([]float64{1, 0.25, 0.5})
	must.That(t, s.Count == 3 && s.Median == 0.5 && math.Abs(s.Geomean-0.5) <= 1e-12 && s.Worst == 0.25 &&
		math.Abs(s.P10-0.3) <= 1e-12, "%+v", s)
	// One that is worth nothing makes the geometric mean nothing, and the rest stays.
	s = QuantilesOf([]float64{1, 0, 1})
	must.That(t, s.Geomean == 0 && s.Median == 1 && s.Worst == 0, "%+v", s)
	must.Equal(t, QuantilesOf(nil), Quantiles{})
}

func TestMedian(t *testing.T) {
	must.Equal(t, Median([]float64{3, 1, 2, 10}), 2.5)
	must.That(t, math.IsNaN(Median[float64](nil)), "nothing has a median")
}

func TestMedianMAD(t *testing.T) {
	type seconds float64
	for _, tc := range []struct {
		values      []seconds
		median, mad seconds
	}{{nil, 0, 0}, {[]seconds{3}, 3, 0}, {[]seconds{4, 1}, 2.5, 1.5}, {[]seconds{1, 9, 2, 100, 3}, 3, 2}} {
		median, mad := MedianMAD(tc.values)
		must.That(t, median == tc.median && mad == tc.mad, "%v: median %v, MAD %v", tc.values, median, mad)
	}
}

// The estimate agrees with how much the median of normal samples scatters.
func TestMedianError(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const repeats, n, sigma = 4000, 25, 0.05
	var medians []float64
	estimate := 0.0
	for range repeats {
		values := make([]float64, n)
		for i := range values {
			values[i] = 2 * (1 + sigma*random.NormFloat64())
		}
		medians = append(medians, Median(values))
		estimate += MedianError(values) / repeats
	}
	mean, square := 0.0, 0.0
	for _, m := range medians {
		mean += m / repeats
	}
	for _, m := range medians {
		square += (m/mean - 1) * (m/mean - 1) / repeats
	}
	scatter := math.Sqrt(square)
	must.That(t, math.Abs(estimate/scatter-1) <= 0.1, "estimated %v, the medians scatter by %v", estimate, scatter)
}
