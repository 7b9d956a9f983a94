package stats

import (
	"math"
	"testing"
)

func TestSpreadOf(t *testing.T) {
	s := QuantilesOf([]float64{1, 0.25, 0.5})
	if s.Count != 3 || s.Median != 0.5 || math.Abs(s.Geomean-0.5) > 1e-12 || s.Worst != 0.25 || math.Abs(s.P10-0.3) > 1e-12 {
		t.Errorf("%+v", s)
	}
	// One that is worth nothing makes the geometric mean nothing, and the rest stays.
	if s := QuantilesOf([]float64{1, 0, 1}); s.Geomean != 0 || s.Median != 1 || s.Worst != 0 {
		t.Errorf("%+v", s)
	}
	if s := QuantilesOf(nil); s != (Quantiles{}) {
		t.Errorf("of nothing: %+v", s)
	}
}

func TestMedian(t *testing.T) {
	if m := Median([]float64{3, 1, 2, 10}); m != 2.5 {
		t.Errorf("%v", m)
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("nothing has a median")
	}
}
