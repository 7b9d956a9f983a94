package gemm

import (
	"iter"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/origami-gemm/origami/core/diag"
)

// Dimension is one of the dimensions of a problem.
type Dimension byte

// The dimensions.
const (
	DimM     Dimension = 'm'
	DimN     Dimension = 'n'
	DimK     Dimension = 'k'
	DimBatch Dimension = 'b'
)

// NestIndex is an index of tensors that are no matrices in memory. It is a part of a dimension.
type NestIndex struct {
	Dim  Dimension
	Size int
	// Strides are elements from one value of the index to the next in A, B and C. They are 0 in a tensor that does not
	// have the dimension.
	Strides [3]int
}

// Nest says which indices each dimension of a problem consists of, if the tensors are no matrices in memory: a kernel
// then walks nested loops, or looks up where each row and column is. The first index of a dimension changes fastest.
// Two nests are == if they list the same. The zero value has no indices: the matrices are matrices.
type Nest struct {
	// text is "m64:1:0:3,k16:64:1:0": dimension, size, and the strides in A, B and C.
	text unique.Handle[string]
}

// MaxNested bounds the indices of a nest.
const MaxNested = 18

// NewNest returns the nest of some indices.
func NewNest(indices ...NestIndex) (Nest, error) {
	if len(indices) == 0 {
		return Nest{}, nil
	}
	if len(indices) > MaxNested {
		return Nest{}, diag.Inputf("there are %d nested indices", len(indices)).Do("give at most %d", MaxNested)
	}
	var text []byte
	for i, x := range indices {
		if err := x.check(); err != nil {
			return Nest{}, err.At("index %d of the nest", i+1)
		}
		text = append(text, byte(x.Dim))
		text = strconv.AppendInt(text, int64(x.Size), 10)
		for _, v := range x.Strides {
			text = strconv.AppendInt(append(text, ':'), int64(v), 10)
		}
		text = append(text, ',')
	}
	return Nest{unique.Make(string(text[:len(text)-1]))}, nil
}

// check reports an index that no tensor can have.
func (x *NestIndex) check() *diag.Error {
	absent := map[Dimension]Operand{DimM: B, DimN: A, DimK: C, DimBatch: C + 1}
	o, ok := absent[x.Dim]
	switch {
	case !ok:
		return diag.Inputf("there is no dimension %q", byte(x.Dim)).Do("use m, n, k or b")
	case x.Size < 1:
		return diag.Inputf("the size is %d", x.Size).Do("give a whole number of at least 1")
	case o <= C && x.Strides[o] != 0:
		return diag.Inputf("%s has no %c, and a stride of %d along it", o, x.Dim, x.Strides[o]).Do("give 0")
	}
	for i, v := range x.Strides {
		if v < 0 || !fits(x.Size, max(v, 1), 1, 1) {
			return diag.Inputf("the stride in %s is %d", Operand(i), v).Do("give a whole number from 0 on")
		}
	}
	return nil
}

// ParseNest reads what String returns.
func ParseNest(text string) (Nest, error) {
	if text == "" {
		return Nest{}, nil
	}
	indices, wrong := parseIndices(text)
	if wrong != "" {
		return Nest{}, diag.Inputf("%q is no index of a nest", wrong).
			Do("write dimension, size and three strides: m64:1:0:3")
	}
	return NewNest(indices...)
}

// parseIndices reads the indices of a nest, up to a wrong index or one too many.
func parseIndices(text string) (indices []NestIndex, wrong string) {
	for word := range strings.SplitSeq(text, ",") {
		cells := strings.Split(word, ":")
		if len(cells) != 4 || len(cells[0]) < 2 || len(indices) > MaxNested {
			return nil, word
		}
		numbers := [4]int{}
		for i, cell := range append([]string{cells[0][1:]}, cells[1:]...) {
			var err error
			if numbers[i], err = strconv.Atoi(cell); err != nil {
				return nil, word
			}
		}
		indices = append(indices, NestIndex{Dimension(cells[0][0]), numbers[0], [3]int(numbers[1:])})
	}
	return indices, ""
}

// String returns what ParseNest reads, or the empty string.
func (n Nest) String() string {
	if n == (Nest{}) {
		return ""
	}
	return n.text.Value()
}

// Equal is ==.
func (n Nest) Equal(o Nest) bool { return n == o }

// Indices returns the indices.
func (n Nest) Indices() []NestIndex {
	indices, _ := parseIndices(n.String()) // none of the empty text
	return indices
}

// Along returns the indices of a dimension, the fastest first.
func (n Nest) Along(d Dimension) []NestIndex {
	return slices.DeleteFunc(n.Indices(), func(x NestIndex) bool { return x.Dim != d })
}

// Walk yields where each value of a dimension begins in a tensor, in elements.
func (n Nest) Walk(d Dimension, o Operand) iter.Seq[int] {
	return func(yield func(int) bool) {
		indices := n.Along(d)
		values, at := make([]int, len(indices)), 0
		for yield(at) {
			i := 0
			for ; i < len(indices); i++ {
				x := &indices[i]
				if values[i]++; values[i] < x.Size {
					at += x.Strides[o]
					break
				}
				at -= (x.Size - 1) * x.Strides[o]
				values[i] = 0
			}
			if i == len(indices) {
				return
			}
		}
	}
}

// Offsets lists what Walk yields.
func (n Nest) Offsets(d Dimension, o Operand) []int { return slices.Collect(n.Walk(d, o)) }

// Span returns how many elements a tensor of a nest spans in memory.
func (n Nest) Span(o Operand) int {
	span := 1
	for _, x := range n.Indices() {
		span += (x.Size - 1) * x.Strides[o]
	}
	return span
}

// Flat returns the problem with matrices in place of the tensors: the same dimensions, with rows that are only as
// aligned as an element. It is what models know. Of an epilogue it has whether there is a gate, for C has half the
// columns then, and whether the activation needs registers.
func (p Problem) Flat() Problem {
	var e Epilogue
	switch a := p.Epilogue.Activation; {
	case a.Gated():
		e.Activation = GatedSiLU
	case a >= QuickGELU:
		e.Activation = SiLU
	}
	p.Nest, p.Alpha, p.Beta, p.Epilogue = Nest{}, 0, 0, e
	return p
}

// size returns the size of a dimension.
func (p *Problem) size(d Dimension) int {
	return map[Dimension]int{DimM: p.M, DimN: p.N, DimK: p.K, DimBatch: p.Batch}[d]
}

// validNest checks the nest of a problem.
func (p *Problem) validNest() error {
	const fix = "let the nest's indices make up the dimensions"
	if p.Groups != (Groups{}) || p.LDA|p.LDB|p.LDC != 0 {
		return diag.Inputf("a problem with nested indices has groups or leading dimensions").Do("leave them out")
	}
	for _, d := range []Dimension{DimM, DimN, DimK, DimBatch} {
		volume := uint64(1)
		for _, x := range p.Nest.Along(d) {
			hi, lo := bits.Mul64(volume, uint64(x.Size))
			if volume = lo; hi != 0 {
				return diag.Inputf("the sizes along %c overflow", d).Do(fix)
			}
		}
		if volume != uint64(p.size(d)) {
			return diag.Inputf("the nest has %d values along %c, and the problem %d", volume, d, p.size(d)).Do(fix)
		}
	}
	for o := A; o <= C; o++ {
		if span := p.Nest.Span(o); span < 1 || !fits(span, 1, 1, 1) {
			return diag.Inputf("%s spans more than 64-bit offsets reach", o).Do("use smaller strides")
		}
	}
	return nil
}
