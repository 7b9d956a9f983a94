package mma

import (
	"flag"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

var update = flag.Bool("update", false, "rewrite the golden kernels in testdata")

// sm is a target without features.
func sm(cc int) target.Target { return target.Target{CC: cc} }

// limits are those of the devices that origami knows, but for the shared memory of a CTA.
func limits(shared int) gemmgen.Limits {
	return gemmgen.Limits{RegistersPerThread: 255, RegisterFile: 65536, SharedMemory: unit.Bytes(shared)}
}

// spec builds a specification from "128x256x64,warps=8,stages=3,…" and the letters of A's and B's contiguous dimension.
func spec(t testing.TB, config, majors string, in, out gemm.DType, alignA, alignB, alignC int) Spec {
	t.Helper()
	c, err := gemm.ParseConfig(config, gemm.Config{NumWarps: 4, NumStages: 2, GroupM: 1, SplitK: 1, Kernel: Name}, axes...)
	must.Do(t, err)
	return Spec{
		DType: in, Out: out, AMajor: gemm.Major(majors[0]), BMajor: gemm.Major(majors[1]),
		AlignA: alignA, AlignB: alignB, AlignC: alignC, Config: c,
	}
}

func emit(t testing.TB, s Spec) *gemmgen.Kernel {
	t.Helper()
	return must.Get(s.Emit(sm(80)))(t)
}

// aligned is fp16 in and out, A and B row-major, everything aligned to 16 bytes.
func aligned(c gemm.Config) Spec {
	return Spec{
		DType: gemm.FP16, Out: gemm.FP16, AMajor: gemm.MajorK, BMajor: gemm.MajorN,
		AlignA: 16, AlignB: 16, AlignC: 16, Config: c,
	}
}

// feasible yields every configuration of the family that fits a device with 227 KiB of shared memory per CTA.
func feasible(yield func(gemm.Config) bool) {
	all, err := Family{}.Space().Enumerate(Family{}.Space())
	if err != nil {
		panic(err)
	}
	for _, c := range all {
		s := aligned(c)
		if _, reason, _ := s.Check(limits(227 << 10)); reason == "" && !yield(c) {
			return
		}
	}
}

func TestGolden(t *testing.T) {
	for name, s := range map[string]Spec{
		"aligned": spec(t, "32x64x32,warps=4,stages=3", "kn", gemm.FP16, gemm.FP16, 16, 16, 16),
		"kslices": spec(t, "16x16x32,warps=4,stages=2,split=3", "mk", gemm.BF16, gemm.FP32, 16, 16, 16),
		"narrow":  spec(t, "16x32x16,warps=4,stages=2", "kn", gemm.FP16, gemm.BF16, 2, 4, 2),
	} {
		must.File(t, "testdata/"+name+".sm_80.ptx", emit(t, s).Text, *update)
	}
}

// TestTextDependsOnKeyOnly: the launch order and the number of splits are parameters, and the same text serves every
// target that has the instructions.
func TestTextDependsOnKeyOnly(t *testing.T) {
	a := spec(t, "64x64x32,group=1,split=2", "kn", gemm.FP16, gemm.FP16, 16, 16, 16)
	b := a
	b.Config.GroupM, b.Config.SplitK = 8, 7
	must.That(t, a.Key() == b.Key() && emit(t, a).Text == emit(t, b).Text,
		"group_m or the number of splits changes the text")
	b.Config.SplitK = 1
	must.That(t, a.Key() != b.Key() && emit(t, a).Text != emit(t, b).Text,
		"a kernel that does not split K is the same as one that does")
	want := emit(t, a)
	for _, cc := range []int{86, 89, 90, 100} {
		k := must.Get(a.Emit(sm(cc)))(t)
		must.That(t, k.Text == want.Text, "the text for sm_%d is another one", cc)
	}
	must.That(t, want.Target == sm(80) && want.PTX == 74, "needs %s and PTX %d", want.Target, want.PTX)
	_, err := a.Emit(sm(75))
	must.That(t, err != nil && strings.Contains(err.Error(), "sm_75"), "sm_75 has no cp.async, but: %v", err)
}

// TestText checks what each kind of kernel must and must not contain.
func TestText(t *testing.T) {
	aligned := spec(t, "64x64x64,warps=4,stages=3", "kn", gemm.FP16, gemm.FP16, 16, 16, 16)
	with := func(change func(*Spec)) Spec { s := aligned; change(&s); return s }
	for name, c := range map[string]struct {
		spec      Spec
		has, lack []string
	}{
		"aligned": {aligned,
			[]string{`mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.f16\.f16\.f32`,
				`cp\.async\.cg\.shared\.global\.L2::128B \[.*\], 16;`, `ldmatrix\.sync\.aligned\.m8n8\.x4\.shared`,
				`ldmatrix\.sync\.aligned\.m8n8\.x4\.trans`, `cvt\.rn\.f16x2\.f32`, `st\.global\.v4\.b32`,
				`cp\.async\.wait_group 1;`, `\.maxntid 128, 1, 1`},
			[]string{`cp\.async\.ca`, `ld\.global\.b16`, `st\.shared\.b16`, `atom`, `bf16`}},
		"both contiguous along k": {with(func(s *Spec) { s.BMajor = gemm.MajorK }), []string{`ldmatrix`},
			[]string{`\.trans`}},
		"both contiguous across k": {with(func(s *Spec) { s.AMajor = gemm.MajorM }), []string{`ldmatrix.*\.trans`},
			[]string{`ldmatrix\.sync\.aligned\.m8n8\.x4\.shared`}},
		"bf16 to fp32": {with(func(s *Spec) { s.DType, s.Out = gemm.BF16, gemm.FP32 }),
			[]string{`\.f32\.bf16\.bf16\.f32`, `st\.global\.v4\.f32`}, []string{`f16\.f16`, `cvt\.rn`}},
		"8 bytes": {with(func(s *Spec) { s.AlignA, s.AlignB, s.AlignC = 8, 8, 8 }),
			[]string{`cp\.async\.ca\.shared\.global \[.*\], 8;`, `st\.global\.v2\.b32`}, []string{`\.cg`, `v4\.b32`}},
		"4 bytes": {with(func(s *Spec) { s.AlignA, s.AlignB, s.AlignC = 4, 4, 4 }),
			[]string{`cp\.async\.ca\.shared\.global \[.*\], 4;`, `st\.global\.b32`}, []string{`\.cg`, `global\.v[24]`}},
		"2 bytes": {with(func(s *Spec) { s.AlignA, s.AlignB, s.AlignC = 2, 2, 2 }),
			[]string{`ld\.global\.b16`, `st\.shared\.b16`, `st\.global\.b16`},
			[]string{`cp\.async\.c[ag]`, `global\.v[24]`, `global\.b32`}},
		"tf32": {with(func(s *Spec) { s.DType, s.Out, s.AMajor = gemm.TF32, gemm.FP32, gemm.MajorM }),
			[]string{`m16n8k8\.row\.col\.f32\.tf32`, `cvt\.rna\.tf32`, `ld\.shared\.b32`}, []string{`ldmatrix`}},
		"fp32": {with(func(s *Spec) { s.DType, s.Out = gemm.FP32, gemm.FP32 }),
			[]string{`fma\.rn\.f32`, `ld\.shared\.v2\.f32`}, []string{`ldmatrix`, `mma\.sync`, `tf32`}},
		"int8": {with(func(s *Spec) {
			s.DType, s.Out, s.BMajor, s.AlignA = gemm.INT8, gemm.INT32, gemm.MajorK, 1
		}), []string{`m16n8k32\.row\.col\.s32\.s8\.s8\.s32`, `ld\.global\.b8`, `\.param \.s32 alpha`, `mad\.lo\.s32`},
			[]string{`\.f32`}},
		"split": {with(func(s *Spec) { s.Config.SplitK = 4 }),
			[]string{`atom\.acq_rel\.gpu`, `fence\.acq_rel\.gpu`, `ld\.global\.v4\.f32`}, nil},
	} {
		text := emit(t, c.spec).Text
		for _, re := range c.has {
			must.That(t, regexp.MustCompile(re).MatchString(text), "%s: no %s", name, re)
		}
		for _, re := range append(c.lack, `\.local`, `NaN`, `\?`) {
			found := regexp.MustCompile(re).FindString(text)
			must.That(t, found == "", "%s: has %s", name, found)
		}
	}
}

// TestCIsReadOnlyForBeta: where beta is zero, the kernel takes the way that has no load from C.
func TestCIsReadOnlyForBeta(t *testing.T) {
	for _, align := range []int{16, 8, 4, 2} {
		text := emit(t, spec(t, "64x64x32", "kn", gemm.FP16, gemm.FP16, 16, 16, align)).Text
		without, with, found := strings.Cut(text, "\n$with_c:")
		must.Need(t, found, "no label with_c")
		branch := regexp.MustCompile(`setp\.neu\.f32 (%p\d+), (%f\d+), 0f00000000;\n\t@(%p\d+) bra\.uni \$with_c;`).
			FindStringSubmatch(without)
		must.That(t, branch != nil && branch[1] == branch[3] &&
			strings.Contains(without, "ld.param.f32 "+branch[2]+", [beta];"),
			"align %d: with_c is not entered for beta alone: %v", align, branch)
		must.That(t, !strings.Contains(without, "ld.global") && strings.Contains(with, "ld.global"),
			"align %d: C is read without beta, or not with it", align)
	}
}

// TestWholeSpace emits every configuration and compares the matrix instructions and the barriers of one turn of the
// loop with what the tile needs.
func TestWholeSpace(t *testing.T) {
	n := 0
	for c := range feasible {
		n++
		s := aligned(c)
		k := emit(t, s)
		_, loop, _ := strings.Cut(k.Text, "\n$loop:")
		loop, _, _ = strings.Cut(loop, "bra.uni $loop;")
		tiles := c.BlockM / 16 * (c.BlockN / 8) * (c.BlockK / 16)
		got, want := strings.Count(loop, "mma.sync"), tiles/c.NumWarps
		must.That(t, got == want, "%s: %d matrix instructions per warp and turn, the tile has %d", c, got, want)
		got, want = strings.Count(loop, "cp.async.cg"), (c.BlockM+c.BlockN)*c.BlockK*2/16/k.Threads
		must.That(t, got >= want, "%s: %d copies per thread and turn, the tile has %d", c, got, want)
		got = strings.Count(loop, "bar.sync")
		must.That(t, got == 1, "%s: %d barriers per turn", c, got)
		r, _, _ := s.Resources()
		must.That(t, r.WarpsM*r.WarpsN*r.WarpsK*32 == k.Threads && r.Accumulators*k.Threads == c.BlockM*c.BlockN*r.WarpsK,
			"%s: warps %dx%dx%d, %d threads, %d accumulators", c, r.WarpsM, r.WarpsN, r.WarpsK, k.Threads, r.Accumulators)
	}
	must.That(t, n >= 700, "only %d configurations are feasible", n)
}

func TestCheck(t *testing.T) {
	// What depends on the device is no reason not to emit a kernel.
	device := map[arch.Reason]bool{arch.ReasonSharedMemory: true, arch.ReasonRegisters: true}
	base := spec(t, "128x128x32,warps=4,stages=4", "kn", gemm.FP16, gemm.FP16, 16, 16, 16)
	with := func(change func(*Spec)) Spec { s := base; change(&s); return s }
	cluster := must.Get(gemm.NewAxes(gemm.AxisValue{Name: "cluster", Value: "2x1"}))(t)
	warpsOf := func(m, k string) gemm.Axes {
		named, err := (gemm.Axes{}).With(axisWarpsM, m)
		if err == nil {
			named, err = named.With(axisWarpsK, k)
		}
		must.Do(t, err)
		return named
	}
	for _, c := range []struct {
		name   string
		spec   Spec
		shared int
		reason arch.Reason
		detail string
	}{
		{"fits", base, 99 << 10, "", ""},
		{"shared memory", base, 65535, arch.ReasonSharedMemory, "needs 65536 B of shared memory, 65535 B available"},
		{"registers", with(func(s *Spec) { s.Config.BlockM, s.Config.BlockN, s.Config.NumWarps = 256, 256, 8 }),
			1 << 20, arch.ReasonRegisters, "256 accumulators"},
		{"tile", with(func(s *Spec) { s.Config.BlockN = 48 }), 1 << 20, arch.ReasonAtomShape, "128x48x32"},
		{"type", with(func(s *Spec) { s.DType = gemm.INT8 }), 1 << 20, arch.ReasonAtomShape, "int8"},
		{"output", with(func(s *Spec) { s.Out = gemm.INT8 }), 1 << 20, arch.ReasonAtomShape, "int8"},
		{"type without a family", with(func(s *Spec) { s.DType = gemm.INT32 }), 1 << 20, arch.ReasonAtomShape,
			"no instruction for operands of int32"},
		{"int8 into fp16", with(func(s *Spec) { s.DType, s.AMajor, s.BMajor = gemm.INT8, gemm.MajorK, gemm.MajorK }),
			1 << 20, arch.ReasonAtomShape, "writes one of int32, not fp16"},
		{"8-bit operands across k", with(func(s *Spec) { s.DType = gemm.FP8 }), 1 << 20, arch.ReasonAtomShape,
			"A and B of fp8 must be contiguous along k"},
		{"a block below a step", with(func(s *Spec) { s.DType, s.BMajor, s.Config.BlockK = gemm.FP8, gemm.MajorK, 16 }),
			1 << 20, arch.ReasonAtomShape, "block_k 16 is below the 32 of mma.sync.m16n8k32"},
		{"warps", with(func(s *Spec) { s.Config.NumWarps = 6 }), 1 << 20, arch.ReasonWarps, "6 warps"},
		{"tile too small for the warps", with(func(s *Spec) {
			s.Config.BlockM, s.Config.BlockN, s.Config.BlockK = 16, 16, 16
		}), 1 << 20, arch.ReasonWarps, "4 warps cannot share a 16x16 tile"},
		{"stages", with(func(s *Spec) { s.Config.NumStages = 7 }), 1 << 20, gemmgen.ReasonStages, "7 stages"},
		{"named axes", with(func(s *Spec) { s.Config.Axes = cluster }), 1 << 20, arch.ReasonModelRule, "cluster=2x1"},
		{"a value that the axis does not take", with(func(s *Spec) { s.Config.Axes = warpsOf("3", "") }), 1 << 20,
			arch.ReasonModelRule, `the axis warp_count_m has no value "3"`},
		{"a grid that does not divide the warps", with(func(s *Spec) { s.Config.Axes = warpsOf("8", "") }), 1 << 20,
			arch.ReasonWarps, "4 warps cannot share a 128x128 tile with warp_count_m=8"},
		{"the grid that is derived", with(func(s *Spec) { s.Config.Axes = warpsOf("2", "") }), 1 << 20,
			arch.ReasonModelRule, "the kernel has that warp_count_m without the axis"},
		{"one slice that is derived", with(func(s *Spec) { s.Config.Axes = warpsOf("4", "1") }), 1 << 20, "", ""},
		{"slices that are derived", with(func(s *Spec) {
			s.Config.BlockM, s.Config.BlockN, s.Config.BlockK = 16, 16, 32
			s.Config.Axes = warpsOf("", "2")
		}), 1 << 20, arch.ReasonModelRule, "the kernel has that warp_count_k without the axis"},
		{"a grid", with(func(s *Spec) { s.Config.Axes = warpsOf("4", "") }), 1 << 20, "", ""},
		{"slices that take too many registers", with(func(s *Spec) { s.Config.Axes = warpsOf("", "2") }), 1 << 20,
			arch.ReasonRegisters, "a 64x128 warp tile needs about"},
		{"splits", with(func(s *Spec) { s.Config.SplitK = 0 }), 1 << 20, arch.ReasonModelRule, "split_k is 0"},
	} {
		_, reason, detail := c.spec.Check(limits(c.shared))
		must.That(t, reason == c.reason && strings.Contains(detail, c.detail), "%s: %q, %q", c.name, reason, detail)
		_, err := c.spec.Emit(sm(80))
		must.That(t, (err == nil) == (reason == "" || device[reason]), "%s: Emit says %v", c.name, err)
	}
	if r, _, _ := base.Check(limits(99 << 10)); r.Threads != 128 || r.SharedMemory != 65536 ||
		r.Accumulators != 128 || r.WarpsM != 2 || r.WarpsN != 2 || r.WarpsK != 1 {
		t.Errorf("resources %+v", r)
	}
	// 16×16 has two warp tiles: the other warps split the k16 steps.
	small := spec(t, "16x16x64,warps=4,stages=2", "kn", gemm.FP16, gemm.FP16, 16, 16, 16)
	if r, reason, _ := small.Check(limits(99 << 10)); reason != "" || r.WarpsK != 2 {
		t.Errorf("16x16x64: %+v %s", r, reason)
	}
	// fp8 came with sm_89, and takes more registers where it is multiplied as fp16.
	for cc, want := range map[int]struct {
		reason    arch.Reason
		fragments int
	}{80: {arch.ReasonAtomShape, 0}, 89: {"", 32}, 90: {"", 52}, 100: {"", 52}, 120: {"", 32}} {
		s := with(func(s *Spec) { s.DType, s.BMajor = gemm.FP8, gemm.MajorK })
		l := limits(99 << 10)
		l.Target = sm(cc)
		r, reason, detail := s.Check(l)
		must.That(t, reason == want.reason && (reason != "" || r.Fragments == want.fragments) &&
			(reason == "" || strings.Contains(detail, "needs sm_89, the device has sm_80")),
			"fp8 on sm_%d: %q, %q, %d fragments", cc, reason, detail, r.Fragments)
	}
	for _, bad := range []Spec{
		with(func(s *Spec) { s.DType, s.AlignA = gemm.TF32, 2 }),
		with(func(s *Spec) { s.AlignA = 3 }), with(func(s *Spec) { s.Out, s.AlignC = gemm.FP32, 2 }),
	} {
		_, err := bad.Emit(sm(80))
		must.That(t, err != nil, "alignments %d, %d, %d are accepted", bad.AlignA, bad.AlignB, bad.AlignC)
	}
}

// One kernel has one configuration: no two choices of warps give a tile the same grid. One warp along K may be said
// too, and is the kernel that has it anyway.
func TestGridsAreDistinct(t *testing.T) {
	space := Family{}.Space()
	space.NumStages = []int{2}
	for _, x := range axes {
		space.Axes = append(space.Axes, arch.AxisValues{Name: x.Name, Values: x.Values})
	}
	all := must.Get(arch.Space{}.Enumerate(space, axes...))(t)
	type kernel struct {
		block [3]int
		grid  [3]int
	}
	seen, chosen := map[kernel]gemm.Config{}, 0
	for _, c := range all {
		r, reason, _ := aligned(c).Resources()
		if reason != "" {
			continue
		}
		must.That(t, r.WarpsM*r.WarpsN*r.WarpsK == c.NumWarps, "%s: %d×%d×%d warps", c, r.WarpsM, r.WarpsN, r.WarpsK)
		k := kernel{[3]int{c.BlockM, c.BlockN, c.BlockK}, [3]int{r.WarpsM, r.WarpsN, r.WarpsK}}
		if value, said := c.Axes.Get(axisWarpsK); said && value == "1" {
			without := aligned(c)
			without.Config.Axes, _ = c.Axes.With(axisWarpsK, "")
			must.That(t, r.WarpsK == 1 && aligned(c).Key() == without.Key(), "%s is not the kernel without the axis", c)
			continue
		}
		other, ok := seen[k]
		must.That(t, !ok, "%s and %s are the same kernel", c, other)
		if seen[k] = c; c.Axes != (gemm.Axes{}) {
			chosen++
		}
	}
	must.That(t, chosen >= 100, "only %d grids can be chosen", chosen)
}

// TestSwizzle checks for every tile that the swizzle is a permutation, that the eight rows of a matrix read by
// ldmatrix lie in different banks, and that eight threads that copy neighbouring 16-byte chunks write to different
// banks.
func TestSwizzle(t *testing.T) {
	for _, cols := range []int{16, 32, 64, 128, 256} {
		tl := tile{rows: 64, cols: cols, size: 2}
		shift, mask, _ := tl.swizzle()
		at := func(r, c int) int { return r*tl.rowBytes() + (c^(r>>shift&mask))*16 }
		chunks, seen := tl.rowBytes()/16, map[int]bool{}
		for r := range tl.rows {
			for c := range chunks {
				seen[at(r, c)] = true
			}
		}
		must.That(t, len(seen) == tl.rows*chunks, "%d columns: %d places for %d chunks", cols, len(seen), tl.rows*chunks)
		distinct := func(what string, places func(i int) int) {
			banks := map[int]bool{}
			for i := range 8 {
				banks[places(i)%128/16] = true
			}
			must.That(t, len(banks) == 8, "%d columns: %s meets %d of 8 groups of banks", cols, what, len(banks))
		}
		for r := 0; r < tl.rows; r += 8 {
			for c := range chunks {
				distinct("ldmatrix", func(i int) int { return at(r+i, c) })
			}
		}
		for first := 0; first < tl.rows*chunks; first += 8 {
			distinct("a copy", func(i int) int { return at((first+i)/chunks, (first+i)%chunks) })
		}
	}
}

func TestPeak(t *testing.T) {
	for _, d := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.TF32, gemm.FP8, gemm.FP8E5M2, gemm.INT8} {
		k := must.Get(EmitPeak(d, sm(90)))(t)
		_, loop, _ := strings.Cut(k.Text, "\n$loop:")
		loop, _, _ = strings.Cut(loop, "bra.uni $loop;")
		shape := regexp.MustCompile(`mma\.sync\.aligned\.m16n8k(\d+)\.`).FindAllStringSubmatch(loop, -1)
		operations := 0
		for _, m := range shape {
			step, _ := strconv.Atoi(m[1])
			operations += 2 * 16 * 8 * step * PeakWarps
		}
		if operations == 0 || operations != PeakOperations(d) {
			t.Errorf("%s: %d operations per turn, want %d", d, operations, PeakOperations(d))
		}
		found := regexp.MustCompile(`ld\.|st\.|bar`).FindString(loop)
		must.That(t, found == "", "%s: the loop has %s", d, found)
		must.That(t, k.ParamBytes == 20 && k.Target == instructionOf(d).needs,
			"%s: %d parameter bytes, %s", d, k.ParamBytes, k.Target)
	}
	_, err := EmitPeak(gemm.FP32, sm(90))
	must.That(t, err != nil, "fp32 has no such instruction")
}
