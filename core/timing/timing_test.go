package timing_test

import (
	"bufio"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/costs"
)

// h200 is the device of the experiment: 60 MiB of L2, the bandwidths that configs/sm90-h200.yaml has, and the rates of
// its data sheet.
func h200() *timing.Device {
	return &timing.Device{
		Constants: timing.Stated(&arch.Description{Constants: costs.Of("library", "hopper")}),
		Caches:    60 << 20, L2Rate: 9.86e12, DRAMRate: 3.89e12,
		Peak: func(t gemm.DType) unit.FlopsPerSecond {
			if t == gemm.FP8 {
				return 1979e12
			}
			return 989.5e12
		},
	}
}

type product struct {
	M, N, K int
	DType   string
	Seconds map[string]map[string]unit.Seconds // by family and timing
}

func (p *product) problem(t *testing.T) gemm.Problem {
	t.Helper()
	r := gemm.Record{M: p.M, N: p.N, K: p.K, Batch: 1, TransB: true, DType: p.DType, Out: p.DType}
	if p.DType == "fp8" {
		r.Out = "fp16"
	}
	return must.Get(r.Problem())(t)
}

// recorded are the products of the experiment that the constants are from.
func recorded(t *testing.T) (all []product) {
	t.Helper()
	f := must.Get(os.Open("../../experiments/timings-on-h200/result.jsonl"))(t)
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Scan() // the environment
	for lines.Scan() {
		var p product
		must.Do(t, json.Unmarshal(lines.Bytes(), &p))
		all = append(all, p)
	}
	return all
}

// The law reproduces the recorded times of four kernel families: the median error and the share within 10 %.
func TestRecorded(t *testing.T) {
	type want struct {
		median, share float64
		families      []string
	}
	gpu, all := h200(), []string{"cublas", "triton", "wgmma", "mma"}
	for to, want := range map[timing.Timing]want{
		timing.Events: {0.035, 0.9, all}, timing.Warm: {0.025, 0.88, all}, timing.Layers: {0.016, 0.92, all},
		timing.Layers5: {0.018, 0.9, all},
		// Kernels of older instructions were faster for two seconds than before, which no law of power has.
		timing.Sustained: {0.035, 0.95, all[:3]},
		timing.Host:      {0.13, 0.4, []string{"cublas", "triton", "mma"}}, // one call each: half of them vary by a fifth
	} {
		var errors []float64
		within := 0.0
		for _, p := range recorded(t) {
			problem := p.problem(t)
			for _, f := range want.families {
				measured, ok := p.Seconds[f][string(to)]
				if !ok {
					continue
				}
				got := gpu.Convert(p.Seconds[f]["model"], &problem, timing.Model, to)
				e := math.Abs(math.Log(float64(got / measured)))
				if errors = append(errors, e); e <= math.Log(1.1) {
					within++
				}
			}
		}
		median, share := stats.Median(errors), within/float64(len(errors))
		t.Logf("%-9s %d times, median error %.1f %%, %.0f %% within 10 %%", to, len(errors), 100*median, 100*share)
		must.That(t, median <= want.median && share >= want.share,
			"%s: want at most %.1f %%, and %.0f %%", to, 100*want.median, 100*want.share)
	}
}

// A longer time of one timing is never a shorter one of another, converting there and back gives the same time, and no
// conversion is below what DRAM needs.
func TestLaws(t *testing.T) {
	gpu, rng := h200(), rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		size := func() int { return 8 * int(math.Exp(rng.Float64()*7.6)) }
		r := gemm.Record{M: size(), N: size(), K: size(), Batch: 1, TransB: true, DType: "bf16"}
		p := must.Get(r.Problem())(t)
		m, n, k := float64(p.M), float64(p.N), float64(p.K)
		model := unit.Seconds((2.5e-6 + 2*m*n*k/8e14 + 2*(m*k+n*k+m*n)/3.8e12) * (1 + rng.Float64()))
		for _, to := range timing.All() {
			there := gpu.Convert(model, &p, timing.Model, to)
			if back := gpu.Convert(there, &p, to, timing.Model); math.Abs(float64(back/model)-1) > 1e-6 {
				t.Fatalf("%v: %v of model is %v of %s, which is %v of model", p, model, there, to, back)
			}
			more := gpu.Convert(1.01*model, &p, timing.Model, to)
			must.Need(t, more >= there, "%v: %s falls from %v to %v", p, to, there, more)
			for _, also := range timing.All() {
				over := gpu.Convert(there, &p, to, also)
				at := gpu.Convert(model, &p, timing.Model, also)
				must.Need(t, math.Abs(float64(over/at)-1) <= 1e-6, "%v: %s is %v from %s and %v from model", p, also, over, to, at)
			}
		}
		for _, order := range [][2]timing.Timing{
			{timing.Warm, timing.Layers5}, {timing.Layers5, timing.Layers}, {timing.Layers, timing.Model},
			{timing.Model, timing.Cold}, {timing.Cold, timing.Events}, {timing.Warm, timing.Alone},
			{timing.Model, timing.Sustained}, {timing.Events, timing.Host},
		} {
			less, more := gpu.Convert(model, &p, timing.Model, order[0]), gpu.Convert(model, &p, timing.Model, order[1])
			must.Need(t, less <= more*(1+1e-9), "%v: %s takes %v, %s %v", p, order[0], less, order[1], more)
		}
	}
}

// Names are read from text and JSON, and one that is unknown is an error that lists them.
func TestNames(t *testing.T) {
	for _, x := range timing.All() {
		text, err := json.Marshal(x)
		var back timing.Timing
		must.That(t, err == nil && json.Unmarshal(text, &back) == nil && back == x && x.Meaning() != "",
			"%s is written as %s and read as %s: %v", x, text, back, err)
	}
	_, err := timing.Parse("cool")
	const want = `the timing "cool" is unknown; use one of model, events, alone, warm, cold, layers, layers5, ` +
		`sustained, host`
	must.That(t, err != nil && err.Error() == want, "%v", err)
	must.Fail(t, must.Err(json.Marshal(timing.Timing(""))), "is no timing")
}
