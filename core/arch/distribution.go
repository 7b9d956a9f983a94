package arch

import "github.com/origami-gemm/origami/core/unit"

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

// Distribution returns what is known of the time behind a predicted one, and false if the model states no error. Its
// low end is no shorter than the shortest time of any kernel, as far as the model states that.
func (s Scope) Distribution(b Bound, predicted unit.Seconds) (Distribution, bool) {
	low, high, ok := s.interval(b, predicted)
	if !ok {
		return Distribution{}, false
	}
	low = min(max(low, s.least), predicted)
	return Distribution{low, predicted, max(high, predicted), s.Uncertainty.Level}, true
}

// Interval returns the ends of the distribution of a predicted time, and false if there is none.
func (s Scope) Interval(b Bound, predicted unit.Seconds) (low, high unit.Seconds, ok bool) {
	d, ok := s.Distribution(b, predicted)
	return d.Low, d.High, ok
}
