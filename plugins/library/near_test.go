package library_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// Intervals of 90 % hold 90 % of the published times whose neighbours correct the prediction, and are narrower than the
// error of the terms alone makes them.
func TestNearbyIntervals(t *testing.T) {
	type interval struct{ held, width float64 }
	var all []*published.Time
	for i, x := range published.Times() {
		if i%40 == 0 && x.Device != "" && x.Doubt == "" && x.Release == "current" {
			all = append(all, &published.Times()[i])
		}
	}
	found := map[string]interval{}
	for _, nearby := range []string{residual.None, "without-near", residual.WithoutSame} {
		models, problems := map[string]arch.Architecture{}, map[string][]gemm.Problem{}
		measured := map[string][]*published.Time{}
		for _, x := range all {
			scheme := strings.Replace(x.Scheme, published.NoScheme, published.TensorScheme, 1)
			key := x.Device + " " + string(x.Timing) + " " + scheme
			id, of, _ := strings.Cut(x.Device, "@")
			if models[key] == nil {
				a, err := open(t, arch.OpenRequest{Arch: id, Device: of, Options: map[string]string{
					"timing": string(x.Timing), "scheme": scheme, "release": x.Release, residual.Nearby: nearby}})
				if err != nil {
					continue
				}
				models[key] = a
			}
			if p, err := x.Problem(); err == nil {
				problems[key], measured[key] = append(problems[key], p), append(measured[key], x)
			}
		}
		held, of, widths := 0.0, 0.0, []float64{}
		for key, a := range models {
			rows, bad := must.Two(score.Fastest(t.Context(), a, library.Family, problems[key]))(t)
			for i := range rows {
				scope := a.Describe().Scope(library.Family, &rows[i].Problem, rows[i].Config.SplitK)
				d, ok := scope.Distribution(rows[i].Estimate(), rows[i].Predicted)
				if bad[i] != nil || !ok {
					continue
				}
				of++
				widths = append(widths, float64(d.High/d.Low))
				if x := measured[key][i]; d.Low <= x.Median && x.Median <= d.High {
					held++
				}
			}
		}
		slices.Sort(widths)
		found[nearby] = interval{held / of, stats.Median(widths)}
		t.Logf("%s: %.1f %% of %.0f held, high ÷ low %.3f", nearby, 100*held/of, of, stats.Median(widths))
	}
	for nearby, most := range map[string]float64{"without-near": 1.35, residual.WithoutSame: 1.25} {
		if f := found[nearby]; math.Abs(f.held-0.92) > 0.04 || f.width > most || f.width >= found[residual.None].width {
			t.Errorf("%s: %+v, and the terms alone %+v; want at most %v wide", nearby, f, found[residual.None], most)
		}
	}
}

// An explanation names the published times that correct a prediction: the device's own, or its sister's.
func TestNearIsNamed(t *testing.T) {
	for _, c := range []struct{ arch, device, timing, begins string }{
		{"sm90", "h200", "layers", "aiconfigurator on sm90@h200, "},
		{"sm89", "rtx4090d", "model", "llmservingsim on sm89@rtx4090, "},
		{"sm89", "rtx4090d", "cold", ""},
	} {
		a, err := open(t, arch.OpenRequest{Arch: c.arch, Device: c.device, Options: map[string]string{"timing": c.timing}})
		must.Do(t, err)
		p := gemm.New(1000, 4096, 4096)
		p.SetTrans(false, true)
		e := must.Get(ask.Explain(t.Context(), a, p, library.Family, ""))(t)
		n := e.Near()
		if n == nil && c.begins == "" {
			continue
		}
		if n == nil || !strings.HasPrefix(n.Source, c.begins) || n.Times != 8 || n.Distance > 0.5 || n.Factor < 0.8 ||
			n.Factor > 1.2 {
			t.Errorf("%s in %s: %+v", c.device, c.timing, n)
		}
	}
}
