// Command gen writes the code of the model from the table of its terms. It runs in plugins/nvidia/pipelined, through go
// generate. plugins/nvidia/internal/page writes the model's page.
package main

import (
	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

// What a value can depend on, besides the device.
const (
	onSizes   gogen.Deps = 1 << iota // M, N, K and the batch
	onKernel                         // the configuration, the layout and the type of the operands
	onVariant                        // whether loads are masked along K
	onSplit                          // split_k: a list has the same kernel with several
	onGroup                          // the launch order, of which several are tried for one kernel
)

// The structs of inputs are kept no longer than the stage takes that reads them.
var model = modelgen.Model{
	Package: "pipelined", Terms: terms.Terms,
	Stages: []modelgen.Stage{
		{Var: "d", Type: "device", Args: "value func(name string) float64",
			Doc: "device holds what depends on the device alone. value returns the parameters, constants and quantities."},
		{Var: "s", Type: "sizes", Args: "d *device", Knows: onSizes,
			Doc: "sizes holds what depends on the sizes of the problem alone."},
		{Var: "k", Type: "kernelTerms", Args: "in *inputs, d *device", Knows: onKernel,
			Doc: "kernelTerms holds what depends on the kernel, and not on the split of K or the sizes of the problem."},
		{Var: "v", Type: "variantTerms", Args: "in *inputs, d *device, k *kernelTerms", Knows: onKernel | onVariant,
			Doc: "variantTerms holds what depends on the kernel and on whether its loads are masked along K."},
		{Var: "c", Type: "splitTerms", Args: "in *inputs, d *device, k *kernelTerms, v *variantTerms",
			Knows: onKernel | onVariant | onSplit,
			Doc:   "splitTerms holds what depends on the kernel, the variant and the split of K."},
		{Var: "g", Type: "gridTerms", Args: "d *device, s *sizes, k *kernelTerms", Knows: onSizes | onKernel | onGroup,
			Doc: "gridTerms holds what depends on the kernel and the problem, and not on the split of K."},
		{Var: "t", Type: "timing", Args: estimated, Knows: onSizes | onKernel | onVariant | onSplit | onGroup,
			Doc: "timing holds what depends on all."},
	},
	Inputs: []modelgen.Input{
		{By: terms.OfProblem, Names: "m n k batch", On: onSizes, Type: "sizes", Var: "s", Reach: gogen.Everywhere},
		{By: terms.OfKernel, On: onKernel, Type: "kernelInputs", Var: "in", Reach: gogen.Own,
			Names: "element_bytes output_bytes trans_a trans_b block_m block_n block_k num_warps num_stages"},
		{By: terms.OfVariant, On: onKernel | onVariant, Type: "variantInputs", Var: "in", Reach: gogen.Own},
		{Names: "split_k", On: onSplit, Type: "splitInputs", Var: "in", Reach: gogen.Own},
		{Names: "group_m", On: onGroup, Type: "kernelTerms", Var: "k", Reach: gogen.Everywhere},
		{By: terms.OfGroups, On: onSizes | onKernel, Type: "sizes", Var: "s", Reach: gogen.Everywhere},
	},
	Keep: `total all_waves power dram_floor compute_floor full_waves tail_ctas ctas_of_sm ctas_per_sm steps tensor_step
		l2_step repeat_step spill_l2_step full_spill_dram_step tail_spill_dram_step`,
	Columns: "d *device, s *sizes, in *inputs, k *kernelTerms, v *variantTerms, c *splitTerms,\n\tg *gridTerms, t *timing",
	Apart: &modelgen.Function{Name: "least", Doc: "least is a time that the total is not below.", Args: estimated,
		Formula: terms.Least},
}

// estimated are the structs that a total is computed from.
const estimated = "d *device, s *sizes, k *kernelTerms, v *variantTerms, c *splitTerms, g *gridTerms"

func main() { modelgen.Main(&model) }
