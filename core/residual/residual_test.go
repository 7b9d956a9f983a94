package residual_test

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func series(source, timing string, rows ...residual.Row) *residual.Series {
	s := &residual.Series{Source: source, Timing: timing, Layout: "fp16"}
	s.Add(rows)
	return s
}

// around are times about 1024x1024x1024 that are all off by as much.
func around(off float64) (rows []residual.Row) {
	for _, n := range []int{512, 1024, 2048} {
		for _, k := range []int{512, 1024, 2048} {
			for _, m := range []int{2048, 512, 1024} {
				rows = append(rows, residual.Row{M: m, N: n, K: k, Residual: off})
			}
		}
	}
	return rows
}

func at(m, n, k int, timing string, all ...*residual.Series) residual.Found {
	return residual.At(all, &residual.Problem{M: m, N: n, K: k, Timing: timing, Layout: "fp16"})
}

// Times near a problem correct it and say how well, far ones hardly do, and none do nothing.
func TestNear(t *testing.T) {
	s := series("a", "layers", around(0.2)...)
	near, far := at(1000, 1000, 1000, "layers", s), at(1<<20, 1<<20, 16, "layers", s)
	if near.Residual < 0.17 || near.Residual > 0.2 || near.Spread <= 0 || near.Spread > 0.07 || near.Nearest > 0.05 {
		t.Errorf("near: %+v", near)
	}
	must.That(t, math.Abs(far.Residual) <= 0.02 && far.Spread == 0 && far.Nearest >= 5, "far: %+v", far)
	none := at(1000, 1000, 1000, "layers")
	must.That(t, none == (residual.Found{}), "none: %+v", none)
}

// Times of another timing say nothing. Two sources of one timing that contradict each other count for less than one.
func TestHarness(t *testing.T) {
	a, b := series("a", "layers", around(0.2)...), series("b", "layers", around(-0.2)...)
	alone := at(1000, 1000, 1000, "layers", a)
	other := at(1000, 1000, 1000, "events", a)
	must.That(t, other == (residual.Found{}), "another timing: %+v", other)
	both := at(1000, 1000, 1000, "layers", a, b)
	must.That(t, math.Abs(both.Residual) <= 0.02 &&
		(both.Spread <= 0 || both.Spread > alone.Spread), "two sources: %+v, one: %+v", both, alone)
	of := func(source string) residual.Found {
		return residual.At([]*residual.Series{a, b}, &residual.Problem{M: 1000, N: 1000, K: 1000, Timing: "layers",
			Layout: "fp16", Source: source})
	}
	own := of("b")
	must.That(t, own.Residual <= -0.15 && own.Spread != 0, "of b: %+v", own)
	third := of("c")
	must.That(t, math.Abs(third.Residual) <= 0.02 && third.Spread <= 0, "of a source without times: %+v", third)
}

// A time does not score itself, and a prediction allocates nothing.
func TestLeftOut(t *testing.T) {
	s := series("a", "layers", append(around(0), residual.Row{M: 768, N: 1024, K: 1024, Residual: 1})...)
	p := residual.Problem{M: 768, N: 1024, K: 1024, Timing: "layers", Layout: "fp16"}
	with := residual.At([]*residual.Series{s}, &p)
	p.WithoutSame = true
	without := residual.At([]*residual.Series{s}, &p)
	must.That(t, with.Residual >= 0.5 && without.Residual == 0, "%+v, and without the time itself %+v", with, without)
	p.Within = 1.25
	beside := residual.At([]*residual.Series{s}, &p)
	must.That(t, beside.Nearest >= math.Log(1.9), "without those of about its N and K: %+v", beside)
	all := []*residual.Series{s}
	n := testing.AllocsPerRun(10, func() { residual.At(all, &p) })
	must.That(t, n == 0, "%v allocations", n)
}
