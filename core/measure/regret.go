package measure

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// The log of a candidate's measured time is taken to be normal around the log of its predicted time, with the model's
// standard deviation sigma and independently of the other candidates: L_i ~ N(log t_i, σ²).

// RegretCandidates is how many of the leading candidates an expected regret takes into account. Later candidates
// are far behind, and their errors are hardly independent of their neighbours'.
const RegretCandidates = 64

// The integrals are over the log of time, from gridReach·sigma before the fastest prediction to as much behind it. With
// half the steps, an expected regret changes by less than 1 %.
const (
	gridSteps = 256
	gridReach = 8
)

// ExpectedRegret returns the expected regret of measuring only the first n candidates and taking the fastest of these.
// predicted are the predicted times of the candidates, best first:
//
//	E[max(0, exp(min over i≤n of L_i − min over i>n of L_i) − 1)]
//
// It is relative to the fastest of the others. With n = 1 it is the expected regret of measuring nothing and taking the
// pick. Times must be positive.
func ExpectedRegret(predicted []unit.Seconds, sigma float64, n int) float64 {
	predicted = predicted[:min(len(predicted), RegretCandidates)]
	if n >= len(predicted) || sigma <= 0 {
		return 0
	}
	g := newGrid(predicted, sigma)
	first, rest := ones(), ones()
	for i, t := range predicted {
		if i < n {
			g.include(first, t)
		} else {
			g.include(rest, t)
		}
	}
	return g.regret(first, rest)
}

// WorthMeasuring returns how many candidates are worth measuring, given their predicted times, best first: the least n
// whose ExpectedRegret is below noise. If n is 1, no measurement is needed, since there is nothing to choose from.
func WorthMeasuring(predicted []unit.Seconds, sigma, noise float64) int {
	predicted = predicted[:min(len(predicted), RegretCandidates)]
	if len(predicted) < 2 || sigma <= 0 {
		return min(len(predicted), 1)
	}
	g := newGrid(predicted, sigma)
	rest := make([]*survival, len(predicted)) // of the candidates after the i-th
	rest[len(rest)-1] = ones()
	for i := len(rest) - 1; i > 0; i-- {
		after := *rest[i]
		g.include(&after, predicted[i])
		rest[i-1] = &after
	}
	first := ones()
	for i, t := range predicted[:len(predicted)-1] {
		if g.include(first, t); g.regret(first, rest[i]) < noise {
			return i + 1
		}
	}
	return len(predicted)
}

// grid divides a range of the log of time into steps.
type grid struct{ sigma, first, step float64 }

func newGrid(predicted []unit.Seconds, sigma float64) grid {
	fastest := math.Log(float64(slices.Min(predicted))) // not always the first, which may win a tie with a faster one
	return grid{sigma, fastest - float64(gridReach*sigma), 2 * gridReach * sigma / gridSteps}
}

// survival is, at each point of a grid, the probability that all of some candidates are slower.
type survival [gridSteps + 1]float64

// ones is the survival function of no candidates.
func ones() *survival {
	var s survival
	for i := range s {
		s[i] = 1
	}
	return &s
}

// include adds a candidate.
func (g grid) include(s *survival, t unit.Seconds) {
	z, table := (math.Log(float64(t))-g.first)/g.sigma, normalTable()
	for i := range s {
		if s[i] == 0 {
			break // all later points are 0 too
		}
		s[i] *= normal(table, z-float64(i)*g.step/g.sigma)
	}
}

// regret returns E[max(0, exp(A − B) − 1)] for the fastest A of some candidates and the fastest B of others, with nine
// decimals. Those after them depend on how a platform computes logarithms and exponentials.
func (g grid) regret(a, b *survival) float64 {
	// For a given b it is ∫ exp(x − b) · P(A > x) dx over x > b. One pass from the end gives the integrals for all
	// b, by the trapezoidal rule.
	regret, next, growth := 0.0, 0.0, math.Exp(g.step)
	for i := gridSteps - 1; i >= 0; i-- {
		here := float64(next*growth) + float64(g.step/2*(a[i]+float64(a[i+1]*growth)))
		regret += float64((b[i] - b[i+1]) * (here + next) / 2)
		next = here
	}
	return math.Round(regret*1e9) / 1e9
}

// normal is the standard normal distribution function, to within 10⁻⁵, from a table of it.
func normal(t *distribution, x float64) float64 {
	at := (x + normalReach) * normalSteps
	switch {
	case at <= 0:
		return 0
	case at >= 2*normalReach*normalSteps:
		return 1
	}
	i := int(at)
	return t[i] + float64((at-float64(i))*(t[i+1]-t[i]))
}

// The distribution function is evaluated millions of times. Interpolating in a table is 20 times as fast as math.Erfc.
const (
	normalReach = 6
	normalSteps = 64
)

type distribution [2*normalReach*normalSteps + 1]float64

var normalTable = sync.OnceValue(func() *distribution {
	var t distribution
	for i := range t {
		t[i] = math.Erfc((normalReach-float64(i)/normalSteps)/math.Sqrt2) / 2
	}
	return &t
})

// AssumedNoise is the noise of a measurement that is taken for granted before one was made: the relative difference
// of two measurements of the same kernel. Repeated sweeps differ by 0.3–1.3 % at the median, and a measurement goes
// on until its median is known to 1 %.
const AssumedNoise = steady

// apart is how many standard errors the times of two configurations may differ by chance: 9 of 10 normal errors do not.
const apart = 1.645

// noise returns by what share the times of two configurations may differ by chance that were measured at other times.
// Both the samples and the moment make noise. 3183 pairs in the shipped sets were measured apart and then in turns:
// the ratios of 70 % changed by less than this, and of 48 % by less than their samples alone say.
func noise(a, b *dataset.Measurement) float64 {
	sum := AssumedNoise * AssumedNoise
	for _, m := range []*dataset.Measurement{a, b} {
		if e := stats.MedianError(m.Samples); !math.IsNaN(e) && !math.IsInf(e, 0) {
			sum += e * e
		}
	}
	return apart * math.Sqrt(sum)
}

// Tie is a measurement that is tied with a pick: its time is longer by no more than the noise, a share of the time.
type Tie struct {
	dataset.Measurement
	Noise float64
}

// Ties returns what is tied with a pick, the fastest first.
func Ties(pick *dataset.Measurement, others []dataset.Measurement) (ties []Tie) {
	for i := range others {
		m := &others[i]
		if n := noise(pick, m); m.Status == dataset.OK && m.Config != pick.Config &&
			float64(m.Median/pick.Median)-1 <= n {
			ties = append(ties, Tie{*m, n})
		}
	}
	slices.SortStableFunc(ties, func(a, b Tie) int { return cmp.Compare(a.Median, b.Median) })
	return ties
}
