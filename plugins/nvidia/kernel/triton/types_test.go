package triton

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
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

// The shared memory of flattened kernels is what the compiler says, but for one kernel that needs 2 KiB less.
// testdata/flattened.csv has vLLM's matmul_kernel_persistent in bf16, without a bias, as Triton 3.7.1 and 3.8.0 compile
// it: random tiles.
func TestFlattenedShared(t *testing.T) {
	t.Parallel()
	rows := csvtest.Read(t, "testdata/flattened.csv")
	devices := map[string]*gpu.Device{}
	for id, of := range map[string]struct {
		sm   *gpu.SM
		file string
	}{
		"sm80": {gpu.SM80, "sm80-a100-sxm4-80gb"}, "sm89": {gpu.SM89, "sm89-l40s"}, "sm90": {gpu.SM90, "sm90-h100-sxm"},
		"sm100": {gpu.SM100, "sm100-b200"}, "sm103": {gpu.SM103, "sm103-b300"}, "sm120": {gpu.SM120, "sm120-rtx5090"},
	} {
		devices[id] = gputest.Device(t, of.sm, of.file, nil)
	}
	o := kernel.Operands{DType: gemm.BF16, Out: gemm.BF16, AMajor: gemm.MajorK, BMajor: gemm.MajorK}
	above := 0
	for _, row := range rows[1:] {
		v := csvtest.Ints(t, row[2:8])
		c := gemm.Config{BlockM: v[0], BlockN: v[1], BlockK: v[2], NumWarps: v[3], NumStages: v[4], SplitK: 1}
		must.Do(t, c.SetAxis(Persistent{}.Axes(), flatten, "on"))
		got := int(Persistent{}.Resources(devices[row[1]], o, c, false).SharedMemory)
		if got > v[5] && above == 0 {
			above++
		} else if got != v[5] {
			t.Errorf("%s, Triton %s: %s needs %d bytes, not %d", row[1], row[0], &c, v[5], got)
		}
	}
	must.That(t, len(rows) >= 350, "%d kernels", len(rows))
}

// The family's resources of kernels that were measured: of every type, layout, alignment and split. No constant was
// chosen for them. The floors are below what each set has.
func TestSweepResources(t *testing.T) {
	d := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
	f := Family{}
	for set, floor := range map[string]struct{ shared, registers, spills float64 }{
		"bf16": {1, 0.94, 1}, "layouts": {1, 0.97, 0.97}, "split": {1, 0.97, 0.96}, "fp8": {1, 0.99, 1},
		"int8": {1, 0.99, 1}, "tf32": {1, 0.94, 0.98}, "unaligned": {0.95, 0.8, 0.95},
	} {
		var all, shared, registers, spills float64
		for _, list := range []string{"h200-fit", "h200-test"} {
			folder := filepath.Join("..", "..", "data", "sweeps", set, list)
			data := must.Get(dataset.Read(folder, os.DirFS(folder)))(t)
			for _, p := range data.Problems() {
				o := kernel.OperandsOf(&p).WithWidths(f, &p)
				for _, m := range data.Sweep(p) {
					if m.Library != "" {
						continue
					}
					r := f.Resources(d, o, m.Config, p.K%(m.Config.BlockK*m.Config.SplitK) != 0)
					diff := r.Registers - m.Resources.Registers
					all++
					shared += share(r.SharedMemory == m.Resources.SharedMemory)
					registers += share(max(diff, -diff) <= 32)
					spills += share((r.SpillBytes > 0) == (m.Resources.SpillBytes > 0))
				}
			}
		}
		must.Hold(t, shared >= floor.shared*all && registers >= floor.registers*all && spills >= floor.spills*all,
			"%s: of %.0f, shared memory of %.3f is exact, registers of %.3f within 32, spills of %.3f right; floors %+v", set,
			all, shared/all, registers/all, spills/all, floor)
	}
}

func share(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
