package score

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Tolerance is the factor by which two times may differ to agree.
const Tolerance = 1.2

// Decided is the factor by which two measured times have to differ to say that one device is faster.
const Decided = 1.1

// agree reports whether two numbers differ by at most Tolerance.
func agree[T ~float64](a, b T) bool { return max(a, b) <= min(a, b)*Tolerance }

// Accuracy sums up predicted ÷ measured times. The numbers are null without times.
type Accuracy struct {
	Count   int           `json:"times"`                // how many
	Geomean digits.Number `json:"geomean" unit:"ratio"` // of predicted ÷ measured
	P10     digits.Number `json:"p10" unit:"ratio"`
	P90     digits.Number `json:"p90" unit:"ratio"`
	Within  digits.Number `json:"within" unit:"fraction"`       // the share within 20 %
	Error   digits.Number `json:"error_median" unit:"fraction"` // of |predicted ÷ measured − 1|
}

// AccuracyOf sums up the ratios of rows.
func AccuracyOf(rows []Row) Accuracy {
	ratios := ratiosOf(rows)
	slices.Sort(ratios)
	quantile := func(q float64) digits.Number {
		if len(ratios) == 0 {
			return digits.Number(math.NaN())
		}
		return digits.Number(stats.Quantile(ratios, q))
	}
	within := 0
	for _, r := range ratios {
		if agree(r, 1) {
			within++
		}
	}
	return Accuracy{
		Count: len(ratios), Geomean: digits.Number(stats.Geomean(ratios)), P10: quantile(0.1), P90: quantile(0.9),
		Within: share(float64(within), len(ratios)), Error: digits.Number(medianError(ratios)),
	}
}

// Ratios sums up predicted ÷ measured time.
type Ratios struct {
	Count  int     `json:"count"`               // how many kernels
	Median float64 `json:"median" unit:"ratio"` // their ratios
	Least  float64 `json:"lowest" unit:"ratio"`
	Large  float64 `json:"highest" unit:"ratio"`
}

// RatiosOf sums up the ratios of the rows that count. Rejected configurations have none.
func RatiosOf(rows []Row, counts func(*Row) bool) Ratios {
	ratios := ratiosOf(slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Reject != "" || !counts(&r) }))
	if len(ratios) == 0 {
		return Ratios{}
	}
	return Ratios{len(ratios), stats.Median(ratios), slices.Min(ratios), slices.Max(ratios)}
}

// share is a part of a number of things, NaN of none.
func share(part float64, of int) digits.Number { return digits.Number(part / float64(of)) }

// Ceiling is how often different software agrees on the time of the same problem on the same GPU. A model agrees with
// one stack about as often at best, and with the median of several more often: that lies between them.
type Ceiling struct {
	// the problems that several stacks timed, and how often these agree
	Count int           `json:"ceiling_problems"`
	Share digits.Number `json:"ceiling" unit:"fraction"`
}

// CeilingOf finds the ceiling from the times of each problem. Problems with one time do not count.
func CeilingOf(problems [][]unit.Seconds) Ceiling {
	count, sum := 0, 0.0
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
			count++
			sum += float64(agreeing) / float64(pairs)
		}
	}
	return Ceiling{count, share(sum, count)}
}

// Versus is one problem on two devices: the time on the first ÷ the time on the second.
type Versus struct {
	Predicted, Measured float64
	// Odds is the predicted probability that the first is faster, NaN without intervals. Apart says that the intervals do
	// not touch.
	Odds  float64
	Apart bool
}

// Comparability says how well a model compares two devices. The shares are null where they are of nothing.
type Comparability struct {
	Count     int           `json:"shapes"`                     // that both have a time of
	Within    digits.Number `json:"within" unit:"fraction"`     // the share of the ratios within 20 %
	Decided   int           `json:"decided"`                    // measured ratios over 1.1
	Winner    digits.Number `json:"winner" unit:"fraction"`     // the share of these with the right winner
	Sure      int           `json:"sure"`                       // one of the two has odds of 90 to 95 % to be faster
	SureRight digits.Number `json:"sure_right" unit:"fraction"` // the share of these with the right winner
	// the mean of (odds − 1 or 0)²; a coin has 0.25
	Brier digits.Number `json:"brier"`
	// the same with 1 or 0 where intervals do not touch, 0.5 elsewhere
	BrierApart digits.Number `json:"brier_apart"`
	stated     int           // the number of problems with odds
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
	c.stated++
	first, rule := 0.0, 0.5
	if v.Measured < 1 {
		first = 1
	}
	if v.Apart {
		rule = math.Round(v.Odds)
	}
	c.Brier += digits.Number((v.Odds - first) * (v.Odds - first))
	c.BrierApart += digits.Number((rule - first) * (rule - first))
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
	c.Within /= digits.Number(c.Count) // 0 of 0 is NaN
	c.Winner /= digits.Number(c.Decided)
	c.SureRight /= digits.Number(c.Sure)
	c.Brier, c.BrierApart = c.Brier/digits.Number(c.stated), c.BrierApart/digits.Number(c.stated)
	return c
}

// Odds returns the probability that the first of two times is the shorter one. What a source measures too long, it
// measures too long on both devices: the errors have the correlation oddsShared. Of the time with the shorter median
// the errors above the median count, and of the other one the errors below, so that the probability is at least one
// half for the time that is predicted to be the shorter one.
//
// P has six decimals. More would say nothing, and depend on how a platform computes logarithms and exponentials.
//
//	P = Φ(log(median2 ÷ median1) ÷ √(σ1² + σ2² − 2·ρ·σ1·σ2)) for median1 ≤ median2, with z = Φ⁻¹((1 + level) ÷ 2),
//	σ1 = log(high1 ÷ median1) ÷ z, σ2 = log(median2 ÷ low2) ÷ z
func Odds(first, second arch.Distribution) float64 {
	if first.Median > second.Median {
		return 1 - Odds(second, first)
	}
	sigma1 := sigmaOf(first.Median, first.High, first.Level)
	sigma2 := sigmaOf(second.Low, second.Median, second.Level)
	ahead := math.Log(float64(second.Median / first.Median))
	return positive(ahead, math.Sqrt(sigma1*sigma1+sigma2*sigma2-2*oddsShared*sigma1*sigma2))
}

// OddsOfOneModel returns the probability that the first of two predicted times is the shorter one, of a device and of
// the same device with other hardware numbers. What the model is off by at a problem is common to both. What is left is
// Sigma, the error of one kernel beside another of the same problem, for each. A model that does not state it has one
// kernel for a problem: then the interval of the device's time stands for it, as if the two were two devices.
func OddsOfOneModel(first, second unit.Seconds, device *arch.Uncertainty, b arch.Bound) float64 {
	spread := math.Sqrt2 * device.Sigma
	if spread == 0 {
		low, high, _ := device.Interval(b, first)
		spread = sigmaOf(low, high, device.Level) / 2 * math.Sqrt(2-2*oddsShared)
	}
	return positive(math.Log(float64(second/first)), spread)
}

// sigmaOf returns the standard deviation of the log of a time on a side of its median, from the median to the end of
// the interval with the probability level.
func sigmaOf(from, to unit.Seconds, level float64) float64 {
	return math.Log(float64(to/from)) / (math.Sqrt2 * math.Erfinv(level))
}

// positive returns the probability that a normal error of a standard deviation leaves the log of a ratio above 0.
func positive(ahead, spread float64) float64 {
	switch {
	case spread > 0:
		return math.Round(math.Erfc(-ahead/(spread*math.Sqrt2))/2*1e6) / 1e6
	case ahead == 0:
		return 0.5
	case ahead > 0:
		return 1
	default:
		return 0
	}
}

// oddsShared is the correlation of the log errors of two devices. Over pairs of published times of one product from one
// source it is 0.52 for devices of a generation (60,000 pairs), 0.08 for others of a vendor (60,000), and about 0 for
// two vendors (5,860). These have 0.5 too: with it, odds have a smaller Brier score than with no correlation (0.0125
// for 0.0135 of a vendor, 0.0169 for 0.0182 of two), since errors have longer tails than a normal
// distribution: the standard deviation behind a 90 % interval is larger than most errors. TestOddsOfPublishedPairs
// holds it against published pairs.
const oddsShared = 0.5
