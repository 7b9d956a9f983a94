// How fast does the copy engine bring boxes, by their number, size, alignment, and by how many warps issue them?
//
//   nvcc -arch=sm_90a -O2 -o copies copies.cu -lcuda && ./copies
#include <cuda.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(x)                                                  \
  do {                                                         \
    auto r_ = (x);                                             \
    if (r_) {                                                  \
      printf("error %d line %d\n", (int)r_, __LINE__);         \
      exit(1);                                                 \
    }                                                          \
  } while (0)

__device__ __forceinline__ uint32_t s32(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void wait(uint32_t b, uint32_t ph) {
  asm volatile(
      "{\n.reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra L;\nD:\n}" ::"r"(b),
      "r"(ph));
}

// A stage is BOXES boxes of 64 elements x rows. Warp w of WARPS issues the boxes w, w + WARPS, and so on; one more warp waits
// for the stages. The boxes of a stage lie side by side along K if ALONGK is 1, else below each other.
template <int STAGES, int BOXES, int WARPS, int ALONGK>
__global__ void copy(const __grid_constant__ CUtensorMap map, int tiles, int rows, int steps, long long *out) {
  extern __shared__ __align__(1024) char raw[];
  uint32_t smem = (s32(raw) + 1023) / 1024 * 1024;
  __shared__ uint64_t full[32], empty[32];
  int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(s32(full + i)));
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(s32(empty + i)));
    }
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (threadIdx.x % 32) return;
  int row = blockIdx.x % tiles * rows * (ALONGK ? 1 : BOXES), boxbytes = rows * 128;
  uint32_t f = s32(full), e = s32(empty);
  int stage = 0, phase = 0;
  long long t0 = clock64();
  if (warp == WARPS) {
    for (int i = 0; i < steps; i++) {
      wait(f + 8 * stage, phase);
      asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(e + 8 * stage));
      if (++stage == STAGES) stage = 0, phase ^= 1;
    }
    out[blockIdx.x] = clock64() - t0;
    return;
  }
  int k = 0;
  for (int i = 0; i < steps; i++) {
    wait(e + 8 * stage, phase ^ 1);
    if (warp == 0)
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(f + 8 * stage), "r"(boxbytes * BOXES));
#pragma unroll
    for (int b = 0; b < BOXES; b++)
      if (b % WARPS == warp)
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                smem + (stage * BOXES + b) * boxbytes),
            "l"(&map), "r"(f + 8 * stage), "r"(k + (ALONGK ? b * 64 : 0)), "r"(row + (ALONGK ? 0 : b * rows))
            : "memory");
    k += ALONGK ? 64 * BOXES : 64;
    if (++stage == STAGES) stage = 0, phase ^= 1;
  }
}

template <int STAGES, int BOXES, int WARPS, int ALONGK>
void run(int tiles, int rows, int pitch, int promo) {
  static char *flush;
  static long long *out;
  size_t fb = 400u << 20;
  std::vector<long long> h(132);
  if (!flush) {
    CK(cudaMalloc(&flush, fb));
    CK(cudaMalloc(&out, 8 * 1024));
  }
  auto kern = copy<STAGES, BOXES, WARPS, ALONGK>;
  CK(cudaFuncSetAttribute(kern, cudaFuncAttributeMaxDynamicSharedMemorySize, 220 * 1024));
  char *a;
  size_t m = (size_t)tiles * rows * (ALONGK ? 1 : BOXES);
  CK(cudaMalloc(&a, m * pitch + 4096));
  CK(cudaMemset(a, 0, m * pitch + 4096));
  int K = (pitch - 96) / 2 / 512 * 512, steps = K / 64 / (ALONGK ? BOXES : 1);
  CUtensorMap map;
  cuuint64_t dims[] = {(cuuint64_t)K, m}, str[] = {(cuuint64_t)pitch};
  cuuint32_t box[] = {64, (cuuint32_t)rows}, es[] = {1, 1};
  CK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, a, dims, str, box, es, CU_TENSOR_MAP_INTERLEAVE_NONE,
                            CU_TENSOR_MAP_SWIZZLE_128B, (CUtensorMapL2promotion)promo, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  double c[2];
  for (int warm = 0; warm < 2; warm++) {
    std::vector<double> t;
    for (int rep = 0; rep < 7; rep++) {
      if (!warm) CK(cudaMemset(flush, rep, fb));
      kern<<<132, 32 * (WARPS + 1), STAGES * BOXES * rows * 128 + 1024>>>(map, tiles, rows, steps, out);
      CK(cudaDeviceSynchronize());
      CK(cudaMemcpy(h.data(), out, 8 * 132, cudaMemcpyDeviceToHost));
      double s = 0;
      for (auto x : h) s += x;
      t.push_back(s / 132 / (steps * BOXES));
    }
    std::sort(t.begin(), t.end());
    c[warm] = t[3];
  }
  printf("pitch %5d (%3d mod 128) tiles %3d stages %2d boxes %d of %3d rows, %s, %d warps, promotion %d: cycles per box cold "
         "%7.1f warm %7.1f  bytes/cycle %.1f %.1f\n",
         pitch, pitch % 128, tiles, STAGES, BOXES, rows, ALONGK ? "along K" : "rows", WARPS, promo, c[0], c[1],
         128.0 * rows / c[0], 128.0 * rows / c[1]);
  CK(cudaFree(a));
}

int main() {
  CK(cuInit(0));
  cudaFree(0);
  for (int pitch : {10880, 10912, 10944, 10896}) {
    run<6, 1, 1, 1>(8, 8, pitch, 2);
    run<6, 1, 1, 1>(8, 32, pitch, 2);
    run<6, 1, 1, 1>(8, 64, pitch, 2);
    run<6, 1, 1, 1>(8, 128, pitch, 2);
    run<3, 1, 1, 1>(8, 256, pitch, 2);
    run<6, 2, 1, 0>(8, 64, pitch, 2);
    run<6, 2, 2, 0>(8, 64, pitch, 2);
    run<6, 2, 1, 0>(8, 128, pitch, 2);
    run<6, 2, 2, 0>(8, 128, pitch, 2);
    run<6, 4, 1, 1>(8, 64, pitch, 2);
    run<6, 4, 2, 1>(8, 64, pitch, 2);
    run<6, 4, 4, 1>(8, 64, pitch, 2);
    run<12, 2, 1, 0>(8, 64, pitch, 2);
    run<12, 2, 2, 0>(8, 64, pitch, 2);
    run<6, 2, 2, 0>(8, 64, pitch, 0);
    run<6, 2, 2, 0>(8, 64, pitch, 1);
    run<6, 2, 2, 0>(8, 64, pitch, 3);
    run<6, 2, 1, 0>(66, 64, pitch, 2);
    run<6, 2, 1, 0>(1, 64, pitch, 2);
  }
}
