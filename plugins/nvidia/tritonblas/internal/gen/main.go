// Command gen writes the code of the model from the table of its terms. It runs in plugins/nvidia/tritonblas, through go
// generate.
package main

import (
	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/plugins/nvidia/tritonblas/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

// What a value can depend on, besides the device.
const (
	onSizes gogen.Deps = 1 << iota
	onArea             // block_m and block_n
	onDepth            // block_k
)

var model = modelgen.Model{
	Package: "tritonblas", Terms: terms.Terms,
	Stages: []modelgen.Stage{
		{Var: "d", Type: "device", Args: "value func(name string) float64",
			Doc: "device holds what depends on the device alone. value returns the parameters and constants."},
		{Var: "k", Type: "kernelTerms", Args: "d *device", Knows: onArea | onDepth,
			Doc: "kernelTerms holds what depends on the configuration, and not on the problem."},
		{Var: "g", Type: "gridTerms", Args: "d *device, s *sizes, k *kernelTerms", Knows: onSizes | onArea,
			Doc: "gridTerms holds what depends on the problem, block_m and block_n."},
		{Var: "n", Type: "depthTerms", Args: "d *device, s *sizes, k *kernelTerms", Knows: onSizes | onDepth,
			Doc: "depthTerms holds what depends on the problem and block_k."},
		{Var: "t", Type: "timing", Args: "d *device, s *sizes, k *kernelTerms, g *gridTerms, n *depthTerms",
			Knows: onSizes | onArea | onDepth, Doc: "timing holds what depends on all."},
	},
	Inputs: []modelgen.Input{
		{Names: "m n k batch", On: onSizes, Type: "sizes", Var: "s", Reach: gogen.Everywhere},
		{Names: "block_m block_n", On: onArea, Type: "kernelTerms", Var: "k", Reach: gogen.Everywhere},
		{Names: "block_k element_bytes output_bytes", On: onDepth, Type: "kernelTerms", Var: "k", Reach: gogen.Everywhere},
		{By: terms.OfGrid, On: onSizes | onArea, Type: "gridTerms", Var: "g", Reach: gogen.Everywhere},
		{By: terms.OfKernel, On: onSizes | onArea | onDepth, Type: "timing", Var: "t", Reach: gogen.Everywhere},
	},
	Keep:    `l_total l_compute l_mem l_l2 l_dram load_dram limited_dram_bw`,
	Columns: "d *device, s *sizes, k *kernelTerms, g *gridTerms, n *depthTerms, t *timing",
}

func main() { modelgen.Main(&model) }
