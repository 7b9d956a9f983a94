package main

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

// What a value can depend on, besides the machine.
const (
	onProblem gogen.Deps = 1 << iota
	onConfig
)

// stages are the moments at which the model computes, with the struct for the results.
var stages = []struct {
	variable, kind, args, doc string
	knows                     gogen.Deps
}{
	{"d", "device", "value func(name string) float64",
		"device holds what depends on the machine alone. value returns its numbers, the constants and the quantities.", 0},
	{"p", "problem", "d *device", "problem holds what depends on the problem.", onProblem},
	{"t", "timing", "d *device, p *problem", "timing holds what depends on the configuration.", onProblem | onConfig},
}

// kept are the terms that the model's own code reads.
var kept = []string{"total", "matrix", "l2", "dram", "compute_floor", "dram_floor"}

// inputs are the names that are neither terms nor numbers, by the stage that has them as fields.
var inputs = map[string]string{
	"problem": "m n k batch element_bytes output_bytes trans_a trans_b",
	"timing":  "block_m block_n block_k split_k",
}

// plan gives all names and formulas to a new plan, and returns the fields that are set by hand, by struct.
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
	input := func(s int, name string) error {
		fields[stages[s].kind] = append(fields[stages[s].kind], name)
		on := onProblem
		if stages[s].kind == "timing" {
			on = onConfig
		}
		return p.Input(name, on, stages[s].variable+"."+gogen.Identifier(name), gogen.Everywhere)
	}
	for s := range stages {
		for _, name := range strings.Fields(inputs[stages[s].kind]) {
			if err := input(s, name); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, t := range terms.Terms {
		var err error
		if t.Formula != "" {
			err = p.Define(t.Name, t.Formula, "")
		} else if err = input(1, t.Name); err == nil {
			err = p.Show(t.Name)
		}
		if err != nil {
			return nil, nil, err
		}
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
		b.WriteString(p.Declare(i, s.doc, s.kind, s.args, fields[s.kind]))
	}
	b.WriteString(p.DeclareColumns("d *device, p *problem, t *timing"))
	return gogen.File("library", b.String())
}
