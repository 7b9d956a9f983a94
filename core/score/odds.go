package score

import (
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/unit"
)

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
