// Command gen writes the code of the model tensile, and the tables of its page, from the table of its terms. It runs in
// plugins/amd-ref/tensile, through go generate.
package main

import (
	"fmt"
	"strings"

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
	Package: "tensile", Terms: terms.Terms, Numbers: terms.Numbers(),
	Unused: []string{"lds_width"}, // a roof of the roofline
	Stages: []modelgen.Stage{
		{Var: "d", Type: "device", Args: "value func(name string) float64",
			Doc: "device holds what depends on the device alone. value returns the parameters, constants and quantities."},
		{Var: "t", Type: "timing", Args: "in *inputs, d *device", Knows: onKernel | onSizes,
			Doc: "timing holds what depends on the kernel and the problem."},
	},
	Inputs: []modelgen.Input{{
		By: terms.OfKernel, On: onKernel | onSizes, Type: "inputs", Var: "in", Reach: gogen.Own,
		Names: `m n k batch element_bytes output_bytes trans_a trans_b block_m block_n block_k num_warps num_stages split_k
			group_m stream_k local_split`,
	}},
	Keep: `total registers workgroups_per_cu matrix_step full_waves tail_count steps full_l2_step tail_l2_step far
		full_power_step tail_power_step dram_floor`,
	Columns: "d *device, in *inputs, t *timing",
	Page:    "../../../docs/model-tensile.md", Parts: parts,
}

func main() { modelgen.Main(&model) }

// parts returns the generated part of the page.
func parts() map[string]string {
	var b strings.Builder
	b.WriteString("\n## Quantities\n\n| quantity | unit | gfx900 | gfx90a | gfx942, gfx950 | bounds | what |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, q := range terms.Quantities {
		fmt.Fprintf(&b, "| `%s` | %s | %.4g | %.4g | %.4g | %.3g–%.3g | %s |\n",
			q.Name, q.Unit, q.Rungs[0].Value, q.Rungs[1].Value, q.Rungs[2].Value, q.Low, q.High, q.Doc)
	}
	b.WriteString("\n## Equations\n")
	for _, part := range terms.Parts {
		fmt.Fprintf(&b, "\n### %s%s\n%s", strings.ToUpper(part.Name[:1]), part.Name[1:],
			strings.TrimSuffix(modelgen.Equations(part.Terms), "\n"))
	}
	b.WriteString("\n")
	return map[string]string{"the tables": b.String()}
}
