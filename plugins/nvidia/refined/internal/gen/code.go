package main

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/plugins/nvidia/refined/terms"
)

// What a value can depend on, besides the device.
const (
	onSizes   gogen.Deps = 1 << iota // M, N, K and the batch
	onKernel                         // the configuration, the layout and the type of the operands
	onVariant                        // whether loads are masked along K
	onSplit                          // split_k: a list has the same kernel with several
	onGroup                          // the launch order, of which several are tried for one kernel
)

// stages are the moments at which the model computes, with the struct for the results. inputs is the struct for what
// is set by hand, which is kept no longer than the stage takes.
var stages = []struct {
	variable, kind, inputs, args, doc string
	knows                             gogen.Deps
}{
	{"d", "device", "", "value func(name string) float64",
		"device holds what depends on the device alone. value returns the parameters, constants and quantities.", 0},
	{"s", "sizes", "", "", "sizes holds what depends on the sizes of the problem alone.", onSizes},
	{"k", "kernelTerms", "kernelInputs", "in *inputs, d *device",
		"kernelTerms holds what depends on the kernel, and not on the split of K or the sizes of the problem.", onKernel},
	{"v", "variantTerms", "variantInputs", "in *inputs, d *device, k *kernelTerms",
		"variantTerms holds what depends on the kernel and on whether its loads are masked along K.",
		onKernel | onVariant},
	{"c", "splitTerms", "splitInputs", "in *inputs, d *device, k *kernelTerms, v *variantTerms",
		"splitTerms holds what depends on the kernel, the variant and the split of K.", onKernel | onVariant | onSplit},
	{"g", "gridTerms", "", "d *device, s *sizes, k *kernelTerms",
		"gridTerms holds what depends on the kernel and the problem, and not on the split of K.",
		onSizes | onKernel | onGroup},
	{"t", "timing", "", "d *device, s *sizes, k *kernelTerms, v *variantTerms, c *splitTerms, g *gridTerms",
		"timing holds what depends on all.", onSizes | onKernel | onVariant | onSplit | onGroup},
}

// kept are the terms that the model's own code reads.
var kept = []string{
	"total", "all_waves", "power", "dram_floor", "compute_floor", "full_waves", "tail_ctas", "ctas_of_sm", "ctas_per_sm",
	"steps", "tensor_step",
	"l2_step", "repeat_step", "spill_l2_step", "full_spill_dram_step", "tail_spill_dram_step",
}

// inputs are the names that are neither terms nor numbers of the device. Code is where stages find them.
var inputs = []struct {
	names string
	on    gogen.Deps
	code  string
	reach gogen.Reach
}{
	{"m n k batch", onSizes, "s.", gogen.Everywhere},
	{"element_bytes output_bytes trans_a trans_b", onKernel, "in.", gogen.Own},
	{"block_m block_n block_k num_warps num_stages", onKernel, "in.", gogen.Own},
	{"split_k", onSplit, "in.", gogen.Own},
	{"group_m", onGroup, "k.", gogen.Everywhere},
}

// plan gives all names and formulas to a new plan, and returns the inputs that are set by hand, by struct.
func plan() (*gogen.Plan, map[string][]string, error) {
	list := make([]gogen.Stage, len(stages))
	for i, s := range stages {
		list[i] = gogen.Stage{Var: s.variable, Knows: s.knows}
	}
	p := gogen.New(list...)
	for _, name := range terms.Numbers() {
		if err := p.Input(name, 0, fmt.Sprintf("value(%q)", name), gogen.Once); err != nil {
			return nil, nil, err
		}
	}
	fields := map[string][]string{}
	for _, in := range inputs {
		for _, name := range strings.Fields(in.names) {
			kind := map[gogen.Deps]string{
				onSizes: "sizes", onKernel: "kernelInputs", onSplit: "splitInputs", onGroup: "kernelTerms",
			}[in.on]
			fields[kind] = append(fields[kind], name)
			if err := p.Input(name, in.on, in.code+gogen.Identifier(name), in.reach); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, t := range terms.Terms {
		var err error
		switch t.Input {
		case terms.OfKernel:
			fields["kernelInputs"] = append(fields["kernelInputs"], t.Name)
			err = p.Input(t.Name, onKernel, "in."+gogen.Identifier(t.Name), gogen.Own)
		case terms.OfVariant:
			fields["variantInputs"] = append(fields["variantInputs"], t.Name)
			err = p.Input(t.Name, onKernel|onVariant, "in."+gogen.Identifier(t.Name), gogen.Own)
		case terms.OfProblem:
			fields["sizes"] = append(fields["sizes"], t.Name)
			err = p.Input(t.Name, onSizes, "s."+gogen.Identifier(t.Name), gogen.Everywhere)
		case terms.OfGroups:
			fields["sizes"] = append(fields["sizes"], t.Name)
			err = p.Input(t.Name, onSizes|onKernel, "s."+gogen.Identifier(t.Name), gogen.Everywhere)
		default:
			err = p.Define(t.Name, t.Formula, t.When)
		}
		if err == nil && t.Input != terms.Computed {
			err = p.Show(t.Name)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if err := p.Apart("least", terms.Least); err != nil {
		return nil, nil, err
	}
	return p, fields, p.Keep(kept...)
}

// code writes the model as Go.
func code() ([]byte, error) {
	p, fields, err := plan()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, s := range stages {
		if s.inputs != "" {
			b.WriteString(gogen.Inputs(s.inputs, fields[s.inputs]))
		}
		b.WriteString(p.Declare(i, s.doc, s.kind, s.args, fields[s.kind]))
	}
	fmt.Fprintf(&b, "\n// least is a time that the total is not below.\n"+
		"func least(d *device, s *sizes, k *kernelTerms, v *variantTerms, c *splitTerms, g *gridTerms) float64 {\n%s}\n",
		p.Alone("least"))
	b.WriteString(p.DeclareColumns("d *device, s *sizes, in *inputs, k *kernelTerms, v *variantTerms, c *splitTerms,\n" +
		"\tg *gridTerms, t *timing"))
	return gogen.File("refined", b.String())
}
