package fit

import (
	"math"
	"slices"
)

// normalEquations returns the lower half of JᵀJ and −Jᵀr, of a Jacobian that is given by columns.
func normalEquations(jacobian [][]float64, r []float64) (lower [][]float64, gradient []float64) {
	n := len(jacobian)
	lower, gradient = make([][]float64, n), make([]float64, n)
	for a := range n {
		lower[a] = make([]float64, n)
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
	l, x := make([][]float64, n), slices.Clone(b)
	for i := range n {
		l[i] = slices.Clone(lower[i])
		l[i][i] += float64(damping*lower[i][i]) + leastDiagonal
		for j := range i + 1 {
			for k := range j {
				l[i][j] -= float64(l[i][k] * l[j][k])
			}
			if i == j {
				l[i][i] = math.Sqrt(max(l[i][i], leastPivot))
			} else {
				l[i][j] /= l[j][j]
			}
		}
	}
	for i := range n {
		for k := range i {
			x[i] -= float64(l[i][k] * x[k])
		}
		x[i] /= l[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= float64(l[k][i] * x[k])
		}
		x[i] /= l[i][i]
	}
	return x
}
