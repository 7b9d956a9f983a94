package contract

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Name is a problem type as Tensile names it: Cijk_Ailk_Bjlk_SB, or Cijk_Ailk_Bjlk_HHS_BH_Bias_HAS.
type Name struct {
	Contraction
	// Types are the data types in Tensile's letters: of A and B, of C, of the arithmetic; one stands for all. Newer names
	// have two for operands of different types.
	Types []string
	// Flags are the letters B (β is used), H (sums are wider than the operands) and I (initial strides are used).
	Flags string
	// Apart says that an underscore stands between types and flags, as newer names have it.
	Apart bool
	// More are the words after the flags: Bias, HAS, UserArgs and so on.
	More []string
}

// tensileTypes are the letters of the data types and our name for them, 0 for those that no model knows. A text that
// begins with several of them begins with the first.
var tensileTypes = []struct {
	letters string
	dtype   gemm.DType
}{
	{"4xi8", gemm.INT8}, {"F8", gemm.FP8}, {"B8", gemm.FP8E5M2}, {"I8", gemm.INT8}, {"S", gemm.FP32}, {"D", 0}, {"C", 0},
	{"Z", 0}, {"H", gemm.FP16}, {"B", gemm.BF16}, {"X", gemm.TF32}, {"I", gemm.INT32},
}

// IsName reports whether a text is meant as a name of Tensile.
func IsName(text string) bool { return strings.HasPrefix(text, "C") && strings.Contains(text, "_A") }

// ParseName reads the name of a problem type.
func ParseName(text string) (Name, error) {
	const form = "write it as in Cijk_Ailk_Bjlk_SB"
	var n Name
	if len(text) > mostText {
		return n, diag.Inputf("the name has %d bytes", len(text)).Do("use at most %d", mostText)
	}
	parts := strings.Split(text, "_")
	if len(parts) < 3 {
		return n, diag.Inputf("%q is no name of a problem type", text).Do(form)
	}
	column := 1
	var starts [3]int
	for i, tensor := range []struct {
		operand gemm.Operand
		letters *string
	}{{gemm.C, &n.C}, {gemm.A, &n.A}, {gemm.B, &n.B}} {
		letters, ok := strings.CutPrefix(parts[i], tensor.operand.String())
		if !ok {
			return n, diag.Inputf("%q does not begin with %s", parts[i], tensor.operand).At("%q: column %d", text, column).
				Do(form)
		}
		starts[tensor.operand] = column + 1
		*tensor.letters = letters
		column += len(parts[i]) + 1
	}
	if err := n.check(func(o gemm.Operand, i int) string {
		return fmt.Sprintf("%q: column %d", text, starts[o]+i)
	}); err != nil {
		return n, err
	}
	if i := n.unordered(); i >= 0 {
		return n, diag.Inputf("C's index %d is %c", i+1, n.C[i]).At("%q: column %d", text, starts[gemm.C]+i).
			Do("letter C's indices i, j, k… and the summation indices after them")
	}
	if letters := n.Letters(); !consecutive(letters[len(n.C):], len(n.C)) {
		return n, diag.Inputf("the summation indices are %s", letters[len(n.C):]).At("%q", text).
			Do("letter them on from where C stops")
	}
	if len(parts) == 3 {
		return n, nil
	}
	if err := n.suffix(parts[3:]); err != nil {
		return n, diag.Within(fmt.Sprintf("%q: column %d", text, column), err)
	}
	return n, nil
}

// unordered returns the place of the first index of C that is not lettered on from i, −1 if there is none.
func (c Contraction) unordered() int {
	for i := range len(c.C) {
		if i >= len(tensileLetters) || c.C[i] != tensileLetters[i] {
			return i
		}
	}
	return -1
}

// consecutive reports whether letters are those of Tensile's from a place on, in any order.
func consecutive(letters string, from int) bool {
	for i := range len(letters) {
		if from+i >= len(tensileLetters) || strings.IndexByte(letters, tensileLetters[from+i]) < 0 {
			return false
		}
	}
	return true
}

// suffix reads what follows the tensors.
func (n *Name) suffix(parts []string) error {
	rest := parts[0]
	n.Apart = len(parts) > 1 && isFlags(parts[1])
	for rest != "" {
		if !n.Apart && len(n.Types) > 0 && isFlags(rest) {
			n.Flags = rest
			break
		}
		letters := typeAt(rest)
		if letters == "" || len(n.Types) == 4 {
			return diag.Inputf("%q does not begin with a data type", rest).Do("use S, D, C, Z, H, B, X, I8, 4xi8, F8, B8 or I")
		}
		n.Types = append(n.Types, letters)
		rest = rest[len(letters):]
	}
	if len(n.Types) == 0 {
		return diag.Inputf("the name has no data type").Do("write it as in Cijk_Ailk_Bjlk_SB")
	}
	parts = parts[1:]
	if n.Apart {
		n.Flags, parts = parts[0], parts[1:]
	}
	n.More = parts
	return nil
}

// typeAt returns the data type that a text begins with, empty if it begins with none.
func typeAt(s string) string {
	for _, t := range tensileTypes {
		if strings.HasPrefix(s, t.letters) {
			return t.letters
		}
	}
	return ""
}

// isFlags reports whether a word is B, H and I, each at most once and in this order.
func isFlags(s string) bool {
	for _, f := range []string{"B", "H", "I"} {
		s = strings.TrimPrefix(s, f)
	}
	return s == ""
}

// String returns the name. It letters the indices as Tensile does.
func (n Name) String() string {
	c := n.Lettered()
	s := "C" + c.C + "_A" + c.A + "_B" + c.B
	if len(n.Types) == 0 {
		return s
	}
	s += "_" + strings.Join(n.Types, "")
	if n.Apart {
		s += "_"
	}
	s += n.Flags
	for _, m := range n.More {
		s += "_" + m
	}
	return s
}

// Lettered returns the contraction in Tensile's letters: C's indices from i on, then the summation indices. Letters
// that are so already stay.
func (c Contraction) Lettered() Contraction {
	letters := c.Letters()
	if c.unordered() < 0 && consecutive(letters[len(c.C):], len(c.C)) {
		return c
	}
	letter := func(t string) string {
		return strings.Map(func(x rune) rune { return rune(tensileLetters[strings.IndexRune(letters, x)]) }, t)
	}
	return Contraction{A: letter(c.A), B: letter(c.B), C: letter(c.C)}
}

// DTypes returns the types of A and B and of C that a name stands for, zeros if it has none. Types that no model knows,
// and operands of two types, are an error.
func (n Name) DTypes() (gemm.Types, error) {
	if len(n.Types) == 0 {
		return gemm.Types{}, nil
	}
	named := make([]gemm.DType, len(n.Types))
	for i, letters := range n.Types {
		for _, t := range tensileTypes {
			if t.letters == letters {
				named[i] = t.dtype
			}
		}
		if named[i] == 0 {
			return gemm.Types{}, diag.Inputf("no model knows Tensile's data type %s", letters).
				Do("use one of %s", gemm.TypeNames(gemm.DTypes()))
		}
	}
	in, out := named[0], named[0].Output()
	switch {
	case len(named) == 4 && named[1] != in:
		return gemm.Types{}, diag.Inputf("A is %s and B is %s", named[0], named[1]).Do("use operands of one type")
	case len(named) == 4:
		out = named[2]
	case len(named) > 1:
		out = named[1]
	}
	if in == gemm.TF32 {
		out = gemm.FP32 // as it is stored
	}
	types := gemm.Types{In: in, Out: out}
	if !types.Valid() {
		return types, diag.Inputf("no hardware multiplies %s operands into %s results", in, out).
			Do("use another name")
	}
	return types, nil
}
