package mma

import (
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

func TestLaunch(t *testing.T) {
	s := spec(t, "64x128x32,group=3,split=4", "mk", gemm.FP16, gemm.FP16, 16, 16, 16)
	k := emit(t, s)
	call := gemmgen.NewCall(gentest.Problem(200, 264, 1000, 5, true, true))
	call.A.Address, call.B.Address, call.C.Address = 1<<40, 1<<41, 1<<42
	call.Partials, call.Counters = 1<<43, 1<<44
	call.Alpha, call.Beta = 0.5, -2
	l := must.Get(s.Launch(k, call))(t)
	must.That(t, l.GridX == 4*3 && l.GridY == 4 && l.GridZ == 5 && l.Threads == 128 && l.SharedMemory == k.SharedMemory,
		"launch %+v", l)
	if n := gentest.Want(t, k.Kernel, l.Params, map[string]uint64{
		"a": 1 << 40, "b": 1 << 41, "c": 1 << 42, "partials": 1 << 43, "counters": 1 << 44,
		"lda": 200, "ldb": 1000, "ldc": 264, "stride_a": 200000, "stride_b": 264000, "stride_c": 52800,
		"m": 200, "n": 264, "k": 1000, "tiles_m": 4, "tiles_n": 3, "group_m": 3,
		"k_per_split": 256, // 32 tiles of 32 over 4 splits
		"alpha":       uint64(math.Float32bits(0.5)), "beta": uint64(math.Float32bits(-2)),
	}); n != 20 {
		t.Errorf("%d parameters", n)
	}
}

// TestLaunchRefuses what the kernel would compute wrong.
func TestLaunchRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*gemmgen.Call, *gemm.Config)
	}{
		{"rows that are not aligned", "aligned to 16, 2 and 16 bytes",
			func(c *gemmgen.Call, _ *gemm.Config) { c.B.Address++; c.B.Address++ }},
		{"another layout", "not for",
			func(c *gemmgen.Call, _ *gemm.Config) { c.Problem.SetTrans(true, false); c.A.LD = 64 }},
		{"another type", "not for", func(c *gemmgen.Call, _ *gemm.Config) { c.Problem.DType = gemm.BF16 }},
		{"another tile", "not for", func(_ *gemmgen.Call, cfg *gemm.Config) { cfg.BlockM = 128 }},
		{"no split where the kernel has one", "not for", func(_ *gemmgen.Call, cfg *gemm.Config) { cfg.SplitK = 1 }},
	} {
		s := spec(t, "64x64x32,split=2", "kn", gemm.FP16, gemm.FP16, 16, 16, 16)
		k := emit(t, s)
		call := gemmgen.NewCall(gentest.Problem(64, 64, 64, 1, false, false))
		call.Partials, call.Counters = 256, 256
		must.Get(s.Launch(k, call))(t)
		c.change(&call, &s.Config)
		_, err := s.Launch(k, call)
		must.That(t, err != nil && strings.Contains(err.Error(), c.want) && diag.KindOf(err) == diag.Input,
			"%s: %v", c.name, err)
	}
	// A kernel for ragged rows computes those that end with an access, too, and the other way around it does not.
	padded := gentest.Problem(64, 64, 62, 1, false, false)
	padded.LDA = 64
	config := spec(t, "64x64x32", "kn", gemm.FP16, gemm.FP16, 16, 16, 16).Config
	ragged := SpecFor(gemmgen.NewCall(padded), gemm.FP16, config)
	must.That(t, ragged.RaggedA && ragged.AlignA == 16 && !ragged.RaggedB && !ragged.RaggedC, "specification %+v", ragged)
	whole := ragged
	whole.RaggedA = false
	cube := gemmgen.NewCall(gentest.Problem(64, 64, 64, 1, false, false))
	if _, err := ragged.Launch(emit(t, ragged), cube); err != nil {
		t.Error(err)
	}
	if _, err := whole.Launch(emit(t, whole), gemmgen.NewCall(padded)); err == nil {
		t.Error("a kernel for whole rows computes ragged ones")
	}
	// Scalars of integer sums are integers.
	integer := spec(t, "64x64x32", "kk", gemm.INT8, gemm.INT32, 16, 16, 16)
	call := gemmgen.NewCall(gentest.Problem(64, 64, 64, 1, false, true))
	call.Problem.DType, call.Alpha, call.Beta = gemm.INT8, -2, 3
	l, err := integer.Launch(emit(t, integer), call)
	must.Do(t, err)
	if got := gentest.Params(emit(t, integer).Kernel, l.Params); int32(got["alpha"]) != -2 || got["beta"] != 3 {
		t.Errorf("alpha %d, beta %d", int32(got["alpha"]), got["beta"])
	}
	call.Alpha = 0.5
	_, err = integer.Launch(emit(t, integer), call)
	must.That(t, err != nil && strings.Contains(err.Error(), "give whole numbers"), "half of an integer: %v", err)
	// A kernel for narrow rows computes wide ones too.
	narrow := spec(t, "64x64x32", "kn", gemm.FP16, gemm.FP16, 2, 2, 2)
	if _, err := narrow.Launch(emit(t, narrow), cube); err != nil {
		t.Error(err)
	}
}

// TestEpilogueRefused: a bias without an address, and integers.
func TestEpilogueRefused(t *testing.T) {
	p := gentest.Problem(64, 64, 64, 1, false, false)
	p.Epilogue.Bias = true
	s := SpecFor(gemmgen.NewCall(p), gemm.FP16, gemm.Config{BlockM: 32, BlockN: 32, BlockK: 32, NumWarps: 4, NumStages: 2,
		GroupM: 1, SplitK: 1, Kernel: Name})
	_, err := s.Launch(emit(t, s), gemmgen.NewCall(p))
	must.That(t, err != nil && strings.Contains(err.Error(), "no address"), "a bias without an address: %v", err)
	s.DType, s.Out, s.BMajor = gemm.INT8, gemm.INT32, gemm.MajorK
	reason, _ := s.belongs()
	must.That(t, reason != "", "a bias is added to integers")
}
