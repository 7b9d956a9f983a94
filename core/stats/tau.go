package stats

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// TauB returns Kendall's rank correlation tau-b of two samples of equal length. Ties in either sample count as ties:
//
//	tau-b = (C − D) / √((n₀ − T_x)(n₀ − T_y)),  n₀ = n(n−1)/2
//
// C and D count the concordant and the discordant pairs, T_x and T_y the pairs tied in x and in y; a pair tied in both
// counts in both. The time is O(n log n). Tau-b is undefined, and NaN returned, if one of the samples is constant or
// shorter than two. A NaN in a sample is an error.
//
// References: M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945) 239–251; W. R. Knight,
// "A computer method for calculating Kendall's tau with ungrouped data", JASA 61 (1966) 436–439.
func TauB(x, y []float64) (float64, error) {
	if len(x) != len(y) {
		return 0, fmt.Errorf("tau-b of samples of different length, %d and %d", len(x), len(y))
	}
	n := len(x)
	order := make([]int, n)
	for i := range order {
		order[i] = i
		if math.IsNaN(x[i]) || math.IsNaN(y[i]) {
			return 0, fmt.Errorf("tau-b of a NaN at position %d", i)
		}
	}
	sort.Slice(order, func(i, j int) bool {
		a, b := order[i], order[j]
		if x[a] != x[b] {
			return x[a] < x[b]
		}
		return y[a] < y[b]
	})

	ys := make([]float64, n)
	tiedX, tiedBoth := 0, 0
	for i, runX, runBoth := 0, 0, 0; i < n; i++ {
		ys[i] = y[order[i]]
		if i > 0 && x[order[i]] == x[order[i-1]] {
			runX++
			if ys[i] == ys[i-1] {
				runBoth++
			} else {
				runBoth = 0
			}
		} else {
			runX, runBoth = 0, 0
		}
		// The i-th member of a run ties with each of those before it.
		tiedX += runX
		tiedBoth += runBoth
	}

	// Sorting y from the order of x takes one exchange of neighbours per discordant pair.
	discordant := countInversions(ys, make([]float64, n))
	tiedY := 0
	for i, run := 1, 0; i < n; i++ {
		if ys[i] == ys[i-1] {
			run++
		} else {
			run = 0
		}
		tiedY += run
	}

	pairs := n * (n - 1) / 2
	if pairs == tiedX || pairs == tiedY {
		return math.NaN(), nil
	}
	concordant := pairs - tiedX - tiedY + tiedBoth - discordant
	// The root of the product, not the product of the roots: it is exact when both are equal, so that perfect
	// agreement is exactly 1.
	return float64(concordant-discordant) / math.Sqrt(float64(pairs-tiedX)*float64(pairs-tiedY)), nil
}

// countInversions sorts v with a merge sort and returns how many pairs were in strictly descending order.
func countInversions(v, scratch []float64) int {
	if len(v) < 2 {
		return 0
	}
	half := len(v) / 2
	left, right := v[:half], v[half:]
	inversions := countInversions(left, scratch[:half]) + countInversions(right, scratch[half:])
	if slices.IsSorted(v) {
		return inversions
	}
	merged := scratch[:0]
	for len(left) > 0 && len(right) > 0 {
		if right[0] < left[0] {
			inversions += len(left)
			merged, right = append(merged, right[0]), right[1:]
		} else {
			merged, left = append(merged, left[0]), left[1:]
		}
	}
	merged = append(append(merged, left...), right...)
	copy(v, merged)
	return inversions
}
