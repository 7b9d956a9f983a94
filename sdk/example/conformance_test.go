package example_test

import (
	"testing"

	"github.com/origami-gemm/origami/sdk/conformance"
	"github.com/origami-gemm/origami/sdk/example"
)

func TestConformance(t *testing.T) {
	provider, err := example.Provider()
	if err != nil {
		t.Fatal(err)
	}
	conformance.Architecture(t, provider, conformance.Options{})
}
