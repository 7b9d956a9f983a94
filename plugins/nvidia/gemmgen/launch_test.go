package gemmgen

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

func problem(m, n, k, batch int, transA, transB bool) gemm.Problem {
	p := gemm.New(m, n, k)
	p.Batch = batch
	p.SetTrans(transA, transB)
	return p
}

// TestAlignment: the copy width follows from addresses, leading dimensions, strides and row lengths together.
func TestAlignment(t *testing.T) {
	for _, c := range []struct {
		name    string
		call    func() Call
		out     gemm.DType
		a, b, c int
	}{
		{"multiples of 8", func() Call { return Packed(problem(64, 64, 64, 1, false, false)) }, gemm.FP16, 16, 16, 16},
		{"m does not matter to k-contiguous A and row-major C", func() Call { return Packed(problem(7, 64, 64, 1, false, false)) }, gemm.FP16, 16, 16, 16},
		{"m matters to m-contiguous A", func() Call { return Packed(problem(12, 64, 64, 1, true, false)) }, gemm.FP16, 8, 16, 16},
		{"k matters to k-contiguous B", func() Call { return Packed(problem(64, 64, 6, 1, true, true)) }, gemm.FP16, 16, 4, 16},
		{"odd n", func() Call { return Packed(problem(64, 7, 64, 1, false, false)) }, gemm.FP16, 16, 2, 2},
		{"odd n, fp32 out", func() Call { return Packed(problem(64, 7, 64, 1, false, true)) }, gemm.FP32, 16, 16, 4},
		{"even n, fp32 out", func() Call { return Packed(problem(64, 6, 64, 1, false, true)) }, gemm.FP32, 16, 16, 8},
		{"padded rows of odd length", func() Call { c := Packed(problem(64, 64, 63, 1, false, true)); c.A.LD, c.B.LD = 64, 64; return c }, gemm.FP16, 2, 2, 16},
		{"odd leading dimension", func() Call { c := Packed(problem(64, 64, 64, 1, false, false)); c.A.LD = 65; return c }, gemm.FP16, 2, 16, 16},
		{"address", func() Call {
			c := Packed(problem(64, 64, 64, 1, false, false))
			c.B.Address, c.C.Address = 4, 8
			return c
		}, gemm.FP16, 16, 4, 8},
		{"stride of a batch", func() Call { c := Packed(problem(64, 64, 64, 2, false, false)); c.A.Stride = 64*64 + 4; return c }, gemm.FP16, 8, 16, 16},
		{"stride without a batch", func() Call { c := Packed(problem(64, 64, 64, 1, false, false)); c.A.Stride = 64*64 + 4; return c }, gemm.FP16, 16, 16, 16},
	} {
		s := c.call().Spec(c.out, gemm.Config{})
		if s.AlignA != c.a || s.AlignB != c.b || s.AlignC != c.c {
			t.Errorf("%s: %d, %d, %d, want %d, %d, %d", c.name, s.AlignA, s.AlignB, s.AlignC, c.a, c.b, c.c)
		}
	}
}

func TestLaunch(t *testing.T) {
	s := spec(t, "64x128x32,group=3,split=4", "mk", gemm.FP16, gemm.FP16, 16, 16, 16)
	k := emit(t, s)
	call := Packed(problem(200, 264, 1000, 5, true, true))
	call.A.Address, call.B.Address, call.C.Address = 1<<40, 1<<41, 1<<42
	call.Partials, call.Counters = 1<<43, 1<<44
	call.Alpha, call.Beta = 0.5, -2
	l, err := k.Launch(call, s.Config)
	if err != nil {
		t.Fatal(err)
	}
	if l.GridX != 4*3 || l.GridY != 4 || l.GridZ != 5 || l.Threads != 128 || l.SharedMemory != k.SharedMemory {
		t.Errorf("launch %+v", l)
	}
	got := unpack(k.Kernel, l)
	for name, want := range map[string]uint64{"a": 1 << 40, "b": 1 << 41, "c": 1 << 42, "partials": 1 << 43, "counters": 1 << 44, "lda": 200, "ldb": 1000, "ldc": 264,
		"stride_a": 200000, "stride_b": 264000, "stride_c": 52800, "m": 200, "n": 264, "k": 1000, "tiles_m": 4, "tiles_n": 3, "group_m": 3,
		"k_per_split": 256, // 32 tiles of 32 over 4 splits
		"alpha":       uint64(math.Float32bits(0.5)), "beta": uint64(math.Float32bits(-2))} {
		if got[name] != want {
			t.Errorf("parameter %s is %d, want %d", name, got[name], want)
		}
	}
	if len(got) != 20 {
		t.Errorf("%d parameters", len(got))
	}
	partials, counters := Workspace(call.Problem, s.Config)
	if partials != 4*3*5*4*64*128*4 || counters != 4*3*5*4 {
		t.Errorf("workspace of %v and %v B", partials, counters)
	}
	if p, c := Workspace(call.Problem, gemm.Config{BlockM: 64, BlockN: 128, SplitK: 1}); p != 0 || c != 0 {
		t.Error("a workspace without splits")
	}
}

// TestLaunchRefuses what the kernel would compute wrong.
func TestLaunchRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*Call, *gemm.Config)
	}{
		{"a problem that is none", "m is missing", func(c *Call, _ *gemm.Config) { c.Problem.M = 0 }},
		{"rows that are not aligned", "aligned to 16, 2 and 16 bytes", func(c *Call, _ *gemm.Config) { c.B.Address++; c.B.Address++ }},
		{"another layout", "not for", func(c *Call, _ *gemm.Config) { c.Problem.SetTrans(true, false); c.A.LD = 64 }},
		{"another type", "not for", func(c *Call, _ *gemm.Config) { c.Problem.DType = gemm.BF16 }},
		{"another tile", "not for", func(_ *Call, cfg *gemm.Config) { cfg.BlockM = 128 }},
		{"no split where the kernel has one", "not for", func(_ *Call, cfg *gemm.Config) { cfg.SplitK = 1 }},
		{"a leading dimension below the row", "leading dimension of A is 32", func(c *Call, _ *gemm.Config) { c.A.LD = 32 }},
		{"indices beyond 32 bits", "above", func(c *Call, _ *gemm.Config) { c.Problem.M = 1 << 31 }},
		{"a batch beyond the grid", "exceed the grid", func(c *Call, _ *gemm.Config) { c.Problem.Batch = 1 << 16 }},
		{"no workspace", "needs a workspace", func(c *Call, _ *gemm.Config) { c.Counters = 0 }},
	} {
		s := spec(t, "64x64x32,split=2", "kn", gemm.FP16, gemm.FP16, 16, 16, 16)
		k := emit(t, s)
		call := Packed(problem(64, 64, 64, 1, false, false))
		call.Partials, call.Counters = 256, 256
		cfg := s.Config
		if _, err := k.Launch(call, cfg); err != nil {
			t.Fatal(err)
		}
		c.change(&call, &cfg)
		_, err := k.Launch(call, cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) || diag.KindOf(err) != diag.Input {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// A kernel for narrow rows computes wide ones too.
	narrow := spec(t, "64x64x32", "kn", gemm.FP16, gemm.FP16, 2, 2, 2)
	if _, err := emit(t, narrow).Launch(Packed(problem(64, 64, 64, 1, false, false)), narrow.Config); err != nil {
		t.Error(err)
	}
}

// unpack reads the parameters of a launch by name.
func unpack(k *ptx.Kernel, l Launch) map[string]uint64 {
	got := map[string]uint64{}
	for _, p := range k.Params {
		if p.Type.Bytes() == 8 {
			got[p.Name] = binary.LittleEndian.Uint64(l.Params[p.Offset:])
		} else {
			got[p.Name] = uint64(binary.LittleEndian.Uint32(l.Params[p.Offset:]))
		}
	}
	return got
}
