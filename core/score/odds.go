package score

import "math"

// Odds returns the probability that the first of two times is the shorter one. low and high are the ends of their
// intervals, which hold the times with the probability level. The logs of the times are taken as normal around the
// middles of the intervals, with the correlation oddsShared: what a source measures too long, it measures too long on
// both devices.
//
// P has six decimals. More would say nothing, and depend on how a platform computes logarithms and exponentials.
//
//	P = Φ((μ2 − μ1) ÷ √(σ1² + σ2² − 2·ρ·σ1·σ2)), μ = ½·log(low·high), σ = log(high ÷ low) ÷ 2·Φ⁻¹((1 + level) ÷ 2)
func Odds(low1, high1, low2, high2, level float64) float64 {
	width := 2 * math.Sqrt2 * math.Erfinv(level)
	sigma1, sigma2 := math.Log(high1/low1)/width, math.Log(high2/low2)/width
	ahead := math.Log(low2*high2/(low1*high1)) / 2
	spread := math.Sqrt(sigma1*sigma1 + sigma2*sigma2 - 2*oddsShared*sigma1*sigma2)
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
