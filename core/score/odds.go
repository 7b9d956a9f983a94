package score

import (
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/unit"
)

// Odds returns the probability that the first of two times is the shorter one. low and high are the ends of their
// intervals, which hold the times with the probability level. The logs of the times are taken as normal around the
// middles of the intervals, with the correlation oddsShared: what a source measures too long, it measures too long on
// both devices.
//
// P has six decimals. More would say nothing, and depend on how a platform computes logarithms and exponentials.
//
//	P = Φ((μ2 − μ1) ÷ √(σ1² + σ2² − 2·ρ·σ1·σ2)), μ = ½·log(low·high), σ = log(high ÷ low) ÷ 2·Φ⁻¹((1 + level) ÷ 2)
func Odds(low1, high1, low2, high2, level float64) float64 {
	sigma1, sigma2 := sigmaOf(low1, high1, level), sigmaOf(low2, high2, level)
	ahead := math.Log(low2*high2/(low1*high1)) / 2
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
		spread = sigmaOf(float64(low), float64(high), device.Level) * math.Sqrt(2-2*oddsShared)
	}
	return positive(math.Log(float64(second/first)), spread)
}

// sigmaOf returns the standard deviation of the log of a time whose interval has the probability level.
func sigmaOf(low, high, level float64) float64 {
	return math.Log(high/low) / (2 * math.Sqrt2 * math.Erfinv(level))
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

// oddsShared is the correlation of the log errors of two devices. TestOddsOfPublishedPairs holds it against published
// pairs.
const oddsShared = 0.5
