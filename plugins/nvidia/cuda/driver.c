//go:build cuda

#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static char problem[256] = "the driver was not opened";

const char *origami_driver(void) { return problem[0] ? problem : NULL; }

// cuInit replaces the driver's. gorgonia.org/cu calls it before main and ends the process if it fails, and without a driver
// there is none to call. This one opens the driver, so that all other functions are found there at their first call. It
// then calls the real cuInit, remembers the result, and reports success.
CUresult cuInit(unsigned flags) {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL);
  if (!driver) {
    snprintf(problem, sizeof problem, "no NVIDIA driver: %s", dlerror());
    return CUDA_SUCCESS;
  }
  CUresult (*init)(unsigned) = (CUresult (*)(unsigned))dlsym(driver, "cuInit");
  if (!init) {
    snprintf(problem, sizeof problem, "libcuda.so.1 has no cuInit");
    return CUDA_SUCCESS;
  }
  CUresult r = init(flags);
  if (r == CUDA_SUCCESS) {
    problem[0] = 0;
  } else if (r == CUDA_ERROR_NO_DEVICE) {
    snprintf(problem, sizeof problem, "the NVIDIA driver finds no GPU");
  } else {
    const char *name = NULL;
    if (cuGetErrorName(r, &name) != CUDA_SUCCESS || !name) name = "unknown error";
    snprintf(problem, sizeof problem, "the NVIDIA driver cannot start: %s (%d)", name, r);
  }
  return CUDA_SUCCESS;
}

CUresult origami_launch(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned threads,
                        unsigned shared, CUstream stream, void *params, size_t bytes, const uintptr_t *offsets,
                        size_t n) {
  void *separate[32];
  if (n > sizeof separate / sizeof *separate) return CUDA_ERROR_INVALID_VALUE;
  if (n > 0) {
    for (size_t i = 0; i < n; i++) separate[i] = (char *)params + offsets[i];
    return cuLaunchKernel(f, grid_x, grid_y, grid_z, threads, 1, 1, shared, stream, separate, NULL);
  }
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(f, grid_x, grid_y, grid_z, threads, 1, 1, shared, stream, NULL, extra);
}

CUresult origami_allow_shared(CUfunction f, int bytes) {
  return cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}

CUresult origami_tensor_map(void *map, CUtensorMapDataType type, cuuint64_t address, const cuuint64_t sizes[3],
                            const cuuint64_t strides[2], const cuuint32_t box[3]) {
  CUtensorMap aligned; // to 64 bytes, which map need not be
  const cuuint32_t steps[3] = {1, 1, 1};
  // Pairs of lines cost up to 19 % where rows begin within a line (H200, experiments/wgmma-on-h200).
  const CUtensorMapL2promotion fetch =
      strides[0] % 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  CUresult r = cuTensorMapEncodeTiled(&aligned, type, 3, (void *)address, sizes, strides, box, steps,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                      fetch, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r == CUDA_SUCCESS) memcpy(map, &aligned, sizeof aligned);
  return r;
}
