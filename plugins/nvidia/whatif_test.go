//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
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

func (d device) String() string {
	return d.Arch + "@" + d.Device + " " + string(d.Rung) + " " + d.kernel
}

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
	gemm.New(8192, 8192, 8192), gemm.New(1024, 1024, 1024), gemm.New(16, 8192, 8192), gemm.New(128, 4096, 14336),
	gemm.New(4096, 4096, 128), gemm.New(3072, 1024, 4096),
}

// Half of what limits a kernel halves its rate, where the board has power to spare. The peak of the matrix units
// counts.
func TestWhatIfsAreProportional(t *testing.T) {
	large, decode := gemm.New(8192, 8192, 8192), gemm.New(16, 28672, 8192)
	for _, d := range refinedDevices(t) {
		if d.Device == "h200" {
			d.Rung = arch.RungCompiled // the timing pass of a device is about that device
		}
		power := 10 * hw.Set(d.open(t, nil).Describe().Params).Get("tdp") // the L4's 72 W limit it more than its SMs
		base := d.open(t, map[string]float64{"tdp": power})
		for _, c := range []struct {
			name    string
			problem gemm.Problem
			least   float64 // slowdown at half of the parameter
		}{{"num_sms", large, 1.9}, {"clock", large, 1.85}, {"peak_fp16", large, 1.4}, {"dram_bandwidth", decode, 1.7}} {
			was := hw.Set(base.Describe().Params).Get(c.name)
			half := d.open(t, map[string]float64{c.name: math.Floor(was / 2), "tdp": power})
			slower := d.best(t, half, c.problem) / d.best(t, base, c.problem)
			if slower < c.least || slower > 2.1 {
				t.Errorf("%s: with half of %s, %s takes %.3f times as long", d, c.name, c.problem, slower)
			}
			rate := c.problem.Flops() / d.best(t, half, c.problem)
			// 2 % above, because the data sheet of the H100 NVL gives its peak at 0.87 of its boost clock.
			if peak := hw.Set(half.Describe().Params).Get("peak_fp16"); rate > peak*1.02 {
				t.Errorf("%s: with half of %s, %s reaches %.3f of the peak", d, c.name, c.problem, rate/peak)
			}
		}
	}
}

// A better part is never slower. (More SMs may be: a wave that is fuller shares the L2 among more of them. So may more
// registers, by a little: they let more CTAs onto an SM.)
func TestMoreIsNeverSlower(t *testing.T) {
	for _, d := range refinedDevices(t) {
		base := d.open(t, nil)
		params := hw.Set(base.Describe().Params)
		for _, name := range []string{"clock", "l2_bytes", "dram_bandwidth", "tdp", "peak_fp16", "register_file"} {
			was, ok := params.Lookup(name)
			if !ok {
				continue
			}
			slack := 1e-9
			if name == "register_file" {
				slack = 0.005
			}
			for _, factor := range []float64{0.75, 1.1, 2} {
				a := d.open(t, map[string]float64{name: math.Round(was.Value * factor)})
				for _, p := range whatIfProblems {
					x, y := d.best(t, base, p), d.best(t, a, p)
					if factor > 1 && y > x*(1+slack) || factor < 1 && y < x*(1-slack) {
						t.Errorf("%s: with %g times its %s, %s takes %.4g µs instead of %.4g", d, factor, name, p, y*1e6, x*1e6)
					}
				}
			}
		}
	}
}

// No prediction is above the peak of the matrix units, or faster than DRAM moves the operands once.
func TestPredictionsArePossible(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	size := func() int { return 16 * max(1, int(math.Exp(random.Float64()*math.Log(1024)))) }
	for _, d := range refinedDevices(t) {
		a := d.open(t, nil)
		params := hw.Set(a.Describe().Params)
		for range 60 {
			p := gemm.New(size(), size(), size())
			x := d.best(t, a, p)
			if rate := p.Flops() / x; rate > params.Get("peak_fp16") {
				t.Errorf("%s: %s reaches %.4g of the peak", d, p, rate/params.Get("peak_fp16"))
			}
			bytes := 2 * (float64(p.M)*float64(p.K) + float64(p.N)*float64(p.K) + float64(p.M)*float64(p.N))
			if bytes > 4*params.Get("l2_bytes") && bytes/x > params.Get("dram_bandwidth") {
				t.Errorf("%s: %s reaches %.4g of the DRAM bandwidth", d, p, bytes/x/params.Get("dram_bandwidth"))
			}
		}
	}
}
