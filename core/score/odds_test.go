package score

import (
	"math"
	"testing"
)

// Odds are those of normal errors to six decimals, add up to 1, and depend on the ratios of the ends alone.
func TestOdds(t *testing.T) {
	for _, c := range []struct{ low1, high1, low2, high2, want float64 }{
		{1, 2, 1, 2, 0.5},
		{1, 1, 2, 2, 1},
		{2, 2, 1, 1, 0},
		{3, 3, 3, 3, 0.5},
		{1, 4, 2, 2, 0.5},
		{0.9, 1.1, 1.3, 1.6, 0.999999},
		{1, 2, 1.5, 2.5, 0.9517},
	} {
		got := Odds(c.low1, c.high1, c.low2, c.high2, Level)
		if math.Abs(got-c.want) > 2e-3 {
			t.Errorf("%+v: %.6f", c, got)
		}
		if got != math.Round(got*1e6)/1e6 {
			t.Errorf("%+v: %v has more than six decimals", c, got)
		}
		if other := Odds(c.low2, c.high2, c.low1, c.high1, Level); math.Abs(got+other-1) > 1e-12 {
			t.Errorf("%+v: %v and %v", c, got, other)
		}
		if scaled := Odds(7*c.low1, 7*c.high1, 7*c.low2, 7*c.high2, Level); math.Abs(got-scaled) > 1e-9 {
			t.Errorf("%+v: %v scaled by 7 is %v", c, got, scaled)
		}
	}
}
