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

// flatten is the axis of kernels whose loops over tiles and over K Triton runs as one.
const flatten = "flatten"

// Axes implements kernel.Family.
func (Persistent) Axes() []gemm.Axis {
	return []gemm.Axis{{Name: flatten, Type: gemm.Enumeration, Values: []string{"off", "on"}, Default: "off",
		Doc: "on: tl.range with flatten=True, as in vLLM's batch-invariant matmul: a tile begins while the one before is " +
			"stored, so that its copies and the output have shared memory of their own, and two tiles tensor memory"}}
}

// flattened reports whether a kernel begins a tile while it stores the one before.
func flattened(c *gemm.Config) bool {
	value, _ := c.Axes.Get(flatten)
	return value == "on"
}

var persistentTraits = kernel.Traits{Pastes: []string{"triton"}, Persistent: true}

// Traits implements kernel.Family.
func (Persistent) Traits() *kernel.Traits { return &persistentTraits }

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
	if columns := 2 * tensorColumns(d.SM, o.DType, &c); flattened(&c) && columns > d.SM.TensorMemory {
		return arch.ReasonModelRule, fmt.Sprintf("the sums of two tiles take %d columns of tensor memory, and an SM has %d",
			columns, d.SM.TensorMemory)
	}
	c.Axes = gemm.Axes{}
	return f.tiles.Check(d, o, c, need)
}

// Loop implements kernel.Family.
func (Persistent) Loop(d *gpu.Device, o kernel.Operands, c gemm.Config) kernel.Loop {
	loop := loopOf(d, &o, &c, serial(&o, &c))
	loop.Wraps = !flattened(&c) // vLLM's kernel reads the first row for all that are outside the matrix
	return loop
}
