// Package stats has the statistics that measuring and scoring share: quantiles, the median and its absolute deviation,
// rank correlation, and conformal bands over clusters.
package stats

import (
	"math"
	"slices"
	"strconv"
)

// Quantiles summarises a list of ratios. All fields are 0 for an empty list.
type Quantiles struct {
	Count   int     `json:"count"`  // how many there are
	Median  float64 `json:"median"` // of the ratios
	Geomean float64 `json:"geomean"`
	P10     float64 `json:"p10"`
	Worst   float64 `json:"worst"`
}

// QuantilesOf summarises ratios that are at least 0 and better the larger they are. The geometric mean of a list that
// contains a 0 is 0.
func QuantilesOf(ratios []float64) Quantiles {
	if len(ratios) == 0 {
		return Quantiles{}
	}
	sorted := slices.Clone(ratios)
	slices.Sort(sorted)
	return Quantiles{
		Count: len(ratios), Median: Quantile(sorted, 0.5), P10: Quantile(sorted, 0.1), Worst: sorted[0],
		Geomean: Geomean(sorted),
	}
}

// Geomean returns the geometric mean of values that are at least 0: 0 if one is 0, NaN if there are none. It has twelve
// digits. Those after them depend on how a platform computes logarithms and exponentials.
func Geomean(values []float64) float64 {
	logs := 0.0
	for _, x := range values {
		logs += math.Log(x) // −Inf for 0, which makes the mean 0
	}
	mean := math.Exp(logs / float64(len(values)))
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(mean, 'g', 12, 64), 64) // it reads what it wrote
	return rounded
}

// Quantile interpolates linearly between the order statistics of a sorted list, which must not be empty. This is type 7
// of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50 (1996) 361–365.
func Quantile[T ~float64](sorted []T, q float64) T {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	step := (at - float64(i)) * float64(sorted[i+1]-sorted[i])
	return T(float64(sorted[i]) + float64(step))
}

// Median returns the median of a list, NaN if the list is empty.
func Median[T ~float64](values []T) T {
	if len(values) == 0 {
		return T(math.NaN())
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return Quantile(sorted, 0.5)
}

// MedianMAD returns the median of a list and its MAD, the median absolute deviation from the median. Both are 0 for an
// empty list.
func MedianMAD[T ~float64](values []T) (median, mad T) {
	if len(values) == 0 {
		return 0, 0
	}
	var room [64]T // a measurement rarely has more samples, so this does not allocate
	sorted := append(room[:0], values...)
	slices.Sort(sorted)
	median = Quantile(sorted, 0.5)
	for i, v := range sorted {
		sorted[i] = T(math.Abs(float64(v - median)))
	}
	slices.Sort(sorted)
	return median, Quantile(sorted, 0.5)
}

// MedianError estimates the relative standard error of the median of a sample from its MAD:
//
//	√(π/2) · 1.4826 · MAD ÷ (√n · median)
//
// 1.4826 · MAD estimates the standard deviation of normal noise robustly: an outlier hardly moves it. The median of n
// normal values scatters √(π/2) times as much as their mean.
func MedianError[T ~float64](values []T) float64 {
	median, mad := MedianMAD(values)
	return math.Sqrt(math.Pi/2) * 1.4826 * float64(mad) / (math.Sqrt(float64(len(values))) * float64(median))
}
