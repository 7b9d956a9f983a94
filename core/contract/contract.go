// Package contract is the vocabulary of tensor contractions, C = α Σ A·B + β C with any number of indices: how they are
// written, what makes one of sense, which GEMMs compute it, and its result in float64.
//
// An index is a letter. It is free (in C and in one operand), a batch index (in C, A and B) or a summation index (in A
// and B alone). An index has one size and in each tensor a stride.
package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Contraction is which indices the tensors have. Each text lists the letters of a tensor, the one with the shortest
// stride first. Einsum writes them the other way round, and may give an operand an index twice: its diagonal.
type Contraction struct{ A, B, C string }

// MaxIndices bounds the indices of a contraction: as many as there are letters from i on.
const MaxIndices = 18

// Class says what an index is.
type Class uint8

// The classes of indices.
const (
	FreeA Class = iota // in A and C
	FreeB              // in B and C
	Batch              // in all three
	Sum                // in A and B
	classes
)

// String returns the class's name.
func (c Class) String() string {
	return [...]string{FreeA: "free in A", FreeB: "free in B", Batch: "batch", Sum: "summation"}[c]
}

// Tensor returns the letters of a tensor, shortest stride first.
func (c Contraction) Tensor(o gemm.Operand) string { return [...]string{c.A, c.B, c.C}[o] }

// Letters returns the indices of C in its order, then the summation indices in A's order.
func (c Contraction) Letters() string {
	letters := c.C
	for _, x := range c.A {
		if !strings.ContainsRune(letters, x) {
			letters += string(x)
		}
	}
	return letters
}

// Class returns what an index of a valid contraction is.
func (c Contraction) Class(letter byte) Class {
	a, b := strings.IndexByte(c.A, letter) >= 0, strings.IndexByte(c.B, letter) >= 0
	switch {
	case strings.IndexByte(c.C, letter) < 0:
		return Sum
	case a && b:
		return Batch
	case a:
		return FreeA
	default:
		return FreeB
	}
}

// Of returns the indices of a class, in the order of Letters.
func (c Contraction) Of(class Class) string {
	return strings.Map(func(x rune) rune {
		if c.Class(byte(x)) == class {
			return x
		}
		return -1
	}, c.Letters())
}

// Validate reports the first index that makes no sense.
func (c Contraction) Validate() error {
	return c.check(false, place)
}

func place(o gemm.Operand, i int) string { return fmt.Sprintf("index %d of %s", i+1, o) }

// check is Validate with the words for the place of the i-th index of a tensor. Operands may be diagonals or not.
func (c Contraction) check(diagonals bool, place func(o gemm.Operand, i int) string) error {
	for o := gemm.A; o <= gemm.C; o++ {
		t := c.Tensor(o)
		for i := range len(t) {
			if err := c.checkIndex(diagonals && o != gemm.C, o, i); err != nil {
				return err.At("%s", place(o, i))
			}
		}
	}
	if n := len(c.Letters()); n > MaxIndices {
		return diag.Inputf("the contraction has %d indices", n).Do("use at most %d", MaxIndices)
	}
	return nil
}

// others are the tensors beside one.
var others = [...][2]gemm.Operand{gemm.A: {gemm.B, gemm.C}, gemm.B: {gemm.A, gemm.C}, gemm.C: {gemm.A, gemm.B}}

func (c Contraction) checkIndex(diagonal bool, o gemm.Operand, i int) *diag.Error {
	t := c.Tensor(o)
	x := t[i]
	if x == '.' {
		return diag.Inputf("an ellipsis stands for indices of a number that is not given").Do("write a letter for each")
	}
	if !isLetter(x) {
		return diag.Inputf("%q is no index", x).Do("use letters")
	}
	if !diagonal && strings.IndexByte(t[:i], x) >= 0 {
		return diag.Inputf("%s has the index %c twice", o, x).Do("give each dimension its own letter")
	}
	p, q := others[o][0], others[o][1]
	if strings.IndexByte(c.Tensor(p), x) < 0 && strings.IndexByte(c.Tensor(q), x) < 0 {
		err := diag.Inputf("the index %c is in %s alone", x, o)
		if o == gemm.C {
			return err.Do("it belongs in %s or %s as well", p, q)
		}
		return err.Do("put it in %s or %s as well, or sum over it before", p, q)
	}
	return nil
}

func isLetter(x byte) bool { return 'a' <= x && x <= 'z' || 'A' <= x && x <= 'Z' }

// String returns the einsum text, as NumPy and PyTorch read it for tensors whose last index is contiguous.
func (c Contraction) String() string {
	return reversed(c.A) + "," + reversed(c.B) + "->" + reversed(c.C)
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// Lists are lists of integers: C's indices are numbered from 0 in its order, and the summation indices after
// them. A and B are the numbers of their indices, the shortest stride first.
type Lists struct {
	A, B []int
	// C is the number of C's indices.
	C int
}

// Lists returns the contraction as lists of integers.
func (c Contraction) Lists() Lists {
	letters := c.Letters()
	numbers := func(t string) []int {
		list := make([]int, len(t))
		for i := range list {
			list[i] = strings.IndexByte(letters, t[i])
		}
		return list
	}
	return Lists{A: numbers(c.A), B: numbers(c.B), C: len(c.C)}
}

// FromLists returns the contraction of lists of integers, with the letters of ParseTensors.
func FromLists(l Lists) (Contraction, error) {
	if l.C < 0 || l.C > MaxIndices {
		return Contraction{}, diag.Inputf("C has %d indices", l.C).Do("use at most %d", MaxIndices)
	}
	text := func(o gemm.Operand, list []int) (string, error) {
		b := make([]byte, len(list))
		for i, x := range list {
			if x < 0 || x >= MaxIndices {
				return "", diag.Inputf("there is no index %d", x).At("index %d of %s", i+1, o).
					Do("number the indices from 0 to %d", MaxIndices-1)
			}
			b[i] = firstLetter + byte(x)
		}
		return string(b), nil
	}
	c := Contraction{C: tensorLetters[:l.C]}
	var err error
	if c.A, err = text(gemm.A, l.A); err != nil {
		return c, err
	}
	if c.B, err = text(gemm.B, l.B); err != nil {
		return c, err
	}
	return c, c.Validate()
}

// firstLetter is the first letter of named indices, tensorLetters are all of them.
const (
	firstLetter   = 'i'
	tensorLetters = "ijklmnopqrstuvwxyz"
)
