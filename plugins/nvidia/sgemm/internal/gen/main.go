// Command gen writes the code of the model from the table of its terms. It runs in plugins/nvidia/sgemm, through go
// generate.
package main

import (
	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/plugins/nvidia/sgemm/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

// What a value can depend on, besides the device.
const (
	onProblem gogen.Deps = 1 << iota
	onConfig
)

var model = modelgen.Model{
	Package: "sgemm", Terms: terms.Terms,
	Stages: []modelgen.Stage{
		{Var: "d", Type: "device", Args: "value func(name string) float64",
			Doc: "device holds what depends on the device alone. value returns the parameters and constants."},
		{Var: "p", Type: "problem", Args: "d *device", Doc: "problem holds what depends on the problem.", Knows: onProblem},
		{Var: "k", Type: "kernelTerms", Args: "in *inputs, d *device", Knows: onConfig,
			Doc: "kernelTerms holds what depends on the configuration and its kernel, and not on the problem."},
		{Var: "t", Type: "timing", Args: "d *device, p *problem, k *kernelTerms", Doc: "timing holds what depends on all.",
			Knows: onProblem | onConfig},
	},
	Inputs: []modelgen.Input{
		{Names: "m n k batch output_bytes", On: onProblem, Type: "problem", Var: "p", Reach: gogen.Everywhere},
		{By: terms.OfKernel, Names: "block_m block_n block_k num_warps group_m split_k", On: onConfig, Type: "inputs",
			Var: "in", Reach: gogen.Own},
		{By: terms.OfLines, On: onProblem | onConfig, Type: "timing", Var: "t", Reach: gogen.Everywhere},
	},
	Keep:    `total load_issue_step fma_step tensor_step issue_step l2_step dram_step waiting_step`,
	Columns: "d *device, in *inputs, p *problem, k *kernelTerms, t *timing",
}

func main() { modelgen.Main(&model) }
