package builtins

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/export"
)

// Launch is the text of a kernel that origami generates, and how a problem is launched with it.
type Launch = export.Launch

// Generate returns the kernel of a configuration for a problem on a device. adds asks for a kernel that may add to C.
func Generate(d *arch.Description, p gemm.Problem, c gemm.Config, adds bool) (*Launch, error) {
	k, err := export.For(d, p, c, adds)
	if err != nil {
		return nil, err
	}
	return k.Launch()
}
