// Package builtins lists the plugins that are part of the command line and of the C library.
package builtins

import (
	"context"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/ladder"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/nvidia"
	"github.com/origami-gemm/origami/plugins/nvidia/calibration"
	nvidialadder "github.com/origami-gemm/origami/plugins/nvidia/ladder"
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

// Tunable opens the model of a request in this process, as one whose quantities can be fitted.
func Tunable(ctx context.Context, r arch.OpenRequest) (fit.Tunable, error) {
	p, err := nvidia.Provider()
	if err != nil {
		return nil, err
	}
	a, err := p.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	if m, ok := a.(fit.Tunable); ok {
		return m, nil
	}
	d := a.Describe()
	return nil, diag.Inputf("the %s model of %s has no quantities to fit", d.Model, d.Arch).
		Do("fit the refined model of an NVIDIA GPU")
}

// Calibration returns the microbenchmarks of a device.
func Calibration(d exec.Device) (*calibrate.Plan, error) {
	if strings.HasPrefix(d.Arch, "sm") {
		return calibration.New(d)
	}
	return nil, diag.Inputf("there are no microbenchmarks for %s (%s)", d.Name, d.Arch).Do("calibrate an NVIDIA GPU")
}

// Ladder returns the ladder of kernels that a model knows.
func Ladder() ladder.Ladder { return nvidialadder.Ladder() }
