package mma_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/gputest"
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
		if got := f.Copies(d, kernel.OperandsOf(&test.problem).WithWidths(f, &test.problem), c); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.problem, got, test.want)
		}
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
