// Command gen writes the code of a model from the table of its terms. It runs in the folder of the model, through go
// generate.
package main

import (
	"github.com/origami-gemm/origami/core/formula/gogen"
	amdorigami "github.com/origami-gemm/origami/plugins/amd-ref/amd-origami/terms"
	tensile "github.com/origami-gemm/origami/plugins/amd-ref/tensile/terms"
	triton "github.com/origami-gemm/origami/plugins/amd-ref/triton/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

const (
	onProblem gogen.Deps = 1 << iota
	onKernel
	onArea
	onDepth
	onLaunch
	onAll = onProblem | onArea | onDepth | onLaunch
)

var models = []*modelgen.Model{
	{
		Package: "tensile", Terms: tensile.Terms,
		Stages: []modelgen.Stage{
			{Var: "d", Type: "device"},
			{Var: "s", Type: "sizes", Knows: onProblem},
			{Var: "k", Type: "kernelTerms", Knows: onKernel},
			{Var: "t", Type: "timing", Knows: onKernel | onProblem},
		},
		Inputs: []modelgen.Input{
			{By: tensile.OfRelease, Names: "m n k batch", On: onProblem, Type: "sizes", Var: "s"},
			{
				By: tensile.OfKernel, On: onKernel, Type: "inputs", Var: "in", Own: true,
				Names: `element_bytes output_bytes trans_a trans_b block_m block_n block_k num_warps num_stages split_k group_m
					stream_k local_split`,
			},
		},
		Keep: `total registers workgroups_per_cu matrix_step full_waves tail_count steps full_l2_step tail_l2_step far
			full_power_step tail_power_step dram_floor`,
	},
	{
		Package: "amdorigami", Terms: amdorigami.Terms,
		Stages: []modelgen.Stage{
			{Var: "d", Type: "device"},
			{Var: "n", Type: "depthTerms", Knows: onProblem | onDepth},
			{Var: "a", Type: "areaTerms", Knows: onProblem | onArea},
			{Var: "l", Type: "launchTerms", Knows: onProblem | onArea | onLaunch},
			{Var: "t", Type: "stepTerms", Knows: onAll},
		},
		Inputs: []modelgen.Input{
			{By: amdorigami.OfProblem, Names: "m n k batch element_bytes output_bytes", On: onProblem, Type: "inputs",
				Var: "p"},
			{Names: "block_m block_n", On: onArea, Type: "areaTerms", Var: "a"},
			{Names: "block_k", On: onDepth, Type: "depthTerms", Var: "n"},
			{Names: "split_k", On: onAll, Type: "stepTerms", Var: "t"},
			{By: amdorigami.OfLaunch, On: onProblem | onArea | onLaunch, Type: "launchTerms", Var: "l"},
			{By: amdorigami.OfConfig, On: onAll, Type: "stepTerms", Var: "t"},
		},
		Keep: "total_latency l_compute l_mem l_mem1 l_mem2 l_mem3 hbm_traffic bw_limited",
	},
	{
		Package: "triton", Terms: triton.Terms,
		Stages: []modelgen.Stage{{Var: "d", Type: "device"}, {Var: "t", Type: "timing", Knows: onKernel}},
		Inputs: []modelgen.Input{{
			By: triton.OfConfig, On: onKernel, Type: "timing", Var: "t",
			Names: `n k element_bytes output_bytes trans_a trans_b block_m block_n block_k num_warps num_stages group_m`,
		}},
		Keep: `total registers buffers tile_bytes workgroups_per_cu full_waves tail_count rest steps matrix_step scale_step
			l2_misses dram`,
	},
}

func main() { modelgen.Main(models...) }
