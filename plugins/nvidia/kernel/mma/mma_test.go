package mma_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/mma"
)

// Copies follow from the size of an element, and from what the problem says about rows and addresses.
func TestCopies(t *testing.T) {
	c := gemm.Config{BlockM: 128, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 3, SplitK: 1, Kernel: "mma"}
	dense := gemm.New(512, 512, 512)
	with := func(change func(*gemm.Problem)) gemm.Problem { p := dense; change(&p); return p }
	d := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
	for _, test := range []struct {
		problem gemm.Problem
		want    kernel.Copies
	}{
		{dense, kernel.Copies{CountA: 8, CountB: 4, BytesA: 16, BytesB: 16}},
		{with(func(p *gemm.Problem) { p.K = 511 }), kernel.Copies{CountA: 64, CountB: 4, BytesA: 2, BytesB: 16}},
		{with(func(p *gemm.Problem) { p.LDB = 516 }), kernel.Copies{CountA: 8, CountB: 8, BytesA: 16, BytesB: 8}},
		{with(func(p *gemm.Problem) { p.K, p.LDA = 511, 512 }),
			kernel.Copies{CountA: 8, CountB: 4, BytesA: 16, BytesB: 16}},
		{with(func(p *gemm.Problem) { p.AlignA = 4 }), kernel.Copies{CountA: 32, CountB: 4, BytesA: 4, BytesB: 16}},
		{with(func(p *gemm.Problem) { p.DType = gemm.TF32 }),
			kernel.Copies{CountA: 16, CountB: 8, BytesA: 16, BytesB: 16}},
		{with(func(p *gemm.Problem) { p.DType = gemm.INT8; p.SetTrans(false, true) }),
			kernel.Copies{CountA: 4, CountB: 2, BytesA: 16, BytesB: 16}},
		{with(func(p *gemm.Problem) { p.DType = gemm.INT8 }), kernel.Copies{}}, // no such kernel
	} {
		f := mma.Family{}
		test.want.AsyncA, test.want.AsyncB = test.want.BytesA >= 4, test.want.BytesB >= 4
		must.Equal(t, f.Copies(d, kernel.OperandsOf(&test.problem).WithWidths(f, &test.problem), c), test.want, test.problem)
	}
}

// A K step waits for loads of a thread once per turn of eight, and not for asynchronous copies. Such kernels have no
// more registers for it.
func TestLoadWaits(t *testing.T) {
	c := gemm.Config{BlockM: 128, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 3, SplitK: 1, Kernel: "mma"}
	d := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
	registers := map[int]int{}
	for width, want := range map[int]int{16: 0, 8: 0, 4: 0, 2: 8} {
		o := kernel.Operands{DType: gemm.FP16, Out: gemm.FP16, BMajor: gemm.MajorN, WidthA: width, WidthB: 16}
		o.AMajor = gemm.MajorK
		got := (mma.Family{}).Loop(d, o, c).LoadWaits
		must.That(t, got == want, "copies of %d bytes: %d waits, want %d", width, got, want)
		registers[width] = mma.Family{}.Resources(d, o, c, false).Registers
	}
	must.That(t, registers[2] == registers[4] && registers[2] <= 255, "registers by width: %v", registers)
}

// Types whose operands are converted in registers cost instructions, on the devices that convert them.
func TestConversions(t *testing.T) {
	c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1, Kernel: "mma"}
	hopper := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
	ada := gputest.Device(t, gpu.SM89, "sm89-rtx4090", nil)
	for _, test := range []struct {
		d    *gpu.Device
		t    gemm.DType
		want int
	}{{hopper, gemm.FP16, 0}, {hopper, gemm.INT8, 0}, {hopper, gemm.TF32, 2}, {hopper, gemm.FP8, 2}, {ada, gemm.FP8, 0}} {
		o := kernel.Operands{DType: test.t, AMajor: gemm.MajorK, BMajor: gemm.MajorK}
		got := (mma.Family{}).Loop(test.d, o, c).Conversions
		must.That(t, got == test.want, "%s on %s: %d conversions, want %d", test.t, test.d.SM.ID, got, test.want)
	}
}

// A device has the types of its instructions.
func TestTypesByDevice(t *testing.T) {
	c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1, Kernel: "mma"}
	for _, types := range (mma.Family{}).Types() {
		for _, device := range []struct {
			sm   *gpu.SM
			file string
		}{{gpu.SM80, "sm80-a100-sxm4-80gb"}, {gpu.SM89, "sm89-rtx4090"}, {gpu.SM90, "sm90-h200"}} {
			d := gputest.Device(t, device.sm, device.file, nil)
			o := kernel.Operands{DType: types.In, Out: types.Out, AMajor: gemm.MajorK, BMajor: gemm.MajorK}
			reason, detail := mma.Family{}.Check(d, o, c, mma.Family{}.Resources(d, o, c, false))
			fp8 := types.In == gemm.FP8 || types.In == gemm.FP8E5M2
			if missing := fp8 && device.sm == gpu.SM80; (reason != "") != missing {
				t.Errorf("%s on %s: %q, %s", types, device.sm.ID, reason, detail)
			}
		}
	}
}

// What enoughStages stands on: on every device of the reference model, which sorts by it, three blocks of 64×64×32
// hold 1.7 times the bytes that DRAM has under way. On the H20-3e, where 78 SMs share 4.8 TB/s, they hold 1.4 times.
func TestFourStagesCoverTheLatency(t *testing.T) {
	const block = (64*32 + 32*64) * kernel.ElementBytes
	for _, request := range nvtest.Devices(t, "reference", "mma") {
		a := nvtest.Open(t, request)
		need := nvtest.Param(t, a, "hbm_latency_penalty").Value * nvtest.Param(t, a, "dram_perf_ratio").Value /
			nvtest.Param(t, a, "num_sms").Value
		const ahead = (mma.EnoughStages - 1) * block
		least := 1.7
		if a.Describe().Device == "h20-3e" {
			least = 1.4
		}
		if ahead < least*need || need < 1<<10 {
			t.Errorf("%s: %d bytes ahead, %.0f in flight", a.Describe().ID(), ahead, need)
		}
	}
}
