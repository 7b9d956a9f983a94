package tensile

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Name is a problem type as Tensile names it: Cijk_Ailk_Bjlk_SB, or Cijk_Ailk_Bjlk_HHS_BH_Bias_HAS.
type Name struct {
	contract.Contraction
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

// letters are the letters of the data types with our name for them, 0 if no model knows the type. A text that begins
// with several of them begins with the first. Of several for one type, the first is written.
var letters = []struct {
	text  string
	dtype gemm.DType
}{
	{"I8", gemm.INT8}, {"4xi8", gemm.INT8}, {"F8", gemm.FP8}, {"B8", gemm.FP8E5M2}, {"S", gemm.FP32}, {"D", 0}, {"C", 0},
	{"Z", 0}, {"H", gemm.FP16}, {"B", gemm.BF16}, {"X", gemm.TF32}, {"I", gemm.INT32},
}

// ParseName reads the name of a problem type.
func ParseName(text string) (n Name, err error) {
	var rest string
	if n.Contraction, rest, err = contract.ParseTensors(text); err != nil || rest == "" {
		return n, err
	}
	if err := n.suffix(strings.Split(rest[1:], "_")); err != nil {
		return n, diag.Within(fmt.Sprintf("%q: column %d", text, len(text)-len(rest)+2), err)
	}
	return n, nil
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
		first := typeAt(rest)
		if first == "" || len(n.Types) == 4 {
			return diag.Inputf("%q does not begin with a data type", rest).Do("use S, D, C, Z, H, B, X, I8, 4xi8, F8, B8 or I")
		}
		n.Types = append(n.Types, first)
		rest = rest[len(first):]
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
	for _, t := range letters {
		if strings.HasPrefix(s, t.text) {
			return t.text
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
	s := n.Tensors()
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

// DTypes returns the types that a name stands for: the common type of A and B, and the type of C. They are zeros if it
// has none. Types that no model knows, and operands of two types, are an error.
func (n Name) DTypes() (gemm.Types, error) {
	if len(n.Types) == 0 {
		return gemm.Types{}, nil
	}
	named := make([]gemm.DType, len(n.Types))
	for i, text := range n.Types {
		for _, t := range letters {
			if t.text == text {
				named[i] = t.dtype
			}
		}
		if named[i] == 0 {
			return gemm.Types{}, diag.Inputf("no model knows Tensile's data type %s", text).
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

// TypeOf returns the name of the problem type of a problem. Its letters name the transposed problem, since
// Tensile's C is column-major.
func TypeOf(p *gemm.Problem) (Name, error) {
	a, b := "ilk", "ljk"
	if p.TransB() {
		a = "lik"
	}
	if p.TransA() {
		b = "jlk"
	}
	n := Name{Contraction: contract.Contraction{A: a, B: b, C: "ijk"}, Apart: true, Flags: "BH"}
	if lettersOf(p.DType) == "" {
		return n, diag.Inputf("Tensile has no kernels for %s", p.DType).Do("use another type")
	}
	sum := gemm.FP32
	if p.DType.Integer() {
		sum = gemm.INT32
	}
	n.Types = []string{lettersOf(p.DType), lettersOf(p.Output()), lettersOf(sum)}
	plain := *p
	plain.Alpha, plain.Beta, plain.Epilogue = 0, 0, gemm.Epilogue{} // kernels take any
	if !plain.Plain() && plain.Canonical().Out == 0 {
		return n, diag.Inputf("%s is no plain GEMM", p).
			Do("leave out leading dimensions, alignments, groups and nested indices")
	}
	_, err := n.DTypes()
	return n, err
}

// Answers reports why a logic for the problem type does not answer for a problem, nil if it does.
func (n Name) Answers(p *gemm.Problem) error {
	want, err := TypeOf(p)
	if err != nil {
		return err
	}
	types, err := n.DTypes()
	if err != nil {
		return err
	}
	c := n.Lettered()
	if len(c.C) == 2 { // without a batch
		c = contract.Contraction{A: strings.ReplaceAll(c.A, "k", "l") + "k", B: strings.ReplaceAll(c.B, "k", "l") + "k",
			C: "ijk"}
	}
	if c != want.Contraction || types != p.Types() {
		return diag.Inputf("the logic is for %s, and the problem is %s", n, want).
			Do("use a logic for the problem's types and layout")
	}
	return nil
}

// lettersOf returns the letters of a data type, empty if it has none.
func lettersOf(t gemm.DType) string {
	for _, x := range letters {
		if x.dtype == t {
			return x.text
		}
	}
	return ""
}

// Layout returns a GEMM of no size with the types and the layout that the name of a problem type stands for.
func Layout(text string) (gemm.Problem, error) {
	var p gemm.Problem
	name, err := ParseName(text)
	if err != nil {
		return p, err
	}
	types, err := name.DTypes()
	if err != nil {
		return p, err
	}
	if types.In == 0 {
		return p, diag.Inputf("%q has no data type", text).Do("write it as in Cijk_Ailk_Bljk_HHS_BH")
	}
	for i := range 4 {
		p = gemm.Problem{M: 1, N: 1, K: 1, Batch: 1, DType: types.In, Out: types.Out}
		p.SetTrans(i&1 != 0, i&2 != 0)
		p = p.Canonical()
		if name.Answers(&p) == nil {
			p.M, p.N, p.K, p.Batch = 0, 0, 0, 0
			return p, nil
		}
	}
	return p, diag.Inputf("%q is no GEMM", text).Do("tune the GEMMs that the contraction becomes")
}
