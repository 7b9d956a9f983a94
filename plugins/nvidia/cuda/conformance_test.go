//go:build cuda

package cuda

import (
	"testing"

	"github.com/origami-gemm/origami/sdk/conformance"
)

// The executor passes the conformance suite. Without a GPU the checks that need one are skipped.
func TestConformance(t *testing.T) {
	conformance.Executor(t, Provider{}, conformance.Options{})
}
