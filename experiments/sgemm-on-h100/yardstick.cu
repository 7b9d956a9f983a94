// Kernels of FP32 tutorials in the structure of the public ladders (thread mapping, tiles, launch), timed as the records
// are: cold L2, events, random operands; every result against cuBLAS in fp32 first.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <cmath>
#include <string>
#include <cuda_runtime.h>
#include <cublas_v2.h>
#define OK(x) do { auto e_ = (x); if ((int)e_) { printf("error %d at line %d\n", (int)e_, __LINE__); exit(1); } } while (0)

// One element per thread; neighbours along N. BX x BY threads.
template <int BX, int BY, bool ROWS_FIRST>
__global__ void naive(int m, int n, int k, const float* a, const float* b, float* c) {
    int row = (ROWS_FIRST ? blockIdx.x : blockIdx.y) * BY + threadIdx.y;
    int col = (ROWS_FIRST ? blockIdx.y : blockIdx.x) * BX + threadIdx.x;
    if (row < m && col < n) {
        float sum = 0;
        for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + col];
        c[row * n + col] = sum;
    }
}

// Tiles of T x T in shared memory, rows of T + P words, one element per thread.
template <int T, int P, bool ROWS_FIRST>
__global__ void tiled(int m, int n, int k, const float* a, const float* b, float* c) {
    __shared__ float sa[T][T + P], sb[T][T + P];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = (ROWS_FIRST ? blockIdx.x : blockIdx.y) * T + ty, col = (ROWS_FIRST ? blockIdx.y : blockIdx.x) * T + tx;
    float sum = 0;
    for (int t = 0; t < (k + T - 1) / T; t++) {
        int ka = t * T + tx, kb = t * T + ty;
        sa[ty][tx] = row < m && ka < k ? a[row * k + ka] : 0;
        sb[ty][tx] = kb < k && col < n ? b[kb * n + col] : 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < T; i++) sum += sa[ty][i] * sb[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}

// A BM x BN tile, BK deep; TM rows of C per thread.
template <int BM, int BN, int BK, int TM>
__global__ void column1d(int m, int n, int k, float alpha, const float* a, const float* b, float beta, float* c) {
    __shared__ float sa[BM * BK], sb[BK * BN];
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int tc = threadIdx.x % BN, tr = threadIdx.x / BN;
    a += row0 * k; b += col0; c += row0 * n + col0;
    const int ac = threadIdx.x % BK, ar = threadIdx.x / BK, bc = threadIdx.x % BN, br = threadIdx.x / BN;
    float sums[TM] = {0};
    for (int k0 = 0; k0 < k; k0 += BK) {
        sa[ar * BK + ac] = a[ar * k + ac];
        sb[br * BN + bc] = b[br * n + bc];
        __syncthreads();
        a += BK; b += BK * n;
        for (int d = 0; d < BK; d++) {
            float x = sb[d * BN + tc];
            for (int i = 0; i < TM; i++) sums[i] += sa[(tr * TM + i) * BK + d] * x;
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; i++) c[(tr * TM + i) * n + tc] = alpha * sums[i] + beta * c[(tr * TM + i) * n + tc];
}

// A BM x BN tile, BK deep; TM x TN elements of C per thread.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM * BN / (TM * TN), 1)
block2d(int m, int n, int k, float alpha, const float* a, const float* b, float beta, float* c) {
    __shared__ float sa[BM * BK], sb[BK * BN];
    const int threads = BM * BN / (TM * TN), tc = threadIdx.x % (BN / TN), tr = threadIdx.x / (BN / TN);
    a += blockIdx.y * BM * k; b += blockIdx.x * BN; c += blockIdx.y * BM * n + blockIdx.x * BN;
    const int ar = threadIdx.x / BK, ac = threadIdx.x % BK, sA = threads / BK, br = threadIdx.x / BN, bc = threadIdx.x % BN, sB = threads / BN;
    float sums[TM * TN] = {0}, ra[TM], rb[TN];
    for (int k0 = 0; k0 < k; k0 += BK) {
        for (int o = 0; o < BM; o += sA) sa[(ar + o) * BK + ac] = a[(ar + o) * k + ac];
        for (int o = 0; o < BK; o += sB) sb[(br + o) * BN + bc] = b[(br + o) * n + bc];
        __syncthreads();
        a += BK; b += BK * n;
        for (int d = 0; d < BK; d++) {
            for (int i = 0; i < TM; i++) ra[i] = sa[(tr * TM + i) * BK + d];
            for (int i = 0; i < TN; i++) rb[i] = sb[d * BN + tc * TN + i];
            for (int i = 0; i < TM; i++) for (int j = 0; j < TN; j++) sums[i * TN + j] += ra[i] * rb[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; i++) for (int j = 0; j < TN; j++) {
        float& x = c[(tr * TM + i) * n + tc * TN + j];
        x = alpha * sums[i * TN + j] + beta * x;
    }
}

static float *A, *B, *C, *R; static char* flush; static cublasHandle_t h;
static const size_t flushBytes = 512 << 20;
static double measure(int n, void (*run)(int), bool slow) {
    cudaEvent_t e0, e1; OK(cudaEventCreate(&e0)); OK(cudaEventCreate(&e1));
    std::vector<float> ms;
    for (int i = 0; i < (slow ? 4 : 8); i++) {
        OK(cudaMemsetAsync(flush, i, flushBytes));
        OK(cudaEventRecord(e0)); run(n); OK(cudaEventRecord(e1)); OK(cudaEventSynchronize(e1));
        float t; OK(cudaEventElapsedTime(&t, e0, e1)); if (i) ms.push_back(t);
    }
    std::sort(ms.begin(), ms.end()); return ms[ms.size() / 2];
}
static void check(const char* name, int n) {
    std::vector<float> x((size_t)n * n), y((size_t)n * n);
    OK(cudaMemcpy(x.data(), C, x.size() * 4, cudaMemcpyDeviceToHost)); OK(cudaMemcpy(y.data(), R, y.size() * 4, cudaMemcpyDeviceToHost));
    double worst = 0; for (size_t i = 0; i < x.size(); i++) worst = std::max(worst, (double)fabsf(x[i] - y[i]));
    if (!(worst < 1e-4 * n / 8)) { printf("WRONG %s %d: %g\n", name, n, worst); exit(1); }
}
struct One { const char* name; void (*run)(int); const void* f; };
#define N2(x, T) dim3((x + T - 1) / T, (x + T - 1) / T)
static One kernels[] = {
    {"naive 32x32 columns-first", [](int n) { naive<32, 32, false><<<N2(n, 32), dim3(32, 32)>>>(n, n, n, A, B, C); }, (void*)naive<32, 32, false>},
    {"naive 32x32 rows-first", [](int n) { naive<32, 32, true><<<N2(n, 32), dim3(32, 32)>>>(n, n, n, A, B, C); }, (void*)naive<32, 32, true>},
    {"naive 16x16 columns-first", [](int n) { naive<16, 16, false><<<N2(n, 16), dim3(16, 16)>>>(n, n, n, A, B, C); }, (void*)naive<16, 16, false>},
    {"tiled 32x32 columns-first", [](int n) { tiled<32, 0, false><<<N2(n, 32), dim3(32, 32)>>>(n, n, n, A, B, C); }, (void*)tiled<32, 0, false>},
    {"tiled 32x32 rows-first", [](int n) { tiled<32, 0, true><<<N2(n, 32), dim3(32, 32)>>>(n, n, n, A, B, C); }, (void*)tiled<32, 0, true>},
    {"padded 32x33 columns-first", [](int n) { tiled<32, 1, false><<<N2(n, 32), dim3(32, 32)>>>(n, n, n, A, B, C); }, (void*)tiled<32, 1, false>},
    {"register-1d 64x64x8", [](int n) { column1d<64, 64, 8, 8><<<dim3(n / 64, n / 64), 512>>>(n, n, n, 1, A, B, 0, C); }, (void*)column1d<64, 64, 8, 8>},
    {"register-2d 128x128x8", [](int n) { block2d<128, 128, 8, 8, 8><<<dim3(n / 128, n / 128), 256>>>(n, n, n, 1, A, B, 0, C); }, (void*)block2d<128, 128, 8, 8, 8>},
    {"cublas", [](int n) { float one = 1, zero = 0; OK(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, B, n, A, n, &zero, C, n)); }, nullptr},
};
int main() {
    const int most = 8192; size_t bytes = (size_t)most * most * 4;
    OK(cudaMalloc(&A, bytes)); OK(cudaMalloc(&B, bytes)); OK(cudaMalloc(&C, bytes)); OK(cudaMalloc(&R, bytes)); OK(cudaMalloc(&flush, flushBytes));
    std::vector<float> x((size_t)most * most); unsigned s = 1;
    auto draw = [&] { for (auto& v : x) { float t = 0; for (int i = 0; i < 4; i++) { s = s * 1664525u + 1013904223u; t += (int)s * 4.656612873e-10f; } v = t * 0.8660254f; } };
    draw(); OK(cudaMemcpy(A, x.data(), bytes, cudaMemcpyHostToDevice)); draw(); OK(cudaMemcpy(B, x.data(), bytes, cudaMemcpyHostToDevice));
    OK(cublasCreate(&h)); OK(cublasSetMathMode(h, CUBLAS_PEDANTIC_MATH));
    for (auto& o : kernels) if (o.f) { cudaFuncAttributes at; OK(cudaFuncGetAttributes(&at, o.f)); printf("# %s: %d registers, %zu B shared\n", o.name, at.numRegs, at.sharedSizeBytes); }
    printf("kernel,size,ms,tflops\n");
    for (int n : {512, 1024, 2048, 4096, 8192}) {
        float one = 1, zero = 0; OK(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, B, n, A, n, &zero, R, n));
        for (auto& o : kernels) {
            if (n <= 4096) { OK(cudaMemset(C, 255, (size_t)n * n * 4)); if (std::string(o.name).find("register") == 0) OK(cudaMemset(C, 0, (size_t)n * n * 4)); o.run(n); OK(cudaDeviceSynchronize()); check(o.name, n); }
            double ms = measure(n, o.run, n > 4096);
            printf("%s,%d,%.4f,%.2f\n", o.name, n, ms, 2.0 * n * n * n / ms / 1e9); fflush(stdout);
        }
    }
}
