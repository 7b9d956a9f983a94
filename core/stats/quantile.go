package stats

import (
	"math"
	"slices"
)

// Quantiles describes a list of ratios. All are 0 for an empty list.
type Quantiles struct {
	Count                       int
	Median, Geomean, P10, Worst float64
}

// QuantilesOf sums up ratios of at least 0, of which the larger is the better. The geometric mean of a list that holds a 0 is 0.
func QuantilesOf(v []float64) Quantiles {
	if len(v) == 0 {
		return Quantiles{}
	}
	sorted := slices.Clone(v)
	slices.Sort(sorted)
	logs := 0.0
	for _, x := range sorted {
		logs += math.Log(x) // −Inf for 0, which makes the mean 0
	}
	return Quantiles{
		Count: len(v), Median: Quantile(sorted, 0.5), P10: Quantile(sorted, 0.1), Worst: sorted[0],
		Geomean: math.Exp(logs / float64(len(v))),
	}
}

// Median returns the median of a list, NaN of an empty one.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(v)
	slices.Sort(sorted)
	return Quantile(sorted, 0.5)
}

// Quantile interpolates linearly between the order statistics of a sorted list that is not empty (Hyndman and Fan's type 7).
func Quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
