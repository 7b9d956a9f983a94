// Command gen writes the code of the model from the table of its terms. It runs in plugins/amd-ref/amd-origami, through
// go generate.
package main

import (
	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/plugins/amd-ref/amd-origami/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

// What a value can depend on, besides the device.
const (
	onProblem gogen.Deps = 1 << iota
	onArea               // block_m and block_n
	onDepth              // block_k
	onLaunch             // the number of workgroups
	onAll     = onProblem | onArea | onDepth | onLaunch
)

var model = modelgen.Model{
	Package: "amdorigami", Terms: terms.Terms,
	Stages: []modelgen.Stage{
		{Var: "d", Type: "device", Args: "value func(name string) float64",
			Doc: "device holds what depends on the device alone. value returns the parameters and constants."},
		{Var: "n", Type: "depthTerms", Args: "d *device, p *inputs", Knows: onProblem | onDepth,
			Doc: "depthTerms holds what depends on the problem and block_k."},
		{Var: "a", Type: "areaTerms", Args: "d *device, p *inputs", Knows: onProblem | onArea,
			Doc: "areaTerms holds what depends on the problem, block_m and block_n."},
		{Var: "l", Type: "launchTerms", Args: "d *device, p *inputs, a *areaTerms", Knows: onProblem | onArea | onLaunch,
			Doc: "launchTerms holds what also depends on the number of workgroups."},
		{Var: "t", Type: "stepTerms", Args: "d *device, p *inputs, n *depthTerms, a *areaTerms, l *launchTerms", Knows: onAll,
			Doc: "stepTerms holds what depends on all."},
	},
	Inputs: []modelgen.Input{
		{By: terms.OfProblem, Names: "m n k batch element_bytes output_bytes", On: onProblem, Type: "inputs", Var: "p",
			Reach: gogen.Everywhere},
		{Names: "block_m block_n", On: onArea, Type: "areaTerms", Var: "a", Reach: gogen.Everywhere},
		{Names: "block_k", On: onDepth, Type: "depthTerms", Var: "n", Reach: gogen.Everywhere},
		{Names: "split_k", On: onAll, Type: "stepTerms", Var: "t", Reach: gogen.Everywhere},
		{By: terms.OfLaunch, On: onProblem | onArea | onLaunch, Type: "launchTerms", Var: "l", Reach: gogen.Everywhere},
		{By: terms.OfConfig, On: onAll, Type: "stepTerms", Var: "t", Reach: gogen.Everywhere},
	},
	Keep:    "total_latency l_compute l_mem l_mem1 l_mem2 l_mem3 hbm_traffic bw_limited",
	Columns: "d *device, p *inputs, n *depthTerms, a *areaTerms, l *launchTerms, t *stepTerms",
}

func main() { modelgen.Main(&model) }
