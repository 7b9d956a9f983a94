package score

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/unit"
)

// Odds of normal errors have six decimals, add up to 1, depend on the ratios of the times alone, and are at least one
// half for the time with the shorter median, wherever the ends of the intervals are.
func TestOdds(t *testing.T) {
	of := func(low, median, high unit.Seconds) arch.Distribution {
		return arch.Distribution{Low: low, Median: median, High: high, Level: Level}
	}
	for _, c := range []struct {
		first, second arch.Distribution
		want          float64
	}{
		{of(1, 1.5, 2), of(1, 1.5, 2), 0.5},
		{of(1, 1, 1), of(2, 2, 2), 1},
		{of(3, 3, 3), of(3, 3, 3), 0.5},
		{of(0.9, 1, 1.1), of(1.3, 1.5, 1.6), 0.999999},
		{of(1, 1.4, 2), of(1.5, 2, 2.5), 0.9633},
		{of(0.9, 1, 4), of(0.5, 1.1, 1.2), 0.5518}, // the middles of the intervals are the other way round
	} {
		got := Odds(c.first, c.second)
		if math.Abs(got-c.want) > 2e-3 {
			t.Errorf("%+v: %.6f", c, got)
		}
		if got != math.Round(got*1e6)/1e6 {
			t.Errorf("%+v: %v has more than six decimals", c, got)
		}
		if other := Odds(c.second, c.first); math.Abs(got+other-1) > 1e-12 {
			t.Errorf("%+v: %v and %v", c, got, other)
		}
		if scaled := Odds(c.first.Over(7), c.second.Over(7)); math.Abs(got-scaled) > 1e-9 {
			t.Errorf("%+v: %v, and of a seventh of the times %v", c, got, scaled)
		}
	}
}

// Of one model the error that both times share does not count, but for a model without sigma, whose interval does.
func TestOddsOfOneModel(t *testing.T) {
	wide := &arch.Uncertainty{Level: 0.9, Sigma: 0.05, Ranges: []arch.ErrorRange{{Low: 0.5, High: 4}}}
	one := *wide
	one.Sigma = 0
	narrow := one
	narrow.Ranges = []arch.ErrorRange{{Low: 0.9, High: 1.1}}
	for _, c := range []struct {
		u     *arch.Uncertainty
		ratio unit.Seconds
		want  float64
	}{
		{wide, 1, 0.5}, {wide, 1.1, 0.911}, {wide, 2, 1}, {&one, 1.1, 0.560}, {&narrow, 1.1, 0.941}, {&narrow, 1, 0.5},
	} {
		got := OddsOfOneModel(1e-3, c.ratio*1e-3, c.u, arch.BoundDRAM)
		back := OddsOfOneModel(c.ratio*1e-3, 1e-3, c.u, arch.BoundDRAM)
		if math.Abs(got-c.want) > 1e-3 || math.Abs(got+back-1) > 1e-12 {
			t.Errorf("ratio %v: %v and %v, want %v", c.ratio, got, back, c.want)
		}
	}
}
