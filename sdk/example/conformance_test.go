package example_test

import (
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/conformance"
	"github.com/origami-gemm/origami/sdk/example"
)

func TestConformance(t *testing.T) {
	provider := must.Get(example.Provider())(t)
	conformance.Architecture(t, provider, conformance.Options{})
}
