package arch

import (
	"math"

	"github.com/origami-gemm/origami/core/unit"
)

// Distribution is what is known of a time that nobody measured. The predicted time is its median. The log of the time
// is normal on either side of the median, each side with a standard deviation of its own, so that the share
// (1 − Level) ÷ 2 of the times lies below Low and as much above High.
type Distribution struct {
	Low, Median, High unit.Seconds
	// Level is the probability that the time lies between Low and High.
	Level float64
}

// Over returns the distribution of the time ÷ a factor.
func (d Distribution) Over(factor float64) Distribution {
	f := unit.Seconds(factor)
	return Distribution{d.Low / f, d.Median / f, d.High / f, d.Level}
}

// Distribution returns what is known of the time behind an estimate, and false if the model states no error. Its ends
// follow from the model's error. Times measured near the problem narrow them to
//
//	predicted · exp(∓ z · spread), with z the quantile of the normal distribution for the level
//
// Its low end is no shorter than the shortest time of any kernel, as far as the model states that.
func (s Scope) Distribution(e Estimate, predicted unit.Seconds) (Distribution, bool) {
	low, high, ok := s.interval(e.Bound, predicted)
	if !ok {
		return Distribution{}, false
	}
	level := s.Uncertainty.Level
	if e.Spread > 0 {
		factor := unit.Seconds(math.Exp(math.Sqrt2 * math.Erfinv(level) * float64(e.Spread)))
		low, high = max(low, predicted/factor), min(high, predicted*factor)
	}
	low = min(max(low, s.least), predicted)
	return Distribution{low, predicted, max(high, predicted), level}, true
}

// Interval returns the ends of the distribution of a predicted time, and false if there is none.
func (s Scope) Interval(e Estimate, predicted unit.Seconds) (low, high unit.Seconds, ok bool) {
	d, ok := s.Distribution(e, predicted)
	return d.Low, d.High, ok
}
