package score

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestAccuracyOf(t *testing.T) {
	// 1.2 and 1/1.2 agree, 1.21 does not, and neither does 0.8: the tolerance is a factor, the same both ways.
	var rows []Row
	for _, ratio := range []unit.Seconds{1.2, 1 / 1.2, 1.21, 0.8} {
		rows = append(rows, Row{Predicted: ratio, Measured: 1})
	}
	a := AccuracyOf(rows)
	must.That(t, a.Count == 4 && a.Within == 0.5 && near(float64(a.Geomean), math.Pow(1.21*0.8, 0.25)) &&
		near(float64(a.Error), 0.2) &&
		a.P10 >= 0.8 && a.P10 <= 1/1.2 && a.P90 >= 1.2 && a.P90 <= 1.21, "%+v", a)
	a = AccuracyOf(nil)
	must.That(t, a.Count == 0 && a.Geomean != a.Geomean && a.Within != a.Within, "of nothing %+v", a)
}

// A problem with three times has three pairs and the weight of a problem with two.
func TestCeilingOf(t *testing.T) {
	c := CeilingOf([][]unit.Seconds{{1, 1.1, 1.3}, {2, 2.1}, {5}, nil})
	must.That(t, c.Count == 2 && near(float64(c.Share), (2.0/3+1)/2), "%+v", c)
	c = CeilingOf([][]unit.Seconds{{1}})
	must.That(t, c.Count == 0 && c.Share != c.Share, "of one stack %+v", c)
}

func TestComparabilityOf(t *testing.T) {
	c := ComparabilityOf([]Versus{
		{Predicted: 1.05, Measured: 0.95}, // within, and not decided
		{Predicted: 0.5, Measured: 0.8},   // the right winner
		{Predicted: 1.1, Measured: 0.9},   // the wrong winner, and more than 1.2 apart
		{Predicted: 1, Measured: 2},       // a tie names no winner
		{Predicted: 2.3, Measured: 2},     // within, and the right winner
	})
	must.That(t, c.Count == 5 && near(float64(c.Within), 0.4) && c.Decided == 4 && near(float64(c.Winner), 0.5),
		"%+v", c)
	c = ComparabilityOf(nil)
	must.That(t, c.Count == 0 && c.Within != c.Within, "of nothing %+v", c)
}

func TestLayerOf(t *testing.T) {
	for _, c := range []struct {
		m, n, k int
		want    Layer
	}{
		{512, 256, 512, LayerTiny}, {1024, 1024, 128, LayerPrefill}, {4096, 128, 4096, LayerNarrow},
		{16, 512, 4096, LayerLargeK}, {16, 4096, 4096, LayerDecode}, {17, 4096, 4096, LayerSmall},
		{256, 4096, 4096, LayerSmall}, {257, 4096, 4096, LayerPrefill},
	} {
		must.Equal(t, LayerOf(gemm.New(c.m, c.n, c.k)), c.want, c.m, c.n, c.k)
	}
	// 1 MiB is a limit of bytes.
	p := gemm.New(1024, 512, 256)
	if p.DType = gemm.INT8; LayerOf(p) == LayerTiny {
		t.Error("int32 results of 2 MiB are tiny")
	}
	if p.DType, p.M = gemm.FP8, 256; LayerOf(p) != LayerTiny {
		t.Error("bytes of 0.5 MiB are not tiny")
	}
}

// A model has a time for each problem that it takes, and a reason for the others, whatever is beside them.
func TestFastest(t *testing.T) {
	m := &model{
		candidates: []gemm.Config{config(16, 0, 1), config(32, 0, 1), config(64, 0, 1)},
		cycles:     func(c gemm.Config) float64 { return map[int]float64{16: 300, 32: 200}[c.BlockM] },
	}
	problems := make([]gemm.Problem, 2*predictedAtOnce+1)
	for i := range problems {
		problems[i] = gemm.New(64, 64, 64)
	}
	problems[1].M = 13
	got, bad, err := Fastest(t.Context(), m, "f", problems)
	must.Need(t, err == nil && len(got) == len(problems), "%d predictions, %v", len(got), err)
	for i := range got {
		p := &got[i]
		if i == 1 {
			must.That(t, bad[i] != nil && p.Predicted == 0, "a refused problem has %v, %v", p.Predicted, bad[i])
		} else if bad[i] != nil || !near(float64(p.Predicted), 200e-6) || p.Config.BlockM != 32 || p.Bound != arch.BoundL2 {
			t.Fatalf("prediction %d is %+v", i, p)
		}
	}
}

// Intervals from one time per problem contain the share of other times that they promise.
func TestCalibrateRows(t *testing.T) {
	var rows []Row
	for i := range 200 {
		p := gemm.New(16*(1+i%7), 4096, 64*(1+i))
		off := math.Exp(0.3 * math.Sin(float64(i)*2.4))
		rows = append(rows, Row{Problem: p, Config: config(16, 0, 1), Bound: arch.BoundDRAM, Predicted: 1e-3,
			Measured: unit.Seconds(1e-3 * off)})
	}
	u := CalibrateRows("f", "elsewhere", rows, GroupRanges([]Group{{Rows: rows}}, 0))
	must.Need(t, u.Checked.Times == 200 && u.Checked.Sizes == 200 && u.Checked.DataSet == "elsewhere" && u.Sigma == 0,
		"%+v", u)
	held := 0
	for i := range rows {
		low, high, ok := u.Interval(arch.BoundDRAM, rows[i].Predicted)
		if ok && low <= rows[i].Measured && rows[i].Measured <= high {
			held++
		}
	}
	must.That(t, held >= 175 && held <= 190 && u.MedianError >= 0.15 && u.MedianError <= 0.3,
		"the intervals hold %d of 200, and the median error is %.3f", held, u.MedianError)
	// Few times say how far they are off, and give no intervals.
	few := rows[:minGroupTimes-1]
	u = CalibrateRows("f", "elsewhere", few, GroupRanges([]Group{{Rows: few}}, 0.1))
	must.That(t, u.Ranges == nil &&
		u.MedianError != 0 && u.Checked.Times == len(few), "%+v", u)
}

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
		must.That(t, math.Abs(got-c.want) <= 2e-3, "%+v: %.6f", c, got)
		must.Equal(t, got, math.Round(got*1e6)/1e6, c)
		other := Odds(c.second, c.first)
		must.That(t, math.Abs(got+other-1) <= 1e-12, "%+v: %v and %v", c, got, other)
		scaled := Odds(c.first.Over(7), c.second.Over(7))
		must.That(t, math.Abs(got-scaled) <= 1e-9, "%+v: %v, and of a seventh of the times %v", c, got, scaled)
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
		must.That(t, math.Abs(got-c.want) <= 1e-3 && math.Abs(got+back-1) <= 1e-12,
			"ratio %v: %v and %v, want %v", c.ratio, got, back, c.want)
	}
}
