// The driver's header as gorgonia.org/cu v0.9.6 knows it. CUDA 13 gave five names other signatures; the driver still
// exports the old entry points, which are declared here under the old names. The folder of this file comes first on the
// include path (see the Makefile).
#ifndef ORIGAMI_CUDA_SHIM_H
#define ORIGAMI_CUDA_SHIM_H

#include_next <cuda.h>

#if CUDA_VERSION >= 13000
#undef cuCtxCreate
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuGraphAddDependencies
#undef cuGraphGetEdges
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
#define cuCtxCreate cuCtxCreate_v2
CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device);
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream);
CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
#endif

#endif
