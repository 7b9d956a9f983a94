package triton

import (
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// built is a kernel as Triton and ptxas built it, a row of testdata/types.csv.
type built struct {
	target           int
	problem          gemm.Problem
	config           gemm.Config
	shared           bool   // the matrix instruction has its operands in shared memory
	columns          int    // of tensor memory
	async, loads     string // as 8x16: eight of 16 bytes
	registers, words int
	sharedBytes      int
}

func readBuilt(t *testing.T) (list []built) {
	t.Helper()
	for _, cell := range csvtest.Named(t, "testdata/types.csv") {
		number := func(name string) int { return csvtest.Int(t, cell, name) }
		p := gemm.New(4096, 4096, 4096)
		p.SetTrans(number("trans_a") == 1, number("trans_b") == 1)
		p.DType, p.Out = must.Get(gemm.ParseDType(cell["dtype"]))(t), must.Get(gemm.ParseOutput(cell["out_dtype"]))(t)
		p.LDA, p.LDB = number("lda"), number("ldb")
		list = append(list, built{
			target: number("target"), problem: p.Canonical(),
			config: gemm.Config{
				BlockM: number("bm"), BlockN: number("bn"), BlockK: number("bk"), NumStages: number("stages"),
				NumWarps: number("warps"), SplitK: 1, Kernel: "triton",
			},
			shared:  strings.HasPrefix(cell["instruction"], "wgmma") || strings.HasPrefix(cell["instruction"], "tcgen05"),
			columns: number("tensor_columns"), async: cell["async"], loads: cell["loads"],
			registers: number("n_regs"), words: number("n_spills"), sharedBytes: number("shared"),
		})
	}
	return list
}

// loads writes the copies of a kernel as types.csv has them: each asynchronous copy of a K step once per stage, in
// front of the loop and inside. With tcgen05.mma, the loop begins one step later.
func loads(k kernel.Copies, stages, columns int) (async, loads string) {
	later := min(columns, 1)
	counts := map[bool]map[int]int{true: {}, false: {}}
	counts[k.AsyncA][k.BytesA] += k.CountA
	counts[k.AsyncB][k.BytesB] += k.CountB
	text := func(async bool, times int) string {
		var parts []string
		for _, bytes := range []int{1, 2, 4, 8, 16} {
			if n := counts[async][bytes]; n > 0 {
				parts = append(parts, strconv.Itoa(n*times)+"x"+strconv.Itoa(bytes))
			}
		}
		return strings.Join(parts, " ")
	}
	return text(true, stages+later), text(false, 1+later)
}

// What the family says of the loads of a kernel is what Triton compiles, for every type, layout and alignment, and so
// is its shared memory. The registers are near, although no constant was chosen for these kernels.
func TestTypes(t *testing.T) {
	devices := map[int]*gpu.Device{
		80: gputest.Device(t, gpu.SM80, "sm80-a100-sxm4-80gb", nil),
		90: gputest.Device(t, gpu.SM90, "sm90-h200", nil),

		100: gputest.Device(t, gpu.SM100, "sm100-b200", nil),
		103: gputest.Device(t, gpu.SM103, "sm103-b300", nil),
	}
	f := Family{}
	all := readBuilt(t)
	near, operands := 0, 0
	for _, b := range all {
		d := devices[b.target]
		o := kernel.OperandsOf(&b.problem).WithWidths(f, &b.problem)
		async, plain := loads(f.Copies(d, o, b.config), b.config.NumStages, b.columns)
		if async != b.async || plain != b.loads {
			t.Errorf("sm%d %s %s: copies %q and loads %q, compiled %q and %q", b.target, b.problem, b.config, async, plain,
				b.async, b.loads)
		}
		loop := f.Loop(d, o, b.config)
		if b.columns == 2*loop.TensorMemory && b.columns > 0 {
			operands++ // A is in tensor memory too: tf32 that nothing loads in rows
			continue
		}
		must.That(t, loop.WGMMA == b.shared && loop.TensorMemory == b.columns && (loop.LoadWaits > 0) == (b.loads != ""),
			"sm%d %s %s: %+v", b.target, b.problem, b.config, loop)
		r := f.Resources(d, o, b.config, false)
		must.That(t, int(r.SharedMemory) == b.sharedBytes,
			"sm%d %s %s: %d B of shared memory, compiled %d", b.target, b.problem, b.config, int(r.SharedMemory), b.sharedBytes)
		if diff := r.Registers - b.registers; max(diff, -diff) <= 32 {
			near++
		} else {
			t.Logf("sm%d %s %s: %d registers, compiled %d", b.target, b.problem, b.config, r.Registers, b.registers)
		}
		must.That(t, r.SpillBytes == 0,
			"sm%d %s %s: spills %d B, compiled %d words", b.target, b.problem, b.config, r.SpillBytes, b.words)
	}
	must.That(t, operands <= 2, "%d kernels have an operand in tensor memory", operands)
	must.Hold(t, len(all) >= 200 && near*10 >= len(all)*9, "%d of %d within 32 registers", near, len(all))
}

// Triton knows of a number only whether 16 divides it.
func TestWidth(t *testing.T) {
	dense := gemm.New(512, 256, 1024)
	with := func(change func(*gemm.Problem)) gemm.Problem { p := dense; change(&p); return p }
	for _, test := range []struct {
		problem gemm.Problem
		want    [3]int
	}{
		{dense, [3]int{16, 16, 16}},
		{with(func(p *gemm.Problem) { p.K = 1000 }), [3]int{2, 16, 16}}, // 8 divides it
		{with(func(p *gemm.Problem) { p.N = 250 }), [3]int{16, 2, 2}},
		{with(func(p *gemm.Problem) { p.M = 250 }), [3]int{16, 16, 16}},
		{with(func(p *gemm.Problem) { p.M = 250; p.SetTrans(true, false) }), [3]int{2, 16, 16}},
		{with(func(p *gemm.Problem) { p.LDA, p.LDC = 1032, 264 }), [3]int{2, 16, 2}},
		{with(func(p *gemm.Problem) { p.LDA, p.LDC = 1040, 272 }), [3]int{16, 16, 16}},
		{with(func(p *gemm.Problem) { p.N, p.LDB, p.LDC = 250, 256, 256 }), [3]int{16, 2, 2}}, // the length counts too
		{with(func(p *gemm.Problem) { p.AlignA, p.AlignB = 8, 2 }), [3]int{2, 2, 16}},
		{with(func(p *gemm.Problem) { p.DType, p.K = gemm.TF32, 1001 }), [3]int{4, 16, 16}},
		{with(func(p *gemm.Problem) { p.DType, p.N = gemm.FP8, 255 }), [3]int{16, 1, 2}},
	} {
		for o := gemm.A; o <= gemm.C; o++ {
			if got := (Family{}).Width(test.problem, o); got != test.want[o] {
				t.Errorf("%s: %s by %d bytes, want %d", test.problem, o, got, test.want[o])
			}
		}
	}
}

// A split of K costs a matrix of sums per part, and a second launch.
func TestReduction(t *testing.T) {
	p := gemm.New(100, 200, 4096)
	c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 3, SplitK: 1, Kernel: "triton"}
	got := (Family{}).Reduction(p, c)
	must.That(t, got == (kernel.Reduction{}), "without a split: %+v", got)
	c.SplitK = 4
	want := kernel.Reduction{Workspace: 4 * 4 * 100 * 200, Launches: 1}
	must.Equal(t, (Family{}).Reduction(p, c), want, "split")
	d := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
	o := kernel.OperandsOf(&p)
	reason, detail := (Family{}).Check(d, o, c, Family{}.Resources(d, o, c, false))
	must.That(t, reason == "", "split: %s, %s", reason, detail)
}

// A type is refused where Triton does not compile it.
func TestTypesByDevice(t *testing.T) {
	c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 32, NumWarps: 4, NumStages: 2, SplitK: 1, Kernel: "triton"}
	for _, types := range (Family{}).Types() {
		for _, device := range []struct {
			sm   *gpu.SM
			file string
		}{{gpu.SM86, "sm86-rtx3090"}, {gpu.SM89, "sm89-rtx4090"}} {
			d := gputest.Device(t, device.sm, device.file, nil)
			o := kernel.Operands{DType: types.In, Out: types.Out, AMajor: gemm.MajorK, BMajor: gemm.MajorK}
			want := arch.Reason("")
			if types.In.CostsLike() == gemm.FP8 && device.sm == gpu.SM86 {
				want = arch.ReasonModelRule
			}
			c := c
			reason, detail := (Family{}).Check(d, o, c, Family{}.Resources(d, o, c, false))
			must.That(t, reason == want, "%s on %s: %q, %s", types, device.sm.ID, reason, detail)
			if c.BlockK = 16; types.In.Bytes() == 1 {
				want = arch.ReasonAtomShape
			}
			reason, _ = (Family{}).CheckTile(d, o, &c)
			must.That(t, reason == want, "%s on %s, block_k 16: %q", types, device.sm.ID, reason)
		}
	}
}
