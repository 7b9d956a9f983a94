package formula

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"strconv"
	"testing"
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
