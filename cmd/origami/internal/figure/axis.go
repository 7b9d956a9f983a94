package figure

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/unit"
)

// scaled is an axis with its ends, laid over pixels.
type scaled struct {
	*Axis
	low, high float64
	// from and to are the pixels of both ends, or of both ends of the names.
	from, to float64
}

// at is the pixel of a number, or the middle of a name's place.
func (s *scaled) at(v any) float64 {
	if name, ok := v.(string); ok {
		return s.from + (float64(slices.Index(s.Names, name))+0.5)*s.step()
	}
	number, _ := v.(float64)
	return s.from + (s.to-s.from)*share(number, s.low, s.high, s.Log)
}

// step is the room of a name.
func (s *scaled) step() float64 { return (s.to - s.from) / float64(max(1, len(s.Names))) }

// share is where a number lies between two others.
func share(v, low, high float64, log bool) float64 {
	if !(high > low) {
		return 0.5
	}
	if log {
		return math.Log(v/low) / math.Log(high/low)
	}
	return (v - low) / (high - low)
}

// ends takes the ends of the axis, or puts them around the numbers that are drawn along it.
func (s *scaled) ends(values []float64) {
	s.low, s.high = s.Low, s.High
	if s.Low != 0 || s.High != 0 || len(s.Names) > 0 {
		return
	}
	if s.Reference != 0 {
		values = append(values, s.Reference)
	}
	if len(values) == 0 {
		values = []float64{1, 10}
	}
	s.low, s.high = slices.Min(values), slices.Max(values)
	switch {
	case s.Log && s.low == s.high:
		s.low, s.high = s.low/2, s.high*2
	case s.Log:
		margin := math.Pow(s.high/s.low, 0.03)
		s.low, s.high = s.low/margin, s.high*margin
	case s.low == s.high:
		s.low, s.high = s.low-1, s.high+1
	default:
		margin := (s.high - s.low) * 0.02
		if s.low != 0 {
			s.low -= margin
		}
		s.high += margin
	}
}

// ticks are round numbers of the axis, about as many as most.
func (s *scaled) ticks(most int) (ticks []float64) {
	if s.Log {
		return logTicks(s.low, s.high, max(3, most))
	}
	return linearTicks(s.low, s.high, max(2, min(8, most)))
}

// linearTicks are multiples of 1, 2 or 5 times a power of ten.
func linearTicks(low, high float64, most int) (ticks []float64) {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(most))))
	for i := 0; (high-low)/step > float64(most); i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9; i++ {
		ticks = append(ticks, i*step+0) // not −0
	}
	return ticks
}

// logTicks are powers of ten, with numbers between them where there is room. Where powers of ten are too many, some are
// left out.
func logTicks(low, high float64, most int) (ticks []float64) {
	fine := []float64{}
	for m := 10; m < 100; m++ {
		fine = append(fine, float64(m)/10)
	}
	for _, mantissas := range [][]float64{{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 7}, fine} {
		var more []float64
		for power := math.Floor(math.Log10(low)); power <= math.Log10(high); power++ {
			for _, m := range mantissas {
				if v := rounded(m*math.Pow(10, power), 6); v >= low*0.9999 && v <= high*1.0001 {
					more = append(more, v)
				}
			}
		}
		if len(more) > most && len(ticks) > 1 {
			break
		}
		ticks = more
	}
	every := max(1, (len(ticks)+most-1)/most)
	var kept []float64
	for i := 0; i < len(ticks); i += every {
		kept = append(kept, ticks[i])
	}
	return kept
}

// Number writes a number with three digits and its unit: 1.23e-5 s is "12.3 µs", 0.5 % is "50 %".
func Number(v float64, u string) string {
	switch {
	case u == "%":
		return short(v*100) + " %"
	case u == "÷":
		return short(v) + "×"
	case u == "" || v == 0:
		return strings.TrimSpace(short(v) + " " + u)
	}
	number, prefixed, _ := strings.Cut(unit.SI(rounded(v, 3), u), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + prefixed
}

// rounded is a number with so many digits.
func rounded(v float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64) // it was written by FormatFloat
	return r
}

// short writes a number with up to three digits.
func short(v float64) string {
	r := rounded(v, 3)
	if abs := math.Abs(r); abs >= 1e6 || abs < 1e-4 && abs > 0 {
		return strconv.FormatFloat(r, 'g', -1, 64)
	}
	return strconv.FormatFloat(r, 'f', -1, 64)
}
