// {{.Problem}}, {{.Config}}
// Written by `origami export`. It needs cuda.h of CUDA 12 or later and the NVIDIA driver (-lcuda).
#ifndef {{.Name}}_H
#define {{.Name}}_H

#include <cuda.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  CUmodule module;
  CUfunction function;
} {{.Name}}_kernel;

// Bytes of device memory that a launch needs beside the matrices. Launches that may overlap need one each.
#define {{.Name}}_WORKSPACE ((size_t){{.Counters}} + {{.Partials}})

// Loads the text of {{.Name}}.ptx into the current context.
CUresult {{.Name}}_load({{.Name}}_kernel *k, const char *ptx);

// Makes a workspace ready: once, before its first launch.
CUresult {{.Name}}_prepare(CUdeviceptr workspace, CUstream stream);

// Enqueues {{.Formula}}{{if not .Adds}}; beta has to be 0, as the kernel does not read C{{end}}.{{if .Scales}} Scales
// are fp32; a step is 1 for a scale of each row of A, or column of B, and 0 for one of all.{{end}}{{if .Bias}} The
// bias is a vector of {{if .BiasType}}{{.BiasType}}{{else}}the type of C{{end}}, with an element for each column.{{end}}{{if .Residual}} R
// is a matrix like C, and may be C.{{end}}
CUresult {{.Name}}_launch(const {{.Name}}_kernel *k, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c,{{if .Scales}} CUdeviceptr scale_a, unsigned step_a, CUdeviceptr scale_b, unsigned step_b,{{end}}{{if .Bias}} CUdeviceptr bias,{{end}}{{if .Residual}} CUdeviceptr r,{{end}}
                          {{if .Integer}}int alpha, int beta{{else}}float alpha, float beta{{end}}, CUdeviceptr workspace, CUstream stream);

#ifdef __cplusplus
}
#endif
#endif
