package formula

import (
	"regexp"

	"github.com/origami-gemm/origami/core/arch"
)

var identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// Unused returns the parameters of d that neither the formulas of its terms name nor the other formulas. Prose counts
// as a formula: a parameter that it names is used.
func Unused(d *arch.Description, other ...string) []string {
	named := map[string]bool{}
	add := func(f string) {
		for _, name := range identifier.FindAllString(f, -1) {
			named[name] = true
		}
	}
	for i := range d.Terms {
		add(d.Terms[i].Formula)
	}
	for _, f := range other {
		add(f)
	}
	var unused []string
	for i := range d.Params {
		if name := d.Params[i].Name; !named[name] {
			unused = append(unused, name)
		}
	}
	return unused
}
