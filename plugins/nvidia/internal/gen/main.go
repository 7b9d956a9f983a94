// Command gen writes the code of a model from the table of its terms. It runs in the folder of the model, through go
// generate.
package main

import (
	"github.com/origami-gemm/origami/core/formula/gogen"
	fusedmoe "github.com/origami-gemm/origami/plugins/nvidia/fusedmoe/terms"
	pin "github.com/origami-gemm/origami/plugins/nvidia/pin/terms"
	pipelined "github.com/origami-gemm/origami/plugins/nvidia/pipelined/terms"
	sgemm "github.com/origami-gemm/origami/plugins/nvidia/sgemm/terms"
	tritonblas "github.com/origami-gemm/origami/plugins/nvidia/tritonblas/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

const (
	onProblem gogen.Deps = 1 << iota
	onKernel
	onVariant
	onSplit
	onGroup
	onArea
	onDepth
)

var models = []*modelgen.Model{
	{
		Package: "pipelined", Terms: pipelined.Terms,
		Stages: []modelgen.Stage{
			{Var: "d", Type: "device"},
			{Var: "s", Type: "sizes", Knows: onProblem},
			{Var: "k", Type: "kernelTerms", Knows: onKernel},
			{Var: "v", Type: "variantTerms", Knows: onKernel | onVariant},
			{Var: "c", Type: "splitTerms", Knows: onKernel | onVariant | onSplit},
			{Var: "g", Type: "gridTerms", Knows: onProblem | onKernel | onGroup},
			{Var: "t", Type: "timing", Knows: onProblem | onKernel | onVariant | onSplit | onGroup},
		},
		Inputs: []modelgen.Input{
			{By: pipelined.OfProblem, Names: "m n k batch", On: onProblem, Type: "sizes", Var: "s"},
			{By: pipelined.OfKernel, On: onKernel, Type: "kernelInputs", Var: "in", Own: true,
				Names: "element_bytes output_bytes trans_a trans_b block_m block_n block_k num_warps num_stages"},
			{By: pipelined.OfVariant, On: onKernel | onVariant, Type: "variantInputs", Var: "in", Own: true},
			{Names: "split_k", On: onSplit, Type: "splitInputs", Var: "in", Own: true},
			{Names: "group_m", On: onGroup, Type: "kernelTerms", Var: "k"},
			{By: pipelined.OfGroups, On: onProblem | onKernel, Type: "sizes", Var: "s"},
		},
		Keep: `total all_waves power dram_floor compute_floor full_waves tail_ctas ctas_of_sm ctas_per_sm steps tensor_step
			l2_step repeat_step spill_l2_step full_spill_dram_step tail_spill_dram_step`,
		Apart: &modelgen.Function{Name: "least", Doc: "least is a time that the total is not below.",
			Formula: pipelined.Least},
	},
	{
		Package: "sgemm", Terms: sgemm.Terms,
		Stages: []modelgen.Stage{
			{Var: "d", Type: "device"},
			{Var: "p", Type: "problem", Knows: onProblem},
			{Var: "k", Type: "kernelTerms", Knows: onKernel},
			{Var: "t", Type: "timing", Knows: onProblem | onKernel},
		},
		Inputs: []modelgen.Input{
			{Names: "m n k batch output_bytes", On: onProblem, Type: "problem", Var: "p"},
			{By: sgemm.OfKernel, Names: "block_m block_n block_k num_warps group_m split_k", On: onKernel, Type: "inputs",
				Var: "in", Own: true},
			{By: sgemm.OfLines, On: onProblem | onKernel, Type: "timing", Var: "t"},
		},
		Keep: "total load_issue_step fma_step tensor_step issue_step l2_step dram_step waiting_step",
	},
	{
		Package: "tritonblas", Terms: tritonblas.Terms,
		Stages: []modelgen.Stage{
			{Var: "d", Type: "device"},
			{Var: "k", Type: "kernelTerms", Knows: onArea | onDepth},
			{Var: "g", Type: "gridTerms", Knows: onProblem | onArea},
			{Var: "n", Type: "depthTerms", Knows: onProblem | onDepth},
			{Var: "t", Type: "timing", Knows: onProblem | onArea | onDepth},
		},
		Inputs: []modelgen.Input{
			{Names: "m n k batch", On: onProblem, Type: "sizes", Var: "s"},
			{Names: "block_m block_n", On: onArea, Type: "kernelTerms", Var: "k"},
			{Names: "block_k element_bytes output_bytes", On: onDepth, Type: "kernelTerms", Var: "k"},
			{By: tritonblas.OfGrid, On: onProblem | onArea, Type: "gridTerms", Var: "g"},
			{By: tritonblas.OfKernel, On: onProblem | onArea | onDepth, Type: "timing", Var: "t"},
		},
		Keep: "l_total l_compute l_mem l_l2 l_dram load_dram limited_dram_bw",
	},
	{
		Package: "fusedmoe", Terms: fusedmoe.Terms,
		Stages: []modelgen.Stage{{Var: "d", Type: "device"}, {Var: "t", Type: "timing", Knows: onKernel}},
		Inputs: []modelgen.Input{{
			By: fusedmoe.OfConfig, On: onKernel, Type: "timing", Var: "t",
			Names: "n k element_bytes output_bytes block_m block_n block_k num_warps num_stages",
		}},
		Keep: "total",
	},
	{
		Package: "pin", Terms: pin.Terms,
		Stages: []modelgen.Stage{{Var: "d", Type: "device"}, {Var: "t", Type: "timing", Knows: onKernel}},
		Inputs: []modelgen.Input{{By: pin.OfKernel, On: onKernel, Type: "timing", Var: "t"}},
		Keep: `total programs_of_sm programs_per_sm issue schedulers special_step shared_step tensor_step
			sync_step l2_step latency dram`,
	},
}

func main() { modelgen.Main(models...) }
