// Package families lists the kernel families that origami generates.
package families

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/wgmma"
)

// All returns the families.
func All() []gemmgen.Family { return []gemmgen.Family{mma.Family{}, wgmma.Family{}} }
