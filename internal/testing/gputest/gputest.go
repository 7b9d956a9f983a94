// Package gputest opens the devices of configs/ for tests of what stands on package gpu.
package gputest

import (
	"io/fs"
	"testing"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// Device returns a device of configs/ by the name of its file without the suffix, with overrides.
func Device(t testing.TB, sm *gpu.SM, file string, overrides map[string]hw.OverrideValue) *gpu.Device {
	t.Helper()
	file += ".yaml"
	data, err := fs.ReadFile(configs.FS, file)
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := hw.DecodeSheet(file, data)
	if err != nil {
		t.Fatal(err)
	}
	params, err := hw.Resolve(gpu.Specs, sheet, gpu.Derive, overrides)
	if err != nil {
		t.Fatal(err)
	}
	return gpu.NewDevice(sm, sheet, params)
}
