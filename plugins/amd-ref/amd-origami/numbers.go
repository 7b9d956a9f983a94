package amdorigami

import "math"

// cdiv returns ⌈n/d⌉.
func cdiv(n, d uint64) uint64 { return (n + d - 1) / d }

// f converts a count, which is far below 2^63.
func f(v uint64) float64 { return float64(int64(v)) }

// ceilSqrt returns ⌈√v⌉, at least 1.
func ceilSqrt(v uint64) uint64 {
	return max(1, uint64(math.Ceil(math.Sqrt(f(v)))))
}
