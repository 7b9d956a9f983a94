//go:build cuda

#include "blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// What the libraries' headers declare. Source: cuBLAS library documentation, chapters "Using the cuBLAS API" and "Using
// the cuBLASLt API".
enum { COMPUTE_32I = 72, GEMM_DEFAULT = -1, TYPE_32F = 0, TYPE_32I = 10 };
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, LAYOUT_BATCH = 5, LAYOUT_STRIDE = 6 };
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_ALIGNMENT = 5 };
typedef struct {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
} heuristic;
enum { CANDIDATES = 16 };

struct origami_blas {
  void *library, *lt_library;
  void *handle, *lt;
  CUstream stream;
  CUdeviceptr workspace;
  size_t bytes;
  int (*create)(void **);
  int (*destroy)(void *);
  int (*set_stream)(void *, CUstream);
  int (*set_workspace)(void *, void *, size_t);
  int (*version)(void *, int *);
  int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int,
              const void *, void *, int, int, int, int);
  int (*gemm_batched)(void *, int, int, int, int, int, const void *, const void *, int, int, long long, const void *,
                      int, int, long long, const void *, void *, int, int, long long, int, int, int);
  int (*lt_create)(void **);
  int (*lt_destroy)(void *);
  int (*desc_create)(void **, int, int);
  int (*desc_destroy)(void *);
  int (*desc_set)(void *, int, const void *, size_t);
  int (*layout_create)(void **, int, uint64_t, uint64_t, int64_t);
  int (*layout_destroy)(void *);
  int (*layout_set)(void *, int, const void *, size_t);
  int (*preference_create)(void **);
  int (*preference_destroy)(void *);
  int (*preference_set)(void *, int, const void *, size_t);
  int (*propose)(void *, void *, void *, void *, void *, void *, void *, int, heuristic *, int *);
  int (*matmul)(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *,
                void *, void *, void *, const void *, void *, size_t, CUstream);
};

static void *open_any(const char *name) {
  for (int major = 13; major >= 11; major--) {
    char file[64];
    snprintf(file, sizeof file, "%s.so.%d", name, major);
    void *l = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (l) return l;
  }
  return NULL;
}

origami_blas *origami_blas_open(CUstream stream, CUdeviceptr workspace, size_t bytes) {
  origami_blas *b = calloc(1, sizeof *b);
  if (!b) return NULL;
  b->stream = stream;
  b->workspace = workspace;
  b->bytes = bytes;
  b->library = open_any("libcublas");
  b->lt_library = open_any("libcublasLt");
  struct {
    void *library;
    const char *name;
    void **to;
  } symbols[] = {
      {b->library, "cublasCreate_v2", (void **)&b->create},
      {b->library, "cublasDestroy_v2", (void **)&b->destroy},
      {b->library, "cublasSetStream_v2", (void **)&b->set_stream},
      {b->library, "cublasSetWorkspace_v2", (void **)&b->set_workspace},
      {b->library, "cublasGetVersion_v2", (void **)&b->version},
      {b->library, "cublasGemmEx", (void **)&b->gemm},
      {b->library, "cublasGemmStridedBatchedEx", (void **)&b->gemm_batched},
      {b->lt_library, "cublasLtCreate", (void **)&b->lt_create},
      {b->lt_library, "cublasLtDestroy", (void **)&b->lt_destroy},
      {b->lt_library, "cublasLtMatmulDescCreate", (void **)&b->desc_create},
      {b->lt_library, "cublasLtMatmulDescDestroy", (void **)&b->desc_destroy},
      {b->lt_library, "cublasLtMatmulDescSetAttribute", (void **)&b->desc_set},
      {b->lt_library, "cublasLtMatrixLayoutCreate", (void **)&b->layout_create},
      {b->lt_library, "cublasLtMatrixLayoutDestroy", (void **)&b->layout_destroy},
      {b->lt_library, "cublasLtMatrixLayoutSetAttribute", (void **)&b->layout_set},
      {b->lt_library, "cublasLtMatmulPreferenceCreate", (void **)&b->preference_create},
      {b->lt_library, "cublasLtMatmulPreferenceDestroy", (void **)&b->preference_destroy},
      {b->lt_library, "cublasLtMatmulPreferenceSetAttribute", (void **)&b->preference_set},
      {b->lt_library, "cublasLtMatmulAlgoGetHeuristic", (void **)&b->propose},
      {b->lt_library, "cublasLtMatmul", (void **)&b->matmul},
  };
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    *symbols[i].to = symbols[i].library ? dlsym(symbols[i].library, symbols[i].name) : NULL;
    if (!*symbols[i].to) {
      origami_blas_close(b);
      return NULL;
    }
  }
  if (b->create(&b->handle) || b->lt_create(&b->lt) || b->set_stream(b->handle, stream) ||
      b->set_workspace(b->handle, (void *)workspace, bytes)) {
    origami_blas_close(b);
    return NULL;
  }
  return b;
}

int origami_blas_version(origami_blas *b) {
  int v = 0;
  return b->version(b->handle, &v) ? 0 : v;
}

void origami_blas_close(origami_blas *b) {
  if (b->handle) b->destroy(b->handle);
  if (b->lt) b->lt_destroy(b->lt);
  if (b->library) dlclose(b->library);
  if (b->lt_library) dlclose(b->lt_library);
  free(b);
}

static const float one = 1, zero = 0;
static const int32_t one_integer = 1, zero_integer = 0;

// alpha and beta have the type of the sums.
static const void *alpha(const origami_gemm *g) {
  return g->compute == COMPUTE_32I ? (const void *)&one_integer : &one;
}
static const void *beta(const origami_gemm *g) {
  return g->compute == COMPUTE_32I ? (const void *)&zero_integer : &zero;
}

int origami_blas_run(origami_blas *b, const origami_gemm *g) {
  if (g->batch == 1)
    return b->gemm(b->handle, g->trans_a, g->trans_b, g->m, g->n, g->k, alpha(g), (void *)g->a, g->in_type, g->lda,
                   (void *)g->b, g->in_type, g->ldb, beta(g), (void *)g->c, g->out_type, g->ldc, g->compute,
                   GEMM_DEFAULT);
  return b->gemm_batched(b->handle, g->trans_a, g->trans_b, g->m, g->n, g->k, alpha(g), (void *)g->a, g->in_type,
                         g->lda, g->stride_a, (void *)g->b, g->in_type, g->ldb, g->stride_b, beta(g), (void *)g->c,
                         g->out_type, g->ldc, g->stride_c, g->batch, g->compute, GEMM_DEFAULT);
}

struct origami_blas_plan {
  void *desc, *a, *b, *c;
  heuristic candidates[CANDIDATES];
};

static int layout(origami_blas *b, void **to, int type, uint64_t rows, uint64_t columns, int64_t ld, int batch,
                  int64_t stride) {
  int32_t count = batch;
  int status = b->layout_create(to, type, rows, columns, ld);
  if (!status) status = b->layout_set(*to, LAYOUT_BATCH, &count, sizeof count);
  if (!status) status = b->layout_set(*to, LAYOUT_STRIDE, &stride, sizeof stride);
  return status;
}

// prefer_alignment tells the heuristic how aligned A, B, C and D are. It assumes 256 bytes otherwise, and proposes what
// then does not run.
static int prefer_alignment(origami_blas *b, void *preference, const origami_gemm *g) {
  CUdeviceptr matrices[] = {g->a, g->b, g->c, g->c};
  for (int i = 0; i < 4; i++) {
    CUdeviceptr bits = matrices[i] | 256;
    uint32_t bytes = bits & -bits;
    int status = b->preference_set(preference, PREFERENCE_ALIGNMENT + i, &bytes, sizeof bytes);
    if (status) return status;
  }
  return 0;
}

int origami_blas_plan_new(origami_blas *b, const origami_gemm *g, origami_blas_plan **to, int *candidates) {
  origami_blas_plan *p = calloc(1, sizeof *p);
  if (!p) return -1;
  int32_t trans_a = g->trans_a, trans_b = g->trans_b;
  uint64_t workspace = b->bytes;
  void *preference = NULL;
  int found = 0;
  int status = b->desc_create(&p->desc, g->compute, g->compute == COMPUTE_32I ? TYPE_32I : TYPE_32F);
  if (!status) status = b->desc_set(p->desc, DESC_TRANSA, &trans_a, sizeof trans_a);
  if (!status) status = b->desc_set(p->desc, DESC_TRANSB, &trans_b, sizeof trans_b);
  if (!status)
    status = layout(b, &p->a, g->in_type, trans_a ? g->k : g->m, trans_a ? g->m : g->k, g->lda, g->batch, g->stride_a);
  if (!status)
    status = layout(b, &p->b, g->in_type, trans_b ? g->n : g->k, trans_b ? g->k : g->n, g->ldb, g->batch, g->stride_b);
  if (!status) status = layout(b, &p->c, g->out_type, g->m, g->n, g->ldc, g->batch, g->stride_c);
  if (!status) status = b->preference_create(&preference);
  if (!status) status = b->preference_set(preference, PREFERENCE_WORKSPACE, &workspace, sizeof workspace);
  if (!status) status = prefer_alignment(b, preference, g);
  if (!status)
    status = b->propose(b->lt, p->desc, p->a, p->b, p->c, p->c, preference, CANDIDATES, p->candidates, &found);
  if (preference) b->preference_destroy(preference);
  if (status) {
    origami_blas_plan_free(b, p);
    return status;
  }
  *to = p;
  *candidates = found;
  return 0;
}

int origami_blas_plan_run(origami_blas *b, origami_blas_plan *p, const origami_gemm *g, int i) {
  return b->matmul(b->lt, p->desc, alpha(g), (void *)g->a, p->a, (void *)g->b, p->b, beta(g), (void *)g->c, p->c,
                   (void *)g->c, p->c, p->candidates[i].algorithm, (void *)b->workspace, b->bytes, b->stream);
}

void origami_blas_plan_free(origami_blas *b, origami_blas_plan *p) {
  if (p->desc) b->desc_destroy(p->desc);
  if (p->a) b->layout_destroy(p->a);
  if (p->b) b->layout_destroy(p->b);
  if (p->c) b->layout_destroy(p->c);
  free(p);
}
