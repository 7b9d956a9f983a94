package stats

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"math"
	"testing"
)

// The root of a matrix solves its equations: L·Lᵀ·x = b.
func TestSolve(t *testing.T) {
	a := [][]float64{{4}, {2, 5}, {-1, 0.5, 3}}
	want := []float64{1, -2, 3}
	b := make([]float64, 3)
	root := Lower(3)
	for i := range 3 {
		copy(root[i], a[i])
		for j := range 3 {
			b[i] += a[max(i, j)][min(i, j)] * want[j]
		}
	}
	Cholesky(root, 1e-12)
	Forward(root, b)
	Backward(root, b)
	for i := range want {
		must.That(t, math.Abs(b[i]-want[i]) <= 1e-12, "x = %v in place of %v", b, want)
	}
}

// A matrix that is singular but for rounding has a root that is finite.
func TestSingular(t *testing.T) {
	root := [][]float64{{1}, {1, 1 - 1e-17}}
	Cholesky(root, 1e-10)
	must.Equal(t, root[1][1], 1e-5)
}
