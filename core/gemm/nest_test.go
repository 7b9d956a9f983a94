package gemm

import (
	"encoding/json"
	"github.com/origami-gemm/origami/internal/testing/must"
	"strings"
	"testing"
)

// nested is a convolution of 3 × 2 elements with 2 × 2 weights.
func nested(t testing.TB) Problem {
	t.Helper()
	n := must.Get(ParseNest("m3:1:0:4,m2:5:0:12,n4:0:4:1,k2:1:1:0,k2:5:2:0,b2:30:0:24"))(t)
	p := New(6, 4, 4)
	p.Batch, p.Nest, p.Alpha, p.Beta = 2, n, 0.5, -1
	return p
}

func TestNests(t *testing.T) {
	p := nested(t)
	must.Do(t, p.Validate())
	must.Alike(t, p.Nest.Offsets(DimM, A), []int{0, 1, 2, 5, 6, 7})
	must.Alike(t, p.Nest.Offsets(DimK, B), []int{0, 1, 2, 3})
	must.Alike(t, p.Nest.Offsets(DimN, A), []int{0, 0, 0, 0})
	if p.Nest.Span(A) != 2+5+1+5+30+1 || p.Nest.Span(B) != 12+1+2+1 || p.Nest.Span(C) != 8+12+3+24+1 {
		t.Error(p.Nest.Span(A), p.Nest.Span(B), p.Nest.Span(C))
	}
	text := must.Get(json.Marshal(p.Record()))(t)
	var r Record
	must.Do(t, json.Unmarshal(text, &r))
	must.Equal(t, must.Get(r.Problem())(t), p)
	must.That(t, strings.HasSuffix(p.String(), " batch 2 nest "+p.Nest.String()+" alpha 0.5 beta -1") && !p.Plain(),
		"%v", p)
	flat := p.Flat()
	must.That(t, flat.Plain() && flat.M == 6, "%v", flat)
	alpha, beta := New(1, 1, 1).Scalars()
	must.That(t, alpha == 1 && beta == 0, "%v %v", alpha, beta)
	one := New(1, 1, 1)
	one.Alpha = 1
	must.Equal(t, one.Canonical(), New(1, 1, 1))
}

func TestMistakesInNests(t *testing.T) {
	for text, says := range map[string]string{
		"m3:1:0":                              `"m3:1:0" is no index of a nest`,
		"3:1:0:1":                             `is no index of a nest`,
		"mx:1:0:1":                            `is no index of a nest`,
		"q3:1:0:1":                            `index 1 of the nest: there is no dimension 'q'`,
		"m3:1:0:1,m0:1:0:1":                   `index 2 of the nest: the size is 0`,
		"m3:1:2:1":                            `B has no m, and a stride of 2 along it; give 0`,
		"k3:1:1:1":                            `C has no k`,
		"m3:-1:0:1":                           `the stride in A is -1`,
		"m4000000000000000000:4000000000:0:0": `the stride in A is 4000000000`,
		strings.Repeat("m1:0:0:0,", 30) + "m1:0:0:0": `is no index of a nest`,
	} {
		must.Fail(t, must.Err(ParseNest(text)), says)
	}
	for says, change := range map[string]func(*Problem){
		"the nest has 6 values along m, and the problem 7": func(p *Problem) { p.M = 7 },
		"has groups or leading dimensions":                 func(p *Problem) { p.LDA = 99 },
		"alpha is +Inf":                                    func(p *Problem) { p.Alpha = p.Alpha / float32(p.LDA) },
	} {
		p := nested(t)
		change(&p)
		must.Fail(t, p.Validate(), says)
	}
}

func FuzzParseNest(f *testing.F) {
	f.Add("m3:1:0:4,m2:5:0:12,n4:0:4:1,k2:1:1:0,k2:5:2:0,b2:30:0:24")
	f.Add("m3:1:0")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseNest(text)
		if err != nil {
			return
		}
		must.Equal(t, must.Get(ParseNest(n.String()))(t), n)
		for _, x := range n.Indices() {
			must.That(t, x.Size >= 1, "%+v", x)
		}
	})
}
