package triton

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/internal/testing/must"
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
		reason, detail := (Family{}).Check(d, o, c, Family{}.Resources(d, o, c, false))
		must.That(t, reason == test.want, "%s: %q, %s, want %q", c, reason, detail, test.want)
		reason, detail = (Family{}).CheckTile(d, o, &c)
		must.That(t, reason == test.want, "tile of %s: %q, %s, want %q", c, reason, detail, test.want)
	}
}

// A tile whose sums do not fit into tensor memory is refused.
func TestTensorMemory(t *testing.T) {
	d := gputest.Device(t, gpu.SM100, "sm100-b200", nil)
	o := kernel.Operands{DType: gemm.BF16, Out: gemm.BF16, AMajor: gemm.MajorK, BMajor: gemm.MajorK}
	for rows, want := range map[int]arch.Reason{256: "", 512: arch.ReasonModelRule} {
		c := gemm.Config{BlockM: rows, BlockN: 256, BlockK: 32, NumWarps: 8, NumStages: 2, SplitK: 1, Kernel: "triton"}
		reason, detail := (Family{}).Check(d, o, c, Family{}.Resources(d, o, c, false))
		must.That(t, reason == want, "%s: %q, %s, want %q", c, reason, detail, want)
	}
}

// A winner of vLLM's table for Ada with five stages fits, and with seven it does not. The winners of all its tables are
// tried where their times are predicted.
func TestStagesThatFit(t *testing.T) {
	d := gputest.Device(t, gpu.SM89, "sm89-rtx4090", nil)
	c := gemm.Config{BlockM: 32, BlockN: 128, BlockK: 64, NumWarps: 4, NumStages: 5, SplitK: 1, Kernel: "triton"}
	o := kernel.Operands{DType: gemm.BF16, Out: gemm.BF16, AMajor: gemm.MajorK, BMajor: gemm.MajorK}
	if need := (Family{}).Resources(d, o, c, false); need.SharedMemory != 81_920 {
		t.Errorf("%s needs %d B of shared memory, want 81,920", c, int(need.SharedMemory))
	}
	c.NumStages = 7 // 122,880 B
	if reason, _ := (Family{}).Check(d, o, c, Family{}.Resources(d, o, c, false)); reason != arch.ReasonSharedMemory {
		t.Errorf("%s does not fit, but: %q", c, reason)
	}
}
