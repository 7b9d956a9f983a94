// Package gputest opens the devices of configs/ for tests of what stands on package gpu.
package gputest

import (
	"io/fs"
	"testing"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// Device returns a device of configs/ by the name of its file without the suffix, with overrides.
func Device(t testing.TB, sm *gpu.SM, file string, overrides map[string]hw.OverrideValue) *gpu.Device {
	t.Helper()
	file += ".yaml"
	sheet := must.Get(hw.DecodeSheet(file, must.Get(fs.ReadFile(configs.FS, file))(t)))(t)
	params := must.Get(hw.Resolve(gpu.Specs, sheet, gpu.Derive, overrides))(t)
	return gpu.NewDevice(sm, sheet, params)
}
