// {{.Problem}}, {{.Config}}
// Written by `origami export`.
#include "{{.Name}}.h"

#include <stdint.h>

CUresult {{.Name}}_load({{.Name}}_kernel *k, const char *ptx) {
  CUresult r = cuModuleLoadData(&k->module, ptx);
  if (r == CUDA_SUCCESS) r = cuModuleGetFunction(&k->function, k->module, "{{.Name}}");
  if (r == CUDA_SUCCESS)
    r = cuFuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {{.SharedMemory}});
  return r;
}

CUresult {{.Name}}_prepare(CUdeviceptr workspace, CUstream stream) {
{{- if .Counters}}
  return cuMemsetD8Async(workspace, 0, {{.Counters}}, stream);
{{- else}}
  (void)workspace, (void)stream;
  return CUDA_SUCCESS;
{{- end}}
}
{{if .Maps}}
static CUresult describe(CUtensorMap *map, CUtensorMapDataType type, CUdeviceptr address, const cuuint64_t *sizes,
                         const cuuint64_t *strides, const cuuint32_t *box) {
  const cuuint32_t steps[] = {1, 1, 1};
  return cuTensorMapEncodeTiled(map, type, 3, (void *)address, sizes, strides, box, steps,
                                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                // pairs of lines are slower where rows begin within a line
                                strides[0] % 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
{{end}}
CUresult {{.Name}}_launch(const {{.Name}}_kernel *k, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c,{{if .Scales}} CUdeviceptr scale_a, unsigned step_a, CUdeviceptr scale_b, unsigned step_b,{{end}}{{if .Bias}} CUdeviceptr bias,{{end}}{{if .Residual}} CUdeviceptr r,{{end}}
                          {{if .Integer}}int alpha, int beta{{else}}float alpha, float beta{{end}}, CUdeviceptr workspace, CUstream stream) {
{{- if not .Adds}}
  if (beta != 0) return CUDA_ERROR_INVALID_VALUE;
{{- end}}
{{- range .Maps}}
  CUtensorMap map_{{.Param}};
  {
    const cuuint64_t sizes[] = { {{- index .Sizes 0}}, {{index .Sizes 1}}, {{index .Sizes 2 -}} };
    const cuuint64_t strides[] = { {{- index .Strides 0}}, {{index .Strides 1 -}} };
    const cuuint32_t box[] = { {{- index .Box 0}}, {{index .Box 1}}, {{index .Box 2 -}} };
    CUresult r = describe(&map_{{.Param}}, {{.Type}}, {{.Matrix}}, sizes, strides, box);
    if (r != CUDA_SUCCESS) return r;
  }
{{- end}}
{{- range .Params}}
{{- if eq .Role "constant"}}
  {{ctype .Type}} p_{{.Name}} = ({{ctype .Type}}){{.Value}}u{{if eq .Type.Bytes 8}}ll{{end}};
{{- else if eq .Role "counters"}}
  uint64_t p_counters = workspace;
{{- else if eq .Role "partials"}}
  uint64_t p_partials = workspace + {{$.Counters}};
{{- end}}
{{- end}}
  void *params[] = {
{{- range $i, $p := .Params}}{{if $i}}, {{end -}}
{{if eq .Role "map"}}&map_{{.Name}}{{else if or (eq .Role "constant") (eq .Role "counters") (eq .Role "partials")}}&p_{{.Name}}{{else if and (eq .Role "r") (not $.Residual)}}&c{{else}}&{{.Role}}{{end}}
{{- end -}} };
{{- if not .Counters}}
  (void)workspace;
{{- end}}
  return cuLaunchKernel(k->function, {{index .Grid 0}}, {{index .Grid 1}}, {{index .Grid 2}}, {{.Threads}}, 1, 1, {{.SharedMemory}}, stream, params, NULL);
}
