// Package sgemm is the kernel family "sgemm", for sm_80 and later: C = alpha·A·B + beta·C in fp32, with FMA
// instructions. It has the kernels of the public SGEMM ladders, from one thread per element of C to register tiles fed
// by a pipeline of copies. All are one generator; a rung of the ladder is a configuration that has a name (see Rungs).
//
// A is contiguous along K or M, B along N or K, C is row-major. Leading dimensions, batches by stride, any sizes and
// any alignment are supported.
//
// # What a configuration means
//
// A CTA computes a block_m × block_n tile of C and steps through K in blocks of block_k. Its num_warps warps have equal
// parts of the tile, in rows of warps. A warp is lanes_m × 32/lanes_m lanes, and a lane has thread_m rows and thread_n
// columns:
//
//	thread_n = block_m·block_n / (32·num_warps·thread_m)
//	warp tile = lanes_m·thread_m rows × (32/lanes_m)·thread_n columns
//
// lane_map says how a warp's rows and columns are dealt to its lanes. With "block", a lane's rows are neighbours, and
// so are its columns. With "cyclic", they are in groups of read_width neighbours, and the groups of all lanes take
// turns: lanes then read side by side from shared memory. "quad" is cyclic, with each four lanes as 2×2.
//
// staging says how operands reach the threads:
//
//	none       each thread reads its operands from global memory; a block along K is a turn of the loop
//	registers  threads load a block into registers and store it to shared memory
//	async      cp.async copies blocks to shared memory
//
// num_stages is the number of buffers in shared memory. One has two barriers per block: behind the stores, and before
// the next ones. Two or more have one. With registers and two stages, the loads of the next block are under way while
// this one is multiplied. With async, num_stages − 1 blocks are.
//
// In shared memory, rows of B are contiguous along N. Those of A are contiguous along M or K, as shared_a says. Each
// row is followed by pad words; pad=a4 pads the rows of A alone. copy_width is the most elements of a copy from global
// memory and of a store to C, read_width that of a read from shared memory; read_width=a1b4 is one of A and four of B.
// An access is narrower where addresses are not aligned to it: a padded row of 33 words has no aligned groups of four.
//
// math=wmma multiplies with the tensor cores, as fp16 with fp32 sums: each warp has a 16×16 tile, and loads its
// fragments from global memory. See Guard.
//
// Axes that have no meaning in a configuration must be at their default, so that a kernel has one configuration.
//
// # One description of addresses
//
// The places of threads in tiles, and of elements in shared memory, are functions over an interface with a few integer
// operations (arithmetic). The generator evaluates them to instructions, Turn to numbers: bank conflicts and bytes
// come from the addresses that the kernel computes.
//
// # Order of summation
//
// Where split_k is more than 1, so many CTAs share a tile of C. Each sums over a part of K and writes its sums to the
// workspace, and the last to arrive adds them in the order of K.
//
// Each element is summed in the order of K. If block_k does not divide K, the short block comes first, filled up with
// zeros. Rows and columns beyond the matrix repeat the last ones inside; their results are not written. C is read only
// if beta is not zero.
package sgemm
