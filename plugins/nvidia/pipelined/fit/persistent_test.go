//go:build !race

package fit_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
)

// What is shipped of the persistent kernel of Triton is what the fit finds on an H100 from the middle of the bounds.
func TestPersistentShippedIsTheFit(t *testing.T) {
	const set = "h100-persistent"
	e, _ := openSetsOn(t, arch.OpenRequest{Arch: "sm90", Device: "h100"}, set, []string{set + "/h100-fit"})
	e.checkShipped(t)
}
