package fit

import (
	"slices"

	"github.com/origami-gemm/origami/core/stats"
)

// normalEquations returns the lower half of JᵀJ and −Jᵀr, of a Jacobian that is given by columns.
func normalEquations(jacobian [][]float64, r []float64) (lower [][]float64, gradient []float64) {
	n := len(jacobian)
	lower, gradient = stats.Lower(n), make([]float64, n)
	for a := range n {
		for b := range a + 1 {
			for j, v := range jacobian[a] {
				lower[a][b] += float64(v * jacobian[b][j])
			}
		}
		for j, v := range jacobian[a] {
			gradient[a] -= float64(v * r[j])
		}
	}
	return lower, gradient
}

// What keeps a quantity that changes nothing from making the equations singular.
const (
	leastDiagonal = 1e-9
	leastPivot    = 1e-12
)

// solve returns x of (A + damping·diag(A))·x = b for a symmetric A of which the lower half is given, by Cholesky's
// method.
func solve(lower [][]float64, b []float64, damping float64) []float64 {
	n := len(b)
	l, x := stats.Lower(n), slices.Clone(b)
	for i := range n {
		copy(l[i], lower[i])
		l[i][i] += float64(damping*lower[i][i]) + leastDiagonal
	}
	stats.Cholesky(l, leastPivot)
	stats.Forward(l, x)
	for i := n - 1; i >= 0; i-- { // by rows, as recorded fits were made: stats.Backward rounds in another order
		for k := i + 1; k < n; k++ {
			x[i] -= float64(l[k][i] * x[k])
		}
		x[i] /= l[i][i]
	}
	return x
}
