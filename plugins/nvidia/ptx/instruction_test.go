package ptx

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

func TestConstructorsAreGenerated(t *testing.T) {
	want := must.Get(inst.Constructors())(t)
	got := must.Get(os.ReadFile("zinstructions.go"))(t)
	if !bytes.Equal(got, want) {
		t.Error("zinstructions.go is not what the instruction table gives: run go generate ./plugins/nvidia/ptx")
	}
}

// TestInstructionText gives every constructor its operands and compares the line it prints.
func TestInstructionText(t *testing.T) {
	b := New("k")
	r := b.Regs(8, b.B32)  // %r0-%r7
	d := b.Regs(3, b.B64)  // %d8-%d10
	f := b.Regs(8, b.F32)  // %f11-%f18
	h := b.Regs(2, b.B16)  // %h19, %h20
	p := b.Regs(3, b.Pred) // %p21-%p23
	g := b.Regs(3, b.F64)  // %g24-%g26
	b.Params(TensorMap, "tensors")
	tensors := b.ParamName("tensors")
	x, word, long, float := b.Label("x"), b.Param("word", U32), b.Param("long", U64), b.Param("float", F32)
	smem := b.DynamicShared("smem", 16)
	r2, r4, f4, h2 := b.Vec(r[:2]...), b.Vec(r[:4]...), b.Vec(f[:4]...), b.Vec(h...)
	r8, f8 := b.Vec(r...), b.Vec(f...)
	const eightWords, eightFloats = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}",
		"{%f11, %f12, %f13, %f14, %f15, %f16, %f17, %f18}"
	covered := map[int]bool{}
	for _, c := range []struct {
		emit func()
		want string
	}{
		{func() { b.MovB16(h[0], Int(0)) }, "mov.b16 %h19, 0;"},
		{func() { b.MovB32(r[0], r[1]) }, "mov.b32 %r0, %r1;"},
		{func() { b.MovB64(d[0], Int(-1)) }, "mov.b64 %d8, -1;"},
		{func() { b.MovF32(f[0], Float(1.5)) }, "mov.f32 %f11, 0f3FC00000;"},
		{func() { b.MovU32(r[0], NctaidY) }, "mov.u32 %r0, %nctaid.y;"},
		{func() { b.MovU32(r[0], smem) }, "mov.u32 %r0, smem;"},
		{func() { b.MovB32Unpack(h2, r[0]) }, "mov.b32 {%h19, %h20}, %r0;"},
		{func() { b.CvtaToGlobalU64(d[0], d[1]) }, "cvta.to.global.u64 %d8, %d9;"},
		{func() { b.AddS32(r[0], r[1], Int(-4)) }, "add.s32 %r0, %r1, -4;"},
		{func() { b.MovU64(d[0], Clock64) }, "mov.u64 %d8, %clock64;"},
		{func() { b.SubS64(d[0], d[1], d[2]) }, "sub.s64 %d8, %d9, %d10;"},
		{func() { b.LdGlobalCgV4B32(r4, Global(d[0], 16)) }, "ld.global.cg.v4.b32 {%r0, %r1, %r2, %r3}, [%d8+16];"},
		{func() { b.LdGlobalCgV2B32(r2, Global(d[0], 0)) }, "ld.global.cg.v2.b32 {%r0, %r1}, [%d8];"},
		{func() { b.LdGlobalB64(d[0], Global(d[1], 0)) }, "ld.global.b64 %d8, [%d9];"},
		{func() { b.StGlobalB64(Global(d[1], 8), d[0]) }, "st.global.b64 [%d9+8], %d8;"},
		{func() { b.SubS32(r[0], Int(1), r[2]) }, "sub.s32 %r0, 1, %r2;"},
		{func() { b.MulLoS32(r[0], r[1], r[2]) }, "mul.lo.s32 %r0, %r1, %r2;"},
		{func() { b.MadLoS32(r[0], r[1], Int(3), r[2]) }, "mad.lo.s32 %r0, %r1, 3, %r2;"},
		{func() { b.MulWideU32(d[0], r[1], Int(2)) }, "mul.wide.u32 %d8, %r1, 2;"},
		{func() { b.MadWideU32(d[0], r[1], Int(2), d[1]) }, "mad.wide.u32 %d8, %r1, 2, %d9;"},
		{func() { b.CvtS64S32(d[0], r[1]) }, "cvt.s64.s32 %d8, %r1;"},
		{func() { b.CvtU64U32(d[0], r[1]) }, "cvt.u64.u32 %d8, %r1;"},
		{func() { b.CvtU32U64(r[0], d[1]) }, "cvt.u32.u64 %r0, %d9;"},
		{func() { b.CvtS32S8(r[0], h[0]) }, "cvt.s32.s8 %r0, %h19;"},
		{func() { b.CvtU32U16(r[0], h[1]) }, "cvt.u32.u16 %r0, %h20;"},
		{func() { b.AddS64(d[0], d[1], Int(16)) }, "add.s64 %d8, %d9, 16;"},
		{func() { b.MulLoS64(d[0], d[1], d[2]) }, "mul.lo.s64 %d8, %d9, %d10;"},
		{func() { b.MadLoS64(d[0], d[1], d[2], d[0]) }, "mad.lo.s64 %d8, %d9, %d10, %d8;"},
		{func() { b.DivU32(r[0], r[1], r[2]) }, "div.u32 %r0, %r1, %r2;"},
		{func() { b.MinS32(r[0], r[1], Int(8)) }, "min.s32 %r0, %r1, 8;"},
		{func() { b.MaxS32(r[0], r[1], Int(0)) }, "max.s32 %r0, %r1, 0;"},
		{func() { b.MinU32(r[0], r[1], r[2]) }, "min.u32 %r0, %r1, %r2;"},
		{func() { b.MaxU32(r[0], r[1], r[2]) }, "max.u32 %r0, %r1, %r2;"},
		{func() { b.MinU64(d[0], d[1], d[2]) }, "min.u64 %d8, %d9, %d10;"},
		{func() { b.AndB32(r[0], r[1], Int(7)) }, "and.b32 %r0, %r1, 7;"},
		{func() { b.XorB32(r[0], r[1], Int(32)) }, "xor.b32 %r0, %r1, 32;"},
		{func() { b.ShlB32(r[0], r[1], Int(4)) }, "shl.b32 %r0, %r1, 4;"},
		{func() { b.ShrU32(r[0], r[1], Int(5)) }, "shr.u32 %r0, %r1, 5;"},
		{func() { b.ShlB64(d[0], d[1], Int(1)) }, "shl.b64 %d8, %d9, 1;"},
		{func() { b.SetpEqS32(p[0], r[1], r[2]) }, "setp.eq.s32 %p21, %r1, %r2;"},
		{func() { b.SetpNeS32(p[0], r[1], Int(0)) }, "setp.ne.s32 %p21, %r1, 0;"},
		{func() { b.SetpLtS32(p[0], r[1], r[2]) }, "setp.lt.s32 %p21, %r1, %r2;"},
		{func() { b.SetpGtS32(p[0], r[1], r[2]) }, "setp.gt.s32 %p21, %r1, %r2;"},
		{func() { b.SetpGeU32(p[0], r[1], r[2]) }, "setp.ge.u32 %p21, %r1, %r2;"},
		{func() { b.SetpLtU32(p[0], r[1], Int(7)) }, "setp.lt.u32 %p21, %r1, 7;"},
		{func() { b.SetpGtuF32(p[0], f[1], f[2]) }, "setp.gtu.f32 %p21, %f12, %f13;"},
		{func() { b.SetpNeuF32(p[0], f[1], Float(0)) }, "setp.neu.f32 %p21, %f12, 0f00000000;"},
		{func() { b.AndPred(p[0], p[1], p[2]) }, "and.pred %p21, %p22, %p23;"},
		{func() { b.SelpB32(r[0], r[1], Int(0), p[0]) }, "selp.b32 %r0, %r1, 0, %p21;"},
		{func() { b.AddF32(f[0], f[1], f[2]) }, "add.rn.f32 %f11, %f12, %f13;"},
		{func() { b.SubF32(f[0], f[1], f[2]) }, "sub.rn.f32 %f11, %f12, %f13;"},
		{func() { b.MulF32(f[0], f[1], f[2]) }, "mul.rn.f32 %f11, %f12, %f13;"},
		{func() { b.FmaF32(f[0], f[1], f[2], f[3]) }, "fma.rn.f32 %f11, %f12, %f13, %f14;"},
		{func() { b.DivFullF32(f[0], f[1], f[2]) }, "div.full.f32 %f11, %f12, %f13;"},
		{func() { b.AbsF32(f[0], f[1]) }, "abs.f32 %f11, %f12;"},
		{func() { b.MinF32(f[0], f[1], Float(1)) }, "min.f32 %f11, %f12, 0f3F800000;"},
		{func() { b.MaxNaNF32(f[0], f[1], f[2]) }, "max.NaN.f32 %f11, %f12, %f13;"},
		{func() { b.Ex2ApproxFtzF32(f[0], f[1]) }, "ex2.approx.ftz.f32 %f11, %f12;"},
		{func() { b.RcpApproxFtzF32(f[0], f[1]) }, "rcp.approx.ftz.f32 %f11, %f12;"},
		{func() { b.FmaF64(g[0], g[1], g[2], g[0]) }, "fma.rn.f64 %g24, %g25, %g26, %g24;"},
		{func() { b.CvtF32F16(f[0], h[0]) }, "cvt.f32.f16 %f11, %h19;"},
		{func() { b.CvtF16F32(h[0], f[0]) }, "cvt.rn.f16.f32 %h19, %f11;"},
		{func() { b.CvtBF16F32(h[0], f[0]) }, "cvt.rn.bf16.f32 %h19, %f11;"},
		{func() { b.CvtF16x2F32(r[0], f[1], f[0]) }, "cvt.rn.f16x2.f32 %r0, %f12, %f11;"},
		{func() { b.CvtBF16x2F32(r[0], f[1], f[0]) }, "cvt.rn.bf16x2.f32 %r0, %f12, %f11;"},
		{func() { b.CvtF64F16(g[0], h[0]) }, "cvt.f64.f16 %g24, %h19;"},
		{func() { b.CvtF64F32(g[0], f[0]) }, "cvt.f64.f32 %g24, %f11;"},
		{func() { b.CvtF32F64(f[0], g[0]) }, "cvt.rn.f32.f64 %f11, %g24;"},
		{func() { b.CvtF16x2E4M3x2(r[0], h[0]) }, "cvt.rn.f16x2.e4m3x2 %r0, %h19;"},
		{func() { b.CvtF16x2E5M2x2(r[0], h[0]) }, "cvt.rn.f16x2.e5m2x2 %r0, %h19;"},
		{func() { b.CvtRnaTF32F32(r[0], f[0]) }, "cvt.rna.tf32.f32 %r0, %f11;"},
		{func() { b.CvtF32S32(f[0], r[0]) }, "cvt.rn.f32.s32 %f11, %r0;"},
		{func() { b.CvtF64S32(g[0], r[0]) }, "cvt.rn.f64.s32 %g24, %r0;"},
		{func() { b.CvtS32F64(r[0], g[0]) }, "cvt.rni.s32.f64 %r0, %g24;"},
		{func() { b.MovF32Bits(f[0], r[0]) }, "mov.b32 %f11, %r0;"},
		{func() { b.MovB32Bits(r[0], f[0]) }, "mov.b32 %r0, %f11;"},
		{func() { b.LdParamU32(r[0], word) }, "ld.param.u32 %r0, [word];"},
		{func() { b.LdParamU64(d[0], long) }, "ld.param.u64 %d8, [long];"},
		{func() { b.LdParamF32(f[0], float) }, "ld.param.f32 %f11, [float];"},
		{func() { b.LdGlobalB8(h[0], Global(d[0], 1)) }, "ld.global.b8 %h19, [%d8+1];"},
		{func() { b.LdGlobalB16(h[0], Global(d[0], 2)) }, "ld.global.b16 %h19, [%d8+2];"},
		{func() { b.LdGlobalB32(r[0], Global(d[0], -4)) }, "ld.global.b32 %r0, [%d8+-4];"},
		{func() { b.LdGlobalB64(d[1], Global(d[0], 8)) }, "ld.global.b64 %d9, [%d8+8];"},
		{func() { b.Load(r[:2], Global(d[0], 0)) }, "ld.global.v2.b32 {%r0, %r1}, [%d8];"},
		{func() { b.Load(r[:4], Global(d[0], 0)) }, "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d8];"},
		{func() { b.LdGlobalF32(f[0], Global(d[0], 0)) }, "ld.global.f32 %f11, [%d8];"},
		{func() { b.Load(f[:2], Global(d[0], 0)) }, "ld.global.v2.f32 {%f11, %f12}, [%d8];"},
		{func() { b.Load(f[:4], Global(d[0], 0)) }, "ld.global.v4.f32 {%f11, %f12, %f13, %f14}, [%d8];"},
		{func() { b.StGlobalB16(Global(d[0], 0), h[0]) }, "st.global.b16 [%d8], %h19;"},
		{func() { b.StGlobalB32(Global(d[0], 0), Int(0)) }, "st.global.b32 [%d8], 0;"},
		{func() { b.Store(Global(d[0], 0), r[:2]) }, "st.global.v2.b32 [%d8], {%r0, %r1};"},
		{func() { b.Store(Global(d[0], 0), r[:4]) }, "st.global.v4.b32 [%d8], {%r0, %r1, %r2, %r3};"},
		{func() { b.StGlobalF32(Global(d[0], 0), f[0]) }, "st.global.f32 [%d8], %f11;"},
		{func() { b.Store(Global(d[0], 0), f[:2]) }, "st.global.v2.f32 [%d8], {%f11, %f12};"},
		{func() { b.Store(Global(d[0], 0), f[:4]) }, "st.global.v4.f32 [%d8], {%f11, %f12, %f13, %f14};"},
		{func() { b.AtomAddU32(r[0], Global(d[0], 0), Int(1)) }, "atom.acq_rel.gpu.global.add.u32 %r0, [%d8], 1;"},
		{func() { b.RedGlobalMaxU32(Global(d[0], 0), r[0]) }, "red.global.max.u32 [%d8], %r0;"},
		{func() { b.RedGlobalAddU64(Global(d[0], 8), d[1]) }, "red.global.add.u64 [%d8+8], %d9;"},
		{func() { b.RedGlobalMinU64(Global(d[0], 16), d[1]) }, "red.global.min.u64 [%d8+16], %d9;"},
		{func() { b.FenceAcqRelGpu() }, "fence.acq_rel.gpu;"},
		{func() { b.LdSharedB32(r[0], Shared(r[1], 4)) }, "ld.shared.b32 %r0, [%r1+4];"},
		{func() { b.LdSharedF32(f[0], Shared(r[1], 0)) }, "ld.shared.f32 %f11, [%r1];"},
		{func() { b.Load(f[:2], Shared(r[1], 0)) }, "ld.shared.v2.f32 {%f11, %f12}, [%r1];"},
		{func() { b.Load(f[:4], Shared(r[1], 0)) }, "ld.shared.v4.f32 {%f11, %f12, %f13, %f14}, [%r1];"},
		{func() { b.Load(r[:2], Shared(r[4], 0)) }, "ld.shared.v2.b32 {%r0, %r1}, [%r4];"},
		{func() { b.Load(r[:4], Shared(r[4], 0)) }, "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%r4];"},
		{func() { b.StGlobalB8(Global(d[0], 0), h[0]) }, "st.global.b8 [%d8], %h19;"},
		{func() { b.LdSharedB8(h[0], Shared(r[1], 1)) }, "ld.shared.b8 %h19, [%r1+1];"},
		{func() { b.LdSharedB16(h[0], Shared(r[1], 2)) }, "ld.shared.b16 %h19, [%r1+2];"},
		{func() { b.Store(Shared(r[4], 0), r[:4]) }, "st.shared.v4.b32 [%r4], {%r0, %r1, %r2, %r3};"},
		{func() { b.StSharedB8(Shared(r[1], 0), h[0]) }, "st.shared.b8 [%r1], %h19;"},
		{func() { b.Store(Shared(r[4], 0), r[:2]) }, "st.shared.v2.b32 [%r4], {%r0, %r1};"},
		{func() { b.StSharedB16(Shared(r[1], 0), h[0]) }, "st.shared.b16 [%r1], %h19;"},
		{func() { b.StSharedB32(Shared(r[1], 0), r[0]) }, "st.shared.b32 [%r1], %r0;"},
		{func() { b.StSharedF32(Shared(r[1], 0), f[0]) }, "st.shared.f32 [%r1], %f11;"},
		{func() { b.Store(Shared(r[1], 16), f[:4]) }, "st.shared.v4.f32 [%r1+16], {%f11, %f12, %f13, %f14};"},
		{func() { b.Store(Shared(r[1], 8), f[:2]) }, "st.shared.v2.f32 [%r1+8], {%f11, %f12};"},
		{func() { b.LdSharedB64(d[0], Shared(r[1], 8)) }, "ld.shared.b64 %d8, [%r1+8];"},
		{func() { b.StSharedB64(Shared(r[1], 8), d[0]) }, "st.shared.b64 [%r1+8], %d8;"},
		{func() { b.RedSharedMaxU32(Shared(r[1], 0), r[0]) }, "red.shared.max.u32 [%r1], %r0;"},
		{func() { b.RedSharedAddU32(Shared(r[1], 4), r[0]) }, "red.shared.add.u32 [%r1+4], %r0;"},
		{func() { b.RedSharedMinU64(Shared(r[1], 8), d[0]) }, "red.shared.min.u64 [%r1+8], %d8;"},
		{func() { b.CpAsyncCaSharedGlobal4(Shared(r[0], 0), Global(d[0], 0)) },
			"cp.async.ca.shared.global [%r0], [%d8], 4;"},
		{func() { b.CpAsyncCaSharedGlobal8(Shared(r[0], 0), Global(d[0], 0)) },
			"cp.async.ca.shared.global [%r0], [%d8], 8;"},
		{func() { b.CpAsyncCgSharedGlobalL2128B16(Shared(r[0], 64), Global(d[0], 0)) },
			"cp.async.cg.shared.global.L2::128B [%r0+64], [%d8], 16;"},
		{func() { b.CpAsyncCaSharedGlobal4Size(Shared(r[0], 0), Global(d[0], 0), r[1]) },
			"cp.async.ca.shared.global [%r0], [%d8], 4, %r1;"},
		{func() { b.CpAsyncCaSharedGlobal8Size(Shared(r[0], 0), Global(d[0], 0), r[1]) },
			"cp.async.ca.shared.global [%r0], [%d8], 8, %r1;"},
		{func() { b.CpAsyncCgSharedGlobalL2128B16Size(Shared(r[0], 64), Global(d[0], 0), r[1]) },
			"cp.async.cg.shared.global.L2::128B [%r0+64], [%d8], 16, %r1;"},
		{func() { b.CpAsyncCommitGroup() }, "cp.async.commit_group;"},
		{func() { b.CpAsyncWaitGroup(Int(2)) }, "cp.async.wait_group 2;"},
		{func() { b.CpAsyncWaitAll() }, "cp.async.wait_all;"},
		{func() { b.LdmatrixX2(r2, Shared(r[4], 0)) }, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [%r4];"},
		{func() { b.LdmatrixX2Trans(r2, Shared(r[4], 0)) },
			"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r0, %r1}, [%r4];"},
		{func() { b.LdmatrixX4(r4, Shared(r[4], 0)) },
			"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%r4];"},
		{func() { b.LdmatrixX4Trans(r4, Shared(r[4], 0)) },
			"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r0, %r1, %r2, %r3}, [%r4];"},
		{func() { b.MmaSyncM16N8K16F32F16(f4, r4, r2, f4) },
			"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " +
				"{%f11, %f12, %f13, %f14}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%f11, %f12, %f13, %f14};"},
		{func() { b.MmaSyncM16N8K16F32BF16(f4, r4, r2, f4) },
			"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " +
				"{%f11, %f12, %f13, %f14}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%f11, %f12, %f13, %f14};"},
		{func() { b.MmaSyncM16N8K32F32E4M3(f4, r4, r2, f4) },
			"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 " +
				"{%f11, %f12, %f13, %f14}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%f11, %f12, %f13, %f14};"},
		{func() { b.MmaSyncM16N8K32F32E5M2(f4, r4, r2, f4) },
			"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 " +
				"{%f11, %f12, %f13, %f14}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%f11, %f12, %f13, %f14};"},
		{func() { b.MmaSyncM16N8K32S32S8(r4, r4, r2, r4) },
			"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 " +
				"{%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};"},
		{func() { b.MmaSyncM16N8K8F32TF32(f4, r4, r2, f4) },
			"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 " +
				"{%f11, %f12, %f13, %f14}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%f11, %f12, %f13, %f14};"},
		{func() { b.WgmmaFenceSyncAligned() }, "wgmma.fence.sync.aligned;"},
		{func() { b.WgmmaCommitGroupSyncAligned() }, "wgmma.commit_group.sync.aligned;"},
		{func() { b.WgmmaWaitGroupSyncAligned(Int(1)) }, "wgmma.wait_group.sync.aligned 1;"},
		{func() { b.SetmaxnregIncSyncAlignedU32(Int(232)) }, "setmaxnreg.inc.sync.aligned.u32 232;"},
		{func() { b.SetmaxnregDecSyncAlignedU32(Int(40)) }, "setmaxnreg.dec.sync.aligned.u32 40;"},
		{func() { b.BarSync(Int(0)) }, "bar.sync 0;"},
		{func() { b.BarWarpSync(Int(-1)) }, "bar.warp.sync -1;"},
		{func() { b.IfNot(p[0]).Bra(x) }, "@!%p21 bra $x;"},
		{func() { b.If(p[0]).BraUni(x) }, "@%p21 bra.uni $x;"},
		{func() { b.Ret() }, "ret;"},
		{func() { b.MovB64Pack(d[0], r2) }, "mov.b64 %d8, {%r0, %r1};"},
		{func() { b.MovB64Name(d[0], tensors) }, "mov.b64 %d8, tensors;"},
		{func() { b.PrefetchTensormap(Global(d[0], 0)) }, "prefetch.tensormap [%d8];"},
		{func() { b.CvtaParamU64(d[0], d[1]) }, "cvta.param.u64 %d8, %d9;"},
		{func() { b.ShflSyncIdxB32(r[0], r[1], Int(0)) }, "shfl.sync.idx.b32 %r0, %r1, 0, 31, -1;"},
		{func() { b.MbarrierInitB64(Shared(r[0], 8), Int(2)) }, "mbarrier.init.shared::cta.b64 [%r0+8], 2;"},
		{func() { b.MbarrierArriveB64(Shared(r[0], 0)) }, "mbarrier.arrive.shared::cta.b64 _, [%r0];"},
		{func() { b.MbarrierArriveClusterB64(Shared(r[0], 0)) },
			"mbarrier.arrive.shared::cluster.b64 _, [%r0];"},
		{func() { b.MbarrierArriveExpectTxB64(Shared(r[0], 0), Int(4096)) },
			"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 4096;"},
		{func() { b.MbarrierTryWaitParityB64(p[0], Shared(r[0], 0), r[1]) },
			"mbarrier.try_wait.parity.shared::cta.b64 %p21, [%r0], %r1;"},
		{func() { b.FenceMbarrierInit() }, "fence.mbarrier_init.release.cluster;"},
		{func() { b.FenceProxyAsyncShared() }, "fence.proxy.async.shared::cta;"},
		{func() { b.CpAsyncBulkTensor3D(Shared(r[0], 0), b.Tensor(d[0], r[1], r[2], r[3]), Shared(r[4], 0)) },
			"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes " +
				"[%r0], [%d8, {%r1, %r2, %r3}], [%r4];"},
		{func() {
			b.CpAsyncBulkTensor3DMulticast(Shared(r[0], 0), b.Tensor(d[0], r[1], r[2], r[3]), Shared(r[4], 0), h[0])
		}, "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster " +
			"[%r0], [%d8, {%r1, %r2, %r3}], [%r4], %h19;"},
		{func() { b.CpAsyncBulkTensor3DStore(b.Tensor(d[0], r[1], r[2], r[3]), Shared(r[4], 0)) },
			"cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%d8, {%r1, %r2, %r3}], [%r4];"},
		{func() { b.CpAsyncBulkCommitGroup() }, "cp.async.bulk.commit_group;"},
		{func() { b.CpAsyncBulkWaitGroupRead(Int(1)) }, "cp.async.bulk.wait_group.read 1;"},
		{func() { b.StmatrixX4(Shared(r[5], 16), r4) },
			"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r5+16], {%r0, %r1, %r2, %r3};"},
		{func() { b.StmatrixX4Trans(Shared(r[5], 16), r4) },
			"stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r5+16], {%r0, %r1, %r2, %r3};"},
		{func() { b.BarSyncThreads(r[0], Int(128)) }, "bar.sync %r0, 128;"},
		{func() { b.MapaSharedClusterU32(r[0], r[1], Int(1)) }, "mapa.shared::cluster.u32 %r0, %r1, 1;"},
		{func() { b.BarrierClusterArriveRelaxed() }, "barrier.cluster.arrive.relaxed;"},
		{func() { b.BarrierClusterWait() }, "barrier.cluster.wait;"},
		{func() { b.WmmaLoadARow(r8, Global(d[0], 32), r[1]) },
			"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " + eightWords + ", [%d8+32], %r1;"},
		{func() { b.WmmaLoadACol(r8, Global(d[0], 32), r[1]) },
			"wmma.load.a.sync.aligned.col.m16n16k16.global.f16 " + eightWords + ", [%d8+32], %r1;"},
		{func() { b.WmmaLoadBRow(r8, Global(d[0], 32), r[1]) },
			"wmma.load.b.sync.aligned.row.m16n16k16.global.f16 " + eightWords + ", [%d8+32], %r1;"},
		{func() { b.WmmaLoadBCol(r8, Global(d[0], 32), r[1]) },
			"wmma.load.b.sync.aligned.col.m16n16k16.global.f16 " + eightWords + ", [%d8+32], %r1;"},
		{func() { b.WmmaMmaRowRow(f8, r8, r8, f8) },
			"wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 " + eightFloats + ", " + eightWords + ", " + eightWords + ", " +
				eightFloats + ";"},
		{func() { b.WmmaMmaRowCol(f8, r8, r8, f8) },
			"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 " + eightFloats + ", " + eightWords + ", " + eightWords + ", " +
				eightFloats + ";"},
		{func() { b.WmmaMmaColRow(f8, r8, r8, f8) },
			"wmma.mma.sync.aligned.col.row.m16n16k16.f32.f32 " + eightFloats + ", " + eightWords + ", " + eightWords + ", " +
				eightFloats + ";"},
		{func() { b.WmmaMmaColCol(f8, r8, r8, f8) },
			"wmma.mma.sync.aligned.col.col.m16n16k16.f32.f32 " + eightFloats + ", " + eightWords + ", " + eightWords + ", " +
				eightFloats + ";"},
		{func() { b.WmmaLoadCRow(f8, Global(d[0], 0), Int(16)) },
			"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 " + eightFloats + ", [%d8], 16;"},
		{func() { b.WmmaStoreDRow(Global(d[0], 0), f8, r[0]) },
			"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%d8], " + eightFloats + ", %r0;"},
	} {
		b.code, b.operands, b.errs = nil, nil, nil
		c.emit()
		a := &assembly{Builder: b}
		a.verifyOperands()
		if len(a.errs)+len(b.errs) > 0 {
			t.Errorf("%s: %v %v", c.want, a.errs, b.errs)
		}
		if got := a.line(0); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		covered[int(b.code[0].op)] = true
	}
	for op, row := range inst.Table() {
		if !covered[op] && !strings.HasPrefix(row.Opcode, "wgmma.mma_async") { // TestWgmma covers these

			t.Errorf("no case for %s", row.Name)
		}
	}
}

// TestWgmma: the multiplication of an extent and type is that instruction, with half as many sums per thread.
func TestWgmma(t *testing.T) {
	for n := 8; n <= 256; n += 8 {
		for _, kind := range []string{"f16", "bf16", "e4m3", "e5m2", "tf32", "s8"} {
			if n < 256 && (kind == "tf32" || kind == "s8") {
				continue
			}
			b := New("k")
			register, k, sum, prefix, end := b.F32, 32, "f32", "f", ", 1, 1;"
			var transposed []Operand
			switch kind {
			case "f16", "bf16":
				k, end, transposed = 16, ", 1, 1, 0, 1;", []Operand{Int(0), Int(1)}
			case "tf32":
				k = 8
			case "s8":
				register, sum, prefix, end = b.B32, "s32", "r", ";"
			}
			b.Wgmma(n, kind, b.Vec(b.Regs(n/2, register)...), b.B64(), b.B64(), b.Pred(), transposed...)
			a := &assembly{Builder: b}
			a.verifyOperands()
			if len(a.errs)+len(b.errs) > 0 {
				t.Fatalf("%d: %v %v", n, a.errs, b.errs)
			}
			start := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s {%%%s0, ", n, k, sum, kind, kind, prefix)
			end = fmt.Sprintf("%%%s%d}, %%d%d, %%d%d, %%p%d", prefix, n/2-1, n/2, n/2+1, n/2+2) + end
			if got := a.line(0); !strings.HasPrefix(got, start) || !strings.HasSuffix(got, end) {
				t.Errorf("got %s", got)
			}
		}
	}
	for _, n := range []int{0, 4, 12, 264} {
		b := New("k")
		b.Wgmma(n, "f16", b.Vec(b.F32()), b.B64(), b.B64(), b.Pred(), Int(0), Int(0))
		if len(b.errs) == 0 {
			t.Errorf("there is a wgmma with an extent of %d", n)
		}
	}
}
