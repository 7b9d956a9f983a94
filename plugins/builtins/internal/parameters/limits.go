package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
)

// limits are what can keep a kernel of tensile from the peak, each with a formula over the model's terms: what the
// whole launch needs of it, or how much of it there is.
var limits = [...]struct{ name, formula string }{
	{"LDS", "lds_total"}, {"L1 and L2", "l2_total"}, {"MALL or DRAM", "far"},
	{"latency of a step", "chain_step / matrix_step"}, {"work-groups of a CU", "workgroups_per_cu"},
	{"work-groups of the device", "workgroups"}, {"last wave", "when(even > 0, 0, waves - full_waves)"},
	{"power", "requested"}, {"another launch", "reduction"}, {"padding", "matrix_step * steps * workgroups"},
}

// limitsTable writes for every axis of tensile which limits it moves, found by changing it alone in every kernel of an
// MI300X, and of a Vega 10, which has the local split.
func limitsTable(tensile family) (string, error) {
	found := map[string][]bool{}
	for _, r := range []arch.OpenRequest{
		{Arch: "gfx942", Kernel: "tensile", Options: map[string]string{"release": "early"}},
		{Arch: "gfx900", Kernel: "tensile"},
	} {
		a, err := open(r)
		if err != nil {
			return "", err
		}
		p := gemm.New(4095, 4095, 4096)
		list, err := a.Candidates(context.Background(), p, arch.Space{})
		if err != nil {
			return "", err
		}
		var configs []gemm.Config
		for _, group := range []int{1, 8} {
			for _, c := range list.Configs {
				c.GroupM = group
				configs = append(configs, c)
			}
		}
		d := a.Describe()
		rows := make([]float64, len(configs)*len(d.Terms))
		if err := a.Terms(context.Background(), rows, p, configs); err != nil {
			return "", err
		}
		needs := make([][len(limits)]float64, len(configs))
		for i, c := range configs {
			values := formula.Values(d, p, c, rows[i*len(d.Terms):][:len(d.Terms)])
			for k := range limits {
				if needs[i][k], err = formula.Eval(limits[k].formula, values); err != nil {
					return "", err
				}
			}
		}
		for _, axis := range tensile.axes {
			if found[axis.name] == nil {
				found[axis.name] = make([]bool, len(limits))
			}
			first := map[gemm.Config]int{}
			for i, c := range configs {
				like := without(c, axis.name)
				was, seen := first[like]
				if !seen {
					first[like] = i
					continue
				}
				for k := range limits {
					found[axis.name][k] = found[axis.name][k] || needs[i][k] != needs[was][k]
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString("\n| tensile's |")
	for _, l := range limits {
		b.WriteString(" " + l.name + " |")
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(limits)) + "\n")
	for _, axis := range tensile.axes {
		if slices.Contains(found[axis.name], true) {
			fmt.Fprintf(&b, "| `%s` |%s\n", axis.name, marks(found[axis.name]))
		}
	}
	return b.String() + "\n", nil
}
