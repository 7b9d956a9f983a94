// Package builtins lists the plugins that are part of the command line and of the C library.
package builtins

import (
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/nvidia"
	"github.com/origami-gemm/origami/plugins/nvidia/calibration"
)

// Plugin is a plugin that is part of the program.
type Plugin struct {
	Name string
	// Provider makes the provider, which lists its devices and does not read their numbers.
	Provider func() (arch.Provider, error)
}

// Plugins lists them in order of precedence. A new one is a line here.
var Plugins = []Plugin{
	{"nvidia", nvidia.Provider},
	{"amd-ref", amdref.Provider},
}

// Calibration returns the microbenchmarks of a device.
func Calibration(d exec.Device) (*calibrate.Plan, error) {
	if strings.HasPrefix(d.Arch, "sm") {
		return calibration.New(d)
	}
	return nil, diag.Inputf("there are no microbenchmarks for %s (%s)", d.Name, d.Arch).Do("calibrate an NVIDIA GPU")
}
