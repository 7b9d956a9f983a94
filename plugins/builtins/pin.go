package builtins

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/plugins/nvidia/pin"
)

// Kernel describes a compiled kernel.
type Kernel = pin.Kernel

// Choice has the times of several kernels and the one to take.
type Choice = pin.Answer

// Pin predicts the times of compiled kernels on the device of a description, and picks one.
func Pin(d *arch.Description, kernels []Kernel) (*Choice, error) {
	m, err := pin.New(d)
	if err != nil {
		return nil, err
	}
	return m.Answer(kernels)
}
