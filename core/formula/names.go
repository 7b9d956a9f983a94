package formula

import (
	"regexp"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
)

var identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// Named returns the names in a formula, functions included.
func Named(f string) []string { return identifier.FindAllString(f, -1) }

// Unused returns the parameters that none of the formulas names. A parameter that prose names is used, too.
func Unused(params hw.Set, formulas []string) []string {
	named := map[string]bool{}
	for _, f := range formulas {
		for _, name := range Named(f) {
			named[name] = true
		}
	}
	var unused []string
	for i := range params {
		if name := params[i].Name; !named[name] {
			unused = append(unused, name)
		}
	}
	return unused
}

// Of returns the formulas of terms.
func Of(terms []arch.Term) []string {
	formulas := make([]string, len(terms))
	for i := range terms {
		formulas[i] = terms[i].Formula
	}
	return formulas
}
