// Package mma is the kernel family "mma", for sm_80 and later: C = alpha·A·B + beta·C with fp16 or bf16 operands, fp32
// accumulation and fp16, bf16 or fp32 output. A is contiguous along K or M, B along N or K, C is row-major. Leading
// dimensions, batches by stride, any sizes and any alignment are supported.
//
// # What a configuration means
//
// block_m, block_n, block_k: one CTA computes a block_m × block_n tile of C and steps through K in blocks of block_k.
// All are powers of two: 16 to 256, 16 to 256, 16 to 128.
//
// num_warps, 4 or 8: the warps divide the tile into equal parts, as square as possible. For every k16 step a warp
// reads its rows of A and its columns of B from shared memory, so the operand traffic of a warp is warp_m + warp_n
// per step. Each part consists of 16×8 tiles of mma.sync.m16n8k16, at least one. Warps share a tile that is too small
// for that along K: they compute different k16 steps of the same part, and add their sums through shared memory at
// the end.
//
// num_stages, 2 to 6, is the number of shared-memory buffers, each holding a block of A and one of B:
//
//	shared memory = num_stages · (block_m + block_n) · block_k · 2 B
//
// Copies (cp.async) run num_stages − 1 blocks ahead of the tensor cores. Two stages thus hide a copy behind one block's
// arithmetic. In another family, such as Triton's, the same number may mean another number of buffers.
//
// Registers per thread: block_m·block_n/(32·num_warps) fp32 sums (times the warps that share along K), and the
// fragments of the current and the next k16 step, 4 per 16 rows and 2 per 8 columns of the warp's part each. With 255
// registers per thread, up to 128 sums fit; 256 never do.
//
// group_m: CTAs are numbered down group_m rows of tiles, then along the columns, so that CTAs that run together share
// operands in L2. It is a parameter of the kernel and does not change the text.
//
// split_k: that many CTAs share an output tile. Each sums over a contiguous part of K in whole blocks and writes its
// sums to a workspace. The CTA that arrives last adds all of them in the order of the splits, so every run gives the
// same bits. Whether K is split changes the text; the number of splits is a parameter.
//
// # Alignment
//
// If addresses, leading dimensions, strides and the contiguous extent are multiples of 16 bytes, copies are 16 bytes
// wide and bypass L1. If they are multiples of 8 or 4 bytes, copies are that wide and go through L1. Otherwise
// elements are loaded and stored one by one. Stores to C narrow in the same way. Every width computes the same sums
// in the same order.
//
// # Order of summation
//
// If block_k does not divide a CTA's part of K, the short block comes first, padded with zeros, and the others follow
// in order. Rows and columns beyond the matrix repeat the last row or column inside, and their results are not
// written. C is read only if beta is not zero.
//
// # The peak
//
// EmitPeak generates a kernel that only issues matrix instructions on registers: the rate that the family cannot exceed
// on a device under the same clocks and power limit.
package mma
