package contract

import (
	"cmp"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Nested returns the contraction as one problem with a nest: m are the free indices of A, n the free ones of B, k the
// summation indices and the batch the batch indices, each merged as far as the strides allow. Every contraction has
// one. A and B change places, which Swapped says, if C is contiguous along a free index of A.
//
// In each dimension the index with the shortest stride in the operand is the fastest, so that neighbouring threads read
// neighbouring elements where there are such.
func (s *Shape) Nested(types gemm.Types) (Plan, error) {
	if !types.Valid() {
		return Plan{}, diag.Inputf("no hardware multiplies %s operands into %s results", types.In, types.Out).
			Do("use other types")
	}
	var axes [classes][]axis
	for c := range classes {
		axes[c] = s.merged(c, [3]bool{})
	}
	p := Plan{Calls: 1, Nested: 1, Swapped: fastest(axes[FreeA], gemm.C) < fastest(axes[FreeB], gemm.C)}
	if p.Swapped {
		axes[FreeA], axes[FreeB] = axes[FreeB], axes[FreeA]
		for c := range axes {
			for i := range axes[c] {
				x := &axes[c][i]
				x.stride[gemm.A], x.stride[gemm.B] = x.stride[gemm.B], x.stride[gemm.A]
			}
		}
	}
	sortAxes(axes[FreeA], gemm.A)
	sortAxes(axes[FreeB], gemm.B)
	sortAxes(axes[Sum], gemm.A, gemm.B)
	sortAxes(axes[Batch], gemm.C)
	p.Problem = gemm.Problem{M: 1, N: 1, K: 1, Batch: 1, DType: types.In, Out: types.Out,
		AMajor: gemm.MajorK, BMajor: gemm.MajorK}
	// 8-bit elements are not transposed on their way to the tensor cores.
	if k := fastest(axes[Sum], gemm.A); types.In.Bytes() > 1 && fastest(axes[FreeA], gemm.A) < k {
		p.Problem.AMajor = gemm.MajorM
	}
	if k := fastest(axes[Sum], gemm.B); types.In.Bytes() > 1 && fastest(axes[FreeB], gemm.B) < k {
		p.Problem.BMajor = gemm.MajorN
	}
	var nest []gemm.NestIndex
	for _, d := range []struct {
		class   Class
		dim     gemm.Dimension
		size    *int
		letters *string
	}{{FreeA, gemm.DimM, &p.Problem.M, &p.M}, {FreeB, gemm.DimN, &p.Problem.N, &p.N}, {Sum, gemm.DimK, &p.Problem.K, &p.K},
		{Batch, gemm.DimBatch, &p.Problem.Batch, &p.Batch}} {
		for _, x := range axes[d.class] {
			*d.size *= x.size
			*d.letters += x.letters
			nest = append(nest, gemm.NestIndex{Dim: d.dim, Size: x.size, Strides: x.stride})
		}
	}
	if nest == nil { // a product of two numbers
		nest = []gemm.NestIndex{{Dim: gemm.DimK, Size: 1}}
	}
	var err error
	if p.Problem.Nest, err = gemm.NewNest(nest...); err != nil {
		return p, err
	}
	for o := gemm.A; o <= gemm.C; o++ {
		if err := p.Problem.SetAlign(o, max(1, p.Problem.Type(o).Bytes())); err != nil {
			return p, err
		}
	}
	p.Problem = p.Problem.Canonical()
	return p, p.Problem.Validate()
}

// fastest returns the shortest stride of some axes in some tensors, and more than any if there are none.
func fastest(axes []axis, tensors ...gemm.Operand) int {
	shortest := mostVolume
	for _, x := range axes {
		for _, o := range tensors {
			shortest = min(shortest, x.stride[o])
		}
	}
	return shortest
}

// sortAxes puts those first that have the shortest stride in one of some tensors.
func sortAxes(axes []axis, tensors ...gemm.Operand) {
	slices.SortStableFunc(axes, func(x, y axis) int {
		return cmp.Compare(fastest([]axis{x}, tensors...), fastest([]axis{y}, tensors...))
	})
}
