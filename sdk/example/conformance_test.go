package example_test

import (
	"testing"

	"github.com/origami-gemm/origami/sdk/conformance"
	"github.com/origami-gemm/origami/sdk/example"
)

func TestConformance(t *testing.T) {
	conformance.Architecture(t, example.Provider{}, conformance.Options{})
}
