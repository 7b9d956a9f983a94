// Package linalg has the linear algebra of symmetric matrices, which the fit of constants and the tuner share. The
// order of operations is fixed and no sum is fused, so results are the same bits on every machine.
package linalg

import "math"

// Lower returns the rows of a lower triangle of n rows, all 0. Row i has i + 1 numbers.
func Lower(n int) [][]float64 {
	all, rows := make([]float64, n*(n+1)/2), make([][]float64, n)
	for i := range rows {
		rows[i], all = all[:i+1:i+1], all[i+1:]
	}
	return rows
}

// Cholesky replaces the lower triangle of a symmetric matrix A by its root L, with A = L·Lᵀ. Rounding may leave a pivot
// that is not positive: a pivot below least counts as least.
func Cholesky(lower [][]float64, least float64) {
	for i := range lower {
		for j := range i + 1 {
			sum := lower[i][j]
			for l := range j {
				sum -= float64(lower[i][l] * lower[j][l])
			}
			if i == j {
				lower[i][i] = math.Sqrt(max(sum, least))
			} else {
				lower[i][j] = sum / lower[j][j]
			}
		}
	}
}

// Forward replaces v by L⁻¹·v.
func Forward(root [][]float64, v []float64) {
	for i := range v {
		sum := v[i]
		for j := range i {
			sum -= float64(root[i][j] * v[j])
		}
		v[i] = sum / root[i][i]
	}
}

// Backward replaces v by L⁻ᵀ·v.
func Backward(root [][]float64, v []float64) {
	for i := len(v) - 1; i >= 0; i-- {
		v[i] /= root[i][i]
		for j := range i {
			v[j] -= float64(root[i][j] * v[i])
		}
	}
}
