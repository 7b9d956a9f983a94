package nearby_test

import (
	"flag"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/library/nearby"
)

var (
	each  = flag.Int("each", 60, "times of each series that are predicted")
	curve = flag.Bool("curve", false, "with a half, a fifth and a tenth of the times of large series, too")
)

// fold is a way to leave out what is near a time, with what is asked of the rest: the least share within 20 %, the most
// mean error, the least share that intervals of 90 % hold, and the most median high ÷ low.
type fold struct {
	name                     string
	without                  residual.Problem
	source                   bool // leave out its source
	device                   bool // leave out its device: its sister has times
	within, off, held, width float64
}

var folds = []fold{
	{"the time", residual.Problem{WithoutSame: true}, false, false, 0.96, 0.055, 0.9, 1.25},
	{
		"times of about its N and K", residual.Problem{WithoutSame: true, Within: 1.25}, false, false, 0.945, 0.065, 0.9,
		1.35,
	},
	{"its source", residual.Problem{}, true, false, 0, 1, 0, 2},
	{"its device", residual.Problem{}, false, true, 0.96, 0.065, 0, 2},
}

// scored are the times of one series, or the mean of several.
type scored struct{ within, off, within0, off0, intervals, held, width float64 }

// score predicts times of a series from others.
func (f *fold) score(all *nearby.Pool, s *residual.Series) (o scored) {
	const z = 1.645 // of 90 %
	rows, step, n := s.Rows(), max(1, s.Times / *each), 0.0
	var widths []float64
	for i := 0; i < len(rows); i += step {
		r, q := rows[i], f.without
		if q.M, q.N, q.K, q.Timing, q.Layout = r.M, r.N, r.K, s.Timing, s.Layout; f.source {
			q.Source = s.Source
			all = all.With(slices.DeleteFunc(slices.Clone(all.Rows()), func(o *residual.Series) bool {
				return o.Source == s.Source
			}))
		}
		found := all.At(&q)
		for _, x := range []struct{ left, within, off *float64 }{
			{&r.Residual, &o.within0, &o.off0}, {new(r.Residual - found.Residual), &o.within, &o.off},
		} {
			off := math.Abs(math.Exp(-*x.left) - 1)
			if *x.off += off; off <= 0.2 {
				*x.within++
			}
		}
		if found.Spread > 0 {
			widths = append(widths, math.Exp(2*z*found.Spread))
			if math.Abs(r.Residual-found.Residual) <= z*found.Spread {
				o.held++
			}
		}
		n++
	}
	for _, v := range []*float64{&o.within, &o.off, &o.within0, &o.off0} {
		*v /= n
	}
	if len(widths) > 0 {
		slices.Sort(widths)
		o.intervals, o.held, o.width = 1, o.held/float64(len(widths)), widths[len(widths)/2]
	}
	return o
}

// The residuals of published times are predicted from the others: without the time itself, without those whose N and K
// are within 1.25 times of its own, and without its source. Each series counts once.
func TestFolds(t *testing.T) {
	pools, thinned := nearby.Of("", "", ""), []int{1}
	if *curve {
		thinned = append(thinned, 2, 5, 10)
	}
	for _, keep := range thinned {
		var less []*nearby.Pool // the times that predict
		for _, p := range pools {
			var series []*residual.Series
			for _, s := range p.Rows() {
				rows, at := s.Rows(), uint32(0)
				if len(rows) > 10_000 {
					rows = slices.DeleteFunc(rows, func(residual.Row) bool {
						at = at*1664525 + 1013904223 // as random as the sample of shapes is
						return int(at>>8)%keep != 0
					})
				}
				thin := *s
				thin.Add(rows)
				series = append(series, &thin)
			}
			less = append(less, p.With(series))
		}
		file := must.Get(nearby.Encode(less))(t)
		for _, f := range folds {
			var sum scored
			series := 0.0
			for i, p := range pools {
				if p.Types == "fp4" && p.Scheme == "tensor" {
					continue // the times with scales, once more
				}
				id, _, _ := strings.Cut(p.Device, "@")
				sisters := slices.DeleteFunc(nearby.Of(id+"@", p.Scheme, p.Release), func(o *nearby.Pool) bool {
					return o.Device == p.Device || o.Types != p.Types
				})
				for _, s := range p.Rows() {
					all := less[i]
					if f.device {
						sister := nearby.Sister(sisters, p.Board, s.Timing)
						if sister == nil {
							continue
						}
						all = sister
					}
					others := slices.ContainsFunc(p.Series, func(o *residual.Series) bool { return o.Source != s.Source })
					if f.source && !others || s.Times < 200 {
						continue
					}
					o := f.score(all, s)
					for j, v := range []*float64{&sum.within, &sum.off, &sum.within0, &sum.off0, &sum.intervals, &sum.held,
						&sum.width} {
						*v += []float64{o.within, o.off, o.within0, o.off0, o.intervals, o.held, o.width}[j]
					}
					series++
				}
			}
			within, off := sum.within/series, sum.off/series
			held, width := sum.held/max(sum.intervals, 1), sum.width/max(sum.intervals, 1)
			t.Logf("%.2f MB, without %s: %.0f series, %.2f %% within 20 %%, off by %.2f %% (the model: %.2f, %.2f); "+
				"%.0f have intervals, which hold %.1f %%, high ÷ low %.3f", float64(len(file))/1e6, f.name, series, 100*within,
				100*off, 100*sum.within0/series, 100*sum.off0/series, sum.intervals, 100*held, width)
			if keep == 1 && (within < f.within || within < sum.within0/series-0.005 || off > f.off || held < f.held ||
				width > f.width) {
				t.Errorf("without %s: asked are %+v", f.name, f)
			}
		}
	}
}

// Times of which far ones mislead count near a problem alone.
func TestLocal(t *testing.T) {
	for device, local := range map[string]bool{"gfx950@mi355x": true, "sm90@h200": false} {
		for _, p := range nearby.Of(device, "tensor", "current") {
			if p.Types != "16 bit" {
				continue
			}
			r := p.Rows()[0].Rows()[0]
			q := residual.Problem{M: r.M, N: r.N, K: r.K, Timing: p.Series[0].Timing, Layout: p.Series[0].Layout}
			near := p.At(&q)
			q.K = 3 << 20
			far := p.At(&q)
			must.That(t, p.Local == local && near.Residual != 0 && near.Spread > 0 && (far.Residual == 0) == local,
				"%s: near %+v, far %+v", device, near, far)
		}
	}
}
