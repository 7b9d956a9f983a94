package triton

import (
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// Persistent is the family of a persistent kernel: the launch has no more CTAs than SMs, and a CTA computes one tile
// after another. A tile begins when the one before it is stored. A tile is computed as in Family.
type Persistent struct{ tiles }

// Name implements kernel.Family.
func (Persistent) Name() string { return "triton_persistent" }

// Persistent implements kernel.Persistent.
func (Persistent) Persistent() {}

// Pastes implements kernel.Family.
func (Persistent) Pastes() []string { return []string{"triton"} }

// Groups implements kernel.Family.
func (Persistent) Groups() bool { return false }

// Space implements kernel.Family.
func (f Persistent) Space() arch.Space {
	s := Family{}.Space()
	s.Kernel, s.SplitK = f.Name(), []int{1}
	return s
}

// Check implements kernel.Family.
func (f Persistent) Check(
	d *gpu.Device, o kernel.Operands, c gemm.Config, need kernel.Resources,
) (arch.Reason, string) {
	if c.SplitK > 1 {
		return arch.ReasonModelRule, fmt.Sprintf("split_k is %d, and the CTAs of %s share no tile", c.SplitK, f.Name())
	}
	return f.tiles.Check(d, o, c, need)
}

// Loop implements kernel.Family.
func (Persistent) Loop(d *gpu.Device, o kernel.Operands, c gemm.Config) kernel.Loop {
	return loopOf(d, &o, &c, serial(&o, &c))
}
