package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// Every type is one problem with a nest, whose dimensions have the operations of the contraction.
func TestNested(t *testing.T) {
	for _, x := range types {
		c := must.Get(contract.Parse(x.name))(t)
		sizes := contract.Sizes{}
		for i, letter := range []byte(c.Letters()) {
			sizes[letter] = i + 2
		}
		s := must.Get(c.Shape(sizes, nil, nil, nil))(t)
		for _, in := range []gemm.DType{gemm.FP16, gemm.FP32, gemm.INT8} {
			p, err := s.Nested(gemm.Types{In: in, Out: in.Output()})
			must.Need(t, err == nil, "%v %v", x.what, err)
			q := &p.Problem
			must.That(t, p.Direct() && q.Flops() == s.Flops() && q.Nest != (gemm.Nest{}) && (in != gemm.INT8 ||
				!q.TransA() && q.TransB()) && q.Align(gemm.A) == in.Bytes(), "%s: %s", x.what, q)
			a, b := gemm.A, gemm.B
			if p.Swapped {
				a, b = b, a
			}
			if q.Nest.Span(gemm.A) != s.Len(a) || q.Nest.Span(gemm.B) != s.Len(b) || q.Nest.Span(gemm.C) != s.Len(gemm.C) {
				t.Errorf("%s: the nest %s does not span the tensors", x.what, q.Nest)
			}
			must.That(t, strings.Contains(p.Text(), "one kernel looks each element up"), "%v", p.Text())
		}
	}
}

func TestParseStrides(t *testing.T) {
	const einsum, name = "ilk,jlk->ij", "Cij_Alki_Blkj"
	for _, x := range []struct{ text, word, want string }{
		{einsum, "a=64,8,1", "[1 8 64]"}, {name, "A=1,8,64", "[1 8 64]"}, {"[0,2],[2,1]->[0,1]", "a=1, 8", "[1 8]"},
		{einsum, "d=1", `"d=1" is no tensor's strides`}, {einsum, "a", `"a" is no tensor's strides`},
		{einsum, "a=1,x,2", `a stride of A is "x"`}, {einsum, "a=1,-1,2", `a stride of A is "-1"`},
		{einsum, "a=1,2", "A has 3 indices and 2 strides"},
	} {
		c := must.Get(contract.Parse(x.text))(t)
		strides, err := contract.ParseStrides(c, x.text, x.word)
		got := fmt.Sprint(strides[gemm.A])
		if err != nil {
			got = err.Error()
		}
		must.That(t, strings.HasPrefix(got, x.want), "%s %s: %s, want %s", x.text, x.word, got, x.want)
	}
	c := must.Get(contract.Parse(einsum))(t)
	if _, err := contract.ParseStrides(c, einsum, "a=1,2,3", "a=1,2,3"); err == nil ||
		!strings.Contains(err.Error(), "A has strides twice") {
		t.Error(err)
	}
}
