package score

import (
	"cmp"
	"slices"

	"github.com/origami-gemm/origami/core/gemm"
)

// Folds deals problems into n folds for a cross-validation that holds out whole sizes: the problems of each class, by
// operations and then by m, n and k, in turn, so that every fold has its share of every class and of every order of
// magnitude. The same problems always make the same folds, whatever their order. It returns each problem's fold.
func Folds(problems []gemm.Problem, n int) []int {
	order := make([]int, len(problems))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		p, q := problems[a], problems[b]
		return cmp.Or(cmp.Compare(ClassOf(p), ClassOf(q)), cmp.Compare(p.Flops(), q.Flops()), cmp.Compare(p.M, q.M), cmp.Compare(p.N, q.N),
			cmp.Compare(p.K, q.K), cmp.Compare(p.String(), q.String()))
	})
	folds := make([]int, len(problems))
	for place, i := range order {
		folds[i] = place % n
	}
	return folds
}
