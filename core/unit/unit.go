// Package unit gives every physical quantity a type, so that nobody adds cycles to seconds by accident. It also parses
// the unit names of device files and overrides. Values are in base units. Prefixes exist only in text.
package unit

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// Base quantities. All are float64 because models mix counts, averages and measurements. Byte and FLOP counts are exact
// up to 2^53.
type (
	// Cycles counts clock periods of the SM or CU clock.
	Cycles float64
	// Seconds is wall-clock time.
	Seconds float64
	// Bytes is an amount of data.
	Bytes float64
	// BytesPerCycle is a bandwidth of the whole device per SM or CU clock period.
	BytesPerCycle float64
	// BytesPerSecond is a bandwidth.
	BytesPerSecond float64
	// Hertz is a clock frequency.
	Hertz float64
	// FlopsPerSecond is an arithmetic rate. A multiply-add counts as two operations.
	FlopsPerSecond float64
)

// At converts cycles to seconds at clock f: t = c / f.
func (c Cycles) At(f Hertz) Seconds { return Seconds(float64(c) / float64(f)) }

// String formats with three significant digits and an SI prefix, as "137 µs".
func (s Seconds) String() string { return SI(float64(s), "s") }

// String formats as "2.52 GHz".
func (f Hertz) String() string { return SI(float64(f), "Hz") }

// String formats as "165 TFLOP/s".
func (r FlopsPerSecond) String() string { return SI(float64(r), "FLOP/s") }

// SI formats v with three significant digits. It chooses the prefix, from pico to exa, that leaves one to three digits
// before the point. Zero, NaN and infinities have no prefix.
func SI(v float64, unit string) string {
	prefixes := []struct {
		scale float64
		name  string
	}{
		{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""},
		{1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}, {1e-12, "p"},
	}
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', 3, 64) + " " + unit
	}
	for _, p := range prefixes {
		// With three digits, 0.9995 rounds to 1.00 and thus belongs to this prefix. Likewise, 9.995 rounds to 10.0.
		if scaled := v / p.scale; math.Abs(scaled) >= 0.9995 {
			digits := 2
			if math.Abs(scaled) >= 99.95 {
				digits = 0
			} else if math.Abs(scaled) >= 9.995 {
				digits = 1
			}
			return strconv.FormatFloat(scaled, 'f', digits, 64) + " " + p.name + unit
		}
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + " " + unit
}

// scales maps every unit name that a device file or an override may use to its base unit and the factor to convert to
// that unit.
var scales = map[string]struct {
	base   string
	factor float64
}{
	"1":       {"1", 1},
	"cycles":  {"cycles", 1},
	"B/cycle": {"B/cycle", 1}, "1/cycle": {"1/cycle", 1}, "FLOP/cycle": {"FLOP/cycle", 1},
	"B": {"B", 1}, "KiB": {"B", 1 << 10}, "MiB": {"B", 1 << 20}, "GiB": {"B", 1 << 30},
	"Hz": {"Hz", 1}, "kHz": {"Hz", 1e3}, "MHz": {"Hz", 1e6}, "GHz": {"Hz", 1e9},
	"B/s": {"B/s", 1}, "GB/s": {"B/s", 1e9}, "TB/s": {"B/s", 1e12},
	"FLOP/s": {"FLOP/s", 1}, "TFLOP/s": {"FLOP/s", 1e12},
	"s": {"s", 1}, "us": {"s", 1e-6}, "ns": {"s", 1e-9},
	"W": {"W", 1},
}

// Convert converts value from one unit to another. It fails if a unit is unknown or they measure different things.
func Convert(value float64, from, to string) (float64, error) {
	f, ok := scales[from]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q (known: %s)", from, strings.Join(Names(), ", "))
	}
	t, ok := scales[to]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q (known: %s)", to, strings.Join(Names(), ", "))
	}
	if f.base != t.base {
		return 0, fmt.Errorf("unit %q does not measure what %q measures", from, to)
	}
	if f.factor == t.factor {
		return value, nil // keeps the bits of the value
	}
	return value * f.factor / t.factor, nil
}

// ranges are the smallest and the largest number other than zero that hardware can have, in base units, with room for
// hardware that nobody has built. They tell a clock in MHz or kHz, a bandwidth in GB/s and a rate in TFLOP/s from one
// in base units. Within them a model neither divides by nearly nothing nor exceeds float64.
var ranges = map[string][2]float64{
	"1": {1e-9, 1e12}, "cycles": {1e-3, 1e9}, "B/cycle": {1e-6, 1e9}, "1/cycle": {1e-9, 1e6},
	"FLOP/cycle": {1e-3, 1e9}, "B": {1, 1 << 60}, "Hz": {1e7, 1e12},
	"B/s": {1e9, 1e18}, "FLOP/s": {1e9, 1e21}, "s": {1e-12, 1e6}, "W": {1e-3, 1e9},
}

// Range returns the smallest and the largest number other than zero that hardware can have in a unit that Convert
// knows.
func Range(name string) (low, high float64) {
	s := scales[name]
	r := ranges[s.base]
	return r[0] / s.factor, r[1] / s.factor
}

// Names returns the unit names that Convert knows, sorted.
func Names() []string {
	names := make([]string, 0, len(scales))
	for n := range scales {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
