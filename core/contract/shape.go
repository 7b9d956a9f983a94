package contract

import (
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Shape is a contraction with sizes and strides.
type Shape struct {
	Contraction
	sizes [256]int
	// strides are the strides of each tensor's indices in elements, in the order of its letters.
	strides [3][]int
}

// Strides are the strides of a tensor's indices in elements, in the order of the tensor's letters. Nil is a tensor
// without gaps.
type Strides []int

// mostVolume bounds the product of all sizes, so that no number of operations overflows.
const mostVolume = 1 << 58

// Shape returns the contraction with sizes, which every index needs, and strides.
func (c Contraction) Shape(sizes Sizes, a, b, result Strides) (*Shape, error) {
	if err := c.check(true, place); err != nil {
		return nil, err
	}
	s := &Shape{Contraction: c}
	volume := uint64(1)
	letters := c.Letters()
	for i := range len(letters) {
		x := letters[i]
		n, ok := sizes[x]
		switch {
		case !ok:
			return nil, diag.Inputf("the index %c (%s) has no size", x, c.Class(x)).Do("give one, as in %c=512", x)
		case n < 1:
			return nil, diag.Inputf("the size of %c is %d", x, n).Do("give a whole number of at least 1")
		}
		hi, lo := bits.Mul64(volume, uint64(n))
		if volume = lo; hi != 0 || lo > mostVolume {
			return nil, diag.Inputf("the product of the sizes overflows at %c", x).Do("keep it below 2^58")
		}
		s.sizes[x] = n
	}
	for _, x := range slices.Sorted(maps.Keys(sizes)) {
		if strings.IndexByte(letters, x) < 0 {
			return nil, diag.Inputf("there is no index %c", x).
				Do("the indices are %s", strings.Join(strings.Split(letters, ""), ", "))
		}
	}
	for o, given := range [...]Strides{gemm.A: a, gemm.B: b, gemm.C: result} {
		if err := s.setStrides(gemm.Operand(o), given); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Shape) setStrides(o gemm.Operand, given Strides) error {
	t := s.Tensor(o)
	if given == nil {
		given = make(Strides, len(t))
		next := 1
		for i := range given {
			given[i] = next
			next *= s.sizes[t[i]]
		}
	}
	if len(given) != len(t) {
		return diag.Inputf("%s has %d indices and %d strides", o, len(t), len(given)).Do("give one for each")
	}
	last := uint64(0)
	for i, stride := range given {
		if stride < 0 {
			return diag.Inputf("the stride of %c in %s is %d", t[i], o, stride).Do("strides are not negative")
		}
		hi, lo := bits.Mul64(uint64(stride), uint64(s.sizes[t[i]]))
		if last += lo; hi != 0 || lo > mostVolume || last > mostVolume {
			return diag.Inputf("the strides of %s overflow at %c", o, t[i]).Do("keep the tensor below 2^58 elements")
		}
	}
	// An index that an operand has twice takes a step in both dimensions: its stride is their sum.
	once := ""
	for i, stride := range given {
		if at := strings.IndexByte(once, t[i]); at >= 0 {
			s.strides[o][at] += stride
			continue
		}
		once += t[i : i+1]
		s.strides[o] = append(s.strides[o], stride)
	}
	*[...]*string{&s.A, &s.B, &s.C}[o] = once
	if o == gemm.C {
		return s.checkResult()
	}
	return nil
}

// checkResult reports strides of C by which two elements have one place. Operands may share elements.
func (s *Shape) checkResult() error {
	order := make([]int, len(s.C))
	for i := range order {
		order[i] = i
	}
	strides := s.strides[gemm.C]
	slices.SortStableFunc(order, func(i, j int) int { return strides[i] - strides[j] })
	end := 0 // the furthest element of the indices so far
	for _, i := range order {
		n := s.sizes[s.C[i]]
		if n > 1 && strides[i] <= end {
			return diag.Inputf("the stride of %c in C is %d, and the elements before it reach %d", s.C[i], strides[i], end).
				Do("give at least %d: elements of C must not overlap", end+1)
		}
		end += (n - 1) * strides[i]
	}
	return nil
}

// Size returns the size of an index.
func (s *Shape) Size(letter byte) int { return s.sizes[letter] }

// Stride returns the stride of an index in a tensor, 0 if it has no such index.
func (s *Shape) Stride(o gemm.Operand, letter byte) int {
	if i := strings.IndexByte(s.Tensor(o), letter); i >= 0 {
		return s.strides[o][i]
	}
	return 0
}

// Len returns how many elements a tensor spans in memory.
func (s *Shape) Len(o gemm.Operand) int {
	n := 1
	for i, stride := range s.strides[o] {
		n += (s.sizes[s.Tensor(o)[i]] - 1) * stride
	}
	return n
}

// Elements returns how many elements a tensor has.
func (s *Shape) Elements(o gemm.Operand) int { return s.count(s.Tensor(o)) }

// count returns the product of sizes.
func (s *Shape) count(letters string) int {
	n := 1
	for i := range len(letters) {
		n *= s.sizes[letters[i]]
	}
	return n
}

// Flops returns the operations of the contraction, 2 for each product.
func (s *Shape) Flops() float64 { return 2 * float64(s.count(s.Letters())) }

// Reference computes C = alpha·Σ A·B + beta·C in float64, with nested loops over all indices. The slices have at least
// Len elements. As in BLAS, a beta of 0 means that C is not read.
func (s *Shape) Reference(alpha float64, a, b []float64, beta float64, c []float64) {
	outer, sums := s.C, s.Of(Sum)
	for at := range s.walk(outer) {
		total := 0.0
		for inner := range s.walk(sums) {
			total += a[at[gemm.A]+inner[gemm.A]] * b[at[gemm.B]+inner[gemm.B]]
		}
		to := &c[at[gemm.C]]
		if beta == 0 {
			*to = alpha * total
		} else {
			*to = alpha*total + beta**to
		}
	}
}

// walk visits all values of some indices and yields the offsets that they have in the three tensors.
func (s *Shape) walk(letters string) func(yield func([3]int) bool) {
	return func(yield func([3]int) bool) {
		var at [3]int
		values := make([]int, len(letters))
		for {
			if !yield(at) {
				return
			}
			i := 0
			for ; i < len(letters); i++ {
				x, step := letters[i], 1
				values[i]++
				if wraps := values[i] == s.sizes[x]; wraps {
					step, values[i] = 1-s.sizes[x], 0
				}
				for o := gemm.A; o <= gemm.C; o++ {
					at[o] += step * s.Stride(o, x)
				}
				if step == 1 {
					break
				}
			}
			if i == len(letters) {
				return
			}
		}
	}
}
