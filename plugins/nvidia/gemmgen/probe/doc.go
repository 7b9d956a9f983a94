// Package probe generates the kernels of microbenchmarks: each does one thing that hardware limits, and counts the
// cycles and the nanoseconds that it takes (asm.Stopwatch). The methods come from the published benchmarks that
// configs/README.md names, so that figures can be compared.
//
//   - Slabs reads a data set again and again: the L2 with a small one, DRAM with a large one. CachedSlabs does the same
//     with loads that allocate lines in L1. Stream reads a data set once.
//   - Triad is a = b + s·c over three arrays.
//   - Chase follows pointers in random order, one at a time.
//   - Loads reads from shared memory or L1 without conflicts, all warps at once.
//   - FMA issues multiply-adds on registers.
//   - mma.EmitPeak and mma.EmitLatency issue matrix instructions, Wgmma issues warpgroup ones from shared memory.
//   - Empty does nothing.
package probe
