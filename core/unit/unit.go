// Package unit gives every physical quantity a type, so that cycles cannot be added to seconds by accident, and parses
// the unit names that device files and overrides use. Values are held in base units; prefixes exist only in text.
package unit

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// Base quantities. All are float64 because models mix counts, averages and measurements; byte and FLOP counts stay
// exact up to 2^53.
type (
	// Cycles counts clock periods of the SM or CU clock.
	Cycles float64
	// Seconds is wall-clock time.
	Seconds float64
	// Bytes is an amount of data.
	Bytes float64
	// BytesPerCycle is a bandwidth of the whole device per SM or CU clock period.
	BytesPerCycle float64
	// Hertz is a clock frequency.
	Hertz float64
	// FlopsPerSecond is an arithmetic rate; a multiply-add counts as two.
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

// SI formats v with three significant digits and the SI prefix that leaves one to three digits before the point.
// Seconds and FLOP/s go down to pico and up to exa; zero, NaN and infinities are printed as they are.
func SI(v float64, unit string) string {
	prefixes := []struct {
		scale float64
		name  string
	}{{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}, {1e-12, "p"}}
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', 3, 64) + " " + unit
	}
	for _, p := range prefixes {
		// 0.9995 rounds up to 1.00 at three digits, so it belongs to this prefix already; 9.995 to 10.0 likewise.
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

// scales lists every unit name that a device file or an override may use, as the base unit it belongs to and the
// factor that converts a value to it.
var scales = map[string]struct {
	base   string
	factor float64
}{
	"1":       {"1", 1},
	"cycles":  {"cycles", 1},
	"B/cycle": {"B/cycle", 1},
	"B":       {"B", 1}, "KiB": {"B", 1 << 10}, "MiB": {"B", 1 << 20}, "GiB": {"B", 1 << 30},
	"Hz": {"Hz", 1}, "kHz": {"Hz", 1e3}, "MHz": {"Hz", 1e6}, "GHz": {"Hz", 1e9},
	"B/s": {"B/s", 1}, "GB/s": {"B/s", 1e9}, "TB/s": {"B/s", 1e12},
	"FLOP/s": {"FLOP/s", 1}, "TFLOP/s": {"FLOP/s", 1e12},
	"s": {"s", 1}, "us": {"s", 1e-6}, "ns": {"s", 1e-9},
	"W": {"W", 1},
}

// Convert returns value, given in unit from, in unit to. It fails when from is unknown or measures something else.
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
		return value, nil // keeps the value's bits
	}
	return value * f.factor / t.factor, nil
}

// Names lists the unit names that Convert knows, sorted.
func Names() []string {
	names := make([]string, 0, len(scales))
	for n := range scales {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
