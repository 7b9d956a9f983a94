package table

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/unit"
)

func TestExactRoundTrips(t *testing.T) {
	values := []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e300, 5e-324, math.MaxFloat64,
		arch.RejectedTotal, 1 << 53,
		1<<53 - 1, 344649.8060363763, math.Inf(1), math.NaN()}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		values = append(values, math.Float64frombits(r.Uint64()))
	}
	for _, v := range values {
		back, err := strconv.ParseFloat(Exact(v), 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(v) && !math.IsNaN(v) {
			t.Errorf("%v written as %s read as %v, %v", v, Exact(v), back, err)
		}
	}
	for v, want := range map[float64]string{8448: "8448", 2520000000: "2520000000", 0.5: "0.5",
		1e15 + 1: "1000000000000001"} {
		if got := Exact(v); got != want {
			t.Errorf("Exact(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 8448: "8448", 344649.8060363763: "344650", 3318.278481012658: "3318.28", 0.9166666666666666: "0.916667",
		2520000000: "2520000000",
		1e18:       "1e+18", 1e-9: "1e-09", -0.5: "-0.5", 0.00001: "1e-05",
	} {
		if got := SixDigits(v); got != want {
			t.Errorf("SixDigits(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0 %", 1: "100 %", 0.7598: "76.0 %", 0.0137: "1.37 %", 0.0001: "0.010 %",
		0.0000029: "<0.001 %", 2.5: "250 %",
		0.09996: "10.0 %", 0.99951: "100 %", math.Inf(1): "+Inf",
	} {
		if got := Percent(v); got != want {
			t.Errorf("Percent(%v) = %s, want %s", v, got, want)
		}
	}
}

// A range has its unit once, unless the ends differ in it.
func TestSpan(t *testing.T) {
	for _, tc := range []struct {
		low, high unit.Seconds
		want      string
	}{{158e-6, 237e-6, "158-237 µs"}, {0.9e-3, 1.2e-3, "900 µs-1.20 ms"}} {
		if got := Span(tc.low, tc.high); got != tc.want {
			t.Errorf("Span(%v, %v) = %s, want %s", tc.low, tc.high, got, tc.want)
		}
	}
	if got := Level(0.9) + ", " + Level(0.995); got != "90 %, 99.5 %" {
		t.Errorf("levels %s", got)
	}
}

func TestDelimited(t *testing.T) {
	rows := [][]string{{"a,b", "tab\there"}, {"say \"hi\"", "two\nlines"}}
	for f, want := range map[Format]string{
		CSV: "x,y\n\"a,b\",tab\\there\n\"say \"\"hi\"\"\",two\\nlines\n",
		TSV: "x\ty\na,b\ttab\\there\nsay 'hi'\ttwo\\nlines\n",
	} {
		var out bytes.Buffer
		s := iostreams.Plain(strings.NewReader(""), &out, &out)
		if err := WriteRows(s, f, []string{"x", "y"}, [][]string{append([]string{}, rows[0]...),
			append([]string{}, rows[1]...)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%s: got %q, want %q", f, out.String(), want)
		}
	}
}

// A table is plain text: aligned, without trailing blanks, with escape sequences only if colour is wanted.
func TestGrid(t *testing.T) {
	rows := [][]string{{"alpha", "1.5 µs", "x"}, {"be", "137 µs", ""}}
	for _, tc := range []struct {
		colour bool
		want   string
	}{
		{false, "name     time  note\nalpha  1.5 µs  x\nbe     137 µs\n"},
		{true, "\x1b[1mname\x1b[0m     \x1b[1mtime\x1b[0m  \x1b[1mnote\x1b[0m\nalpha  1.5 µs  x\nbe     137 µs\n"},
	} {
		var out bytes.Buffer
		s := iostreams.Plain(strings.NewReader(""), &out, &out)
		s.Colour = tc.colour
		WriteTable(s, []string{"name", "time", "note"}, rows)
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != tc.want {
			t.Errorf("colour %v: got\n%q, want\n%q", tc.colour, out.String(), tc.want)
		}
	}
}

// A number that JSON cannot hold is an error that names it.
func TestJSONLineNamesNumbers(t *testing.T) {
	type predicted struct {
		TFLOPS   float64     `json:"tflops"`
		Interval *[2]float64 `json:"interval_seconds"`
	}
	type Object struct {
		Predicted *predicted `json:"predicted"`
	}
	inf := math.Inf(1)
	for want, v := range map[string]any{
		"predicted.tflops": Object{Predicted: &predicted{TFLOPS: inf}},
		"predicted.interval_seconds[1]": struct {
			Object
			Rank int `json:"rank"`
		}{Object: Object{Predicted: &predicted{Interval: &[2]float64{0, math.NaN()}}}},
		"summary.worst": map[string]any{"summary": Fields{{"best", 1.0}, {"none", Number(inf)}, {"worst", -inf}}},
		"rows[2].x": struct {
			Rows []map[string]float64 `json:"rows"`
		}{[]map[string]float64{{"x": 1}, nil, {"x": inf}}},
	} {
		var out bytes.Buffer
		s := iostreams.Plain(strings.NewReader(""), &out, &out)
		err := JSONLine(s, v)
		var d *diag.Error
		if !errors.As(err, &d) || d.Where != want || d.Kind != diag.Plugin {
			t.Errorf("%v, want %s", err, want)
		}
		if err := s.Flush(); err != nil || out.Len() > 0 {
			t.Errorf("%v, %q", err, out.String())
		}
	}
}
