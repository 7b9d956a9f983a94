// Runs an exported fp16 kernel, row-major, on matrices of -1, 0 and 1, and compares every element with sums of integers.
//   cc -DNAME=wgmma_... -DSIZE_M=200 -DSIZE_N=264 -DSIZE_K=320 -I. check.c wgmma_....c -lcuda && ./a.out wgmma_....ptx BETA
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)
#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define HEADER_(x) STRING_(x.h)
#define HEADER(x) HEADER_(x)
#include HEADER(NAME)

#define CHECK(call)                                           \
  do {                                                        \
    CUresult r_ = (call);                                     \
    if (r_ != CUDA_SUCCESS) {                                 \
      const char *name_ = "?";                                \
      cuGetErrorName(r_, &name_);                             \
      fprintf(stderr, "%s: %s (%d)\n", #call, name_, r_);     \
      return 1;                                               \
    }                                                         \
  } while (0)

static const uint16_t code[] = {0xBC00, 0, 0x3C00};

static double value(uint16_t h) {
  int exponent = h >> 10 & 31;
  double v = exponent ? 1024 + (h & 1023) : h & 1023;
  for (int e = exponent ? exponent - 25 : -24; e < 0; e++) v /= 2;
  for (int e = exponent - 25; e > 0; e--) v *= 2;
  return h >> 15 ? -v : v;
}

int main(int argc, char **argv) {
  static uint16_t a[SIZE_M * SIZE_K], b[SIZE_K * SIZE_N], c[SIZE_M * SIZE_N], old[SIZE_M * SIZE_N];
  if (argc < 3) return 2;
  float beta = atof(argv[2]);
  unsigned seed = 1;
  for (int i = 0; i < SIZE_K * SIZE_N; i++) b[i] = code[((seed = seed * 1664525u + 1013904223u) >> 16) % 3];
  for (int i = 0; i < SIZE_M * SIZE_K; i++) a[i] = code[((seed = seed * 1664525u + 1013904223u) >> 16) % 3];
  for (int i = 0; i < SIZE_M * SIZE_N; i++) old[i] = code[((seed = seed * 1664525u + 1013904223u) >> 16) % 3];
  FILE *f = fopen(argv[1], "rb");
  if (!f) return 2;
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  rewind(f);
  char *text = calloc(1, size + 1);
  if (fread(text, 1, size, f) != (size_t)size) return 2;
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  JOIN(NAME, _kernel) kernel;
  CHECK(JOIN(NAME, _load)(&kernel, text));
  CUdeviceptr da, db, dc, work;
  CHECK(cuMemAlloc(&da, sizeof a));
  CHECK(cuMemAlloc(&db, sizeof b));
  CHECK(cuMemAlloc(&dc, sizeof c));
  CHECK(cuMemAlloc(&work, JOIN(NAME, _WORKSPACE) + 256));
  CHECK(JOIN(NAME, _prepare)(work, 0));
  CHECK(cuMemcpyHtoD(da, a, sizeof a));
  CHECK(cuMemcpyHtoD(db, b, sizeof b));
  for (int run = 0; run < 2; run++) {
    CHECK(cuMemcpyHtoD(dc, old, sizeof c));
    CHECK(JOIN(NAME, _launch)(&kernel, da, db, dc, 2, beta, work, 0));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH(c, dc, sizeof c));
    int wrong = 0;
    for (int i = 0; i < SIZE_M; i++)
      for (int j = 0; j < SIZE_N; j++) {
        double want = beta * value(old[i * SIZE_N + j]), sum = 0;
        for (int k = 0; k < SIZE_K; k++) sum += value(a[i * SIZE_K + k]) * value(b[k * SIZE_N + j]);
        wrong += value(c[i * SIZE_N + j]) != want + 2 * sum;
      }
    printf("%s: run %d, %d of %d elements are wrong\n", STRING(NAME), run, wrong, SIZE_M * SIZE_N);
    if (wrong) return 1;
  }
  return 0;
}
