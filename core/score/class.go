package score

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/gemm"
)

// Class is a class of problem shapes. Models fail differently on each, and a mean over all problems would hide that.
type Class uint8

// The classes. A problem belongs to the first one that fits.
const (
	// Tiny problems have at most 2·512³ operations. Launch and prologue take longer than the arithmetic.
	Tiny Class = iota
	// Decode problems have an M or N of at most 64. One operand is streamed once, so memory bandwidth limits them.
	Decode
	// LargeK problems have a K of at least 8 times M and N. They have too few output tiles to fill the device.
	LargeK
	// Skinny problems have one side of C at least 8 times as long as the other.
	Skinny
	// Square problems are all others.
	Square
)

// Layer is a class of the shapes of a network's layers, whose M is the number of tokens. Unlike Class, it tells how few
// tokens are decoded from how many are read.
type Layer uint8

// The classes of layers. A problem belongs to the first one that fits.
const (
	// LayerTiny problems have at most 1 MiB of operands and results. The launch takes longer than the work.
	LayerTiny Layer = iota
	// LayerNarrow problems have an N of at most 128.
	LayerNarrow
	// LayerLargeK problems have a K of at least 8 times M and N.
	LayerLargeK
	// LayerDecode problems have an M of at most 16.
	LayerDecode
	// LayerSmall problems have an M of at most 256.
	LayerSmall
	// LayerPrefill problems are all others.
	LayerPrefill
)

// The limits of the classes.
const (
	tinyFlops   = 2 * 512 * 512 * 512
	tinyBits    = 8 << 20
	decodeSide  = 64
	decodeM     = 16
	smallM      = 256
	narrowN     = 128
	classAspect = 8
)

// The names as JSON and the terminal show them.
var (
	classNames = [...]string{"tiny", "decode", "large-k", "skinny", "square"}
	layerNames = [...]string{"tiny", "narrow-n", "large-k", "decode", "small-m", "prefill"}
)

// Classes lists the classes.
func Classes() []Class { return []Class{Tiny, Decode, LargeK, Skinny, Square} }

// Layers lists the classes of layers.
func Layers() []Layer {
	return []Layer{LayerTiny, LayerNarrow, LayerLargeK, LayerDecode, LayerSmall, LayerPrefill}
}

// ClassOf returns a problem's class.
func ClassOf(p gemm.Problem) Class {
	short, long := min(p.M, p.N), max(p.M, p.N)
	switch {
	case p.Flops() <= tinyFlops:
		return Tiny
	case short <= decodeSide:
		return Decode
	case p.K/classAspect >= long:
		return LargeK
	case long/classAspect >= short:
		return Skinny
	default:
		return Square
	}
}

// LayerOf returns a problem's class of layers.
func LayerOf(p gemm.Problem) Layer {
	bits := func(rows, columns int, t gemm.DType) float64 {
		return float64(rows) * float64(columns) * float64(t.Bits())
	}
	switch {
	case bits(p.M, p.K, p.DType)+bits(p.K, p.N, p.DType)+bits(p.M, p.N, p.Output()) <= tinyBits:
		return LayerTiny
	case p.N <= narrowN:
		return LayerNarrow
	case p.K/classAspect >= max(p.M, p.N):
		return LayerLargeK
	case p.M <= decodeM:
		return LayerDecode
	case p.M <= smallM:
		return LayerSmall
	default:
		return LayerPrefill
	}
}

// String returns the class's name.
func (c Class) String() string { return named(classNames[:], "class", int(c)) }

// String returns the class's name.
func (l Layer) String() string { return named(layerNames[:], "layer", int(l)) }

func named(names []string, kind string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

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
