package pipelined_test

import (
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// A kernel that is twice as slow in the characterization is predicted to be slower by the weight of the timing pass,
// where nothing else limits it.
func TestCharacterizationCounts(t *testing.T) {
	header, _, _ := strings.Cut(string(data.TritonH200Timings), "\n")
	predict := func(row string) float64 {
		file := []byte(header + "\n" + row + "\n")
		a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Characterization: file})
		c := gemm.Config{
			BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 3, GroupM: 8, SplitK: 1, Kernel: "triton",
		}
		var e [1]arch.Estimate
		must.Do(t, a.Estimate(t.Context(), e[:], gemm.New(4096, 4096, 16384), []gemm.Config{c}))
		return float64(e[0].Cycles)
	}
	slow := predict("128,256,64,3,8,0,1,242.8,722.8,242.8,722.8,242.8,722.8") /
		predict("128,256,64,3,8,0,1,122.8,362.8,122.8,362.8,122.8,362.8")
	want := math.Pow(2, 3.0/8)
	must.That(t, math.Abs(slow-want) <= 0.01, "twice as slow by itself is %v times as slow, want %v", slow, want)
}

// The shipped times are about the device as it is. They do not count with another value of a parameter that the model
// uses, also through another one, and the description says so. They count if the override changes nothing, or nothing
// that the model uses, or if the device differs by what its driver says. The user's own times are about the device that
// the user describes.
func TestTimesUnderOverrides(t *testing.T) {
	own := data.TritonH200Timings
	for name, c := range map[string]struct {
		request arch.OpenRequest
		rung    arch.Rung
		reason  string
	}{
		"none":            {arch.OpenRequest{}, arch.RungCharacterized, ""},
		"clock":           {overriding("clock", 1.5e9), arch.RungCompiled, "timed with other values of clock"},
		"through another": {overriding("dram_bandwidth", 3e12), arch.RungCompiled, "other values of dram_bandwidth"},
		"rate of a type":  {overriding("peak_fp8", 1e15), arch.RungCompiled, "other values of peak_fp8"},
		"the same":        {overriding("clock", 1.98e9), arch.RungCharacterized, ""},
		"not used":        {overriding("dram_bw_coeff", 0.03), arch.RungCharacterized, ""},
		"on a lower rung": {
			arch.OpenRequest{Rung: arch.RungCompiled, Overrides: overriding("clock", 1.5e9).Overrides}, arch.RungCompiled, "",
		},
		"of a live device": {
			arch.OpenRequest{Live: &arch.LiveDevice{Name: "NVIDIA H200", Attributes: map[string]float64{"clock": 1.5e9}}},
			arch.RungCharacterized, "",
		},
		"given": {
			arch.OpenRequest{Characterization: own, Overrides: overriding("clock", 1.5e9).Overrides},
			arch.RungCharacterized, "",
		},
	} {
		r := c.request
		r.Arch, r.Device = "sm90", "h200"
		d := nvtest.Open(t, r).Describe()
		must.That(t, d.Rung == c.rung && strings.Contains(d.RungReason, c.reason) && (c.reason == "") == (d.RungReason == ""),
			"%s: rung %s, %q", name, d.Rung, d.RungReason)
	}
}

func overriding(name string, value float64) arch.OpenRequest {
	return arch.OpenRequest{Overrides: map[string]hw.OverrideValue{name: {Value: value}}}
}

// What is no characterization is refused with the place and what to do, and never half used.
func TestCharacterizationRefuses(t *testing.T) {
	header, _, _ := strings.Cut(string(data.TritonH200Timings), "\n")
	header += "\n"
	for name, c := range map[string]struct {
		file string
		rung arch.Rung
		want string
	}{
		"empty":             {"", "", "cannot be read"},
		"another table":     {"bm,bn\n1,2\n", "", "column bk is missing"},
		"no kernels":        {header, "", "no kernels"},
		"cut off":           {header + "128,256,64,3", "", "the characterization"},
		"not a number":      {header + "128,256,64,3,8,0,1,x,60,28,71,28,71\n", "", `:2:20: one_2048 is "x"`},
		"a negative time":   {header + "128,256,64,3,8,0,1,24,-60,28,71,28,71\n", "", `one_6144 is "-60"`},
		"infinite":          {header + "128,256,64,3,8,0,1,24,60,28,+Inf,28,71\n", "", `chip_6144 is "+Inf"`},
		"half a block":      {header + "128,25.5,64,3,8,0,1,24,60,28,71,28,71\n", "", `bn is "25.5"`},
		"on a lower rung":   {header, arch.RungCompiled, "rung compiled knows no characterization"},
		"not for the model": {header + "128,256,64,3,8,0,0,24,60,28,71,28,71\n", "", `ctas is "0"`},
	} {
		_, err := nvtest.Provider(t).Open(t.Context(), arch.OpenRequest{
			Arch: "sm90", Device: "h200", Rung: c.rung, Characterization: []byte(c.file),
		})
		must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), c.want), "%s: %v", name, err)
	}
}

// withFitted returns the device file of the H200 under another name with a fitted constant.
func withFitted(t *testing.T, name string, v hw.FittedValue) []byte {
	t.Helper()
	text := must.Get(configs.FS.ReadFile("sm90-h200.yaml"))(t)
	sheet := must.Get(hw.DecodeSheet("sm90-h200.yaml", text))(t)
	sheet.Device, sheet.Aliases = "mine", nil
	sheet.Fitted = &hw.Fitted{Model: "refined", DataSet: "./sweep", Source: "fitted to ./sweep", Date: "2026-11-22",
		Problems: []gemm.Problem{gemm.New(192, 320, 257)}, Values: map[string]hw.FittedValue{name: v}}
	text = must.Get(hw.EncodeSheet(sheet))(t)
	return text
}

// A constant of the device file is the model's, with its source, and changes predictions; sizes that it was fitted to
// are in-sample.
func TestFittedConstants(t *testing.T) {
	p := gemm.New(512, 512, 512)
	shipped := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	mine := nvtest.Open(t, arch.OpenRequest{Arch: "sm90",
		DeviceFile: withFitted(t, "launch_seconds", hw.FittedValue{Value: 5e-6, Unit: "s", Low: 4.9e-6, High: 5.1e-6})})
	list := must.Get(shipped.Candidates(t.Context(), p, arch.Space{}))(t)
	before, after := make([]arch.Estimate, 1), make([]arch.Estimate, 1)
	must.Do(t, shipped.Estimate(t.Context(), before, p, list.Configs[:1]))
	must.Do(t, mine.Estimate(t.Context(), after, p, list.Configs[:1]))
	if !(after[0].Cycles > before[0].Cycles+2000) {
		t.Errorf("%v cycles with a longer launch, %v before", after[0].Cycles, before[0].Cycles)
	}
	d := mine.Describe()
	for _, c := range d.Constants {
		must.That(t, c.Name != "launch_seconds" || c.Fits() && c.Value == 5e-6 &&
			c.Source == "fitted to ./sweep; over folds 4.9e-06–5.1e-06", "%+v", c)
	}
	if !d.InSample(gemm.New(192, 320, 257), "triton") || shipped.Describe().InSample(gemm.New(192, 320, 257), "triton") {
		t.Error("the size of the fit is not in-sample")
	}
	_, ok := mine.(fit.Tunable)
	must.That(t, ok, "the model cannot be fitted")
}

func TestFittedConstantsAreRefused(t *testing.T) {
	for name, v := range map[string]hw.FittedValue{
		"has no quantity \"launch_second\"": {Value: 5e-6, Unit: "s"}, "and the model takes": {Value: 5, Unit: "s"},
		"the model takes": {Value: 5e-6, Unit: "ms"},
	} {
		constant := "launch_seconds"
		if strings.HasPrefix(name, "has no") {
			constant = "launch_second"
		}
		_, err := nvtest.Provider(t).Open(t.Context(), arch.OpenRequest{Arch: "sm90", DeviceFile: withFitted(t, constant, v)})
		must.That(t, err != nil && strings.Contains(err.Error(), name), "%s: %v", name, err)
	}
}
