package stats

import (
	"math"
	"slices"
)

// Equations of symmetric matrices, for the fit of constants and for the tuner: the order of operations is fixed and no
// sum is fused, so results are the same bits on every machine.

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
	// Column by column, so that the differences in a row do not wait for each other.
	column := make([]float64, len(lower))
	for j := range lower {
		pivot := math.Sqrt(max(lower[j][j], least))
		lower[j][j] = pivot
		for i := j + 1; i < len(lower); i++ {
			v := lower[i][j] / pivot
			lower[i][j], column[i] = v, v
			row := lower[i][j+1 : i+1]
			for l, w := range column[j+1 : i+1] {
				row[l] -= float64(v * w)
			}
		}
	}
}

// Forward replaces each v by L⁻¹·v.
func Forward(root [][]float64, vs ...[]float64) {
	for four := range slices.Chunk(vs, 4) {
		if len(four) < 4 {
			for _, v := range four {
				for i, row := range root {
					sum := v[i]
					for j, r := range row[:i] {
						sum -= float64(r * v[j])
					}
					v[i] = sum / row[i]
				}
			}
			continue
		}
		// Side by side, since the differences of one wait for each other.
		n := len(root)
		a, b, c, d := four[0][:n], four[1][:n], four[2][:n], four[3][:n]
		for i, row := range root {
			w, x, y, z := a[i], b[i], c[i], d[i]
			for j, r := range row[:i] {
				w -= float64(r * a[j])
				x -= float64(r * b[j])
				y -= float64(r * c[j])
				z -= float64(r * d[j])
			}
			a[i], b[i], c[i], d[i] = w/row[i], x/row[i], y/row[i], z/row[i]
		}
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
