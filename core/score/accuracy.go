package score

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Tolerance is the factor by which two times may differ to agree.
const Tolerance = 1.2

// Decided is the factor by which two measured times have to differ to say that one device is faster.
const Decided = 1.1

// agree reports whether two numbers differ by at most Tolerance.
func agree[T ~float64](a, b T) bool { return max(a, b) <= min(a, b)*Tolerance }

// Accuracy sums up predicted ÷ measured times. All fields are 0 without any.
type Accuracy struct {
	Count             int
	Geomean, P10, P90 float64
	// Within is the share of the times that agree: neither is more than Tolerance times the other.
	Within float64
	// Error is the median of |predicted ÷ measured − 1|.
	Error float64
}

// AccuracyOf sums up ratios of predicted to measured times.
func AccuracyOf(ratios []float64) Accuracy {
	if len(ratios) == 0 {
		return Accuracy{}
	}
	sorted, errors, within := slices.Sorted(slices.Values(ratios)), make([]float64, len(ratios)), 0
	for i, r := range sorted {
		errors[i] = math.Abs(r - 1)
		if agree(r, 1) {
			within++
		}
	}
	n := float64(len(sorted))
	return Accuracy{
		Count: len(sorted), Geomean: stats.Geomean(sorted), P10: stats.Quantile(sorted, 0.1),
		P90: stats.Quantile(sorted, 0.9), Within: float64(within) / n, Error: stats.Median(errors),
	}
}

// Ceiling is how often different software agrees on the time of the same problem on the same GPU. A model agrees with
// one stack about as often at best, and with the median of several more often: that lies between them.
type Ceiling struct {
	// Count is the number of problems with several times. Share is the share of the pairs of these that agree, each
	// problem with the same weight.
	Count int
	Share float64
}

// CeilingOf finds the ceiling from the times of each problem. Problems with one time do not count.
func CeilingOf(problems [][]unit.Seconds) Ceiling {
	var c Ceiling
	for _, times := range problems {
		pairs, agreeing := 0, 0
		for i := range times {
			for _, other := range times[:i] {
				if pairs++; agree(times[i], other) {
					agreeing++
				}
			}
		}
		if pairs > 0 {
			c.Count++
			c.Share += float64(agreeing) / float64(pairs)
		}
	}
	c.Share /= float64(max(c.Count, 1))
	return c
}

// Versus is one problem on two devices: the time on the first ÷ the time on the second.
type Versus struct {
	Predicted, Measured float64
	// Odds is the predicted probability that the first is faster, NaN without intervals. Apart says that the intervals do
	// not touch.
	Odds  float64
	Apart bool
}

// Comparability says how well a model compares two devices.
type Comparability struct {
	Count int
	// Within is the share of the problems whose predicted ratio agrees with the measured one.
	Within float64
	// Decided is the number of problems on which the measured times differ by more than the factor Decided, Winner the
	// share of them on which the model names the faster device.
	Decided int
	Winner  float64
	// Stated is the number of problems with odds. Sure is the number of those of which a device has odds of 0.90 to 0.95,
	// and SureRight the share of these on which it is the faster one.
	Stated, Sure int
	SureRight    float64
	// Brier is the mean of (odds − 1 if the first is faster, else 0)²: 0 is perfect, 0.25 that of a coin. BrierApart is
	// that of saying 1 or 0 where the intervals do not touch, and 0.5 elsewhere.
	Brier, BrierApart float64
}

// The odds of Comparability.Sure.
const (
	sureFrom = 0.90
	sureTo   = 0.95
)

// addOdds enters the odds of a problem.
func (c *Comparability) addOdds(v *Versus) {
	if math.IsNaN(v.Odds) {
		return
	}
	c.Stated++
	first, rule := 0.0, 0.5
	if v.Measured < 1 {
		first = 1
	}
	if v.Apart {
		rule = math.Round(v.Odds)
	}
	c.Brier += (v.Odds - first) * (v.Odds - first)
	c.BrierApart += (rule - first) * (rule - first)
	if sure := max(v.Odds, 1-v.Odds); sureFrom <= sure && sure < sureTo {
		c.Sure++
		if (v.Odds > 0.5) == (v.Measured < 1) {
			c.SureRight++
		}
	}
}

// ComparabilityOf sums up the problems of two devices.
func ComparabilityOf(problems []Versus) Comparability {
	c := Comparability{Count: len(problems)}
	for i := range problems {
		v := &problems[i]
		c.addOdds(v)
		if agree(v.Predicted, v.Measured) {
			c.Within++
		}
		if max(v.Measured, 1/v.Measured) > Decided {
			c.Decided++
			if v.Predicted < 1 == (v.Measured < 1) && v.Predicted != 1 {
				c.Winner++
			}
		}
	}
	c.Within /= float64(max(c.Count, 1))
	c.Winner /= float64(max(c.Decided, 1))
	c.SureRight /= float64(max(c.Sure, 1))
	c.Brier, c.BrierApart = c.Brier/float64(max(c.Stated, 1)), c.BrierApart/float64(max(c.Stated, 1))
	return c
}
