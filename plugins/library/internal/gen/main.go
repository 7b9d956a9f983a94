// Command gen writes the code of the library model from the table of its terms. It runs in plugins/library, through
// go generate.
package main

import (
	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/plugins/library/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

// What a value can depend on, besides the machine.
const (
	onProblem gogen.Deps = 1 << iota
	onConfig
)

var model = modelgen.Model{
	Package: "library", Terms: terms.Terms,
	Stages: []modelgen.Stage{
		{Var: "d", Type: "device", Args: "value func(name string) float64",
			Doc: "device holds what depends on the machine alone. value returns its numbers, the constants and the quantities."},
		{Var: "p", Type: "problem", Args: "d *device", Doc: "problem holds what depends on the problem.", Knows: onProblem},
		{Var: "t", Type: "timing", Args: "d *device, p *problem", Doc: "timing holds what depends on the configuration.",
			Knows: onProblem | onConfig},
	},
	Inputs: []modelgen.Input{
		{By: terms.OfProblem, Names: "m n k batch element_bytes output_bytes trans_a trans_b", On: onProblem,
			Type: "problem", Var: "p", Reach: gogen.Everywhere},
		{By: terms.OfTiming, On: onConfig, Type: "timing", Var: "t", Reach: gogen.Everywhere},
		{Names: "block_m block_n block_k split_k", On: onConfig, Type: "timing", Var: "t", Reach: gogen.Everywhere},
	},
	Keep:    "total matrix l2 dram compute_floor dram_floor",
	Columns: "d *device, p *problem, t *timing",
}

func main() { modelgen.Main(&model) }
