//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

// device is a device of the plugin with a model and a kernel family.
type device struct {
	arch.OpenRequest
	kernel string
}

func (d device) String() string { return d.Arch + "@" + d.Device + " " + string(d.Rung) + " " + d.kernel }

func refinedDevices(t *testing.T) (list []device) {
	t.Helper()
	p, err := nvidia.Provider()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range p.Manifest().Archs {
		for _, d := range a.Devices {
			for _, k := range a.Kernels {
				list = append(list, device{arch.OpenRequest{Arch: a.ID, Device: d.ID, Model: "refined"}, k})
			}
		}
	}
	return list
}

// open returns the model with overrides of parameters.
func (d device) open(t *testing.T, overrides map[string]float64) arch.Architecture {
	t.Helper()
	p, err := nvidia.Provider()
	if err != nil {
		t.Fatal(err)
	}
	r := d.OpenRequest
	r.Overrides = map[string]hw.OverrideValue{}
	for name, v := range overrides {
		r.Overrides[name] = hw.OverrideValue{Value: v}
	}
	a, err := p.Open(t.Context(), r)
	if err != nil {
		t.Fatal(d, overrides, err)
	}
	return a
}

// best is the shortest predicted time over the candidates, in seconds.
func (d device) best(t *testing.T, a arch.Architecture, p gemm.Problem) float64 {
	t.Helper()
	c, err := a.Candidates(t.Context(), p, arch.Space{Kernel: d.kernel})
	if err != nil {
		t.Fatal(d, p, err)
	}
	estimates := make([]arch.Estimate, len(c.Configs))
	if err := a.Estimate(t.Context(), estimates, p, c.Configs); err != nil {
		t.Fatal(d, p, err)
	}
	least := math.Inf(1)
	for _, e := range estimates {
		if e.Reject == "" {
			least = min(least, float64(e.Cycles))
		}
	}
	return least / float64(a.Describe().Clock)
}

var whatIfProblems = []gemm.Problem{
	gemm.New(8192, 8192, 8192), gemm.New(4096, 4096, 4096), gemm.New(2048, 2048, 2048), gemm.New(1024, 1024, 1024),
	gemm.New(512, 512, 512), gemm.New(16, 8192, 8192), gemm.New(1, 8192, 8192), gemm.New(128, 4096, 14336),
	gemm.New(4096, 4096, 128), gemm.New(512, 512, 32768), gemm.New(3072, 1024, 4096),
}

// A better part is never slower: with more of a resource, the best time does not grow.
func TestMoreIsNeverSlower(t *testing.T) {
	for _, d := range refinedDevices(t) {
		base := d.open(t, nil)
		params := hw.Set(base.Describe().Params)
		for _, name := range []string{"num_sms", "clock", "l2_bytes", "dram_bandwidth", "tdp", "peak_fp16", "shared_memory_bytes", "register_file"} {
			was, ok := params.Lookup(name)
			if !ok {
				continue
			}
			for _, factor := range []float64{0.5, 0.75, 0.9, 1.02, 1.1, 1.5, 2} {
				v := was.Value * factor
				if was.Value > 16 && name != "clock" {
					v = math.Round(v)
				}
				a := d.open(t, map[string]float64{name: v})
				for _, p := range whatIfProblems {
					x, y := d.best(t, base, p), d.best(t, a, p)
					if (factor > 1 && y > x*(1+1e-9)) || (factor < 1 && y < x*(1-1e-9)) {
						t.Errorf("%s %s: %s times %v: %.4g µs becomes %.4g (%+.2f %%)", d, p, name, factor, x*1e6, y*1e6, 100*(y/x-1))
					}
				}
			}
		}
	}
}

// No prediction is above the peak of the matrix units, or faster than DRAM moves the operands once. More of M, N or K is
// not faster.
func TestPredictionsArePossible(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, d := range refinedDevices(t) {
		a := d.open(t, nil)
		desc := a.Describe()
		peak := hw.Set(desc.Params).Get("peak_fp16")
		dram := hw.Set(desc.Params).Get("dram_bandwidth")
		size := func(top float64) int { return 16 * max(1, int(math.Exp(random.Float64()*math.Log(top/16)))) }
		for range 60 {
			p := gemm.New(size(16384), size(16384), size(16384))
			x := d.best(t, a, p)
			if rate := p.Flops() / x; rate > peak*1.0001 {
				t.Errorf("%s %s: %.4g of the peak", d, p, rate/peak)
			}
			bytes := 2 * (float64(p.M)*float64(p.K) + float64(p.N)*float64(p.K) + float64(p.M)*float64(p.N))
			if l2 := hw.Set(desc.Params).Get("l2_bytes"); bytes > 4*l2 && bytes/x > dram {
				t.Errorf("%s %s: %.4g of the DRAM bandwidth", d, p, bytes/x/dram)
			}
			for axis := range 3 {
				q := p
				more := [](*int){&q.M, &q.N, &q.K}[axis]
				*more += 16 * (1 + random.IntN(1+*more/64))
				if y := d.best(t, a, q); y < x*0.995 {
					t.Errorf("%s: %s %.4g µs, %s %.4g (%+.2f %%)", d, p, x*1e6, q, y*1e6, 100*(y/x-1))
				}
			}
		}
	}
	_ = fmt.Sprint
}
