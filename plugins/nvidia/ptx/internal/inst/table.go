package inst

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Operand positions that recur. dst is written, the others are read.
func dst(f Form) Operand                     { return Operand{Name: "d", Forms: f, Write: true} }
func dstVec(f Form, n int) Operand           { return Operand{Name: "d", Forms: f, Vector: n, Write: true} }
func src(name string, f Form) Operand        { return Operand{Name: name, Forms: f} }
func vec(name string, f Form, n int) Operand { return Operand{Name: name, Forms: f, Vector: n} }
func ops(operands ...Operand) []Operand      { return operands }
func binary(d, a, b Form) []Operand          { return ops(dst(d), src("a", a), src("b", b)) }
func ternary(d, a, b, c Form) []Operand      { return ops(dst(d), src("a", a), src("b", b), src("c", c)) }
func load(d Form, n int, space Form) []Operand {
	return ops(dstVec(d, n), src("addr", space))
}
func store(space Form, a Form, n int) []Operand {
	return ops(src("addr", space), vec("a", a, n))
}

const (
	i16 = B16 | Int
	i32 = B32 | Int
	i64 = B64 | Int
	f32 = F32 | Float
)

// What instructions need, named after the lowest target; v adds the ISA version where two differ in it alone.
var (
	sm10    = since(10, 10)
	sm13    = since(13, 14)
	sm20    = since(20, 12)
	sm20v20 = since(20, 20)
	sm30    = since(30, 60)
	sm32    = since(32, 31)
	sm70    = since(70, 60)
	sm70v63 = since(70, 63)
	sm75    = since(75, 65)
	sm80    = since(80, 70)
	sm80v74 = since(80, 74)
	sm89v81 = since(89, 81)
	sm89v84 = since(89, 84)
	sm90    = since(90, 80)
	// The next architecture dropped wgmma.
	sm90a = Needs{PTX: 80, Targets: []target.Target{arch(90)}}
	// setmaxnreg came with warpgroups and stayed.
	registerSplit = Needs{PTX: 80, Targets: []target.Target{
		arch(90), arch(100), family(100), family(110), arch(120), family(120),
	}}
)

func since(cc, ptx int) Needs     { return Needs{PTX: ptx, Targets: []target.Target{{CC: cc}}} }
func arch(cc int) target.Target   { return target.Target{CC: cc, Suffix: target.ArchFeatures} }
func family(cc int) target.Target { return target.Target{CC: cc, Suffix: target.FamilyFeatures} }

// row is one instruction that falls through.
func row(name, opcode string, needs Needs, summary string, operands ...Operand) Instruction {
	return Instruction{Name: name, Opcode: opcode, Needs: needs, Summary: summary, Operands: operands}
}

// flow changes what the instruction does to control flow.
func (i Instruction) flow(f Flow) Instruction {
	i.Flow = f
	return i
}

// Table is every instruction that the builder knows, by kind. Its order is the order of the generated constructors.
// It is made when it is first asked for: most commands generate no kernel.
var Table = sync.OnceValue(func() []Instruction {
	return slices.Concat(general(), hopper(), wgmma(), wmma(), accesses())
})

// accesses are the loads and stores of global and shared memory. Those of vectors have no constructors: Load and Store
// of the builder find them.
func accesses() (rows []Instruction) {
	for i, space := range []string{"global", "shared"} {
		at := []Form{Global, Shared}[i]
		for _, x := range []struct {
			class         string
			loaded, value Form
			vectors       []int
		}{
			{"b8", B16, B16, nil}, {"b16", B16, B16, nil}, {"b32", B32, i32, []int{2, 4}}, {"b64", B64, B64, nil},
			{"f32", F32, F32, []int{2, 4}},
		} {
			name := strings.ToUpper(space[:1]) + space[1:] + strings.ToUpper(x.class)
			rows = append(rows,
				row("Ld"+name, "ld."+space+"."+x.class, sm10, "d = the value at addr", load(x.loaded, 0, at)...),
				row("St"+name, "st."+space+"."+x.class, sm10, "the value at addr = a", store(at, x.value, 0)...))
			for _, n := range x.vectors {
				of := fmt.Sprintf(".%s.v%d.%s", space, n, x.class)
				rows = append(rows, row("", "ld"+of, sm10, "", load(x.loaded, n, at)...),
					row("", "st"+of, sm10, "", store(at, x.loaded, n)...))
			}
		}
	}
	return rows
}

// general are the instructions of all architectures, and those around warpgroups.
var general = sync.OnceValue(func() []Instruction {
	return []Instruction{
		// Moves.
		row("MovB16", "mov.b16", sm10, "d = a", dst(B16), src("a", i16)),
		row("MovB32", "mov.b32", sm10, "d = a", dst(B32), src("a", i32)),
		row("MovB64", "mov.b64", sm10, "d = a", dst(B64), src("a", i64)),
		row("MovF32", "mov.f32", sm10, "d = a", dst(F32), src("a", f32)),
		row("MovU32", "mov.u32", sm10,
			"d = the special register, or the shared variable's address in the shared window",
			dst(B32), src("a", Special|Symbol)),
		row("MovU64", "mov.u64", sm30, "d = the special register", dst(B64), src("a", Special64)),
		row("MovB32Unpack", "mov.b32", sm10, "d[0] = low half of a, d[1] = high half", dstVec(B16, 2), src("a", B32)),
		row("CvtaToGlobalU64", "cvta.to.global.u64", sm20v20,
			"d = generic address a as a global one", dst(B64), src("a", B64)),

		// Integer arithmetic.
		row("AddS32", "add.s32", sm10, "d = a + b", binary(B32, B32, i32)...),
		row("SubS64", "sub.s64", sm10, "d = a - b", binary(B64, B64, i64)...),
		row("SubS32", "sub.s32", sm10, "d = a - b", binary(B32, i32, i32)...),
		row("MulLoS32", "mul.lo.s32", sm10, "d = low 32 bits of a * b", binary(B32, B32, i32)...),
		row("MadLoS32", "mad.lo.s32", sm10, "d = low 32 bits of a * b, plus c", ternary(B32, B32, i32, i32)...),
		row("MulWideU32", "mul.wide.u32", sm10, "d = a * b in 64 bits, unsigned", binary(B64, B32, i32)...),
		row("MadWideU32", "mad.wide.u32", sm10,
			"d = a * b + c in 64 bits, a and b unsigned", ternary(B64, B32, i32, B64)...),
		row("CvtS64S32", "cvt.s64.s32", sm10, "d = a, sign-extended", dst(B64), src("a", B32)),
		row("CvtU64U32", "cvt.u64.u32", sm10, "d = a, zero-extended", dst(B64), src("a", B32)),
		row("CvtU32U64", "cvt.u32.u64", sm10, "d = low half of a", dst(B32), src("a", B64)),
		row("CvtU32U16", "cvt.u32.u16", sm10, "d = a, zero-extended", dst(B32), src("a", B16)),
		row("CvtS32S8", "cvt.s32.s8", sm10, "d = low byte of a, sign-extended", dst(B32), src("a", B16)),
		row("AddS64", "add.s64", sm10, "d = a + b", binary(B64, B64, i64)...),
		row("MulLoS64", "mul.lo.s64", sm10, "d = low 64 bits of a * b", binary(B64, B64, i64)...),
		row("MadLoS64", "mad.lo.s64", sm10, "d = low 64 bits of a * b, plus c", ternary(B64, B64, i64, i64)...),
		row("DivU32", "div.u32", sm10, "d = a / b, unsigned", binary(B32, B32, i32)...),
		row("MinS32", "min.s32", sm10, "d = the smaller of a and b, signed", binary(B32, B32, i32)...),
		row("MaxS32", "max.s32", sm10, "d = the larger of a and b, signed", binary(B32, B32, i32)...),
		row("MinU32", "min.u32", sm10, "d = the smaller of a and b, unsigned", binary(B32, B32, i32)...),
		row("MaxU32", "max.u32", sm10, "d = the larger of a and b, unsigned", binary(B32, B32, i32)...),
		row("MinU64", "min.u64", sm10, "d = the smaller of a and b, unsigned", binary(B64, B64, B64)...),

		// Bits.
		row("AndB32", "and.b32", sm10, "d = a & b", binary(B32, B32, i32)...),
		row("XorB32", "xor.b32", sm10, "d = a ^ b", binary(B32, B32, i32)...),
		row("ShlB32", "shl.b32", sm10, "d = a << b", binary(B32, B32, i32)...),
		row("ShrU32", "shr.u32", sm10, "d = a >> b, filled with zeros", binary(B32, B32, i32)...),
		row("ShlB64", "shl.b64", sm10, "d = a << b", binary(B64, B64, i32)...),

		// Comparison and selection.
		row("SetpEqS32", "setp.eq.s32", sm10, "d = (a == b)", binary(Pred, B32, i32)...),
		row("SetpNeS32", "setp.ne.s32", sm10, "d = (a != b)", binary(Pred, B32, i32)...),
		row("SetpLtS32", "setp.lt.s32", sm10, "d = (a < b), signed", binary(Pred, B32, i32)...),
		row("SetpGtS32", "setp.gt.s32", sm10, "d = (a > b), signed", binary(Pred, B32, i32)...),
		row("SetpGeU32", "setp.ge.u32", sm10, "d = (a >= b), unsigned", binary(Pred, B32, i32)...),
		row("SetpLtU32", "setp.lt.u32", sm10, "d = (a < b), unsigned", binary(Pred, B32, i32)...),
		row("SetpGtuF32", "setp.gtu.f32", sm10, "d = (a > b), true for NaN", binary(Pred, F32, f32)...),
		row("SetpNeuF32", "setp.neu.f32", sm10, "d = (a != b), true for NaN", binary(Pred, F32, f32)...),
		row("AndPred", "and.pred", sm10, "d = a && b", binary(Pred, Pred, Pred)...),
		row("SelpB32", "selp.b32", sm10, "d = c ? a : b", ternary(B32, i32, i32, Pred)...),

		// Floating point.
		row("AddF32", "add.rn.f32", sm10, "d = a + b", binary(F32, F32, f32)...),
		row("SubF32", "sub.rn.f32", sm10, "d = a - b", binary(F32, F32, f32)...),
		row("MulF32", "mul.rn.f32", sm10, "d = a * b", binary(F32, F32, f32)...),
		row("FmaF32", "fma.rn.f32", sm20v20, "d = a * b + c, rounded once", ternary(F32, F32, f32, f32)...),
		row("DivFullF32", "div.full.f32", sm10, "d = a / b, within 2 ulp", binary(F32, F32, f32)...),
		row("AbsF32", "abs.f32", sm10, "d = |a|", dst(F32), src("a", F32)),
		row("MinF32", "min.f32", sm10, "d = the smaller of a and b; of a number and NaN the number",
			binary(F32, F32, f32)...),
		row("MaxNaNF32", "max.NaN.f32", sm80, "d = the larger of a and b, NaN if one is", binary(F32, F32, f32)...),
		row("Ex2ApproxFtzF32", "ex2.approx.ftz.f32", sm10, "d = 2^a, within 2^-22 of it; denormals are 0",
			dst(F32), src("a", F32)),
		row("RcpApproxFtzF32", "rcp.approx.ftz.f32", sm10, "d = 1 / a, within 1 ulp; denormals are 0",
			dst(F32), src("a", F32)),
		row("FmaF64", "fma.rn.f64", sm13, "d = a * b + c, rounded once", ternary(F64, F64, F64, F64)...),
		row("CvtF32F16", "cvt.f32.f16", sm10, "d = a", dst(F32), src("a", B16)),
		row("CvtF16F32", "cvt.rn.f16.f32", sm10, "d = a, to nearest even", dst(B16), src("a", F32)),
		row("CvtBF16F32", "cvt.rn.bf16.f32", sm80, "d = a, to nearest even", dst(B16), src("a", F32)),
		row("CvtF16x2F32", "cvt.rn.f16x2.f32", sm80,
			"d = hi:lo, to nearest even", dst(B32), src("hi", F32), src("lo", F32)),
		row("CvtBF16x2F32", "cvt.rn.bf16x2.f32", sm80,
			"d = hi:lo, to nearest even", dst(B32), src("hi", F32), src("lo", F32)),
		row("CvtF64F16", "cvt.f64.f16", sm13, "d = a", dst(F64), src("a", B16)),
		row("CvtF64F32", "cvt.f64.f32", sm13, "d = a", dst(F64), src("a", F32)),
		row("CvtF32F64", "cvt.rn.f32.f64", sm13, "d = a, to nearest even", dst(F32), src("a", F64)),
		row("CvtF16x2E4M3x2", "cvt.rn.f16x2.e4m3x2", sm89v81,
			"d = the two fp8 numbers of a, in e4m3", dst(B32), src("a", B16)),
		row("CvtF16x2E5M2x2", "cvt.rn.f16x2.e5m2x2", sm89v81,
			"d = the two fp8 numbers of a, in e5m2", dst(B32), src("a", B16)),
		row("CvtRnaTF32F32", "cvt.rna.tf32.f32", sm80,
			"d = a as tf32, to nearest, ties away from zero", dst(B32), src("a", F32|B32)),
		row("CvtF32S32", "cvt.rn.f32.s32", sm10, "d = a, to nearest even", dst(F32), src("a", B32)),
		row("CvtF64S32", "cvt.rn.f64.s32", sm13, "d = a", dst(F64), src("a", B32)),
		row("CvtS32F64", "cvt.rni.s32.f64", sm13, "d = a, to the nearest integer", dst(B32), src("a", F64)),
		row("MovF32Bits", "mov.b32", sm10, "d = the float whose bits are a", dst(F32), src("a", B32)),
		row("MovB32Bits", "mov.b32", sm10, "d = the bits of a", dst(B32), src("a", F32)),

		// Parameters.
		row("LdParamU32", "ld.param.u32", sm10, "d = a 32-bit parameter", dst(B32), src("addr", Param)),
		row("LdParamU64", "ld.param.u64", sm10, "d = a 64-bit parameter", dst(B64), src("addr", Param)),
		row("LdParamF32", "ld.param.f32", sm10, "d = a single-precision parameter", dst(F32), src("addr", Param)),

		// Global memory.
		row("LdGlobalCgV2B32", "ld.global.cg.v2.b32", sm20, "d = 8 bytes at addr, past L1", load(B32, 2, Global)...),
		row("LdGlobalCgV4B32", "ld.global.cg.v4.b32", sm20, "d = 16 bytes at addr, past L1", load(B32, 4, Global)...),
		row("AtomAddU32", "atom.acq_rel.gpu.global.add.u32", sm70,
			"d = 4 bytes at addr, which become d + a; orders memory for the whole device",
			dst(B32), src("addr", Global), src("a", i32)),
		row("RedGlobalMaxU32", "red.global.max.u32", sm20,
			"4 bytes at addr become the larger of them and a, unsigned", src("addr", Global), src("a", B32)),
		row("RedGlobalAddU64", "red.global.add.u64", sm20,
			"8 bytes at addr become their sum with a", src("addr", Global), src("a", B64)),
		row("RedGlobalMinU64", "red.global.min.u64", sm32,
			"8 bytes at addr become the smaller of them and a, unsigned", src("addr", Global), src("a", B64)),
		row("FenceAcqRelGpu", "fence.acq_rel.gpu", sm70,
			"orders this thread's memory accesses before and after it for the whole device"),

		// Shared memory.
		row("RedSharedMaxU32", "red.shared.max.u32", sm20,
			"4 bytes at addr become the larger of them and a, unsigned", src("addr", Shared), src("a", B32)),
		row("RedSharedAddU32", "red.shared.add.u32", sm20,
			"4 bytes at addr become their sum with a", src("addr", Shared), src("a", B32)),
		row("RedSharedMinU64", "red.shared.min.u64", sm32,
			"8 bytes at addr become the smaller of them and a, unsigned", src("addr", Shared), src("a", B64)),

		// Asynchronous copies from global to shared memory. The forms with a size read that many bytes and fill the rest
		// with zeros.
		row("CpAsyncCaSharedGlobal4", "cp.async.ca.shared.global", sm80, "copies 4 bytes", copyAsync("4")...),
		row("CpAsyncCaSharedGlobal8", "cp.async.ca.shared.global", sm80, "copies 8 bytes", copyAsync("8")...),
		row("CpAsyncCgSharedGlobalL2128B16", "cp.async.cg.shared.global.L2::128B", sm80v74,
			"copies 16 bytes past L1, with a hint to fetch 128 bytes into L2", copyAsync("16")...),
		row("CpAsyncCaSharedGlobal4Size", "cp.async.ca.shared.global", sm80,
			"copies 4 bytes, of which size are read", append(copyAsync("4"), src("size", i32))...),
		row("CpAsyncCaSharedGlobal8Size", "cp.async.ca.shared.global", sm80,
			"copies 8 bytes, of which size are read", append(copyAsync("8"), src("size", i32))...),
		row("CpAsyncCgSharedGlobalL2128B16Size", "cp.async.cg.shared.global.L2::128B", sm80v74,
			"copies 16 bytes past L1, of which size are read, with a hint to fetch 128 bytes into L2",
			append(copyAsync("16"), src("size", i32))...),
		row("CpAsyncCommitGroup", "cp.async.commit_group", sm80,
			"closes the group of the copies issued since the last one"),
		row("CpAsyncWaitGroup", "cp.async.wait_group", sm80,
			"waits until at most the n youngest groups are pending", src("n", Int)),
		row("CpAsyncWaitAll", "cp.async.wait_all", sm80, "waits for all of this thread's copies"),

		// Matrices.
		row("LdmatrixX2", "ldmatrix.sync.aligned.m8n8.x2.shared.b16", sm75,
			"d = two 8×8 matrices of 16-bit elements, a row of 16 bytes per address of lanes 0-15",
			load(B32, 2, Shared)...),
		row("LdmatrixX2Trans", "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", sm75,
			"LdmatrixX2 with each matrix transposed", load(B32, 2, Shared)...),
		row("LdmatrixX4", "ldmatrix.sync.aligned.m8n8.x4.shared.b16", sm75,
			"d = four 8×8 matrices of 16-bit elements, a row of 16 bytes per address of lanes 0-31",
			load(B32, 4, Shared)...),
		row("LdmatrixX4Trans", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", sm75,
			"LdmatrixX4 with each matrix transposed", load(B32, 4, Shared)...),
		row("MmaSyncM16N8K16F32F16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", sm80,
			"d = a · b + c over a warp: a 16×16 and b 16×8 in fp16, c and d 16×8 in fp32", mma(F32)...),
		row("MmaSyncM16N8K16F32BF16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", sm80,
			"d = a · b + c over a warp: a 16×16 and b 16×8 in bf16, c and d 16×8 in fp32", mma(F32)...),
		row("MmaSyncM16N8K32F32E4M3", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", sm89v84,
			"d = a · b + c over a warp: a 16×32 and b 32×8 in fp8 e4m3, c and d 16×8 in fp32", mma(F32)...),
		row("MmaSyncM16N8K32F32E5M2", "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", sm89v84,
			"d = a · b + c over a warp: a 16×32 and b 32×8 in fp8 e5m2, c and d 16×8 in fp32", mma(F32)...),
		row("MmaSyncM16N8K32S32S8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", sm80,
			"d = a · b + c over a warp: a 16×32 and b 32×8 in int8, c and d 16×8 in int32", mma(B32)...),
		row("MmaSyncM16N8K8F32TF32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", sm80,
			"d = a · b + c over a warp: a 16×8 and b 8×8 in tf32, c and d 16×8 in fp32", mma(F32)...),

		// Control.
		row("BarSync", "bar.sync", sm10, "waits for all threads of the CTA at barrier a", src("a", Int)).flow(Barrier),
		row("BarWarpSync", "bar.warp.sync", sm30,
			"waits for the lanes of mask and orders their memory accesses", src("mask", i32)),
		row("Bra", "bra", sm10, "goes to target; lanes may part", src("target", Label)).flow(Jump),
		row("BraUni", "bra.uni", sm10,
			"goes to target; all threads of the CTA agree", src("target", Label)).flow(JumpSame),
		row("Ret", "ret", sm10, "ends the thread").flow(Exit),

		// Warpgroups: what wgmma needs around its multiplications, and the split of registers among warpgroups.
		row("WgmmaFenceSyncAligned", "wgmma.fence.sync.aligned", sm90a,
			"orders the warpgroup's accesses to registers and shared memory before its next wgmma.mma_async"),
		row("WgmmaCommitGroupSyncAligned", "wgmma.commit_group.sync.aligned", sm90a,
			"closes the group of the multiplications issued since the last one"),
		row("WgmmaWaitGroupSyncAligned", "wgmma.wait_group.sync.aligned", sm90a,
			"waits until at most the n youngest groups are pending", src("n", Int)),
		row("SetmaxnregIncSyncAlignedU32", "setmaxnreg.inc.sync.aligned.u32", registerSplit,
			"waits for registers, so that each thread of the warpgroup has n", src("n", Int)),
		row("SetmaxnregDecSyncAlignedU32", "setmaxnreg.dec.sync.aligned.u32", registerSplit,
			"gives up registers, so that each thread of the warpgroup has n", src("n", Int)),
	}
})

func copyAsync(bytes string) []Operand {
	return ops(src("dst", Shared), src("src", Global), Operand{Literal: bytes})
}

// mma is the operands of a matrix instruction with four sums per lane.
func mma(sums Form) []Operand {
	return ops(dstVec(sums, 4), vec("a", B32, 4), vec("b", B32, 2), vec("c", sums, 4))
}
