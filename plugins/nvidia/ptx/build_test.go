package ptx_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// sm90 is a target for kernels whose target does not matter.
var sm90 = target.Target{CC: 90}

var update = flag.Bool("update", false, "rewrite the golden kernels in testdata")

// scale multiplies n floats by a factor, a small kernel with a branch, a barrier and shared memory.
func scale() *ptx.Builder {
	b := ptx.New("scale")
	b.Header("scale: out[i] = factor * in[i]")
	b.LaunchBounds(128, 1)
	in, out := b.Param("in", ptx.U64), b.Param("out", ptx.U64)
	n, factor := b.Param("n", ptx.U32), b.Param("factor", ptx.F32)
	buffer := b.SharedVar("buffer", 512, 16)
	done := b.Label("done")
	tid, count, offset, base := b.B32(), b.B32(), b.B32(), b.B32()
	from, to, wide := b.B64(), b.B64(), b.B64()
	outside := b.Pred()
	x, f := b.F32(), b.F32()
	b.MovU32(tid, ptx.TidX)
	b.LdParamU32(count, n)
	b.LdParamU64(from, in)
	b.LdParamU64(to, out)
	b.LdParamF32(f, factor)
	b.MovU32(base, buffer)
	b.ShlB32(offset, tid, ptx.Int(2))
	b.AddS32(base, base, offset)
	b.BarSync(ptx.Int(0))
	b.SetpLtS32(outside, tid, count)
	b.Comment("only threads with an element go on")
	b.IfNot(outside).Bra(done)
	b.CvtU64U32(wide, offset)
	b.AddS64(from, from, wide)
	b.AddS64(to, to, wide)
	b.LdGlobalF32(x, ptx.Global(from, 0))
	b.MulF32(x, x, f)
	b.StSharedF32(ptx.Shared(base, 0), x)
	b.StGlobalF32(ptx.Global(to, 0), x)
	b.Place(done)
	b.Ret()
	return b
}

func TestGolden(t *testing.T) {
	k := must.Get(scale().Build(sm90))(t)
	must.File(t, "testdata/scale.sm_80.ptx", k.Text, *update)
	again, err := scale().Build(sm90)
	must.That(t, err == nil && again.Text == k.Text, "the same calls gave another text (%v)", err)
	if k.SharedBytes != 512 || k.ParamBytes != 24 || k.Params[3].Offset != 20 {
		t.Errorf("layout: %d shared bytes, %d parameter bytes, factor at %d",
			k.SharedBytes, k.ParamBytes, k.Params[3].Offset)
	}
	must.That(t, k.Registers["b32"] == 4 && k.Registers["f32"] == 2 && k.Registers["pred"] == 1,
		"registers %v", k.Registers)
}

// mistake is a kernel that Build refuses.
type mistake struct {
	name string
	emit func(b *ptx.Builder)
	want string // in the error
}

func refused(t *testing.T, mistakes []mistake) {
	t.Helper()
	for _, m := range mistakes {
		b := ptx.New("k")
		m.emit(b)
		k, err := b.Build(sm90)
		switch {
		case err == nil:
			t.Errorf("%s: built:\n%s", m.name, k.Text)
		case !strings.Contains(err.Error(), m.want):
			t.Errorf("%s: %v\nwant it to contain %s", m.name, err, m.want)
		}
	}
}

func TestWrongOperands(t *testing.T) {
	refused(t, []mistake{
		{"a parameter that is not declared", func(b *ptx.Builder) {
			b.Params(ptx.U32, "m", "n")
			b.LdParamU32(b.B32(), b.ParamAt("k"))
			b.Ret()
		}, "no parameter k is declared"},
		{"wrong register class", func(b *ptx.Builder) {
			x, y := b.B32(), b.F32()
			b.MovB32(x, ptx.Int(1))
			b.AddS32(x, x, y)
			b.Ret()
		}, `"add.s32 %r0, %r0, %f1;": operand b takes b32 or integer, not f32`},
		{"wrong state space", func(b *ptx.Builder) {
			p, x := b.B64(), b.F32()
			b.MovB64(p, ptx.Int(0))
			b.LdSharedF32(x, ptx.Global(p, 0))
			b.Ret()
		}, "operand addr takes [shared], not [global]"},
		{"address of the wrong width", func(b *ptx.Builder) {
			p, x := b.B32(), b.F32()
			b.MovB32(p, ptx.Int(0))
			b.LdGlobalF32(x, ptx.Global(p, 0))
			b.Ret()
		}, "operand addr takes [global], not an invalid operand"},
		{"short vector", func(b *ptx.Builder) {
			a := b.B32()
			b.MovB32(a, ptx.Int(0))
			b.LdmatrixX4(b.Vec(b.B32(), b.B32()), ptx.Shared(a, 0))
			b.Ret()
		}, "operand d takes a vector of 4 b32, not a vector of 2 b32"},
		{"mixed vector", func(b *ptx.Builder) { b.Vec(b.B32(), b.F32()); b.Ret() },
			"vector operand mixes b32 with f32"},
		{"constant as destination", func(b *ptx.Builder) { b.MovB32(ptx.Int(1), ptx.Int(2)); b.Ret() },
			"operand d takes b32, not integer"},
		{"shared variable of no size", func(b *ptx.Builder) { b.SharedVar("s", 0, 16); b.Ret() },
			"shared variable s has 0 bytes"},
	})
}

func TestWrongFlow(t *testing.T) {
	refused(t, []mistake{
		{"read before write", func(b *ptx.Builder) { b.AddS32(b.B32(), b.B32(), ptx.Int(1)); b.Ret() },
			"is not written on every path"},
		{"written on one path only", func(b *ptx.Builder) {
			x, p, join := b.B32(), b.Pred(), b.Label("join")
			b.MovU32(x, ptx.TidX)
			b.SetpEqS32(p, x, ptx.Int(0))
			y := b.B32()
			b.If(p).Bra(join)
			b.MovB32(y, ptx.Int(1))
			b.Place(join)
			b.AddS32(x, x, y)
			b.Ret()
		}, "is not written on every path"},
		{"written under a guard only", func(b *ptx.Builder) {
			x, y, p := b.B32(), b.B32(), b.Pred()
			b.MovU32(x, ptx.TidX)
			b.SetpEqS32(p, x, ptx.Int(0))
			b.If(p).MovB32(y, ptx.Int(1))
			b.AddS32(x, x, y)
			b.Ret()
		}, "is not written on every path"},
		{"label never placed", func(b *ptx.Builder) { b.BraUni(b.Label("gone")) }, "label gone is never placed"},
		{"label placed twice", func(b *ptx.Builder) { l := b.Label("l"); b.Place(l); b.Place(l); b.Ret() },
			"label l is placed twice"},
		{"label name twice", func(b *ptx.Builder) { b.Place(b.Label("l")); b.Place(b.Label("l")); b.Ret() },
			"two labels are named l"},
		{"no end", func(b *ptx.Builder) { b.BarSync(ptx.Int(0)) }, "control falls off the end"},
		{"empty", func(*ptx.Builder) {}, "the kernel is empty"},
		{"guard that is no predicate", func(b *ptx.Builder) { b.If(b.B32()).Ret(); b.Ret() },
			"guard is no predicate but b32"},
		{"barrier under a guard", func(b *ptx.Builder) {
			x, p := b.B32(), b.Pred()
			b.MovU32(x, ptx.TidX)
			b.SetpEqS32(p, x, ptx.Int(0))
			b.If(p).BarSync(ptx.Int(0))
			b.Ret()
		}, "a barrier under a guard"},
		{"barrier that some threads jump over", func(b *ptx.Builder) {
			x, p, join := b.B32(), b.Pred(), b.Label("join")
			b.MovU32(x, ptx.TidX)
			b.SetpEqS32(p, x, ptx.Int(0))
			b.If(p).Bra(join)
			b.BarSync(ptx.Int(0))
			b.Place(join)
			b.Ret()
		}, "which some threads may leave by another way"},
		{"barrier after some threads ended", func(b *ptx.Builder) {
			x, p := b.B32(), b.Pred()
			b.MovU32(x, ptx.TidX)
			b.SetpEqS32(p, x, ptx.Int(0))
			b.If(p).Ret()
			b.BarSync(ptx.Int(0))
			b.Ret()
		}, "which some threads may leave by another way"},
	})
}

// TestBarriersThatAllReach: a barrier is allowed where both sides of a branch have joined, or all threads branch alike.
func TestBarriersThatAllReach(t *testing.T) {
	for name, branch := range map[string]func(b *ptx.Builder, l ptx.Operand){
		"rejoined": func(b *ptx.Builder, l ptx.Operand) { b.Bra(l); b.Place(l); b.BarSync(ptx.Int(0)) },
		"uniform":  func(b *ptx.Builder, l ptx.Operand) { b.BraUni(l); b.BarSync(ptx.Int(0)); b.Place(l) },
	} {
		b := ptx.New("k")
		x, p := b.B32(), b.Pred()
		b.MovU32(x, ptx.CtaidX)
		b.SetpEqS32(p, x, ptx.Int(0))
		branch(b.If(p), b.Label("l"))
		b.Ret()
		_, err := b.Build(sm90)
		must.That(t, err == nil, "%s: %v", name, err)
	}
}
