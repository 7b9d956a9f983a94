// Package gemmgen generates GEMM kernels as PTX text.
//
// Each kernel family is a package, such as gemmgen/mma, that implements Family. Package families lists them.
// This package has what families share: how a call and its matrices are described, how a configuration divides it
// into CTAs, how a launch packs its parameters, and kernels that verify results.
//
//	call := gemmgen.NewCall(problem)                                   // addresses, leading dimensions, alpha and beta
//	program, reason, detail := family.Program(call, out, config, limits) // feasible? why not?
//	kernel, err := program.Emit(target)                               // pure: the same bytes on any machine
//	launch, err := program.Launch(kernel, call)                       // grid, shared memory, parameter buffer
//
// A program's Key tells which programs share a kernel, so that an executor compiles each text once.
//
// # Passes
//
// The emitter of a family emits a kernel as a list of passes, in its method kernel (asm.Builder.Emit). The passes of
// CTA in internal/asm, what it does with sums and Start are for all that can use them; each family has its own loop and
// its own fragments. In order:
//
//	             mma                        sgemm                    wgmma
//	parameters   params                     params                   params
//	thread       identify                   place                    setup, with the barriers; roles
//	tile walk    walk: CTA.Walk             walk: CTA.Walk           eachTile, by both roles
//	part of K    CTA.PartOfK                part: CTA.PartOfK        eachTile
//	staging      stage: copier              stage: copier            produce: copies
//	fragments    fragments: reader          stage: reader            consume: multiplier
//	loop         mainLoop                   stagedLoop, directLoop   multiplier.loop
//	splits       reduceWarps, reduceSplits  reduceSplits             reduce, each warp by itself
//	epilogue     epilogue: writer           epilogue: writer         store: scale, finish, writer, tileWriter
//	edge         writer.bound               writer.inColumns         writer.inside, lastTile
//	launch       Launch: Start              Launch: Start            Launch: Start, complete
//
// The sum over splits of mma and sgemm is CTA.AddSplits. Kernels of sgemm with math=wmma have tensorCores in place of
// all behind the walk.
//
// # Verification
//
// EmitReference and EmitComparison generate kernels that check a result on the device. The reference computes chosen
// rows of A·B in float64, one thread per element, with no code of any family. The comparison reads these rows beside
// C and reports the largest error, the number of wrong elements and the first of them.
//
//	v := gemmgen.Verification{Call: call, Rows: rows, RowStep: step, Want: …, Verdict: …, Tolerance: …, Scale: …}
//	launch, err := reference.Launch(v)  // writes v.WantBytes() bytes to Want
//	launch, err = comparison.Launch(v)  // updates the verdict, which starts as NewVerdict; ParseVerdict reads it
package gemmgen
