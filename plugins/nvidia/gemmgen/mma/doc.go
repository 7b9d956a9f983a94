// Package mma is the kernel family "mma", for sm_80 and later: C = alpha·A·B + beta·C. A is contiguous along K or M, B
// along N or K, C is row-major. Leading dimensions, batches by stride, any sizes and any alignment are supported.
//
// # Element types
//
//	A and B         instruction         sums   C                 notes
//	fp16, bf16      mma.sync.m16n8k16   fp32   fp16, bf16, fp32
//	fp8, fp8_e5m2   mma.sync.m16n8k32   fp32   fp16, bf16, fp32  from sm_89; as fp16 from sm_90 to sm_110
//	int8            mma.sync.m16n8k32   int32  int32             alpha and beta are integers
//	tf32            mma.sync.m16n8k8    fp32   fp16, bf16, fp32  fp32 in memory, rounded to nearest when read
//	fp32            fma                 fp32   fp16, bf16, fp32
//
// A and B of 8 bits must be contiguous along K. A step along K is 32 bytes for every type: 16 elements of 16 bits, 32
// of 8 bits, 8 of 32 bits.
//
// # What a configuration means
//
// block_m, block_n, block_k: one CTA computes a block_m × block_n tile of C and steps through K in blocks of block_k.
// All are powers of two: 16 to 256, 16 to 256, 16 to 128, and block_k is at least a step.
//
// num_warps, 4 or 8: the warps divide the tile into equal parts, as square as possible. For every step a warp reads its
// rows of A and its columns of B from shared memory, so the operand traffic of a warp is warp_m + warp_n per step. Each
// part consists of 16×8 tiles of the matrix instruction, at least one. Warps share a tile that is too small for that
// along K: they compute different steps of the same part, and add their sums through shared memory at the end.
//
// warp_count_m and warp_count_k choose another grid: how many warps divide the rows of the tile, and how many share
// each part along K (LocalSplitU). The others divide the columns. With more warps along K, parts are larger, so that
// less is read from shared memory for each multiplication, and a thread has more sums. 0 is the grid above. A number
// that the grid has anyway is refused.
//
// num_stages, 2 to 6, is the number of shared-memory buffers, each holding a block of A and one of B:
//
//	shared memory = num_stages · (block_m + block_n) · block_k · bytes of an element
//
// Copies (cp.async) run num_stages − 1 blocks ahead of the tensor cores. Two stages thus hide a copy behind one block's
// arithmetic. In another family, such as Triton's, the same number may mean another number of buffers.
//
// Registers per thread: block_m·block_n/(32·num_warps) sums (times the warps that share along K), and the fragments of
// the current and the next step, 4 per 16 rows and 2 per 8 columns of the warp's part each. With 255 registers per
// thread, up to 128 sums fit; 256 never do.
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
// If addresses, leading dimensions and strides are multiples of 16 bytes, copies are 16 bytes wide and bypass L1. If
// they are multiples of 8 or 4 bytes, copies are that wide and go through L1. Otherwise 2 bytes or 1 are loaded and
// stored at a time. Stores to C narrow in the same way. Every width computes the same sums in the same order.
//
// Rows may end inside of an aligned access where there is a gap behind them, as in a matrix of 1001 columns with a
// leading dimension of 1008. Such rows are ragged: copies at their end read only what is inside, and stores there write
// single elements.
//
// # Order of summation
//
// If block_k does not divide a CTA's part of K, the short block comes first, padded with zeros, and the others follow
// in order. If rows along K are ragged, the short block comes last, since the blocks behind it would not be aligned.
// Rows and columns beyond the matrix repeat the last row or column inside, and their results are not written. C is read
// only if beta is not zero.
//
// # The peak
//
// EmitPeak generates a kernel that only issues matrix instructions on registers: the rate that the family cannot exceed
// on a device under the same clocks and power limit.
package mma
