package builtins

import (
	"testing"

	"github.com/origami-gemm/origami/sdk/conformance"
)

// Every built-in plugin is what a plugin must be.
func TestConformance(t *testing.T) {
	for _, b := range Plugins {
		t.Run(b.Name, func(t *testing.T) {
			p, err := b.Provider()
			if err != nil {
				t.Fatal(err)
			}
			conformance.Architecture(t, p, conformance.Options{})
		})
	}
}
