package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/formula/page"
	"github.com/origami-gemm/origami/core/tabled"
	"github.com/origami-gemm/origami/plugins/library/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

// parts returns the generated parts of the page.
func parts() map[string]string {
	parts := map[string]string{"numbers": numbers(), "quantities": quantities()}
	for _, p := range terms.Parts {
		parts["terms of "+p.Name] = modelgen.Equations(p.Terms)
	}
	return parts
}

// numbers lists the numbers of the machine.
func numbers() string {
	var b strings.Builder
	b.WriteString("\n| number | unit | what |\n| --- | --- | --- |\n")
	for _, n := range slices.Concat(terms.Machine, terms.Condition) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", n.Name, n.Unit, n.Doc)
	}
	return b.String() + "\n"
}

// quantities lists them with their bounds, those that each type has values of once.
func quantities() string {
	var b strings.Builder
	b.WriteString("\n| quantity | unit | bounds | what |\n| --- | --- | --- | --- |\n")
	rows := func(list []tabled.Quantity, suffix string) {
		for i := range list {
			q := &list[i]
			fmt.Fprintf(&b, "| `%s` | %s | %s–%s | %s |\n",
				q.Name+suffix, q.Unit, number(q.Low), number(q.High), q.Doc)
		}
	}
	rows(terms.OfType, "_T")
	rows(terms.OfMachine, "")
	return b.String() + "\n"
}

func number(v float64) string { return page.Number(v, 4) }
