// cuBLAS and cuBLASLt through dlopen, so that no version is linked. The declarations are those of CUDA 11 to 13.
#ifndef ORIGAMI_CUDA_BLAS_H
#define ORIGAMI_CUDA_BLAS_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

// origami_blas is an open cuBLAS with a handle on the current context.
typedef struct origami_blas origami_blas;

// origami_blas_open returns NULL where there is no usable cuBLAS.
origami_blas *origami_blas_open(CUstream stream, CUdeviceptr workspace, size_t bytes);
int origami_blas_version(origami_blas *b);
void origami_blas_close(origami_blas *b);

// origami_gemm is one multiplication as the libraries see it: column-major C[m×n] = op(A)·op(B). Types are those of the
// CUDA library_types, compute is a cublasComputeType_t; alpha is 1 and beta is 0.
typedef struct {
  int trans_a, trans_b;
  int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c;
  int batch, in_type, out_type, compute;
  CUdeviceptr a, b, c;
} origami_gemm;

// origami_blas_run puts the kernel that cuBLAS chooses on the stream. It returns the library's status, 0 for success.
int origami_blas_run(origami_blas *b, const origami_gemm *g);

// origami_blas_plan is a multiplication with the candidates that cuBLASLt proposes for it, in its order.
typedef struct origami_blas_plan origami_blas_plan;
int origami_blas_plan_new(origami_blas *b, const origami_gemm *g, origami_blas_plan **plan, int *candidates);
int origami_blas_plan_run(origami_blas *b, origami_blas_plan *plan, const origami_gemm *g, int candidate);
void origami_blas_plan_free(origami_blas *b, origami_blas_plan *plan);

#endif
