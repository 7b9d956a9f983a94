//go:build cuda

package cuda

import (
	"testing"

	"github.com/origami-gemm/origami/sdk/conformance"
)

// The executor is what an executor must be; without a GPU, as far as that can be told.
func TestConformance(t *testing.T) {
	conformance.Executor(t, Provider{}, conformance.Options{})
}
