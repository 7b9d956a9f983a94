package pipelined_test

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

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
