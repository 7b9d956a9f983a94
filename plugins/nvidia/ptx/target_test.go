package ptx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// The instructions of these tests, by what they need.
func plain(*ptx.Builder)               {}
func cpAsync(b *ptx.Builder)           { b.CpAsyncWaitAll() }
func wgmma(b *ptx.Builder)             { b.WgmmaFenceSyncAligned() }
func splitRegisters(b *ptx.Builder)    { b.SetmaxnregIncSyncAlignedU32(ptx.Int(232)) }
func wgmmaAndCopy(b *ptx.Builder)      { cpAsync(b); wgmma(b); cpAsync(b) }
func wgmmaAndSplits(b *ptx.Builder)    { wgmma(b); splitRegisters(b) }
func splitsAndLdmatrix(b *ptx.Builder) { splitRegisters(b); ldmatrix(b) }

func ldmatrix(b *ptx.Builder) {
	a := b.B32()
	b.MovB32(a, ptx.Int(0))
	b.LdmatrixX2(b.Vec(b.B32(), b.B32()), ptx.Shared(a, 0))
}

func cpAsyncHint(b *ptx.Builder) {
	s, g := b.B32(), b.B64()
	b.MovB32(s, ptx.Int(0))
	b.MovB64(g, ptx.Int(0))
	b.CpAsyncCgSharedGlobalL2128B16(ptx.Shared(s, 0), ptx.Global(g, 0))
}

// TestTarget: .target is the lowest that has all instructions, .version the first ISA version that has them and knows
// the target; an instruction that the requested target lacks is refused.
func TestTarget(t *testing.T) {
	for _, c := range []struct {
		name    string
		emit    func(b *ptx.Builder)
		request string
		target  string
		version string
		err     string
	}{
		{"plain", plain, "sm_90", "sm_50", "6.0", ""},
		{"ldmatrix", ldmatrix, "sm_90", "sm_75", "6.5", ""},
		{"cp.async", cpAsync, "sm_90", "sm_80", "7.0", ""},
		{"cp.async for a target with features", cpAsync, "sm_90a", "sm_80", "7.0", ""},
		{"cp.async with an L2 hint", cpAsyncHint, "sm_90", "sm_80", "7.4", ""},
		{"cp.async before it came", cpAsync, "sm_75", "", "",
			`"cp.async.wait_all;" needs sm_80, the kernel is for sm_75`},
		{"wgmma", wgmma, "sm_90a", "sm_90a", "8.0", ""},
		{"wgmma among others", wgmmaAndCopy, "sm_90a", "sm_90a", "8.0", ""},
		{"wgmma without features", wgmma, "sm_90", "", "",
			`"wgmma.fence.sync.aligned;" needs sm_90a, the kernel is for sm_90`},
		{"wgmma after it left", wgmma, "sm_100a", "", "", "needs sm_90a, the kernel is for sm_100a"},
		{"setmaxnreg", splitRegisters, "sm_90a", "sm_90a", "8.0", ""},
		{"setmaxnreg of the next architecture", splitRegisters, "sm_100a", "sm_100a", "8.6", ""},
		{"setmaxnreg of a family", splitRegisters, "sm_103f", "sm_100f", "8.8", ""},
		{"setmaxnreg and ldmatrix", splitsAndLdmatrix, "sm_120f", "sm_120f", "8.8", ""},
		{"setmaxnreg without features", splitRegisters, "sm_100", "", "", "needs sm_90a or sm_100a or sm_100f or"},
		{"wgmma and setmaxnreg", wgmmaAndSplits, "sm_90a", "sm_90a", "8.0", ""},
	} {
		request := must.Get(target.Parse(c.request))(t)
		b := ptx.New("k")
		c.emit(b)
		b.Ret()
		k, err := b.Build(request)
		switch {
		case c.err != "":
			must.That(t, err != nil && strings.Contains(err.Error(), c.err), "%s: %v, want an error with %s", c.name, err, c.err)
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case !strings.HasPrefix(k.Text, fmt.Sprintf(".version %s\n.target %s\n", c.version, c.target)) ||
			k.Target.String() != c.target:
			t.Errorf("%s: target %s, want %s and version %s:\n%.60s", c.name, k.Target, c.target, c.version, k.Text)
		}
	}
}
