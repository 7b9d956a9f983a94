package builtins

import (
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pickcmd"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/export"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/families"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Export generates a kernel of the built-in families, for `origami export`.
func Export(d *arch.Description, p gemm.Problem, c gemm.Config, adds bool) ([]pickcmd.File, error) {
	var names []string
	for _, f := range families.All() {
		names = append(names, f.Name())
		if f.Name() != c.Kernel {
			continue
		}
		limits, err := limitsOf(d)
		if err != nil {
			return nil, err
		}
		files, err := export.Kernel{Family: f, Problem: p, Config: c, Limits: limits, Adds: adds}.Files()
		if err != nil {
			return nil, err
		}
		out := make([]pickcmd.File, len(files))
		for i, one := range files {
			out[i] = pickcmd.File(one)
		}
		return out, nil
	}
	return nil, diag.Inputf("origami does not generate kernels of the family %s", c.Kernel).
		Do("use --kernel %s", strings.Join(names, " or --kernel "))
}

// limitsOf returns what a device lets a kernel use.
func limitsOf(d *arch.Description) (gemmgen.Limits, error) {
	cc, err := strconv.Atoi(strings.TrimPrefix(d.Arch, "sm"))
	if err != nil {
		return gemmgen.Limits{}, diag.Inputf("kernels are generated for NVIDIA GPUs, not for %s", d.Arch).
			Do("open an architecture of the plugin nvidia, as in --arch sm90")
	}
	return gemmgen.Limits{
		Target:             target.Target{CC: cc, Suffix: target.ArchFeatures},
		RegistersPerThread: d.RegistersPerThread, RegisterFile: d.RegisterFile, SharedMemory: d.SharedMemory,
		Processors: d.Units,
	}, nil
}
