package contract_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// The four problem types of AMD's slides on Tensile, and the types in Tensile's tests of 2017.
var types = []struct {
	what, name, einsum string
	lists              contract.Lists
}{
	{"gemm NN", "Cij_Aik_Bkj", "ki,jk->ji", contract.Lists{A: []int{0, 2}, B: []int{2, 1}, C: 2}},
	{"batched gemm NT", "Cijk_Ailk_Bjlk", "kli,klj->kji", contract.Lists{A: []int{0, 3, 2}, B: []int{1, 3, 2}, C: 3}},
	{"sum over three indices", "Cijk_Ailmnk_Bjlmnk", "knmli,knmlj->kji",
		contract.Lists{A: []int{0, 3, 4, 5, 2}, B: []int{1, 3, 4, 5, 2}, C: 3}},
	{"the same in another layout", "Cijk_Ainlkm_Bmjlkn", "mklni,nkljm->kji",
		contract.Lists{A: []int{0, 5, 3, 2, 4}, B: []int{4, 1, 3, 2, 5}, C: 3}},
	{"sum over two indices", "Cij_Akil_Bkjl", "lik,ljk->ji", contract.Lists{A: []int{2, 0, 3}, B: []int{2, 1, 3}, C: 2}},
	{"convolution in four dimensions", "Cijkl_Aonijml_Bonjmkl", "lmjino,lkmjno->lkji",
		contract.Lists{A: []int{6, 5, 0, 1, 4, 3}, B: []int{6, 5, 1, 4, 2, 3}, C: 4}},
}

func TestNotationsAgree(t *testing.T) {
	for _, x := range types {
		byName, err1 := contract.Parse(x.name)
		byEinsum, err2 := contract.Parse(x.einsum)
		byLists, err3 := contract.FromLists(x.lists)
		for _, err := range []error{err1, err2, err3} {
			must.Need(t, err == nil, "%v %v", x.what, err)
		}
		want := x.lists
		if len(byName.Of(contract.Sum)) > 1 { // their numbers follow the letters of the name, not A's order
			relettered, err := contract.FromLists(byName.Lists())
			must.That(t, err == nil && relettered.Letters() == relettered.Lettered().Letters(),
				"%v %v %v", x.what, relettered, err)
		} else if diff := cmp.Diff(want, byName.Lists()); diff != "" {
			t.Error(x.what, diff)
		}
		must.That(t, byName == byEinsum && byName == byLists && byName.Tensors() == x.name && byName.String() == x.einsum,
			"%v %v %v %v %v", x.what, byName, byEinsum, byLists, byName.String())
	}
}

func TestMistakesPointAtTheIndex(t *testing.T) {
	for text, says := range map[string]string{
		"ijk,jk->iq":           `"ijk,jk->iq": column 10: the index q is in C alone; it belongs in A or B as well`,
		"ijk,jlk->k":           `column 1: the index i is in A alone; put it in B or C as well, or sum over it before`,
		"ik,jk->iij":           `"ik,jk->iij": column 8: C has the index i twice`,
		"Cij_Aiik_Bkj":         `"Cij_Aiik_Bkj": column 7: A has the index i twice`,
		"[0,0,2],[2,1]->[0,1]": `index 2 of A: A has the index i twice`,
		" ik , k1 -> i1":       `" ik , k1 -> i1": column 8: '1' is no index; use letters`,
		"ik,kj":                `"ik,kj" has no ->`,
		"ik->i":                `"ik->i" has one operand: to copy or sum a tensor is no product`,
		"i,j,k->ijk":           `"i,j,k->ijk" has 3 operands; contract two at a time`,
		"...k,kj->...j":        `column 3: an ellipsis stands for indices of a number that is not given`,
		"Cijk_Ailk_Bjlq":       `"Cijk_Ailk_Bjlq": column 14: the index q is in B alone`,
		"Cijl_Aikl_Bjkl":       `"Cijl_Aikl_Bjkl": column 4: C's index 3 is l; letter C's indices i, j, k…`,
		"Cij_Aim_Bmj":          `the summation indices are m; letter them on from where C stops`,
		"Cij_Aik_Bkj_SB":       `"Cij_Aik_Bkj_SB": "_SB" is behind the tensors; leave it out`,
		"Cij_Aik_Xkj":          `"Cij_Aik_Xkj": column 9: "Xkj" does not begin with B`,
		"Cij_Aik":              `is no name of a problem type`,
		"[0,2],[2,1]->[0,2]":   `C's index 2 is number 2; number C's indices 0, 1, 2…`,
		"[0,2],[2,3]->[0,1]":   `index 2 of B: the index l is in B alone`,
		"[0,2],[2,99]->[0,1]":  `index 2 of B: there is no index 99`,
		"[0,2],[2,x]->[0,1]":   `B of "[0,2],[2,x]->[0,1]" has "x", which is no whole number`,
		"[0,2],2,1->[0,1]":     `B of "[0,2],2,1->[0,1]" is no list: "2,1"`,
	} {
		_, err := contract.Parse(text)
		must.That(t, err != nil && strings.Contains(err.Error(), says) && diag.KindOf(err) == diag.Input,
			"%v, want %s", err, says)
	}
	if c, err := contract.Parse("[0,3,2], [1,3,2] -> [0,1,2]"); err != nil || c.Lettered() != c ||
		c != (contract.Contraction{A: "ilk", B: "jlk", C: "ijk"}) {
		t.Error(c, err)
	}
}

func shape(t testing.TB, text string, sizes string, strides ...contract.Strides) *contract.Shape {
	t.Helper()
	c := must.Get(contract.Parse(text))(t)
	n := must.Get(contract.ParseSizes(sizes))(t)
	strides = append(strides, nil, nil, nil)
	return must.Get(c.Shape(n, strides[0], strides[1], strides[2]))(t)
}

// An index that an operand has twice reads its diagonal: a step goes along both dimensions.
func TestDiagonals(t *testing.T) {
	got := shape(t, "iki,kj->ij", "i=3,j=2,k=4")
	want := shape(t, "ki,kj->ij", "i=3,j=2,k=4", contract.Strides{13, 3})
	diff := cmp.Diff(want, got, cmp.AllowUnexported(contract.Shape{}))
	must.That(t, diff == "", "%v", diff)
	strided := shape(t, "ii,ij->j", "i=3,j=2", contract.Strides{2, 9})
	a, b, c := make([]float64, strided.Len(gemm.A)), make([]float64, strided.Len(gemm.B)), make([]float64, 2)
	for i := range a {
		a[i] = float64(i)
	}
	for i := range b {
		b[i] = 1
	}
	if strided.Reference(1, a, b, 0, c); len(a) != 23 || c[0] != 0+11+22 || c[1] != c[0] {
		t.Error(len(a), c)
	}
}

func TestMistakesInShapes(t *testing.T) {
	c := must.Get(contract.Parse("ik,kj->ij"))(t)
	sizes := contract.Sizes{'i': 4, 'j': 5, 'k': 6}
	try := func(n contract.Sizes, a, b, result contract.Strides) error {
		_, err := c.Shape(n, a, b, result)
		return err
	}
	parse := func(text string) error {
		_, err := contract.ParseSizes(text)
		return err
	}
	for says, err := range map[string]error{
		"the index k (summation) has no size; give one": try(contract.Sizes{'i': 4, 'j': 5}, nil, nil, nil),
		"there is no index q; the indices are j, i, k":  try(contract.Sizes{'i': 4, 'j': 5, 'k': 6, 'q': 1}, nil, nil, nil),
		// Of several, the first letter is said, every time.
		"there is no index p;": try(contract.Sizes{'i': 4, 'j': 5, 'k': 6, 'z': 1, 'w': 1, 'v': 1, 'u': 1, 't': 1, 's': 1,
			'r': 1, 'q': 1, 'p': 1}, nil, nil, nil),
		"the product of the sizes overflows at k": try(contract.Sizes{'i': 1 << 30, 'j': 1 << 20, 'k': 1 << 20}, nil,
			nil, nil),
		"A has 2 indices and 1 strides": try(sizes, contract.Strides{1}, nil, nil),
		"the stride of k in A is -1":    try(sizes, contract.Strides{-1, 6}, nil, nil),
		"the stride of i in C is 4, and the elements before it reach 4; give at least 5": try(sizes, nil, nil,
			contract.Strides{1, 4}),
		"the strides of A overflow at i": try(sizes, contract.Strides{1, math.MaxInt}, nil, nil),
		`"i" is no size of an index`:     parse("i"),
		`the size of i is "0"`:           parse("i=0"),
		"i has two sizes":                parse("i=1,i=2"),
	} {
		must.That(t, err != nil && strings.Contains(err.Error(), says), "%v, want %s", err, says)
	}
}

func TestPlans(t *testing.T) {
	half := gemm.Types{In: gemm.FP16, Out: gemm.FP16}
	for _, x := range []struct{ text, sizes, want string }{
		{"mk,kn->mn", "m=64,n=128,k=256", "64x128x256 fp16: m = m, n = n, k = k"},
		{"mk,nk->mn", "m=64,n=128,k=256", "64x128x256 fp16 trans-b: m = m, n = n, k = k"},
		{"mk,kn->nm", "m=64,n=128,k=256", "128x64x256 fp16 trans-a trans-b: m = n, n = m, k = k; A and B change places"},
		{"Cij_Aik_Bkj", "i=64,j=128,k=256", "128x64x256 fp16: m = j, n = i, k = k; A and B change places"},
		{"Cij_Aki_Bkj", "i=64,j=128,k=256", "128x64x256 fp16 trans-b: m = j, n = i, k = k; A and B change places"},
		{"bmk,bkn->bmn", "b=8,m=64,n=128,k=256", "64x128x256 fp16 batch 8: m = m, n = n, k = k, batch = b"},
		{"bsk,kn->bsn", "b=8,s=64,n=128,k=256", "512x128x256 fp16: m = b·s, n = n, k = k"},
		{"bsxy,xyn->bsn", "b=8,s=64,n=128,x=16,y=16", "512x128x256 fp16: m = b·s, n = n, k = x·y"},
		{"bshd,bthd->bhst", "b=2,s=64,t=64,h=8,d=128",
			"64x64x128 fp16 batch 8 trans-b lda 1024 ldb 1024: m = s, n = t, k = d, batch = h; 2 GEMMs in turn over b" +
				" | 64x64x128 fp16 batch 16: m = s, n = t, k = d, batch = b·h; copies A and B"},
		{"Cijk_Ailk_Bjlk", "i=512,j=256,l=64,k=4",
			"256x512x64 fp16 batch 4 trans-a: m = j, n = i, k = l, batch = k; A and B change places"},
		{"Cijk_Ailmnk_Bjlmnk", "i=512,j=256,l=8,m=4,n=2,k=4",
			"256x512x64 fp16 batch 4 trans-a: m = j, n = i, k = n·m·l, batch = k; A and B change places"},
		{"ijk,jlk->il", "i=64,j=16,k=128,l=256",
			"64x256x128 fp16 trans-b lda 2048: m = i, n = l, k = k; 16 GEMMs in turn over j, whose results add up" +
				" | 64x256x2048 fp16: m = i, n = l, k = j·k; copies B"},
		{"ilk,jlk->ijk", "i=64,j=32,l=128,k=4",
			"64x32x128 fp16 batch 4: m = i, n = j, k = l, batch = k; copies A and B and C"},
		{"i,j->ij", "i=64,j=32", "64x32x1 fp16: m = i, n = j, k = 1"},
		{"ik,k->i", "i=64,k=32", "64x1x32 fp16: m = i, n = 1, k = k"},
		{"ik,kj->ij", "i=64,j=2,k=1", "64x2x1 fp16: m = i, n = j, k = 1"},
	} {
		s := shape(t, x.text, x.sizes)
		plans, err := s.Plans(half, false)
		if err != nil {
			t.Errorf("%s: %v", x.text, err)
			continue
		}
		got := make([]string, len(plans))
		for i := range plans {
			got[i] = text(&plans[i])
		}
		if text := strings.Join(got, " | "); text != x.want {
			t.Errorf("%s: %s\nwant %s", x.text, text, x.want)
		}
	}
}

// text is a plan in words.
func text(p *contract.Plan) string { return p.Problem.String() + ": " + p.Text() }

// Every plan has the operations of the contraction.
func TestPlansHaveTheOperations(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, x := range types {
		for range 20 {
			s := randomShape(t, random, x.einsum)
			for _, p := range plansOf(t, s) {
				if got := float64(p.Calls) * p.Problem.Flops(); got != s.Flops() {
					t.Errorf("%s: %s has %g operations, want %g", x.what, text(&p), got, s.Flops())
				}
			}
		}
	}
}

func randomShape(t *testing.T, random *rand.Rand, text string) *contract.Shape {
	t.Helper()
	c := must.Get(contract.Parse(text))(t)
	sizes := contract.Sizes{}
	for _, letter := range []byte(c.Letters()) {
		sizes[letter] = 1 + random.IntN(4)
	}
	return must.Get(c.Shape(sizes, nil, nil, nil))(t)
}

func plansOf(t *testing.T, s *contract.Shape) []contract.Plan {
	t.Helper()
	plans, err := s.Plans(gemm.Types{In: gemm.FP32, Out: gemm.FP32}, true)
	if err != nil || len(plans) == 0 {
		t.Fatal(s.Contraction, err)
	}
	return plans
}

// The GEMMs in turn, by their leading dimensions and strides, give the reference's numbers.
func TestPlansAgainstReference(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	texts := []string{"mk,kn->mn", "km,nk->mn", "mk,kn->nm", "bsxy,xyn->bsn", "ijk,jlk->il", "bshd,bthd->bhst", "i,j->ij",
		"ik,k->i", "k,k->"}
	for _, x := range types {
		texts = append(texts, x.name)
	}
	ran, nested := 0, 0
	for _, text := range texts {
		for range 20 {
			s := randomShape(t, random, text)
			for _, p := range plansOf(t, s) {
				if len(p.Copied) > 0 {
					continue
				}
				ran++
				if p.Nested > 1 {
					nested++
				}
				a, b, c := numbers(s.Len(gemm.A)), numbers(s.Len(gemm.B)), numbers(s.Len(gemm.C))
				want := slices.Clone(c)
				s.Reference(0.5, a, b, 2, want)
				for i := range c {
					c[i] *= 2
				}
				execute(s, &p, a, b, c)
				diff := cmp.Diff(want, c)
				must.Need(t, diff == "", "%v %v %v", text, p.Text(), diff)
			}
		}
	}
	must.That(t, ran >= 150 && nested >= 20, "only %d plans ran, %d with a nested summation", ran, nested)
}

// execute adds half of the product to c, by the GEMMs of a plan without copies.
func execute(s *contract.Shape, p *contract.Plan, a, b, c []float64) {
	calls := [][3]int{{}} // the offsets of each GEMM
	for _, x := range []byte(p.Loop) {
		var next [][3]int
		for _, at := range calls {
			for i := range s.Size(x) {
				next = append(next, [3]int{at[0] + i*s.Stride(gemm.A, x), at[1] + i*s.Stride(gemm.B, x),
					at[2] + i*s.Stride(gemm.C, x)})
			}
		}
		calls = next
	}
	q := p.Problem
	in := func(v []float64, start int, o gemm.Operand, z, row, column int) *float64 {
		if o == gemm.A && q.TransA() || o == gemm.B && q.TransB() {
			row, column = column, row
		}
		return &v[start+z*p.BatchStrides[o]+row*q.LD(o)+column]
	}
	for _, at := range calls {
		if p.Swapped {
			at[0], at[1] = at[1], at[0]
		}
		left, right := a, b
		if p.Swapped {
			left, right = b, a
		}
		for z := range q.Batch {
			for m := range q.M {
				for n := range q.N {
					for k := range q.K {
						*in(c, at[2], gemm.C, z, m, n) += 0.5 * *in(left, at[0], gemm.A, z, m, k) *
							*in(right, at[1], gemm.B, z, k, n)
					}
				}
			}
		}
	}
}

// numbers are small integers, so that sums are exact.
func numbers(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i*7%11 - 5)
	}
	return v
}

func TestReferenceByHand(t *testing.T) {
	// C_i = Σ_jk A_ijk B_kj. Rows of A are 3 apart, and B has a stride of 0 along j.
	s := shape(t, "ijk,kj->i", "i=1,j=2,k=2", contract.Strides{1, 3, 9}, contract.Strides{0, 1})
	a, b, c := []float64{1, 2, 0, 3, 4}, []float64{10, 1}, []float64{math.NaN()}
	if s.Reference(1, a, b, 0, c); c[0] != 1*10+2*1+3*10+4*1 {
		t.Error(c)
	}
	if s.Reference(2, a, b, 3, c); c[0] != 2*46+3*46 {
		t.Error(c)
	}
}

func FuzzParse(f *testing.F) {
	for _, x := range types {
		f.Add(x.name)
		f.Add(x.einsum)
	}
	f.Add("[0,3,2],[1,3,2]->[0,1,2]")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := contract.Parse(text)
		if err != nil {
			return
		}
		if back, err := contract.Parse(c.String()); err != nil || back != c {
			t.Errorf("%q is %v, and read back %v, %v", text, c, back, err)
		}
		back, err := contract.Parse(c.Tensors())
		if diagonal := c.Validate() != nil; diagonal != (err != nil) || !diagonal && back != c.Lettered() {
			t.Errorf("%q is %v, and by name %v, %v", text, c.Lettered(), back, err)
		}
		sizes := contract.Sizes{}
		for _, x := range []byte(c.Letters()) {
			sizes[x] = 2
		}
		s := must.Get(c.Shape(sizes, nil, nil, nil))(t)
		plans, err := s.Plans(gemm.Types{In: gemm.FP16, Out: gemm.FP16}, true)
		must.That(t, err == nil && len(plans) != 0, "%q has no plan: %v", text, err)
	})
}

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
