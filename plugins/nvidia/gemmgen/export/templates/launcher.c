// {{Problem}}, {{Config}}
// Written by `origami export`.
#include "{{Name}}.h"

#include <stdint.h>

CUresult {{Name}}_load({{Name}}_kernel *k, const char *ptx) {
  CUresult r = cuModuleLoadData(&k->module, ptx);
  if (r == CUDA_SUCCESS) r = cuModuleGetFunction(&k->function, k->module, "{{Name}}");
  if (r == CUDA_SUCCESS)
    r = cuFuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {{SharedMemory}});
  return r;
}

CUresult {{Name}}_prepare(CUdeviceptr workspace, CUstream stream) {
  return {{Counters}} ? cuMemsetD8Async(workspace, 0, {{Counters}}, stream) : CUDA_SUCCESS;
}
{{if Maps}}
// Describes a matrix of elements of the type: its three sizes, two strides in bytes, and the three sizes of a box.
static CUresult describe(CUtensorMap *map, CUdeviceptr address, CUtensorMapDataType type, cuuint64_t size0,
                         cuuint64_t size1, cuuint64_t size2, cuuint64_t stride0, cuuint64_t stride1, cuuint32_t box0,
                         cuuint32_t box1, cuuint32_t box2) {
  const cuuint64_t sizes[] = {size0, size1, size2}, strides[] = {stride0, stride1};
  const cuuint32_t box[] = {box0, box1, box2}, steps[] = {1, 1, 1};
  return cuTensorMapEncodeTiled(map, type, 3, (void *)address, sizes, strides, box, steps,
                                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                // pairs of lines are slower where rows begin within a line
                                strides[0] % 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
{{end}}
CUresult {{Name}}_launch(const {{Name}}_kernel *k, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c,{{if Scales}} CUdeviceptr scale_a, unsigned step_a, CUdeviceptr scale_b, unsigned step_b,{{end}}{{if Bias}} CUdeviceptr bias,{{end}}{{if Residual}} CUdeviceptr r,{{end}}
                          {{Scalar}} alpha, {{Scalar}} beta, CUdeviceptr workspace, CUstream stream) {
{{if Sets}}  if (beta != 0) return CUDA_ERROR_INVALID_VALUE;
{{end}}{{if Maps}}  CUresult result;
{{Maps}}{{end}}{{Constants}}  uint64_t p_counters = workspace, p_partials = workspace + {{Counters}};
  (void)p_counters, (void)p_partials;
  void *params[] = {
      {{Arguments}}};
  return cuLaunchKernel(k->function, {{Grid}}, stream, params, NULL);
}
