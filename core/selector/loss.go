package selector

import (
	"math"
	"sync"

	"github.com/origami-gemm/origami/core/unit"
)

// The log of a candidate's measured time is taken to be normal around the log of the predicted one with the standard
// deviation spread (arch.Uncertainty.Spread), independently of the other candidates: L_i ~ N(log t_i, spread²).

// LossCandidates bounds how many of the leading candidates are considered: what comes later is far behind, and its errors
// are hardly independent of its neighbours'.
const LossCandidates = 64

const (
	// gridSteps and gridReach say how the integrals below are computed: midpoints from gridReach·spread before the best
	// prediction to as much behind it. Half the steps change a loss by less than 1 %.
	gridSteps  = 256
	gridReach  = 8
	negligible = 1e-9
)

// ExpectedLoss returns how much slower the first of the predicted times, best first, is expected to be than the fastest
// of the others, as a part of that one's time:
//
//	E[max(0, exp(L_1 − min over i>1 of L_i) − 1)]
//
// It is what is lost on the average by not measuring. Times must be positive.
func ExpectedLoss(predicted []unit.Seconds, spread float64) float64 {
	if len(predicted) < 2 || spread <= 0 {
		return 0
	}
	g := newGrid(predicted, spread)
	for _, l := range g.logs[1:] {
		g.include(l)
	}
	// Given that the fastest of the others is at m, the loss is E[max(0, exp(L_1 − m) − 1)], which has a closed form.
	loss := 0.0
	before := 1.0
	for i := range g.slower {
		m := g.at(i) - g.step/2 // between this point and the one before
		d := (g.logs[0] - m) / spread
		loss += (before - g.slower[i]) * (math.Exp(g.logs[0]-m+spread*spread/2)*normal(d+spread) - normal(d))
		before = g.slower[i]
	}
	return max(0, loss)
}

// WorthMeasuring returns how many of the predicted times, best first, are worth measuring before the fastest of them is
// taken: measuring one more is expected to make the log of that fastest time smaller,
//
//	E[max(0, min over i≤n of L_i − L_(n+1))],
//
// by less than noise. That is at least 1, which is to measure nothing but the pick.
func WorthMeasuring(predicted []unit.Seconds, spread, noise float64) int {
	if len(predicted) < 2 || spread <= 0 {
		return min(len(predicted), 1)
	}
	g := newGrid(predicted, spread)
	g.include(g.logs[0])
	for n := 1; n < len(g.logs); n++ {
		// E[max(0, M − L)] = ∫ P(L ≤ x) · P(M > x) dx
		gain := 0.0
		for i, s := range g.slower {
			gain += s * normal((g.at(i)-g.logs[n])/spread) * g.step
		}
		if gain < noise {
			return n
		}
		g.include(g.logs[n])
	}
	return len(g.logs)
}

// grid is the distribution of the fastest of some candidates over the log of time.
type grid struct {
	logs        []float64
	spread      float64
	first, step float64
	// slower is the probability that all of them are slower than the i-th point, as far as it is not negligible.
	slower []float64
}

func newGrid(predicted []unit.Seconds, spread float64) *grid {
	g := &grid{spread: spread, logs: make([]float64, min(len(predicted), LossCandidates)), slower: make([]float64, gridSteps)}
	least := math.Inf(1)
	for i := range g.logs {
		g.logs[i] = math.Log(float64(predicted[i]))
		least = min(least, g.logs[i]) // the first may be within a tie window of the fastest
	}
	for i := range g.slower {
		g.slower[i] = 1
	}
	g.step = 2 * gridReach * spread / gridSteps
	g.first = least - gridReach*spread + g.step/2
	return g
}

func (g *grid) at(i int) float64 { return g.first + float64(i)*g.step }

// include adds a candidate.
func (g *grid) include(log float64) {
	for i := range g.slower {
		g.slower[i] *= normal((log - g.at(i)) / g.spread)
		if g.slower[i] < negligible { // and so are all behind it
			g.slower = g.slower[:i]
			return
		}
	}
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
