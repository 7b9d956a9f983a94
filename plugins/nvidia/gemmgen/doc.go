// Package gemmgen generates GEMM kernels as PTX text.
//
// It has one family, "mma" (compute capability 8.0 and up): C = alpha·A·B + beta·C with fp16 or bf16 operands, fp32
// accumulation and fp16, bf16 or fp32 output; A contiguous along K or M, B along N or K, C row-major; leading dimensions,
// batches by stride, any sizes and any alignment.
//
//	call := gemmgen.Packed(problem)                      // addresses, leading dimensions, alpha and beta
//	spec := call.Spec(gemm.FP16, config)                 // what the text depends on
//	resources, reason, detail := spec.Check(sharedPerCTA) // feasible? why not?
//	kernel, err := gemmgen.Emit(spec, 90)                // pure: the same bytes on any machine
//	launch, err := kernel.Launch(call, config)           // grid, shared memory, parameter buffer
//
// # What a configuration means
//
// block_m, block_n, block_k: one CTA computes a block_m × block_n tile of C and steps through K in blocks of block_k.
// Powers of two: 16 to 256, 16 to 256, 16 to 128.
//
// num_warps, 4 or 8: the warps divide the tile into equal parts, as square as they can be (a warp reads its rows of A and
// its columns of B from shared memory for every k16 step, so its operand traffic is warp_m + warp_n per step). Each part is
// made of 16×8 tiles of mma.sync.m16n8k16, at least one. A tile too small for that is shared along K: warps compute
// different k16 steps of the same part, and their sums are added through shared memory at the end.
//
// num_stages, 2 to 6, is the number of shared-memory buffers, each holding a block of A and one of B:
//
//	shared memory = num_stages · (block_m + block_n) · block_k · 2 B
//
// Copies run num_stages − 1 blocks ahead of the tensor cores (cp.async). Two stages thus hide a copy behind one block's
// arithmetic. In another family, as Triton's, the same number may mean another number of buffers.
//
// Registers per thread: block_m·block_n/(32·num_warps) fp32 sums (times the warps that share along K), and fragments of
// the current and the next k16 step, 4 per 16 rows and 2 per 8 columns of the warp's part each. Up to 128 sums fit; 256
// never do.
//
// group_m: CTAs are numbered down group_m rows of tiles, then along the columns, so that CTAs that run together share
// operands in L2. A parameter: it does not change the kernel.
//
// split_k: that many CTAs share an output tile, each with a contiguous part of K in whole blocks. Each writes its sums to a
// workspace; the one that arrives last adds all of them in the order of the splits, so results are the same bits in every
// run. Whether K is split changes the kernel, the number is a parameter.
//
// # Alignment
//
// Where addresses, leading dimensions, strides and the contiguous extent are multiples of 16 bytes, copies are 16 bytes
// wide and bypass L1; with 8 or 4 bytes they are as wide and go through L1; otherwise elements are loaded and stored one
// by one. Stores to C narrow in the same way. Every width computes the same sums in the same order.
//
// # Order of summation
//
// If block_k does not divide a CTA's part of K, its short block comes first, filled up with zeros; the others follow in
// order. Rows and columns beyond the matrix repeat the last one inside, and what they give is not written. C is read only
// if beta is not zero.
//
// # Verification
//
// EmitReference and EmitComparison generate kernels that check a result on the device: the reference computes chosen rows
// of A·B in float64, one thread per element and with none of the family's code; the comparison reads them beside C and
// leaves the largest error, the number of wrong elements and the first of them.
//
//	v := gemmgen.Verification{Call: call, Rows: rows, RowStep: step, Want: …, Verdict: …, Tolerance: …, Scale: …}
//	launch, err := reference.Launch(v)  // writes v.WantBytes() to Want
//	launch, err = comparison.Launch(v)  // over NewVerdict; ParseVerdict reads what it leaves
//
// # The peak
//
// EmitPeak generates a kernel that only issues matrix instructions on registers: the rate that the family cannot exceed
// on a device, measured under the same clocks and power limit.
package gemmgen
