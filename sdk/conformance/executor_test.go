package conformance_test

import (
	"context"
	"testing"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/exec/exectest"
	"github.com/origami-gemm/origami/sdk/conformance"
)

// made is an executor provider over a made-up executor.
type made struct{ open func() (exec.Executor, error) }

func (made) Manifest() exec.Manifest { return exec.Manifest{Name: "made", Version: "1.2.3"} }

func (m made) Open(context.Context) (exec.Executor, error) { return m.open() }

var device = exec.Device{Name: "Made Up", Arch: "none1", Kernels: []string{"one", "two"}, Libraries: []string{"blas"},
	Attributes: map[string]float64{"clock": 1.5e9, "num_sms": 8}}

func TestSoundExecutor(t *testing.T) {
	conformance.Executor(t, made{func() (exec.Executor, error) { return &exectest.Executor{Device: device, Noise: 0.01}, nil }}, conformance.Options{})
}
