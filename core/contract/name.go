package contract

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// IsName reports whether a text is meant as tensors with their letters, as in Cijk_Ailk_Bjlk.
func IsName(text string) bool { return strings.HasPrefix(text, "C") && strings.Contains(text, "_A") }

// ParseTensors reads "Cijk_Ailk_Bjlk", in which the first index of a tensor is contiguous. The second result is the
// text behind it, which begins with an underscore unless it is empty.
func ParseTensors(text string) (c Contraction, rest string, err error) {
	const form = "write it as in Cijk_Ailk_Bjlk_SB"
	if len(text) > mostText {
		return c, "", diag.Inputf("the name has %d bytes", len(text)).Do("use at most %d", mostText)
	}
	parts := strings.SplitN(text, "_", 4)
	if len(parts) < 3 {
		return c, "", diag.Inputf("%q is no name of a problem type", text).Do(form)
	}
	column := 1
	var starts [3]int
	for i, tensor := range []struct {
		operand gemm.Operand
		letters *string
	}{{gemm.C, &c.C}, {gemm.A, &c.A}, {gemm.B, &c.B}} {
		letters, ok := strings.CutPrefix(parts[i], tensor.operand.String())
		if !ok {
			return c, "", diag.Inputf("%q does not begin with %s", parts[i], tensor.operand).
				At("%q: column %d", text, column).Do(form)
		}
		starts[tensor.operand] = column + 1
		*tensor.letters = letters
		column += len(parts[i]) + 1
	}
	if err := c.check(false, func(o gemm.Operand, i int) string {
		return fmt.Sprintf("%q: column %d", text, starts[o]+i)
	}); err != nil {
		return c, "", err
	}
	if i := c.unordered(); i >= 0 {
		return c, "", diag.Inputf("C's index %d is %c", i+1, c.C[i]).At("%q: column %d", text, starts[gemm.C]+i).
			Do("letter C's indices i, j, k… and the summation indices after them")
	}
	if letters := c.Letters(); !consecutive(letters[len(c.C):], len(c.C)) {
		return c, "", diag.Inputf("the summation indices are %s", letters[len(c.C):]).At("%q", text).
			Do("letter them on from where C stops")
	}
	return c, text[column-2:], nil
}

// unordered returns the place of the first index of C that is not lettered on from i, −1 if there is none.
func (c Contraction) unordered() int {
	for i := range len(c.C) {
		if i >= len(tensorLetters) || c.C[i] != tensorLetters[i] {
			return i
		}
	}
	return -1
}

// consecutive reports whether letters are the ones from a place of the alphabet on, in any order.
func consecutive(letters string, from int) bool {
	for i := range len(letters) {
		if from+i >= len(tensorLetters) || strings.IndexByte(letters, tensorLetters[from+i]) < 0 {
			return false
		}
	}
	return true
}

// Tensors writes the contraction as ParseTensors reads it, with the letters of Lettered. A diagonal has no name: what
// this writes of one is refused there.
func (c Contraction) Tensors() string {
	c = c.Lettered()
	return "C" + c.C + "_A" + c.A + "_B" + c.B
}

// Lettered returns the contraction in the letters of ParseTensors: C's indices from i on, then the summation indices.
// Letters that are so already stay.
func (c Contraction) Lettered() Contraction {
	letters := c.Letters()
	if c.unordered() < 0 && consecutive(letters[len(c.C):], len(c.C)) {
		return c
	}
	letter := func(t string) string {
		return strings.Map(func(x rune) rune { return rune(tensorLetters[strings.IndexRune(letters, x)]) }, t)
	}
	return Contraction{A: letter(c.A), B: letter(c.B), C: letter(c.C)}
}
