package builtins

import (
	"testing"

	"github.com/origami-gemm/origami/sdk/conformance"
)

var known = map[string][]conformance.Known{
	"amd-ref": {{Check: "monotone-k", Contains: "gfx950@mi355x reference triton, 1000x3000x777 tf32",
		Why: "emulated tf32: the factor that the model reproduces drops from 0.5 to 0.4 at an arithmetic intensity that K decides"}},
}

// Every built-in plugin is what a plugin must be.
func TestConformance(t *testing.T) {
	for _, b := range Plugins {
		t.Run(b.Name, func(t *testing.T) {
			p, err := b.Provider()
			if err != nil {
				t.Fatal(err)
			}
			conformance.Architecture(t, p, conformance.Options{Known: known[b.Name]})
		})
	}
}
