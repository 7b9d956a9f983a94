package triton

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// Every model rejects a configuration that Triton cannot compile or launch.
func TestCheckShape(t *testing.T) {
	d := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
	o := kernel.Operands{DType: gemm.FP16}
	good := gemm.Config{BlockM: 128, BlockN: 128, BlockK: 64, NumWarps: 4, NumStages: 3, SplitK: 1}
	with := func(change func(*gemm.Config)) gemm.Config {
		c := good
		change(&c)
		return c
	}
	for _, test := range []struct {
		config gemm.Config
		want   arch.Reason
	}{
		{good, ""},
		{with(func(c *gemm.Config) { c.BlockM, c.BlockN, c.BlockK = 3, 5, 7 }), arch.ReasonAtomShape},
		{with(func(c *gemm.Config) { c.BlockN = 100 }), arch.ReasonAtomShape},
		{with(func(c *gemm.Config) { c.BlockK = 8 }), arch.ReasonAtomShape},
		{with(func(c *gemm.Config) { c.NumWarps = 3 }), arch.ReasonWarps},
		{with(func(c *gemm.Config) { c.NumWarps = 64 }), arch.ReasonWarps},
		{with(func(c *gemm.Config) { c.NumWarps = 1 }), ""},
	} {
		c := test.config
		if reason, detail := (Family{}).Check(d, o, c, Family{}.Resources(d, o, c, false)); reason != test.want {
			t.Errorf("%s: %q, %s, want %q", c, reason, detail, test.want)
		}
		if reason, detail := (Family{}).CheckTile(d, o, &c); reason != test.want {
			t.Errorf("tile of %s: %q, %s, want %q", c, reason, detail, test.want)
		}
	}
}
