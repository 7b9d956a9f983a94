package wgmma

import (
	"flag"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

var update = flag.Bool("update", false, "rewrite the golden kernels in testdata")

func emit(t *testing.T, s Spec) *gemmgen.Kernel {
	t.Helper()
	return must.Get(s.Emit(hopper.Target))(t)
}

// TestGolden compares kernels with the texts that were checked on an H200.
func TestGolden(t *testing.T) {
	adding := spec(t, "64x16x64,warps=8,stages=2", "mk", gemm.FP16, gemm.FP16)
	adding.Adds = true
	for name, s := range map[string]Spec{
		"pairs":       spec(t, "64x16x64,warps=8,stages=3", "kk", gemm.FP16, gemm.FP16),
		"tiles":       spec(t, "64x64x64,warps=8,stages=2", "kn", gemm.FP16, gemm.BF16),
		"cluster":     spec(t, "128x32x64,warps=12,stages=4,cluster=2", "mn", gemm.BF16, gemm.FP32),
		"cluster-4x2": spec(t, "128x32x64,warps=12,stages=4,cluster=4x2", "mk", gemm.BF16, gemm.FP16),
		"cluster-n":   spec(t, "16x64x64,warps=8,stages=4,cluster_n=2", "kn", gemm.BF16, gemm.FP16),
		"add":         adding,
		"split":       spec(t, "64x16x64,warps=8,stages=2,cluster=2,split=2", "kk", gemm.FP16, gemm.FP32),
		"fp8":         spec(t, "64x16x128,warps=8,stages=2", "kk", gemm.FP8, gemm.FP16),
		"promote":     spec(t, "128x16x128,warps=8,stages=2,promote=1", "kk", gemm.FP8, gemm.BF16),
		"stream":      spec(t, "64x16x64,warps=8,stages=2,cluster=2,stream_k=1", "kk", gemm.FP16, gemm.FP32),
		"three":       spec(t, "192x16x64,warps=16,stages=2", "kk", gemm.FP16, gemm.FP32),
		"turned":      spec(t, "24x64x64,warps=8,stages=2,cluster=2", "kn", gemm.FP16, gemm.BF16),
		"turned-rows": spec(t, "16x64x64,warps=8,stages=2", "mk", gemm.FP16, gemm.FP32),
		"wide":        spec(t, "64x64x128,warps=8,stages=2", "kn", gemm.BF16, gemm.FP32),
	} {
		golden(t, name, emit(t, s).Text)
	}
}

// TestOneInstruction: kernels that Sums calls invariant add to each sum with instructions of one extent along K, in the
// order of K, and with nothing else before the tile is stored, or before the sums of a block are promoted.
func TestOneInstruction(t *testing.T) {
	multiplies := regexp.MustCompile(`wgmma\.mma_async\.sync\.aligned\.m64n\d+k(\d+)`)
	for _, c := range []struct {
		config string
		dtype  gemm.DType
		extent string
	}{
		{"64x16x64,warps=8,stages=2,skew=0", gemm.BF16, "16"}, {"8x64x64,warps=8,stages=2,skew=0", gemm.BF16, "16"},
		{"192x192x64,warps=16,stages=2,skew=0", gemm.BF16, "16"}, {"128x256x128,warps=12,stages=2,skew=0", gemm.FP16, "16"},
		{"40x192x64,warps=16,stages=2,cluster=2,skew=0", gemm.FP16, "16"},
		{"64x16x128,warps=8,stages=2,skew=0", gemm.FP8, "32"}, {"128x256x128,warps=12,stages=2,skew=0", gemm.FP8, "32"},
		{"16x64x128,warps=8,stages=2,skew=0", gemm.FP8, "32"},
		{"64x16x128,warps=8,stages=2,skew=0,promote=1", gemm.FP8, "32"},
		{"16x64x128,warps=8,stages=2,skew=0,promote=1", gemm.FP8, "32"},
	} {
		s := spec(t, c.config, "kk", c.dtype, gemm.FP32)
		sums := (Family{}).Sums()
		must.Need(t, sums.Has(&s.Config, Family{}.Axes()), "%s is not invariant", c.config)
		text := emit(t, s).Text
		found := multiplies.FindAllStringSubmatchIndex(text, -1)
		g, _, _ := s.layout()
		want := g.tiles * s.Config.BlockK * s.DType.Bytes() / stepBytes
		must.That(t, len(found) == want, "%s: %d instructions for a block, want %d", c.config, len(found), want)
		for _, at := range found {
			extent := text[at[2]:at[3]]
			must.That(t, extent == c.extent, "%s: an instruction adds %s indices along K, want %s", c.config, extent, c.extent)
		}
		block := text[found[0][0]:found[len(found)-1][1]]
		for _, other := range []string{"add.f32", "fma.rn.f32", "mul.f32"} {
			must.That(t, !strings.Contains(block, other), "%s: %s stands among the multiplications", c.config, other)
		}
	}
}

// golden compares the text of a kernel with that of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	must.File(t, "testdata/"+name+".sm_90a.ptx", got, *update)
}

// TestLaunch: the grid is what the SMs can hold, and the maps describe the matrices.
func TestLaunch(t *testing.T) {
	s := spec(t, "128x192x64,warps=12,stages=4,cluster=2,group=8", "mk", gemm.FP16, gemm.FP16)
	k := emit(t, s)
	call := gemmgen.NewCall(gentest.Problem(1000, 264, 1000, 5, true, true))
	call.A.Address, call.B.Address, call.C.Address = 1<<40, 1<<41, 1<<42
	call.Alpha = 0.5
	s.Processors = 9 // an odd one cannot hold a cluster
	l, err := s.Launch(k, call)
	must.Do(t, err)
	must.That(t, l.GridX == 8 && l.GridY == 1 && l.GridZ == 1 && l.Threads == 384 && l.SharedMemory == k.SharedMemory,
		"launch %+v", l)
	gentest.Want(t, k.Kernel, l.Params, map[string]uint64{
		"c": 1 << 42, "ldc": 264, "stride_c": 264000, "m": 1000, "n": 264, "k_blocks": 16,
		"tiles_m": 4, "tiles_n": 2, "tiles": 4 * 2 * 5, "group_m": 4, // in clusters of 256 rows
		"alpha": uint64(math.Float32bits(0.5)),
	})
	a, b := l.Maps[0], l.Maps[1]
	if a != (gemmgen.TensorMap{ // rows along M: 64 of them, and the block's 64 along K
		Offset: 0, DType: gemm.FP16, Address: 1 << 40, Sizes: [3]uint64{1000, 1000, 5},
		Strides: [2]uint64{2000, 2000000}, Box: [3]uint32{64, 64, 1},
	}) {
		t.Errorf("map of A: %+v", a)
	}
	if b != (gemmgen.TensorMap{ // rows along K: half of the block's 192
		Offset: 128, DType: gemm.FP16, Address: 1 << 41, Sizes: [3]uint64{1000, 264, 5},
		Strides: [2]uint64{2000, 528000}, Box: [3]uint32{64, 96, 1},
	}) {
		t.Errorf("map of B: %+v", b)
	}
	if c := l.Maps[2]; c != (gemmgen.TensorMap{ // what a warp stores at once
		Offset: l.Maps[2].Offset, DType: gemm.FP16, Address: 1 << 42, Sizes: [3]uint64{264, 1000, 5},
		Strides: [2]uint64{528, 528000}, Box: [3]uint32{64, 16, 1},
	}) || c.Offset <= b.Offset || c.Offset%64 != 0 {
		t.Errorf("map of C: %+v", c)
	}
	s.Processors = 132 // more than there are tiles
	if l, err = s.Launch(k, call); err != nil || l.GridX != 2*4*2*5 {
		t.Errorf("%d CTAs, %v", l.GridX, err)
	}
}

// TestLaunchRefuses what the kernel would compute wrong.
func TestLaunchRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*gemmgen.Call, *gemm.Config)
	}{
		{"an address that no map can have", "not for", func(c *gemmgen.Call, _ *gemm.Config) { c.B.Address += 8 }},
		{"rows that no map can have", "not for", func(c *gemmgen.Call, _ *gemm.Config) { c.A.LD++ }},
		{"single elements of C", "not for", func(c *gemmgen.Call, _ *gemm.Config) { c.C.LD++ }},
		{"a C to add to", "not for", func(c *gemmgen.Call, _ *gemm.Config) { c.Beta = 1 }},
		{"another layout", "not for",
			func(c *gemmgen.Call, _ *gemm.Config) { c.Problem.SetTrans(true, false); c.A.LD = 64 }},
		{"another type", "not for", func(c *gemmgen.Call, _ *gemm.Config) { c.Problem.DType = gemm.BF16 }},
		{"another tile", "not for", func(_ *gemmgen.Call, cfg *gemm.Config) { cfg.BlockM = 128 }},
	} {
		s := spec(t, "64x64x64,warps=8,stages=3", "kn", gemm.FP16, gemm.FP16)
		k := emit(t, s)
		call := gemmgen.NewCall(gentest.Problem(64, 64, 64, 1, false, false))
		must.Get(s.Launch(k, call))(t)
		c.change(&call, &s.Config)
		_, err := s.Launch(k, call)
		must.That(t, err != nil && strings.Contains(err.Error(), c.want) && diag.KindOf(err) == diag.Input,
			"%s: %v", c.name, err)
	}
}

// eightBits returns a problem in fp8.
func eightBits(transA, transB bool) gemm.Problem {
	p := gentest.Problem(512, 512, 512, 1, transA, transB)
	p.DType = gemm.FP8
	return p
}

// TestLaunchSplits: every split has a block along K, and the workspace has a part for each tile of C and warp, but none
// for tiles that only complete a cluster.
func TestLaunchSplits(t *testing.T) {
	s := spec(t, "64x64x64,warps=8,stages=3,cluster=2,split=7", "kn", gemm.FP16, gemm.FP16)
	k := emit(t, s)
	call := gemmgen.NewCall(gentest.Problem(150, 128, 640, 2, false, false))
	_, err := s.Launch(k, call)
	must.That(t, err != nil, "a split without a workspace is launched")
	partials, counters := gemmgen.Workspace(call.Problem, s.Config)
	tiles := unit.Bytes(3 * 2 * 2)
	must.That(t, partials >= tiles*5*64*64*4 && counters >= tiles*4*4, "workspace of %v and %v", partials, counters)
	call.Partials, call.Counters = 1<<43, 1<<44
	l := must.Get(s.Launch(k, call))(t)
	gentest.Want(t, k.Kernel, l.Params, map[string]uint64{ // 10 blocks along K: five splits of two
		"k_blocks": 10, "blocks_per_split": 2, "splits": 5, "per_split": 2 * 2 * 2, "tiles": 5 * 2 * 2 * 2,
		"partials": 1 << 43, "counters": 1 << 44,
	})
}

// TestLaunchFP8: the maps of A and B have rows of bytes, the map of C has rows of its own type.
func TestLaunchFP8(t *testing.T) {
	s := spec(t, "64x128x128,warps=8,stages=3", "kk", gemm.FP8, gemm.BF16)
	p := eightBits(false, true)
	p.Out = gemm.BF16
	l := must.Get(s.Launch(emit(t, s), gemmgen.NewCall(p)))(t)
	for i, want := range []gemmgen.TensorMap{
		{DType: gemm.FP8, Strides: [2]uint64{512, 512}, Box: [3]uint32{128, 64, 1}},
		{DType: gemm.FP8, Strides: [2]uint64{512, 512}, Box: [3]uint32{128, 128, 1}},
		{DType: gemm.BF16, Strides: [2]uint64{1024, 1024}, Box: [3]uint32{64, 16, 1}},
	} {
		got := l.Maps[i]
		must.That(t, got.DType == want.DType && got.Strides == want.Strides && got.Box == want.Box, "map %d: %+v", i, got)
	}
}

// TestLaunchOfFewRows: boxes have no rows that lie outside of the matrices if one tile has all.
func TestLaunchOfFewRows(t *testing.T) {
	s := spec(t, "128x64x128,warps=12,stages=2", "kk", gemm.FP16, gemm.FP16)
	l := must.Get(s.Launch(emit(t, s), gemmgen.NewCall(gentest.Problem(17, 40, 512, 1, false, true))))(t)
	a, b := l.Maps[0].Box, l.Maps[1].Box
	must.That(t, a == [3]uint32{64, 17, 1} && b == [3]uint32{64, 40, 1}, "boxes %v and %v", a, b)
	got := gentest.Params(emit(t, s).Kernel, l.Params)["copied"]
	must.That(t, got == (17+40)*128*2, "%d bytes of copies", got)
}

// TestRefuses: what the family cannot build is refused for its reason.
func TestRefuses(t *testing.T) {
	unaligned, transB := gemm.New(512, 512, 511), gentest.Problem(512, 512, 512, 1, false, true)
	for _, c := range []struct {
		config string
		p      gemm.Problem
		out    gemm.DType
		reason arch.Reason
	}{
		{"128x128x64,warps=12,stages=4", gemm.New(512, 512, 512), gemm.FP16, ""},
		{"128x128x64,warps=12,stages=4", gemm.New(511, 512, 512), gemm.FP32, ""},
		{"128x128x64,warps=12,stages=4", unaligned, gemm.FP16, ReasonTensorMap},
		{"128x128x128,warps=12,stages=2", gemm.New(512, 512, 512), gemm.FP16, ""},
		{"128x128x128,warps=12,stages=4", eightBits(false, true), gemm.FP16, ""},
		{"128x128x64,warps=12,stages=4", eightBits(false, true), gemm.FP16, arch.ReasonAtomShape},
		{"128x128x128,warps=12,stages=4", eightBits(false, false), gemm.FP16, arch.ReasonAtomShape},
		{"128x128x128,warps=12,stages=4", eightBits(true, true), gemm.FP16, arch.ReasonAtomShape},
		{"128x120x64,warps=12,stages=4", gemm.New(512, 512, 512), gemm.FP16, ""},
		{"128x124x64,warps=12,stages=4", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonAtomShape},
		{"120x96x64,warps=12,stages=4", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonAtomShape},
		{"104x192x64,warps=16,stages=4", gemm.New(512, 512, 512), gemm.FP16, ""},
		{"104x192x64,warps=12,stages=4", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonWarps},
		{"128x104x64,warps=12,stages=4,cluster=2", transB, gemm.FP16, arch.ReasonModelRule},
		{"104x128x64,warps=12,stages=4,cluster=2", transB, gemm.FP16, ""},
		{"104x128x64,warps=12,stages=4,split=2", transB, gemm.FP16, ""},
		{"104x128x64,warps=12,stages=4,stream_k=1", transB, gemm.FP16, ""},
		{"104x128x64,warps=12,stages=4,cluster_n=2", transB, gemm.FP16, arch.ReasonModelRule},
		{"112x128x64,warps=12,stages=4,cluster_n=2", transB, gemm.FP16, ""},
		{"112x128x64,warps=12,stages=4,cluster=2x2", transB, gemm.FP16, ""},
		{"112x128x64,warps=12,stages=4,cluster=4x2", transB, gemm.FP16, ""},
		{"128x128x64,warps=12,stages=3,cluster=4x2", transB, gemm.FP16, gemmgen.ReasonStages},
		{"112x128x64,warps=12,stages=4,cluster_n=4", transB, gemm.FP16, arch.ReasonModelRule},
		{"128x104x64,warps=12,stages=4,cluster_n=2", transB, gemm.FP16, ""},
		{"64x128x64,warps=12,stages=4", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonWarps},
		{"128x128x64,warps=4,stages=4", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonWarps},
		{"128x128x64,warps=12,stages=17", gemm.New(512, 512, 512), gemm.FP16, gemmgen.ReasonStages},
		{"128x128x64,warps=12,stages=4,split=2", gemm.New(512, 512, 512), gemm.FP16, ""},
		{"128x256x64,warps=8,stages=4", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonRegisters},
		{"256x256x64,warps=12,stages=3", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonRegisters},
		{"192x192x64,warps=16,stages=3", gemm.New(512, 512, 512), gemm.FP16, ""},
		{"192x208x64,warps=16,stages=3", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonRegisters},
		{"192x128x64,warps=12,stages=4", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonWarps},
		{"128x128x64,warps=12,stages=4,split=2,stream_k=1", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonModelRule},
		{"128x256x64,warps=12,stages=5", gemm.New(512, 512, 512), gemm.FP16, arch.ReasonSharedMemory},
	} {
		config := spec(t, c.config, "kn", gemm.FP16, gemm.FP16).Config
		_, reason, detail := Family{}.Program(gemmgen.NewCall(c.p), c.out, config, hopper)
		must.That(t, reason == c.reason && (reason != "") == (detail != ""),
			"%s for %s: %q (%s), want %q", c.config, c.p, reason, detail, c.reason)
	}
	other := spec(t, "128x128x64,warps=12,stages=4", "kn", gemm.FP16, gemm.FP16)
	other.Config.Axes, _ = gemm.NewAxes(gemm.AxisValue{Name: "cluster", Value: "3"})
	if reason, _ := other.Check(hopper); reason != arch.ReasonModelRule {
		t.Errorf("a cluster of 3: %q", reason)
	}
}

// TestWhereTilesBegin: whatever the sizes, the copy engine begins at multiples of 16 bytes, pairs of C at even columns,
// and the tiles cover C.
func TestWhereTilesBegin(t *testing.T) {
	shifted := 0
	for _, majors := range []string{"kk", "kn", "mk", "mn"} {
		for _, out := range []gemm.DType{gemm.FP16, gemm.FP32} {
			for size := 120; size < 420; size += 7 {
				p := gentest.Problem(size, size+3, 200, 2, majors[0] == 'm', majors[1] == 'k')
				p.Out, p.LDA, p.LDB, p.LDC = out, 512, 512, 512
				call := gemmgen.NewCall(p.Canonical())
				s := SpecFor(call, out, spec(t, "128x64x64,warps=8,stages=2", majors, gemm.FP16, out).Config)
				l := must.Get(s.Launch(emit(t, s), call))(t)
				got := gentest.Params(emit(t, s).Kernel, l.Params)
				m, n := int(got["last_m"]), int(got["last_n"])
				must.That(t, m+128 >= p.M && n+64 >= p.N && m <= (p.M-1)/128*128 && n <= (p.N-1)/64*64,
					"%s: the last tiles begin at %d and %d", p, m, n)
				if majors[0] == 'm' && m%8 != 0 || (majors[1] == 'n' || s.TilesC) && n%8 != 0 || s.PairsC && n%2 != 0 {
					t.Errorf("%s: a box begins at %d and %d", p, m, n)
				}
				if m%128 != 0 || n%64 != 0 {
					shifted++
				}
			}
		}
	}
	must.That(t, shifted != 0, "no tile began earlier")
}

// TestLaunchStream: the launch has the shares, and the workspace is large enough for any device.
func TestLaunchStream(t *testing.T) {
	s := spec(t, "128x128x64,warps=12,stages=3,cluster=2,stream_k=1", "kn", gemm.FP16, gemm.FP16)
	s.Processors = 132
	k := emit(t, s)
	call := gemmgen.NewCall(gentest.Problem(1032, 2408, 5432, 1, false, false))
	_, err := s.Launch(k, call)
	must.That(t, err != nil, "tiles are shared without a workspace")
	call.Partials, call.Counters = 1<<43, 1<<44
	l := must.Get(s.Launch(k, call))(t)
	got := gentest.Params(k.Kernel, l.Params)
	// 5 × 19 pairs of tiles on 66 clusters: a wave of 66, and 29 that are shared with it, as they are less than half.
	must.That(t, got["whole"] == 0 && got["shared"] == 95*85 && got["share"] == 123 && l.GridX == 132, "%v", got)
	partials, counters := s.Workspace(call.Problem)
	must.That(t, partials >= 132*2*128*128*4 && counters >= 95*2*8*4, "workspace of %v and %v", partials, counters)
	s = spec(t, "64x16x64,warps=8,stages=2,stream_k=1", "kn", gemm.FP16, gemm.FP32)
	call = gemmgen.NewCall(gentest.Problem(64, 16*130, 1<<31-1088, 1, false, false))
	call.Partials, call.Counters = 1<<43, 1<<44
	if _, err := s.Launch(emit(t, s), call); err == nil || !strings.Contains(err.Error(), "blocks along K") {
		t.Errorf("more blocks than 32 bits can count: %v", err)
	}
}
