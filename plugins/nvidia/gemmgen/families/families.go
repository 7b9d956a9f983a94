// Package families lists the kernel families that origami generates.
package families

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/wgmma"
)

// All returns the families. Where a device has several, the first is the fastest for the problems that it computes.
func All() []gemmgen.Family { return []gemmgen.Family{wgmma.Family{}, mma.Family{}, sgemm.Family{}} }
