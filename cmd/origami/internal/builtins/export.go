package builtins

import (
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pickcmd"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/export"
)

// Export generates a kernel of the built-in families, for `origami export`.
func Export(d *arch.Description, p gemm.Problem, c gemm.Config, adds bool) ([]pickcmd.File, error) {
	k, err := export.For(d, p, c, adds)
	if err != nil {
		return nil, err
	}
	files, err := k.Files()
	out := make([]pickcmd.File, len(files))
	for i, one := range files {
		out[i] = pickcmd.File(one)
	}
	return out, err
}
