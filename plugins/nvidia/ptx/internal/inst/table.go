package inst

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

// Table is every instruction that the builder knows, by kind. Its order is the order of the generated constructors.
var Table = []Instruction{
	// Moves.
	{Name: "MovB16", Opcode: "mov.b16", Operands: ops(dst(B16), src("a", i16)), SM: 10, PTX: 10, Summary: "d = a"},
	{Name: "MovB32", Opcode: "mov.b32", Operands: ops(dst(B32), src("a", i32)), SM: 10, PTX: 10, Summary: "d = a"},
	{Name: "MovB64", Opcode: "mov.b64", Operands: ops(dst(B64), src("a", i64)), SM: 10, PTX: 10, Summary: "d = a"},
	{Name: "MovF32", Opcode: "mov.f32", Operands: ops(dst(F32), src("a", f32)), SM: 10, PTX: 10, Summary: "d = a"},
	{Name: "MovU32", Opcode: "mov.u32", Operands: ops(dst(B32), src("a", Special|Symbol)), SM: 10, PTX: 10,
		Summary: "d = the special register, or the shared variable's address in the shared window"},
	{Name: "MovB32Unpack", Opcode: "mov.b32", Operands: ops(dstVec(B16, 2), src("a", B32)), SM: 10, PTX: 10, Summary: "d[0] = low half of a, d[1] = high half"},
	{Name: "MovB32Pack", Opcode: "mov.b32", Operands: ops(dst(B32), vec("a", B16, 2)), SM: 10, PTX: 10, Summary: "d = a[1]:a[0]"},
	{Name: "CvtaToGlobalU64", Opcode: "cvta.to.global.u64", Operands: ops(dst(B64), src("a", B64)), SM: 20, PTX: 20, Summary: "d = generic address a as a global one"},

	// Integer arithmetic.
	{Name: "AddS32", Opcode: "add.s32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = a + b"},
	{Name: "SubS32", Opcode: "sub.s32", Operands: binary(B32, i32, i32), SM: 10, PTX: 10, Summary: "d = a - b"},
	{Name: "MulLoS32", Opcode: "mul.lo.s32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = low 32 bits of a * b"},
	{Name: "MadLoS32", Opcode: "mad.lo.s32", Operands: ternary(B32, B32, i32, i32), SM: 10, PTX: 10, Summary: "d = low 32 bits of a * b, plus c"},
	{Name: "MulWideU32", Opcode: "mul.wide.u32", Operands: binary(B64, B32, i32), SM: 10, PTX: 10, Summary: "d = a * b in 64 bits, unsigned"},
	{Name: "MadWideU32", Opcode: "mad.wide.u32", Operands: ternary(B64, B32, i32, B64), SM: 10, PTX: 10, Summary: "d = a * b + c in 64 bits, a and b unsigned"},
	{Name: "CvtS64S32", Opcode: "cvt.s64.s32", Operands: ops(dst(B64), src("a", B32)), SM: 10, PTX: 10, Summary: "d = a, sign-extended"},
	{Name: "CvtU64U32", Opcode: "cvt.u64.u32", Operands: ops(dst(B64), src("a", B32)), SM: 10, PTX: 10, Summary: "d = a, zero-extended"},
	{Name: "CvtU32U64", Opcode: "cvt.u32.u64", Operands: ops(dst(B32), src("a", B64)), SM: 10, PTX: 10, Summary: "d = low half of a"},
	{Name: "CvtU32U16", Opcode: "cvt.u32.u16", Operands: ops(dst(B32), src("a", B16)), SM: 10, PTX: 10, Summary: "d = a, zero-extended"},
	{Name: "AddS64", Opcode: "add.s64", Operands: binary(B64, B64, i64), SM: 10, PTX: 10, Summary: "d = a + b"},
	{Name: "MulLoS64", Opcode: "mul.lo.s64", Operands: binary(B64, B64, i64), SM: 10, PTX: 10, Summary: "d = low 64 bits of a * b"},
	{Name: "MadLoS64", Opcode: "mad.lo.s64", Operands: ternary(B64, B64, i64, i64), SM: 10, PTX: 10, Summary: "d = low 64 bits of a * b, plus c"},
	{Name: "DivU32", Opcode: "div.u32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = a / b, unsigned"},
	{Name: "MinS32", Opcode: "min.s32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = the smaller of a and b, signed"},
	{Name: "MaxS32", Opcode: "max.s32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = the larger of a and b, signed"},
	{Name: "MinU32", Opcode: "min.u32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = the smaller of a and b, unsigned"},
	{Name: "MaxU32", Opcode: "max.u32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = the larger of a and b, unsigned"},
	{Name: "MinU64", Opcode: "min.u64", Operands: binary(B64, B64, B64), SM: 10, PTX: 10, Summary: "d = the smaller of a and b, unsigned"},

	// Bits.
	{Name: "AndB32", Opcode: "and.b32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = a & b"},
	{Name: "OrB32", Opcode: "or.b32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = a | b"},
	{Name: "XorB32", Opcode: "xor.b32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = a ^ b"},
	{Name: "ShlB32", Opcode: "shl.b32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = a << b"},
	{Name: "ShrU32", Opcode: "shr.u32", Operands: binary(B32, B32, i32), SM: 10, PTX: 10, Summary: "d = a >> b, filled with zeros"},
	{Name: "ShlB64", Opcode: "shl.b64", Operands: binary(B64, B64, i32), SM: 10, PTX: 10, Summary: "d = a << b"},

	// Comparison and selection.
	{Name: "SetpEqS32", Opcode: "setp.eq.s32", Operands: binary(Pred, B32, i32), SM: 10, PTX: 10, Summary: "d = (a == b)"},
	{Name: "SetpNeS32", Opcode: "setp.ne.s32", Operands: binary(Pred, B32, i32), SM: 10, PTX: 10, Summary: "d = (a != b)"},
	{Name: "SetpLtS32", Opcode: "setp.lt.s32", Operands: binary(Pred, B32, i32), SM: 10, PTX: 10, Summary: "d = (a < b), signed"},
	{Name: "SetpGtS32", Opcode: "setp.gt.s32", Operands: binary(Pred, B32, i32), SM: 10, PTX: 10, Summary: "d = (a > b), signed"},
	{Name: "SetpGeU32", Opcode: "setp.ge.u32", Operands: binary(Pred, B32, i32), SM: 10, PTX: 10, Summary: "d = (a >= b), unsigned"},
	{Name: "SetpLtU32", Opcode: "setp.lt.u32", Operands: binary(Pred, B32, i32), SM: 10, PTX: 10, Summary: "d = (a < b), unsigned"},
	{Name: "SetpGtuF32", Opcode: "setp.gtu.f32", Operands: binary(Pred, F32, f32), SM: 10, PTX: 10, Summary: "d = (a > b), true for NaN"},
	{Name: "SetpNeuF32", Opcode: "setp.neu.f32", Operands: binary(Pred, F32, f32), SM: 10, PTX: 10, Summary: "d = (a != b), true for NaN"},
	{Name: "AndPred", Opcode: "and.pred", Operands: binary(Pred, Pred, Pred), SM: 10, PTX: 10, Summary: "d = a && b"},
	{Name: "SelpB32", Opcode: "selp.b32", Operands: ternary(B32, i32, i32, Pred), SM: 10, PTX: 10, Summary: "d = c ? a : b"},

	// Floating point.
	{Name: "AddF32", Opcode: "add.rn.f32", Operands: binary(F32, F32, f32), SM: 10, PTX: 10, Summary: "d = a + b"},
	{Name: "SubF32", Opcode: "sub.rn.f32", Operands: binary(F32, F32, f32), SM: 10, PTX: 10, Summary: "d = a - b"},
	{Name: "MulF32", Opcode: "mul.rn.f32", Operands: binary(F32, F32, f32), SM: 10, PTX: 10, Summary: "d = a * b"},
	{Name: "FmaF32", Opcode: "fma.rn.f32", Operands: ternary(F32, F32, f32, f32), SM: 20, PTX: 20, Summary: "d = a * b + c, rounded once"},
	{Name: "DivFullF32", Opcode: "div.full.f32", Operands: binary(F32, F32, f32), SM: 10, PTX: 10, Summary: "d = a / b, within 2 ulp"},
	{Name: "AbsF32", Opcode: "abs.f32", Operands: ops(dst(F32), src("a", F32)), SM: 10, PTX: 10, Summary: "d = |a|"},
	{Name: "FmaF64", Opcode: "fma.rn.f64", Operands: ternary(F64, F64, F64, F64), SM: 13, PTX: 14, Summary: "d = a * b + c, rounded once"},
	{Name: "CvtF32F16", Opcode: "cvt.f32.f16", Operands: ops(dst(F32), src("a", B16)), SM: 10, PTX: 10, Summary: "d = a"},
	{Name: "CvtF16F32", Opcode: "cvt.rn.f16.f32", Operands: ops(dst(B16), src("a", F32)), SM: 10, PTX: 10, Summary: "d = a, to nearest even"},
	{Name: "CvtBF16F32", Opcode: "cvt.rn.bf16.f32", Operands: ops(dst(B16), src("a", F32)), SM: 80, PTX: 70, Summary: "d = a, to nearest even"},
	{Name: "CvtF16x2F32", Opcode: "cvt.rn.f16x2.f32", Operands: ops(dst(B32), src("hi", F32), src("lo", F32)), SM: 80, PTX: 70, Summary: "d = hi:lo, to nearest even"},
	{Name: "CvtBF16x2F32", Opcode: "cvt.rn.bf16x2.f32", Operands: ops(dst(B32), src("hi", F32), src("lo", F32)), SM: 80, PTX: 70, Summary: "d = hi:lo, to nearest even"},
	{Name: "CvtF64F16", Opcode: "cvt.f64.f16", Operands: ops(dst(F64), src("a", B16)), SM: 13, PTX: 14, Summary: "d = a"},
	{Name: "CvtF64F32", Opcode: "cvt.f64.f32", Operands: ops(dst(F64), src("a", F32)), SM: 13, PTX: 14, Summary: "d = a"},
	{Name: "CvtF32F64", Opcode: "cvt.rn.f32.f64", Operands: ops(dst(F32), src("a", F64)), SM: 13, PTX: 14, Summary: "d = a, to nearest even"},
	{Name: "MovF32Bits", Opcode: "mov.b32", Operands: ops(dst(F32), src("a", B32)), SM: 10, PTX: 10, Summary: "d = the float whose bits are a"},
	{Name: "MovB32Bits", Opcode: "mov.b32", Operands: ops(dst(B32), src("a", F32)), SM: 10, PTX: 10, Summary: "d = the bits of a"},

	// Parameters.
	{Name: "LdParamU32", Opcode: "ld.param.u32", Operands: ops(dst(B32), src("addr", Param)), SM: 10, PTX: 10, Summary: "d = a 32-bit parameter"},
	{Name: "LdParamU64", Opcode: "ld.param.u64", Operands: ops(dst(B64), src("addr", Param)), SM: 10, PTX: 10, Summary: "d = a 64-bit parameter"},
	{Name: "LdParamF32", Opcode: "ld.param.f32", Operands: ops(dst(F32), src("addr", Param)), SM: 10, PTX: 10, Summary: "d = a single-precision parameter"},

	// Global memory.
	{Name: "LdGlobalB16", Opcode: "ld.global.b16", Operands: load(B16, 0, Global), SM: 10, PTX: 10, Summary: "d = 2 bytes at addr"},
	{Name: "LdGlobalB32", Opcode: "ld.global.b32", Operands: load(B32, 0, Global), SM: 10, PTX: 10, Summary: "d = 4 bytes at addr"},
	{Name: "LdGlobalV2B32", Opcode: "ld.global.v2.b32", Operands: load(B32, 2, Global), SM: 10, PTX: 10, Summary: "d = 8 bytes at addr"},
	{Name: "LdGlobalV4B32", Opcode: "ld.global.v4.b32", Operands: load(B32, 4, Global), SM: 10, PTX: 10, Summary: "d = 16 bytes at addr"},
	{Name: "LdGlobalF32", Opcode: "ld.global.f32", Operands: load(F32, 0, Global), SM: 10, PTX: 10, Summary: "d = a float at addr"},
	{Name: "LdGlobalV2F32", Opcode: "ld.global.v2.f32", Operands: load(F32, 2, Global), SM: 10, PTX: 10, Summary: "d = 2 floats at addr"},
	{Name: "LdGlobalV4F32", Opcode: "ld.global.v4.f32", Operands: load(F32, 4, Global), SM: 10, PTX: 10, Summary: "d = 4 floats at addr"},
	{Name: "StGlobalB16", Opcode: "st.global.b16", Operands: store(Global, B16, 0), SM: 10, PTX: 10, Summary: "2 bytes at addr = a"},
	{Name: "StGlobalB32", Opcode: "st.global.b32", Operands: store(Global, i32, 0), SM: 10, PTX: 10, Summary: "4 bytes at addr = a"},
	{Name: "StGlobalV2B32", Opcode: "st.global.v2.b32", Operands: store(Global, B32, 2), SM: 10, PTX: 10, Summary: "8 bytes at addr = a"},
	{Name: "StGlobalV4B32", Opcode: "st.global.v4.b32", Operands: store(Global, B32, 4), SM: 10, PTX: 10, Summary: "16 bytes at addr = a"},
	{Name: "StGlobalF32", Opcode: "st.global.f32", Operands: store(Global, F32, 0), SM: 10, PTX: 10, Summary: "float at addr = a"},
	{Name: "StGlobalV2F32", Opcode: "st.global.v2.f32", Operands: store(Global, F32, 2), SM: 10, PTX: 10, Summary: "2 floats at addr = a"},
	{Name: "StGlobalV4F32", Opcode: "st.global.v4.f32", Operands: store(Global, F32, 4), SM: 10, PTX: 10, Summary: "4 floats at addr = a"},
	{Name: "AtomAddU32", Opcode: "atom.acq_rel.gpu.global.add.u32", Operands: ops(dst(B32), src("addr", Global), src("a", i32)), SM: 70, PTX: 60,
		Summary: "d = 4 bytes at addr, which become d + a; orders memory for the whole device"},
	{Name: "RedGlobalMaxU32", Opcode: "red.global.max.u32", Operands: ops(src("addr", Global), src("a", B32)), SM: 20, PTX: 12, Summary: "4 bytes at addr become the larger of them and a, unsigned"},
	{Name: "RedGlobalAddU64", Opcode: "red.global.add.u64", Operands: ops(src("addr", Global), src("a", B64)), SM: 20, PTX: 12, Summary: "8 bytes at addr become their sum with a"},
	{Name: "RedGlobalMinU64", Opcode: "red.global.min.u64", Operands: ops(src("addr", Global), src("a", B64)), SM: 32, PTX: 31, Summary: "8 bytes at addr become the smaller of them and a, unsigned"},
	{Name: "FenceAcqRelGpu", Opcode: "fence.acq_rel.gpu", SM: 70, PTX: 60, Summary: "orders this thread's memory accesses before and after it for the whole device"},

	// Shared memory.
	{Name: "LdSharedB32", Opcode: "ld.shared.b32", Operands: load(B32, 0, Shared), SM: 10, PTX: 10, Summary: "d = 4 bytes at addr"},
	{Name: "LdSharedF32", Opcode: "ld.shared.f32", Operands: load(F32, 0, Shared), SM: 10, PTX: 10, Summary: "d = a float at addr"},
	{Name: "LdSharedV2F32", Opcode: "ld.shared.v2.f32", Operands: load(F32, 2, Shared), SM: 10, PTX: 10, Summary: "d = 2 floats at addr"},
	{Name: "LdSharedV4F32", Opcode: "ld.shared.v4.f32", Operands: load(F32, 4, Shared), SM: 10, PTX: 10, Summary: "d = 4 floats at addr"},
	{Name: "StSharedB16", Opcode: "st.shared.b16", Operands: store(Shared, B16, 0), SM: 10, PTX: 10, Summary: "2 bytes at addr = a"},
	{Name: "StSharedB32", Opcode: "st.shared.b32", Operands: store(Shared, B32, 0), SM: 10, PTX: 10, Summary: "4 bytes at addr = a"},
	{Name: "StSharedF32", Opcode: "st.shared.f32", Operands: store(Shared, F32, 0), SM: 10, PTX: 10, Summary: "float at addr = a"},
	{Name: "StSharedV2F32", Opcode: "st.shared.v2.f32", Operands: store(Shared, F32, 2), SM: 10, PTX: 10, Summary: "2 floats at addr = a"},
	{Name: "LdSharedB64", Opcode: "ld.shared.b64", Operands: load(B64, 0, Shared), SM: 10, PTX: 10, Summary: "d = 8 bytes at addr"},
	{Name: "StSharedB64", Opcode: "st.shared.b64", Operands: store(Shared, B64, 0), SM: 10, PTX: 10, Summary: "8 bytes at addr = a"},
	{Name: "RedSharedMaxU32", Opcode: "red.shared.max.u32", Operands: ops(src("addr", Shared), src("a", B32)), SM: 20, PTX: 12, Summary: "4 bytes at addr become the larger of them and a, unsigned"},
	{Name: "RedSharedAddU32", Opcode: "red.shared.add.u32", Operands: ops(src("addr", Shared), src("a", B32)), SM: 20, PTX: 12, Summary: "4 bytes at addr become their sum with a"},
	{Name: "RedSharedMinU64", Opcode: "red.shared.min.u64", Operands: ops(src("addr", Shared), src("a", B64)), SM: 32, PTX: 31, Summary: "8 bytes at addr become the smaller of them and a, unsigned"},

	// Asynchronous copies, global to shared. In the forms with a size, the bytes from size on are not read and filled with zeros.
	{Name: "CpAsyncCaSharedGlobal4", Opcode: "cp.async.ca.shared.global", Operands: copyAsync("4"), SM: 80, PTX: 70, Summary: "copies 4 bytes"},
	{Name: "CpAsyncCaSharedGlobal8", Opcode: "cp.async.ca.shared.global", Operands: copyAsync("8"), SM: 80, PTX: 70, Summary: "copies 8 bytes"},
	{Name: "CpAsyncCgSharedGlobalL2128B16", Opcode: "cp.async.cg.shared.global.L2::128B", Operands: copyAsync("16"), SM: 80, PTX: 74,
		Summary: "copies 16 bytes past L1, with a hint to fetch 128 bytes into L2"},
	{Name: "CpAsyncCaSharedGlobal4Size", Opcode: "cp.async.ca.shared.global", Operands: append(copyAsync("4"), src("size", i32)), SM: 80, PTX: 70, Summary: "copies 4 bytes, of which size are read"},
	{Name: "CpAsyncCaSharedGlobal8Size", Opcode: "cp.async.ca.shared.global", Operands: append(copyAsync("8"), src("size", i32)), SM: 80, PTX: 70, Summary: "copies 8 bytes, of which size are read"},
	{Name: "CpAsyncCgSharedGlobalL2128B16Size", Opcode: "cp.async.cg.shared.global.L2::128B", Operands: append(copyAsync("16"), src("size", i32)), SM: 80, PTX: 74,
		Summary: "copies 16 bytes past L1, of which size are read, with a hint to fetch 128 bytes into L2"},
	{Name: "CpAsyncCommitGroup", Opcode: "cp.async.commit_group", SM: 80, PTX: 70, Summary: "closes the group of the copies issued since the last one"},
	{Name: "CpAsyncWaitGroup", Opcode: "cp.async.wait_group", Operands: ops(src("n", Int)), SM: 80, PTX: 70, Summary: "waits until at most the n youngest groups are pending"},
	{Name: "CpAsyncWaitAll", Opcode: "cp.async.wait_all", SM: 80, PTX: 70, Summary: "waits for all of this thread's copies"},

	// Matrices.
	{Name: "LdmatrixX2", Opcode: "ldmatrix.sync.aligned.m8n8.x2.shared.b16", Operands: load(B32, 2, Shared), SM: 75, PTX: 65, Summary: "d = two 8×8 matrices of 16-bit elements, a row of 16 bytes per address of lanes 0-15"},
	{Name: "LdmatrixX2Trans", Opcode: "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", Operands: load(B32, 2, Shared), SM: 75, PTX: 65, Summary: "LdmatrixX2 with each matrix transposed"},
	{Name: "LdmatrixX4", Opcode: "ldmatrix.sync.aligned.m8n8.x4.shared.b16", Operands: load(B32, 4, Shared), SM: 75, PTX: 65, Summary: "d = four 8×8 matrices of 16-bit elements, a row of 16 bytes per address of lanes 0-31"},
	{Name: "LdmatrixX4Trans", Opcode: "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", Operands: load(B32, 4, Shared), SM: 75, PTX: 65, Summary: "LdmatrixX4 with each matrix transposed"},
	{Name: "MmaSyncM16N8K16F32F16", Opcode: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", Operands: mma(), SM: 80, PTX: 70, Summary: "d = a · b + c over a warp: a 16×16 and b 16×8 in fp16, c and d 16×8 in fp32"},
	{Name: "MmaSyncM16N8K16F32BF16", Opcode: "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", Operands: mma(), SM: 80, PTX: 70, Summary: "d = a · b + c over a warp: a 16×16 and b 16×8 in bf16, c and d 16×8 in fp32"},

	// Control.
	{Name: "BarSync", Opcode: "bar.sync", Operands: ops(src("a", Int)), SM: 10, PTX: 10, Summary: "waits for all threads of the CTA at barrier a", Flow: Barrier},
	{Name: "BarWarpSync", Opcode: "bar.warp.sync", Operands: ops(src("mask", i32)), SM: 30, PTX: 60, Summary: "waits for the lanes of mask and orders their memory accesses"},
	{Name: "Bra", Opcode: "bra", Operands: ops(src("target", Label)), SM: 10, PTX: 10, Summary: "goes to target; lanes may part", Flow: Jump},
	{Name: "BraUni", Opcode: "bra.uni", Operands: ops(src("target", Label)), SM: 10, PTX: 10, Summary: "goes to target; all threads of the CTA agree", Flow: JumpSame},
	{Name: "Ret", Opcode: "ret", SM: 10, PTX: 10, Summary: "ends the thread", Flow: Exit},
}

func copyAsync(bytes string) []Operand {
	return ops(src("dst", Shared), src("src", Global), Operand{Literal: bytes})
}

func mma() []Operand {
	return ops(dstVec(F32, 4), vec("a", B32, 4), vec("b", B32, 2), vec("c", F32, 4))
}
