package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// mostText bounds the text of a contraction in bytes.
const mostText = 256

// forms is the advice of an error in a text.
const forms = `write "ijk,jlk->il" (the last index is contiguous), Cijk_Ailk_Bjlk_SB or "[0,3,2],[1,3,2]->[0,1,2]" ` +
	"(the first one is)"

// Parse reads a contraction as einsum, as tensors with their letters, or as lists of integers. In einsum the last index
// is contiguous, in the others the first.
func Parse(text string) (Contraction, error) {
	switch {
	case len(text) > mostText:
		return Contraction{}, diag.Inputf("the contraction has %d bytes of text", len(text)).Do("use at most %d", mostText)
	case IsName(text):
		c, rest, err := ParseTensors(text)
		if err == nil && rest != "" {
			err = diag.Inputf("%q is behind the tensors", rest).At("%q", text).Do("leave it out")
		}
		return c, err
	}
	operands, result, ok := strings.Cut(text, "->")
	if !ok {
		return Contraction{}, diag.Inputf("%q has no ->", text).Do(forms)
	}
	if strings.Contains(text, "[") {
		return parseLists(text, operands, result)
	}
	return parseEinsum(text, operands, result)
}

func parseEinsum(text, operands, result string) (Contraction, error) {
	a, b, ok := strings.Cut(operands, ",")
	if !ok {
		return Contraction{}, diag.Inputf("%q has one operand: to copy or sum a tensor is no product", text).Do(forms)
	}
	if n := strings.Count(operands, ","); n > 1 {
		return Contraction{}, diag.Inputf("%q has %d operands", text, n+1).
			Do("contract two at a time, and use the result as an operand of the next")
	}
	c := Contraction{A: reversed(strings.TrimSpace(a)), B: reversed(strings.TrimSpace(b)),
		C: reversed(strings.TrimSpace(result))}
	starts := [...]int{gemm.A: indent(a), gemm.B: len(a) + 1 + indent(b), gemm.C: len(operands) + 2 + indent(result)}
	return c, c.check(true, func(o gemm.Operand, i int) string {
		return fmt.Sprintf("%q: column %d", text, starts[o]+len(c.Tensor(o))-i)
	})
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

func parseLists(text, operands, result string) (Contraction, error) {
	a, b, ok := strings.Cut(operands, "],")
	if !ok {
		return Contraction{}, diag.Inputf("%q has not two lists before ->", text).Do(forms)
	}
	var lists [3][]int
	for o, part := range [...]string{gemm.A: a + "]", gemm.B: b, gemm.C: result} {
		list, err := parseList(part)
		if err != nil {
			return Contraction{}, diag.Inputf("%s of %q %v", gemm.Operand(o), text, err).Do(forms)
		}
		lists[o] = list
	}
	for i, x := range lists[gemm.C] {
		if x != i {
			return Contraction{}, diag.Inputf("C's index %d is number %d", i+1, x).At("%q", text).
				Do("number C's indices 0, 1, 2… and the summation indices after them")
		}
	}
	c, err := FromLists(Lists{A: lists[gemm.A], B: lists[gemm.B], C: len(lists[gemm.C])})
	return c, diag.Within(fmt.Sprintf("%q", text), err)
}

// parseList reads "[0,3,2]". The error completes a sentence.
func parseList(s string) ([]int, error) {
	s = strings.TrimSpace(s)
	inner, ok := strings.CutPrefix(s, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !ok || !closed {
		return nil, fmt.Errorf("is no list: %q", s)
	}
	if strings.TrimSpace(inner) == "" {
		return nil, nil
	}
	var list []int
	for cell := range strings.SplitSeq(inner, ",") {
		x, err := strconv.Atoi(strings.TrimSpace(cell))
		if err != nil {
			return nil, fmt.Errorf("has %q, which is no whole number", cell)
		}
		list = append(list, x)
	}
	return list, nil
}

// Sizes are the sizes of indices, by letter.
type Sizes map[byte]int

// ParseSizes reads "i=512,j=64".
func ParseSizes(words ...string) (Sizes, error) {
	sizes := Sizes{}
	for _, text := range words {
		for word := range strings.SplitSeq(text, ",") {
			letter, value, ok := strings.Cut(strings.TrimSpace(word), "=")
			if !ok || len(letter) != 1 || !isLetter(letter[0]) {
				return nil, diag.Inputf("%q is no size of an index", word).Do("write it as in i=512,j=64")
			}
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return nil, diag.Inputf("the size of %s is %q", letter, value).Do("give a whole number of at least 1")
			}
			if _, again := sizes[letter[0]]; again {
				return nil, diag.Inputf("%s has two sizes", letter).Do("give each index one")
			}
			sizes[letter[0]] = n
		}
	}
	return sizes, nil
}

// ParseStrides reads "a=4096,64,1": the strides of a tensor, in the order in which the text of a contraction writes its
// indices. It returns the strides of A, B and C, nil for a tensor without gaps.
func ParseStrides(c Contraction, text string, words ...string) (strides [3]Strides, err error) {
	const form = "write it as in a=4096,64,1"
	for _, word := range words {
		name, list, ok := strings.Cut(strings.TrimSpace(word), "=")
		o := gemm.Operand(strings.Index("abc", strings.ToLower(name)))
		if !ok || len(name) != 1 || o > gemm.C {
			return strides, diag.Inputf("%q is no tensor's strides", word).Do(form)
		}
		if strides[o] != nil {
			return strides, diag.Inputf("%s has strides twice", o).Do("give each tensor one list")
		}
		strides[o] = Strides{}
		for cell := range strings.SplitSeq(list, ",") {
			v, err := strconv.Atoi(strings.TrimSpace(cell))
			if err != nil || v < 0 {
				return strides, diag.Inputf("a stride of %s is %q", o, cell).Do("give whole numbers from 0 on")
			}
			strides[o] = append(strides[o], v)
		}
		if t := c.Tensor(o); len(strides[o]) != len(t) {
			return strides, diag.Inputf("%s has %d indices and %d strides", o, len(t), len(strides[o])).
				Do("give one for each index, in the order of the text")
		}
		if !IsName(text) && !strings.Contains(text, "[") {
			slices.Reverse(strides[o]) // einsum writes the longest stride first
		}
	}
	return strides, nil
}
