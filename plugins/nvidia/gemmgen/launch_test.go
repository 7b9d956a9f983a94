package gemmgen

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// TestStart: a launch has a CTA for each tile, split and matrix, the values that calls have in common and those of the
// family. What does not fit is refused, with the kernel that it was for.
func TestStart(t *testing.T) {
	b := ptx.New("start")
	b.Params(ptx.U32, "m", "own")
	b.Ret()
	cfg := gemm.Config{BlockM: 32, BlockN: 64, BlockK: 16, SplitK: 2}
	k := must.Get(Assemble(b, target.Target{CC: 80}, cfg, Kernel{Key: "key", Threads: 128, SharedMemory: 48}))(t)
	p := gentest.Problem(100, 100, 100, 3, false, false)
	start := func(change func(*Call), key any, refused *diag.Error) (Launch, error) {
		call := NewCall(p)
		call.Partials, call.Counters = 1, 1
		change(&call)
		return Start(k, call, cfg, func() (any, *diag.Error) { return key, nil },
			func(l *Launch, _ *Call, tiles Tiling) (map[string]uint64, *diag.Error) {
				l.GridX++
				return map[string]uint64{"own": uint64(tiles.KPerSplit)}, refused
			})
	}
	none := func(*Call) {}
	l, err := start(none, "key", nil)
	if err != nil || l.GridX != 4*2+1 || l.GridY != 2 || l.GridZ != 3 || l.Threads != 128 || l.SharedMemory != 48 ||
		string(l.Params) != "\x64\x00\x00\x00\x40\x00\x00\x00" {
		t.Errorf("%+v, %v", l, err)
	}
	for _, c := range []struct {
		change  func(*Call)
		key     any
		refused *diag.Error
		want    string
	}{
		{none, "another", nil, "the kernel is not for"},
		{none, "key", diag.Inputf("the family says no"), "the family says no"},
		{none, "key", Narrow(2, 4, 8, 16, 16, 16), "aligned to 2, 4 and 8 bytes, the kernel needs 16, 16 and 16"},
		{func(c *Call) { c.Partials = 0 }, "key", nil, "needs a workspace"},
		{func(c *Call) { c.A.LD = 1 }, "key", nil, "leading dimension of A"},
		{func(c *Call) { c.Problem.M = 0 }, "key", nil, "m is missing"},
		{func(c *Call) { c.Problem.M = 1 << 31 }, "key", nil, "above"},
		{func(c *Call) { c.Problem.Batch = 1 << 16 }, "key", nil, "exceed the grid"},
	} {
		_, err := start(c.change, c.key, c.refused)
		must.That(t, err != nil && strings.Contains(err.Error(), c.want) && diag.KindOf(err) == diag.Input,
			"%v, want %s", err, c.want)
	}
	_, err = start(none, "another", nil)
	must.That(t, strings.Contains(err.Error(), "launch of start"), "%v does not name the kernel", err)
}

// TestEpilogues: a kernel's name and header say what it does to C.
func TestEpilogues(t *testing.T) {
	for text, want := range map[string][2]string{
		"":                     {"", "C = alpha * A * B + beta * C"},
		"bias+gelu":            {"_bias_gelu", "C = gelu(alpha * A * B + beta * C + bias)"},
		"scales+bias+residual": {"_scales_bias_residual", "C = alpha * scale_a * scale_b * A * B + bias + R"},
	} {
		var e gemm.Epilogue
		if text != "" {
			var err error
			if e, err = gemm.ParseEpilogue(text); err != nil {
				t.Fatal(err)
			}
		}
		must.Equal(t, [2]string{EpilogueSuffix(e), Formula(e)}, want, text)
	}
}

// TestAssemble: a text that the builder refuses is an internal error that names the configuration.
func TestAssemble(t *testing.T) {
	_, err := Assemble(ptx.New("empty"), target.Target{CC: 80}, gemm.Config{BlockM: 32}, Kernel{})
	for _, want := range []string{"the generated kernel is wrong", "config 32x"} {
		must.That(t, err != nil && strings.Contains(err.Error(), want), "%v, want %s", err, want)
	}
}
