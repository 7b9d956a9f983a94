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

// Configurations that ran on a device and won there are not refused. The winners are of vLLM's tables (Apache-2.0):
// batch_invariant_configs.py, "ada", "hopper" and "blackwell", measured on an RTX 4090 D and an H20, and
// fused_moe/configs of the A100, the L40S and the B200, those with most shared memory.
func TestPublishedWinnersRun(t *testing.T) {
	type winner struct{ m, n, k, warps, stages int }
	for _, device := range []struct {
		sm      *gpu.SM
		file    string
		winners []winner
	}{
		{gpu.SM89, "sm89-rtx4090", []winner{
			{32, 128, 64, 4, 5}, {16, 128, 64, 8, 2}, {16, 64, 64, 8, 5}, {16, 128, 64, 4, 5}, {32, 256, 64, 4, 3},
			{128, 128, 64, 8, 3}, {128, 64, 64, 4, 4}, {128, 128, 64, 4, 3}, {16, 64, 128, 8, 4}, {16, 32, 128, 8, 4},
			{32, 64, 128, 4, 4}, {64, 64, 128, 4, 3}, {16, 256, 64, 8, 3}, {16, 32, 64, 4, 5}, {64, 64, 64, 4, 5},
			{128, 64, 64, 8, 4}, {16, 32, 64, 8, 5}, {32, 128, 64, 8, 5}, {16, 128, 64, 8, 5}, {64, 128, 64, 8, 4},
		}},
		{gpu.SM89, "sm89-l40s", []winner{
			{16, 32, 256, 4, 5}, {64, 256, 128, 16, 2}, {32, 32, 256, 4, 4}, {32, 64, 256, 4, 3}, {64, 128, 256, 8, 2},
			{64, 32, 128, 8, 5}, {64, 64, 128, 4, 4}, {64, 32, 256, 8, 3},
		}},
		{gpu.SM80, "sm80-a100-sxm4-80gb", []winner{
			{64, 256, 128, 8, 3}, {16, 64, 256, 8, 5}, {128, 256, 64, 8, 4}, {16, 128, 128, 8, 5}, {32, 256, 64, 4, 5},
			{32, 128, 256, 8, 3}, {32, 256, 128, 4, 3},
		}},
		{gpu.SM90, "sm90-h20", []winner{
			{16, 256, 128, 4, 4}, {32, 64, 128, 8, 5}, {128, 128, 128, 8, 3}, {128, 256, 128, 8, 2}, {64, 32, 128, 4, 5},
			{64, 64, 128, 4, 5}, {64, 128, 128, 4, 4}, {64, 256, 128, 4, 2}, {128, 64, 128, 4, 4},
		}},
		{gpu.SM90, "sm90-h200", []winner{{16, 256, 128, 8, 4}, {32, 64, 256, 4, 5}}},
		{gpu.SM100, "sm100-b200", []winner{
			{16, 256, 128, 8, 4}, {32, 256, 128, 8, 4}, {64, 256, 64, 8, 5}, {16, 64, 256, 4, 5}, {128, 256, 64, 8, 4},
			{128, 256, 64, 4, 4}, {128, 128, 128, 8, 3}, {256, 256, 64, 8, 3}, {256, 128, 64, 4, 4},
		}},
	} {
		d := gputest.Device(t, device.sm, device.file, nil)
		p := gemm.New(512, 4096, 8192)
		p.DType = gemm.BF16
		p.SetTrans(false, true)
		o := kernel.OperandsOf(&p)
		for _, w := range device.winners {
			c := gemm.Config{
				BlockM: w.m, BlockN: w.n, BlockK: w.k, NumWarps: w.warps, NumStages: w.stages, SplitK: 1, Kernel: "triton",
			}
			need := Family{}.Resources(d, o, c, false)
			reason, detail := (Family{}).Check(d, o, c, need)
			must.That(t, reason == "", "%s: %s: %s, %s", device.file, c, reason, detail)
		}
	}
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
