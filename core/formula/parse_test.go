package formula

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// A parsed formula is written so that it parses to the same operations in the same order.
func TestExprString(t *testing.T) {
	for f, want := range map[string]string{
		"(a-b)-c":                      "a - b - c",
		"a-(b-c)":                      "a - (b - c)",
		"a/(b*c)*-d":                   "a / (b * c) * -d",
		"-(a+b)*2.50":                  "-(a + b) * 2.5",
		"max(1,a,b)":                   "max(max(1, a), b)",
		"a>b && (c<=d||e!=1)":          "b < a && (c <= d || e != 1)",
		"when(m>=n,cdiv(m,n),sqrt(m))": "when(n <= m, cdiv(m, n), sqrt(m))",
	} {
		e := must.Get(Parse(f))(t)
		again, err := Parse(e.String())
		must.That(t, e.String() == want && err == nil && reflect.DeepEqual(e, again),
			"%s is written %s, want %s (%v)", f, e, want, err)
	}
}

// Squaring twice gives the bits of pow(x, 4): generated code relies on it.
func TestFourthPowerIsTwoSquares(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		x := math.Exp(rng.Float64()*100 - 20)
		got, err := Eval("pow(x, 4)", map[string]float64{"x": x})
		square := x * x
		if want := square * square; err != nil || math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("pow(%v, 4) = %v, squared twice %v, %v", x, got, want, err)
		}
	}
}
