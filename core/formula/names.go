package formula

import (
	"strings"
	"unicode"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
)

// Named returns the names in a formula, functions included: letters, digits and underscores that begin with no digit.
func Named(f string) (names []string) {
	for part := range strings.FieldsFuncSeq(f, func(c rune) bool {
		return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}) {
		if name := strings.TrimLeft(part, "0123456789"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

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
