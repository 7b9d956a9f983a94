package unit_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestSI(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{137e-6, "s", "137 µs"},
		{2.52e9, "Hz", "2.52 GHz"},
		{1.695e9, "Hz", "1.70 GHz"}, // three digits
		{165.2e12, "FLOP/s", "165 TFLOP/s"},
		{989.4e12, "FLOP/s", "989 TFLOP/s"},
		{1.9789e15, "FLOP/s", "1.98 PFLOP/s"},
		{1, "s", "1.00 s"},
		{-0.25, "s", "-250 ms"},
		{12.34, "s", "12.3 s"},
		{1e-12, "s", "1.00 ps"},
		{1e-15, "s", "1e-15 s"},
		{4e18, "B", "4.00 EB"},
		{4e21, "B", "4000 EB"},
		{0, "s", "0 s"},
		// Rounding carries into the next digit or prefix.
		{9.996, "s", "10.0 s"},
		{99.96, "s", "100 s"},
		{999.4, "s", "999 s"},
		{999.6, "s", "1.00 ks"},
		{0.9996e-3, "s", "1.00 ms"},
		{-9.996e-9, "s", "-10.0 ns"},
		{math.Inf(1), "s", "+Inf s"},
		{math.NaN(), "s", "NaN s"},
	} {
		must.Equal(t, unit.SI(c.v, c.unit), c.want, c.v, c.unit)
	}
}

// SI prints three correct significant digits of any value.
func TestSIKeepsThreeDigits(t *testing.T) {
	scale := map[byte]float64{
		'E': 1e18, 'P': 1e15, 'T': 1e12, 'G': 1e9, 'M': 1e6, 'k': 1e3,
		'X': 1, 'm': 1e-3, 'n': 1e-9, 'p': 1e-12,
	}
	for exp := -11; exp <= 17; exp++ {
		for mantissa := 1.0; mantissa < 10; mantissa += 0.0137 {
			v := mantissa * math.Pow10(exp)
			text := strings.Replace(unit.SI(v, "X"), "µ", "u", 1)
			number, name, _ := strings.Cut(text, " ")
			digits := len(strings.ReplaceAll(number, ".", ""))
			must.Need(t, digits == 3, "SI(%v) = %q has %d digits", v, text, digits)
			got := must.Get(strconv.ParseFloat(number, 64))(t)
			s, ok := scale[name[0]]
			if name[0] == 'u' {
				s, ok = 1e-6, true
			}
			must.Need(t, ok && math.Abs(got*s-v) <= 0.00501*v, "SI(%v) = %q", v, text)
		}
	}
}

func TestStrings(t *testing.T) {
	must.Equal(t, unit.Seconds(137e-6).String(), "137 µs")
	must.Equal(t, unit.Hertz(2.52e9).String(), "2.52 GHz")
	must.Equal(t, unit.FlopsPerSecond(165.2e12).String(), "165 TFLOP/s")
	must.Equal(t, unit.Cycles(2.52e9).At(2.52e9), 1)
}

func TestConvert(t *testing.T) {
	for _, c := range []struct {
		value    float64
		from, to string
		want     float64
	}{
		{1896.1, "B/cycle", "B/cycle", 1896.1},
		{163, "KiB", "B", 166912},
		{72, "MiB", "B", 75497472},
		{80, "GiB", "MiB", 81920},
		{2.52, "GHz", "Hz", 2.52e9},
		{1695, "MHz", "GHz", 1.695},
		{3.35, "TB/s", "GB/s", 3350},
		{165.2, "TFLOP/s", "FLOP/s", 165.2e12},
		{5, "us", "ns", 5000},
		{450, "W", "W", 450},
		{132, "1", "1", 132},
	} {
		got, err := unit.Convert(c.value, c.from, c.to)
		must.That(t, err == nil && math.Abs(got-c.want) <= 1e-15*math.Abs(c.want),
			"Convert(%v, %s, %s) = %v, %v, want %v", c.value, c.from, c.to, got, err, c.want)
	}
	// Conversion to the same unit keeps the bits, even of NaN.
	must.Equal(t, must.Get(unit.Convert(0.1, "B/s", "B/s"))(t), 0.1)
	if got, err := unit.Convert(math.NaN(), "GHz", "GHz"); err != nil || !math.IsNaN(got) {
		t.Errorf("NaN: %v, %v", got, err)
	}
}

func TestConvertRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, says string }{
		{"MiB", "cycles", `"MiB" does not measure what "cycles" measures`},
		{"GB/s", "B", "does not measure"},
		{"GHz", "ns", "does not measure"},
		{"MB", "B", `unknown unit "MB" (known: 1, 1/cycle, B, B/cycle,`},
		{"B", "", `unknown unit ""`},
		{"ghz", "Hz", `unknown unit "ghz"`}, // units are case sensitive: mW is not MW
	} {
		if got, err := unit.Convert(1, c.from, c.to); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Convert(1, %q, %q) = %v, %v, want an error saying %q", c.from, c.to, got, err, c.says)
		}
	}
}

func TestNamesAreUsable(t *testing.T) {
	names := unit.Names()
	must.Need(t, len(names) >= 10, "only %v", names)
	for i, name := range names {
		if i > 0 && names[i-1] >= name {
			t.Errorf("%q is not before %q", names[i-1], name)
		}
		must.Equal(t, must.Get(unit.Convert(3, name, name))(t), 3, name)
	}
}
