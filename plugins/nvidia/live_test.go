package nvidia_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// rtx4070 is a GPU without a file in configs/, as a driver describes it (NVIDIA Ada GPU Architecture whitepaper v2.1
// and product page: 46 SMs, 2.475 GHz boost, 36 MiB of L2, 10501 MHz GDDR6X on 192 bits, 200 W).
func rtx4070() *arch.LiveDevice {
	return &arch.LiveDevice{Name: "NVIDIA GeForce RTX 4070", Attributes: map[string]float64{
		"num_sms": 46, "clock": 2.475e9, "l2_bytes": 36 << 20, "shared_memory_bytes": 99 << 10, "register_file": 65536,
		"dram_bandwidth": 2 * 10501e6 * 192 / 8, "tdp": 200,
		"compute_capability": 8.9, "memory_bytes": 12878086144, "memory_clock": 10501e6, "bus_width_bits": 192,
	}}
}

func archIDs(t testing.TB) []string {
	t.Helper()
	p := nvtest.Provider(t)
	var ids []string
	for _, a := range p.Manifest().Archs {
		ids = append(ids, a.ID)
	}
	return ids
}

// An unknown GPU of any architecture gets every parameter of the architecture's default device, on rung spec, and a
// pick.
func TestLiveGPUIsComplete(t *testing.T) {
	for _, id := range archIDs(t) {
		live := rtx4070()
		live.Name = "NVIDIA Nobody"
		a, standard := nvtest.Open(t, arch.OpenRequest{Arch: id, Live: live}), nvtest.Open(t, arch.OpenRequest{Arch: id})
		d := a.Describe()
		must.That(t, d.Device == arch.LiveID && d.DeviceName == "NVIDIA Nobody" && d.Rung == arch.RungSpec && d.Units == 46,
			"%s: %s, %s, rung %s, %d units", id, d.ID(), d.DeviceName, d.Rung, d.Units)
		if len(d.Params) != len(standard.Describe().Params) {
			t.Errorf("%s has %d numbers, its default device %d", id, len(d.Params), len(standard.Describe().Params))
		}
		for i := range d.Params {
			p := &d.Params[i]
			_, reported := live.Attributes[p.Name]
			if p.Tier != hw.Derived || p.Live() != reported ||
				(p.ScaledFrom() == standard.Describe().ID()) == reported {
				t.Errorf("%s: %+v", id, *p)
			}
		}
		for _, kernel := range d.Kernels {
			var result selector.Result
			must.Do(t, selector.New(a, arch.Space{Kernel: kernel}).Select(t.Context(), gemm.New(4096, 4096, 4096), &result))
		}
	}
}

// The default device itself, opened as an unknown GPU, gets the same parameters.
func TestScalingByOneChangesNothing(t *testing.T) {
	for _, id := range archIDs(t) {
		want := nvtest.Open(t, arch.OpenRequest{Arch: id}).Describe().Params
		live := &arch.LiveDevice{Name: "stranger", Attributes: map[string]float64{}}
		for _, name := range []string{"num_sms", "clock", "l2_bytes", "dram_bandwidth"} {
			live.Attributes[name] = hw.Set(want).Get(name)
		}
		a := nvtest.Open(t, arch.OpenRequest{Arch: id, Live: live})
		for _, w := range want {
			if w.Name == "tdp" {
				continue // nothing depends on it, and nothing scales it
			}
			got := nvtest.Param(t, a, w.Name)
			must.That(t, got.Value >= w.Value*(1-1e-12) && got.Value <= w.Value*(1+1e-12),
				"%s: %s is %v, was %v", id, w.Name, got.Value, w.Value)
		}
	}
}

// More SMs, more L2 or faster memory never derive less bandwidth.
func TestMoreHardwareIsNotSlower(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, id := range archIDs(t) {
		for range 40 {
			small := rtx4070()
			small.Name = "small"
			small.Attributes["num_sms"] = float64(1 + rng.IntN(200))
			small.Attributes["l2_bytes"] = float64(1+rng.IntN(100)) * (1 << 20)
			small.Attributes["dram_bandwidth"] = 1e11 * (1 + 50*rng.Float64())
			large := &arch.LiveDevice{Name: "large", Attributes: maps.Clone(small.Attributes)}
			more := []string{"num_sms", "l2_bytes", "dram_bandwidth"}[rng.IntN(3)]
			large.Attributes[more] *= float64(2 + rng.IntN(3))
			a := nvtest.Open(t, arch.OpenRequest{Arch: id, Live: small})
			b := nvtest.Open(t, arch.OpenRequest{Arch: id, Live: large})
			for i, level := range a.Hierarchy().Levels() {
				grown := b.Hierarchy().Levels()[i].Bandwidth
				was, is := level.Bandwidth.At(level.Bandwidth.Units), grown.At(grown.Units)
				if grown.Peak < level.Bandwidth.Peak || is < was*(1-1e-12) {
					t.Fatalf("%s: %s falls from %v to %v B/cycle, with all SMs from %v to %v, with more %s: %v",
						id, level.Name, level.Bandwidth.Peak, grown.Peak, was, is, more, small.Attributes)
				}
			}
		}
	}
}

// A product of configs/ keeps its measured parameters. The driver's values replace the others.
func TestLiveGPUOfConfigs(t *testing.T) {
	live := &arch.LiveDevice{Name: "NVIDIA H200", Attributes: map[string]float64{
		"num_sms": 132, "clock": 1.98e9, "l2_bytes": 60 << 20, "dram_bandwidth": 2 * 3201e6 * 6144 / 8, "tdp": 600}}
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Live: live})
	d := a.Describe()
	must.Need(t, d.ID() == "sm90@h200", "opened %s", d.ID())
	var fromDriver []string
	for _, p := range a.Describe().Params {
		if p.Live() {
			fromDriver = append(fromDriver, p.Name)
		}
	}
	must.That(t, slices.Equal(fromDriver, []string{"dram_bandwidth", "tdp"}) && nvtest.Param(t, a, "tdp").Value == 600,
		"from the driver: %v", fromDriver)
	if p := nvtest.Param(t, a, "l2_perf_ratio"); p.Tier != hw.Calibrated || p.Value != 4980.2 {
		t.Errorf("%+v", p)
	}
}

func TestLiveGPURefusals(t *testing.T) {
	p := nvtest.Provider(t)
	without := func(name string) *arch.LiveDevice {
		live := rtx4070()
		delete(live.Attributes, name)
		return live
	}
	for want, r := range map[string]arch.OpenRequest{
		"no value for num_sms":        {Arch: "sm89", Live: without("num_sms")},
		"no value for clock":          {Arch: "sm89", Live: without("clock")},
		"no value for l2_bytes":       {Arch: "sm89", Live: without("l2_bytes")},
		"no value for dram_bandwidth": {Arch: "sm89", Live: without("dram_bandwidth")},
		"NVIDIA GeForce RTX 4070 has the architecture sm72, which no plugin models; the architectures are " +
			strings.Join(archIDs(t), ", "): {Arch: "sm72", Live: rtx4070()},
	} {
		_, err := p.Open(t.Context(), r)
		must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), want), "%v, want %q", err, want)
	}
	// The driver need not report what the architecture fixes, nor the power limit.
	for _, name := range []string{"shared_memory_bytes", "register_file", "tdp"} {
		_, err := p.Open(t.Context(), arch.OpenRequest{Arch: "sm89", Live: without(name)})
		must.That(t, err == nil, "without %s: %v", name, err)
	}
}

// The derived parameters of an H100 PCIe, opened as if it had no device file, are near the measured ones, and its peak
// is near that of the data sheet.
func TestDerivedAgainstMeasured(t *testing.T) {
	const clock, l2 = 1.755e9, 50 << 20
	live := &arch.LiveDevice{Name: "stranger", Attributes: map[string]float64{
		"num_sms": 114, "clock": clock, "l2_bytes": l2, "dram_bandwidth": 2 * 1593e6 * 5120 / 8}}
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Live: live})
	// gpu-l2-cache of RRZE-HPC/gpu-benches, with the statistics of configs/README.md.
	rows := csvtest.Read(t, "../../configs/testdata/published/rrze_gpu_benches.csv")
	median := func(lo, hi float64) float64 {
		var ys []float64
		for _, r := range rows {
			if r[0] != "gpu-l2-cache" || r[1] != "h100_pcie" {
				continue
			}
			x, _ := strconv.ParseFloat(r[3], 64)
			y, _ := strconv.ParseFloat(r[5], 64)
			if x *= 1024; lo <= x && x <= hi {
				ys = append(ys, y*1e9/clock)
			}
		}
		must.Need(t, len(ys) >= 10, "%d rows", len(ys))
		return stats.Median(ys)
	}
	for _, c := range []struct {
		name                string
		measured, tolerance float64
	}{
		{"l2_perf_ratio", median(0.1*l2, 0.6*l2), 0.2},
		{"dram_perf_ratio", median(4*l2, 1e12), 0.2},
		{"peak_fp16", 756e12, 0.01}, // NVIDIA H100 Tensor Core GPU data sheet, H100 PCIe, dense
	} {
		got := nvtest.Param(t, a, c.name).Value
		must.Hold(t, math.Abs(got/c.measured-1) <= c.tolerance, "%s: derived %.4g, measured %.4g (%+.1f %%)", c.name, got,
			c.measured, 100*(got/c.measured-1))
	}
}
