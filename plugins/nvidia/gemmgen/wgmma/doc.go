// Package wgmma is the family of kernels for Hopper (sm_90a): wgmma.mma_async fed by copies of tensor tiles (TMA).
//
// # What a configuration means
//
// A CTA has num_warps warps. The first four are the producer: one of their threads issues all copies. The other 4, 8
// or 12 are one to three consumers, warpgroups of four warps that multiply and store. They share the output tile of
// block_m×block_n by rows, so that each has some tiles of 64×block_n, whose sums stay in registers. Beside several
// consumers the producer gives up registers for them (setmaxnreg).
//
// Where block_m is no multiple of 64, the warpgroups multiply Cᵀ = Bᵀ·Aᵀ: they share the tile by columns of C, so that
// each has some tiles of block_m×64. block_n is then a multiple of 64.
//
// Each of num_stages stages in shared memory has a block of A and one of B, block_k indices along K wide: 64 or 128,
// for fp8 128. Rows have 128 bytes in the 128-byte swizzle, which both the copies and wgmma know. Where block_k has
// twice as many, rows along K lie in two slabs. Operands that are contiguous along M or N come in slices of 64
// elements.
//
// The CTAs stay resident, as many as there are SMs, and take output tiles in turns, in the grouped order of group_m.
// The copies of the next tile begin while the last is stored.
//
// With split_k, the tiles of the first part of K come first, then the tiles of the next. Each warp that multiplies
// writes its sums to a workspace. The last to arrive adds them, in the order of the splits, and stores.
//
// With tree, K has so many equal leaves. A CTA multiplies its leaves one after the other. The sums that wait for their
// sibling are in registers that are free, then in shared memory that is free, and the rest in the workspace. Those of a
// split are a subtree, and the last to arrive adds these as the tree says. So the order of sums is the same for each
// split_k, and for CTAs of other GPUs that have a part of the leaves.
//
// With stream_k=1, the tiles that fill no wave are shared: all clusters have an equal part of their blocks along
// K. The parts of a tile are added as the parts of a split are.
//
// With few tiles along M or N, the tiles begin at different places along K, as they would otherwise all read the same
// lines at the same time.
//
// With cluster=2 or 4, CTAs whose tiles are neighbours along M each copy a part of each block of B, for all of them.
// With cluster_n, neighbours along N do so with A, and with cluster=2x2, 2x4 or 4x2 both do.
//
// # Synchronisation
//
// Each stage has two barriers. The full one counts the bytes of the copies of a block. The empty one counts the
// consumers of the whole cluster that have multiplied it. A consumer frees a stage when the multiplications of
// the next block have been issued and this block's have ended, so that the tensor cores are never without work.
//
// # Limits
//
// A and B must be what a tensor map can describe: addresses, and distances of rows and of the matrices of a batch, that
// are multiples of 16 bytes. M, N and K may have any size: the copies read zeros outside of the matrices. fp8 has to be
// contiguous along K in both.
//
// Tensor cores add fp8 with about 13 bits below the largest summand of a step of 32 along K, towards zero. On standard
// normal inputs an element is off by up to √(K/32)·2^−9 of √K. With promote=1, the products of a block along K are
// added to the sums in fp32, so that the tensor cores add no more than 128 of them: four multiplications, as cuBLAS and
// CUTLASS do by default. It takes as many registers again as the sums have.
//
// The copy engine stores C too, if a tensor map can describe it, its rows end at multiples of 16 bytes, its elements
// have 16 bits and a tile has at least 64 columns of it. A warp stores 16 rows at a time, a warpgroup that has
// multiplied Cᵀ 32 rows together. Other C are written by the threads that have the sums, two neighbours at a time if C
// is aligned to pairs. So is every C to which beta times its old value is added, and Cᵀ whose K is split.
package wgmma
