//go:build cuda

#include "driver.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static char problem[256] = "the driver was not opened";

const char *origami_driver(void) { return problem[0] ? problem : NULL; }

// cuInit stands in for the driver's. gorgonia.org/cu calls it before main and ends the process if it fails, and without a
// driver there is none to call. So this one opens the driver, which gives all other functions their place (they are
// looked up at their first call), calls the real cuInit, remembers how it went, and reports success.
CUresult cuInit(unsigned flags) {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL);
  if (!driver) {
    snprintf(problem, sizeof problem, "no NVIDIA driver: %s", dlerror());
    return CUDA_SUCCESS;
  }
  CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
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

CUresult origami_launch(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned threads, unsigned shared,
                        CUstream stream, void *params, size_t bytes) {
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(f, grid_x, grid_y, grid_z, threads, 1, 1, shared, stream, NULL, extra);
}

CUresult origami_allow_shared(CUfunction f, int bytes) {
  return cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}

struct origami_gate {
  volatile uint32_t *host; // the last turn that is open; the same memory as device
  CUdeviceptr device;
  uint32_t turn;
};

CUresult origami_gate_new(origami_gate **to) {
  origami_gate *g = calloc(1, sizeof *g);
  if (!g) return CUDA_ERROR_OUT_OF_MEMORY;
  void *host = NULL;
  CUresult r = cuMemHostAlloc(&host, sizeof *g->host, CU_MEMHOSTALLOC_DEVICEMAP);
  if (r == CUDA_SUCCESS) {
    g->host = host;
    *g->host = 0;
    r = cuMemHostGetDevicePointer(&g->device, host, 0);
  }
  if (r != CUDA_SUCCESS) {
    origami_gate_free(g);
    return r;
  }
  *to = g;
  return CUDA_SUCCESS;
}

CUresult origami_gate_shut(origami_gate *g, CUstream stream) {
  return cuStreamWaitValue32(stream, g->device, ++g->turn, CU_STREAM_WAIT_VALUE_GEQ);
}

void origami_gate_open(origami_gate *g) { *g->host = g->turn; }

void origami_gate_free(origami_gate *g) {
  if (g->host) cuMemFreeHost((void *)g->host);
  free(g);
}
