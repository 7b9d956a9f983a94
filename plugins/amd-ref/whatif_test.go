//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package amdref

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
	"github.com/origami-gemm/origami/plugins/library"
)

// whatIf is a device with a model that predicts times: refined over tensile, or the library's.
type whatIf struct {
	arch.OpenRequest
	dtype gemm.DType
}

func whatIfs(t *testing.T) (list []whatIf) {
	t.Helper()
	p := must.Get(Provider())(t)
	for _, a := range p.Manifest().Archs {
		for _, d := range a.Devices {
			for _, k := range a.Kernels {
				r := arch.OpenRequest{Arch: a.ID, Device: d.ID, Model: string(arch.ClassRefined), Kernel: k}
				switch k {
				case library.Family:
					r.Options = map[string]string{"timing": "cold"} // all of the operands come from DRAM
				case kernel.Name:
				default:
					continue
				}
				one := whatIf{r, gemm.FP16}
				problem := gemm.New(64, 64, 64)
				if one.open(t, nil).Describe().SupportsTypes(k, &problem) != nil {
					one.dtype = gemm.FP32
				}
				list = append(list, one)
			}
		}
	}
	must.Need(t, len(list) >= 15, "only %d", len(list))
	return list
}

// open returns the model with overrides of parameters.
func (w whatIf) open(t *testing.T, overrides map[string]float64) arch.Architecture {
	t.Helper()
	return archtest.Open(t, must.Get(Provider())(t), w.OpenRequest, overrides)
}

// best is the shortest predicted time over the candidates, in seconds.
func (w whatIf) best(t *testing.T, a arch.Architecture, p gemm.Problem) float64 {
	t.Helper()
	p.DType = w.dtype
	return archtest.Fastest(t, a, p, arch.Space{Kernel: w.Kernel})
}

// Half of what limits a kernel halves its rate, where the board has power to spare. Nothing is above the peak of the
// device that the overrides describe.
func TestWhatIfsAreProportional(t *testing.T) {
	large, decode := gemm.New(8192, 8192, 8192), gemm.New(16, 28672, 8192)
	for _, w := range whatIfs(t) {
		plain := hw.Set(w.open(t, nil).Describe().Params)
		power := 10 * plain.Get("tdp")
		base := w.open(t, map[string]float64{"tdp": power})
		half := func(names ...string) map[string]float64 {
			with := map[string]float64{"tdp": power}
			for _, name := range names {
				with[name] = math.Floor(plain.Get(name) / 2)
			}
			return with
		}
		peak := "peak_" + w.dtype.String()
		for name, c := range map[string]struct {
			with        map[string]float64
			problem     gemm.Problem
			least, most float64 // slowdown
		}{
			"half of num_cus": {half("num_cus"), large, 1.7, 2.1}, "half of clock": {half("clock"), large, 1.6, 2.1},
			"half of the peak": {half(peak), large, 1.2, 2.1},
			// Of a tile in fp16 on a Vega 10, 16 of 32 rows are idle.
			"half of dram_bandwidth":  {half("dram_bandwidth"), decode, 1.3, 2.1},
			"half of the device":      {half("num_cus", "dram_bandwidth"), large, 1.7, 2.1},
			"half of it and of clock": {half("num_cus", "dram_bandwidth", "clock"), large, 3.4, 4.1},
		} {
			a := w.open(t, c.with)
			seconds := w.best(t, a, c.problem)
			if slower := seconds / w.best(t, base, c.problem); slower < c.least || slower > c.most {
				t.Errorf("%s %s: with %s, %s takes %.3f times as long", w.Device, w.Kernel, name, c.problem, slower)
			}
			limit := hw.Set(a.Describe().Params).Get(peak)
			if rate := c.problem.Flops() / seconds; rate > limit*(1+1e-9) {
				t.Errorf("%s %s: with %s, %s reaches %.3f of the peak", w.Device, w.Kernel, name, c.problem, rate/limit)
			}
			if got := float64(a.Describe().PeakFor(w.dtype)); got != limit {
				t.Errorf("%s %s: with %s, the peak is %v and the parameter %v", w.Device, w.Kernel, name, got, limit)
			}
		}
	}
}

// A better part is never slower.
func TestMoreOfAResourceIsNeverSlower(t *testing.T) {
	problems := []gemm.Problem{
		gemm.New(8192, 8192, 8192), gemm.New(1024, 1024, 1024), gemm.New(16, 8192, 8192), gemm.New(4096, 4096, 128),
	}
	// CUs divide tiles into other waves, so that a few more of them may lose.
	slack := map[string]float64{"num_cus": 0.04}
	for n, w := range whatIfs(t) {
		params := hw.Set(w.open(t, nil).Describe().Params)
		for i, name := range []string{"num_cus", "clock", "dram_bandwidth", "tdp", "peak_" + w.dtype.String(), "l2_bytes"} {
			if (n+i)%3 != 0 {
				continue // a third of them per device: each still counts on several devices
			}
			p, last := problems[(n/2+i)%len(problems)], math.Inf(1)
			for _, factor := range []float64{0.5, 0.75, 1, 1.5, 2} {
				seconds := w.best(t, w.open(t, map[string]float64{name: math.Floor(params.Get(name) * factor)}), p)
				if seconds > last*(1+1e-9+slack[name]) {
					t.Errorf("%s %s: with %g of its %s, %s takes %.5g µs, with less %.5g", w.Device, w.Kernel, factor, name, p,
						seconds*1e6, last*1e6)
				}
				last = seconds
			}
		}
	}
}

// A what-if is of no device whose times were checked: other generations say what is known of it.
func TestWhatIfsWereNeverChecked(t *testing.T) {
	for _, w := range whatIfs(t) {
		if w.Kernel != kernel.Name {
			continue // the host says so of every override
		}
		must.That(t, w.Device != "mi300x" || w.open(t, nil).Describe().HasUncertainty(kernel.Name),
			"%s was never checked", w.Device)
		d := w.open(t, map[string]float64{"num_cus": 40}).Describe()
		must.That(t, !d.HasUncertainty(kernel.Name) && d.HasElsewhere(kernel.Name),
			"%s with 40 CUs has the uncertainty %+v", w.Device, d.Uncertainty)
	}
}
