// Command gen writes the code of the library model from the table of its terms. It runs in plugins/library, through
// go generate.
package main

import (
	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/plugins/library/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

const (
	onProblem gogen.Deps = 1 << iota
	onConfig
)

var model = modelgen.Model{
	Package: "library", Terms: terms.Terms,
	Stages: []modelgen.Stage{
		{Var: "d", Type: "device"}, {Var: "p", Type: "problem", Knows: onProblem},
		{Var: "t", Type: "timing", Knows: onProblem | onConfig},
	},
	Inputs: []modelgen.Input{
		{By: terms.OfProblem, Names: "m n k batch element_bytes output_bytes trans_a trans_b", On: onProblem,
			Type: "problem", Var: "p"},
		{By: terms.NearProblem, On: onProblem, Type: "problem", Var: "p"},
		{By: terms.OfTiming, On: onConfig, Type: "timing", Var: "t"},
		{By: terms.Nearby, On: onConfig, Type: "timing", Var: "t"},
		{Names: "block_m block_n block_k split_k", On: onConfig, Type: "timing", Var: "t"},
	},
	Keep: "total matrix l2 dram compute_floor dram_floor",
}

func main() { modelgen.Main(&model) }
