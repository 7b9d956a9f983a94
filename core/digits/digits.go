// Package digits writes numbers: for programs so that they read back to the same bits, for people in as many digits as
// mean something.
package digits

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Exact writes a float in the shortest form that reads back to the same bits. As in JSON, it has an exponent only below
// 10^-6 and from 10^21 on.
func Exact(v float64) string {
	if abs := math.Abs(v); abs == 0 || abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// SixDigits writes a number for a reader: whole numbers below 10^15 in full, others with six significant digits.
func SixDigits(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	if abs := math.Abs(v); abs >= 1e5 && abs < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// Percent writes a ratio as a percentage with three significant digits, as "76.3 %". What is not zero but would look
// like it is "<0.001 %".
func Percent(v float64) string {
	p := v * 100
	digits := 1
	switch abs := math.Abs(p); {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return SixDigits(v)
	case abs == 0:
		digits = 0
	case abs < 0.0005:
		return "<0.001 %"
	case abs >= 99.95:
		digits = 0
	case abs < 0.9995:
		digits = 3
	case abs < 9.995:
		digits = 2
	}
	return strconv.FormatFloat(p, 'f', digits, 64) + " %"
}

// WithUnit writes a value with its unit; "1" is the unit of a bare number.
func WithUnit(value, unit string) string {
	if unit == "1" || unit == "" {
		return value
	}
	return value + " " + unit
}

// Quantity writes a value with its unit for a reader: rates and clocks with an SI prefix, everything else in full.
func Quantity(v float64, u string) string {
	switch u {
	case "Hz", "B/s", "FLOP/s":
		return unit.SI(v, u)
	default:
		return WithUnit(SixDigits(v), u)
	}
}

// Rate writes an arithmetic rate for operands of a type: "165 TFLOP/s", and "330 TOPS" for integers.
func Rate(r unit.FlopsPerSecond, t gemm.DType) string { return unit.SI(float64(r), rateUnit(t)) }

// TeraRate is the unit of the JSON key tflops for operands of a type.
func TeraRate(t gemm.DType) string { return "T" + rateUnit(t) }

func rateUnit(t gemm.DType) string {
	if t.Integer() {
		return "OPS"
	}
	return "FLOP/s"
}

// Parameter writes a hardware number as Quantity does, and a size that is a whole number of MiB in MiB too.
func Parameter(v float64, u string) string {
	s := Quantity(v, u)
	if mebibytes := v / (1 << 20); u == "B" && mebibytes >= 1 && mebibytes == math.Trunc(mebibytes) {
		s += " (" + SixDigits(mebibytes) + " MiB)"
	}
	return s
}

// Span writes a range of times, with the unit once if both have the same: "158-237 µs".
func Span(low, high unit.Seconds) string {
	from, to := low.String(), high.String()
	number, unitOfLow, _ := strings.Cut(from, " ")
	if _, unitOfHigh, _ := strings.Cut(to, " "); unitOfLow == unitOfHigh {
		from = number
	}
	return from + "-" + to
}

// Level writes a probability without meaningless digits: "90 %".
func Level(p float64) string { return strconv.FormatFloat(p*100, 'g', 4, 64) + " %" }

// Plural writes a number of things.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// ThreeDigits writes a number with three significant digits, and whole from 100 on.
func ThreeDigits(v float64) string {
	if math.Abs(v) >= 99.95 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Number is a float64 that JSON can always hold: NaN and the infinities become null.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !Finite(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// Finite reports whether a value is a number that JSON can hold.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
