// Command gen writes the code of the model tensile from the table of its terms. It runs in plugins/amd-ref/tensile,
// through go generate.
package main

import (
	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

// What a value can depend on, besides the device.
const (
	onKernel gogen.Deps = 1 << iota // the configuration, the layout and the type of the operands
	onSizes                         // M, N, K and the batch
)

var model = modelgen.Model{
	Package: "tensile", Terms: terms.Terms,
	Stages: []modelgen.Stage{
		{Var: "d", Type: "device", Args: "value func(name string) float64",
			Doc: "device holds what depends on the device alone. value returns the parameters, constants and quantities."},
		{Var: "s", Type: "sizes", Args: "d *device", Knows: onSizes,
			Doc: "sizes holds what depends on the sizes of the problem alone."},
		{Var: "k", Type: "kernelTerms", Args: "in *inputs, d *device", Knows: onKernel,
			Doc: "kernelTerms holds what depends on the kernel, and not on the sizes of the problem."},
		{Var: "t", Type: "timing", Args: "d *device, s *sizes, k *kernelTerms", Knows: onKernel | onSizes,
			Doc: "timing holds what depends on the kernel and the problem."},
	},
	Inputs: []modelgen.Input{
		{By: terms.OfRelease, Names: "m n k batch", On: onSizes, Type: "sizes", Var: "s", Reach: gogen.Everywhere},
		{
			By: terms.OfKernel, On: onKernel, Type: "inputs", Var: "in", Reach: gogen.Own,
			Names: `element_bytes output_bytes trans_a trans_b block_m block_n block_k num_warps num_stages split_k group_m
				stream_k local_split`,
		},
	},
	Keep: `total registers workgroups_per_cu matrix_step full_waves tail_count steps full_l2_step tail_l2_step far
		full_power_step tail_power_step dram_floor`,
	Columns: "d *device, in *inputs, s *sizes, k *kernelTerms, t *timing",
}

func main() { modelgen.Main(&model) }
