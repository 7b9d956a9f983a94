package formula

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestEval(t *testing.T) {
	values := map[string]float64{"m": 100, "block_m": 32, "h": 0.25}
	for f, want := range map[string]float64{
		"cdiv(m, block_m) * block_m":       128,
		"(1 - h) * 8":                      6,
		"-m + 1":                           -99,
		"when(m > 99, 1, 2)":               1,
		"when(m == 99 || h != 0.25, 1, 2)": 2,
		"when(m >= 100 && h <= 0.25, 1, 2) + min(3, 2, 1) + max(1, 5, 2)": 7,
		"mod(m, block_m) / m":                            0.04,
		"pow(2, 10) + floor(2.7) + ceil(0.2) + sqrt(16)": 1031,
	} {
		must.Equal(t, must.Get(Eval(f, values))(t), want, f)
	}
	for _, f := range []string{
		"", "m +", "nobody", "m % 2", "f(1)", "cdiv(1)", "!m", "m.x", "m[0]", `"text"`, "m.f()",
	} {
		must.Fail(t, must.Err(Eval(f, values)), "formula \"")
	}
}

func TestSubstitute(t *testing.T) {
	text := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	values := map[string]float64{"m": 100, "block_m": 32, "max": 7, "third": 1.0 / 3}
	for f, want := range map[string]string{
		"cdiv(m, block_m) * other": "cdiv(100, 32) * other",
		"max(m, third)":            "max(100, 0.3333)",
		"rule: m of block_m":       "rule: m of block_m",
	} {
		must.Equal(t, Substitute(f, values, text), want, f)
	}
}

func FuzzEval(f *testing.F) {
	f.Add("cdiv(m, 3) + when(m > 2, 1, 0)")
	f.Add("rule: prose")
	f.Add("((((m))))/0")
	f.Fuzz(func(t *testing.T, s string) {
		values := map[string]float64{"m": 5}
		_, _ = Eval(s, values) // must not panic
		if e, err := Parse(s); err == nil {
			again, err := Parse(e.String())
			must.That(t, err == nil && again.String() == e.String(), "%q is written %s, which reads as %s, %v", s, e, again, err)
		}
		must.Equal(t, Substitute(s, map[string]float64{}, func(float64) string { return "5" }), s)
	})
}

func TestUnused(t *testing.T) {
	params := hw.Set{{Name: "clock"}, {Name: "l2_bytes"}, {Name: "l2"}, {Name: "dies"}, {Name: "units"}, {Name: "tdp"}}
	formulas := Of([]arch.Term{
		{Name: "miss", Formula: "1 - min(1, l2_bytes/(m*k))"},
		{Name: "share", Formula: "rule: units/dies, since the vendor's tool says so"},
	})
	// A part of a name is not the name.
	got, want := Unused(params, append(formulas, "clock")), []string{"l2", "tdp"}
	must.That(t, slices.Equal(got, want), "%v are unused, want %v", got, want)
	got = Unused(params, append(formulas, "clock", "when(l2 > 0, tdp, 0)"))
	must.That(t, len(got) <= 0, "%v are unused, want none", got)
}

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

func TestEntering(t *testing.T) {
	d := &arch.Description{Terms: []arch.Term{
		{Name: "tensor", Formula: "rule: given"},
		{Name: "copies", Formula: "rule: given"},
		{Name: "step", Formula: "max(tensor, copies)"},
		{Name: "pace", Formula: "rule: given"},
		{Name: "loop", Formula: "when(timed > 0, pace, step)"},
		{Name: "last", Formula: "2 * tensor"},
		{Name: "rest", Formula: "tails * last"},
		{Name: "tails", Formula: "rule: given"},
		{Name: "slack", Formula: "step - tensor"}, // for the reader
		{Name: "waves", Common: arch.CommonWaves, Formula: "step / 2"},
		{Name: "fill", Kind: arch.KindShare, Formula: "3"},
		{Name: "total", Kind: arch.KindTotal, Formula: "fill + loop + rest"},
	}}
	values := func(timed, tails float64) map[string]float64 {
		return map[string]float64{
			"tensor": 5, "copies": 7, "step": 7, "pace": 6, "loop": 6, "last": 10, "rest": 10 * tails, "tails": tails,
			"timed": timed, "fill": 3, "total": 9,
		}
	}
	for _, c := range []struct {
		timed, tails float64
		want         string
	}{
		{1, 0, "pace loop waves fill total"},
		{0, 0, "tensor copies step loop slack waves fill total"},
		{1, 2, "tensor pace loop last rest tails waves fill total"},
	} {
		var got []string
		for i, entered := range Entering(d, values(c.timed, c.tails)) {
			if entered {
				got = append(got, d.Terms[i].Name)
			}
		}
		must.Equal(t, strings.Join(got, " "), c.want, c.timed, c.tails, got)
	}
	d.Terms[len(d.Terms)-1].Formula = "rule: as measured"
	if got := Entering(d, values(0, 0)); got != nil {
		t.Errorf("a total in prose: %v", got)
	}
}
