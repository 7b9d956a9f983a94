package example_test

import (
	"testing"

	"github.com/origami-gemm/origami/sdk/conformance"
	"github.com/origami-gemm/origami/sdk/example"
)

func TestConformanceOfSimulator(t *testing.T) {
	conformance.Executor(t, example.Simulator{}, conformance.Options{})
}
