// Package ptx builds kernels in PTX, NVIDIA's portable assembly, in pure Go.
//
// A Builder has one method per instruction, generated from the table in internal/inst and named after the mnemonic.
// Registers are typed and virtual. Memory operands carry their state space. Building is pure: the same calls give the
// same bytes on any machine.
//
//	b := ptx.New("scale")
//	in, factor := b.Param("in", ptx.U64), b.Param("factor", ptx.F32)
//	p := b.LdParamU64(b.B64(), in)
//	f := b.LdParamF32(b.F32(), factor)
//	x := b.LdGlobalF32(b.F32(), ptx.Global(p, 0))
//	b.StGlobalF32(ptx.Global(p, 0), b.MulF32(x, x, f))
//	b.Ret()
//	kernel, err := b.Build(target.Target{CC: 90})
//
// Instruction methods return the operand that they write, and no errors. Build collects the mistakes: it runs the
// passes listed in passes.go and reports what they found. They catch wrong operand types and state spaces, misplaced
// labels, registers that are read before they are written, barriers that only some threads reach, and instructions that
// the target lacks.
//
// The directive .target is derived from the instructions, never chosen: it names the lowest target that has them all,
// with the suffix of sm_90a or sm_100f where an instruction needs it.
package ptx

//go:generate go run ./internal/gen
