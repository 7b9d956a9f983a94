package measure

import (
	"math"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/unit"
)

// The log of a candidate's measured time is taken to be normal around the log of the predicted one with the standard
// deviation spread (arch.Uncertainty.Spread), independently of the other candidates: L_i ~ N(log t_i, spread²).

// RegretCandidates bounds how many of the leading candidates are considered: what comes later is far behind, and its errors
// are hardly independent of its neighbours'.
const RegretCandidates = 64

// gridSteps and gridReach say how the integrals are computed: over the log of time, from gridReach·spread before the fastest
// prediction to as much behind it. Half the steps change a loss by less than 1 %.
const (
	gridSteps = 256
	gridReach = 8
)

// ExpectedRegret returns how much is expected to be lost when only the first n of the predicted times, best first, are
// measured and the fastest of these is taken, as a part of the time of the fastest of the others:
//
//	E[max(0, exp(min over i≤n of L_i − min over i>n of L_i) − 1)]
//
// With n = 1 that is what is lost on the average by not measuring at all. Times must be positive.
func ExpectedRegret(predicted []unit.Seconds, spread float64, n int) float64 {
	predicted = predicted[:min(len(predicted), RegretCandidates)]
	if n >= len(predicted) || spread <= 0 {
		return 0
	}
	g := newGrid(predicted, spread)
	first, rest := ones(), ones()
	for i, t := range predicted {
		if i < n {
			g.include(first, t)
		} else {
			g.include(rest, t)
		}
	}
	return g.loss(first, rest)
}

// WorthMeasuring returns how many of the predicted times, best first, are worth measuring: the least n for which
// ExpectedRegret is below noise. That is 1, which is to measure nothing, where it is without.
func WorthMeasuring(predicted []unit.Seconds, spread, noise float64) int {
	predicted = predicted[:min(len(predicted), RegretCandidates)]
	if len(predicted) < 2 || spread <= 0 {
		return min(len(predicted), 1)
	}
	g := newGrid(predicted, spread)
	rest := make([]*survival, len(predicted)) // of those behind the i-th
	rest[len(rest)-1] = ones()
	for i := len(rest) - 1; i > 0; i-- {
		behind := *rest[i]
		g.include(&behind, predicted[i])
		rest[i-1] = &behind
	}
	first := ones()
	for i, t := range predicted[:len(predicted)-1] {
		if g.include(first, t); g.loss(first, rest[i]) < noise {
			return i + 1
		}
	}
	return len(predicted)
}

// grid is the range of the log of time.
type grid struct{ spread, first, step float64 }

func newGrid(predicted []unit.Seconds, spread float64) grid {
	fastest := math.Log(float64(slices.Min(predicted))) // the first may be within a tie window of the fastest
	return grid{spread, fastest - gridReach*spread, 2 * gridReach * spread / gridSteps}
}

// survival is the probability that all of some candidates are slower than a point, at each point of a grid.
type survival [gridSteps + 1]float64

// ones is the survival of none.
func ones() *survival {
	var s survival
	for i := range s {
		s[i] = 1
	}
	return &s
}

// include adds a candidate.
func (g grid) include(s *survival, t unit.Seconds) {
	z := (math.Log(float64(t)) - g.first) / g.spread
	for i := range s {
		if s[i] == 0 {
			break // and so are all behind it
		}
		s[i] *= normal(z - float64(i)*g.step/g.spread)
	}
}

// loss returns E[max(0, exp(A − B) − 1)] of the fastest A of some candidates and the fastest B of others.
func (g grid) loss(a, b *survival) float64 {
	// Given b, it is ∫ exp(x − b) · P(A > x) dx over x > b: one integral for all b, from behind, by the trapezoidal rule.
	loss, behind, growth := 0.0, 0.0, math.Exp(g.step)
	for i := gridSteps - 1; i >= 0; i-- {
		here := behind*growth + g.step/2*(a[i]+a[i+1]*growth)
		loss += (b[i] - b[i+1]) * (here + behind) / 2
		behind = here
	}
	return loss
}

// normal is the standard normal distribution function, to within 10⁻⁵.
func normal(x float64) float64 {
	at := (x + normalReach) * normalSteps
	switch {
	case at <= 0:
		return 0
	case at >= 2*normalReach*normalSteps:
		return 1
	}
	i := int(at)
	t := normalTable()
	return t[i] + (at-float64(i))*(t[i+1]-t[i])
}

// The distribution function is asked millions of times, and a table is 20 times as fast as math.Erfc.
const (
	normalReach = 6
	normalSteps = 64
)

var normalTable = sync.OnceValue(func() *[2*normalReach*normalSteps + 1]float64 {
	var t [2*normalReach*normalSteps + 1]float64
	for i := range t {
		t[i] = math.Erfc((normalReach-float64(i)/normalSteps)/math.Sqrt2) / 2
	}
	return &t
})
