package score

import (
	"cmp"
	"slices"

	"github.com/origami-gemm/origami/core/gemm"
)

// Folds assigns problems to n folds for a cross-validation that holds out whole sizes. It returns the fold of each
// problem.
//
// Folds are stratified: the problems are sorted by class, operations, m, n and k and dealt out in turn, so that
// every fold has its share of each class and order of magnitude. The same problems always get the same folds, in
// whatever order they are given.
func Folds(problems []gemm.Problem, n int) []int {
	order := make([]int, len(problems))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		p, q := problems[a], problems[b]
		return cmp.Or(
			cmp.Compare(ClassOf(p), ClassOf(q)), cmp.Compare(p.Flops(), q.Flops()),
			cmp.Compare(p.M, q.M), cmp.Compare(p.N, q.N), cmp.Compare(p.K, q.K), cmp.Compare(p.String(), q.String()),
			cmp.Compare(p.Groups.String(), q.Groups.String()),
		)
	})
	folds := make([]int, len(problems))
	for place, i := range order {
		folds[i] = place % n
	}
	return folds
}
