// Issue slots and divergence of an H200: nvcc -O3 -arch=sm_90a -o micro micro.cu && ./micro; JSON lines on stdout.
// Cycles are clock64 between the first warp's start and the last warp's end of a CTA, median of the CTAs of three launches.
#include <algorithm>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
#define OK(x) do { cudaError_t e_ = (x); if (e_) { fprintf(stderr, "%s at line %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int TURNS = 256;

struct Span { unsigned long long first, last; };

__device__ void begin(Span* s) {
    if (threadIdx.x == 0) s->first = ~0ull, s->last = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) atomicMin(&s->first, (unsigned long long)clock64());
}
__device__ void end(Span* s, long long* out) {
    if (threadIdx.x % 32 == 0) atomicMax(&s->last, (unsigned long long)clock64());
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = (long long)(s->last - s->first);
}

// Bodies of 32 "counting" instructions and some that do not count. KIND:
// 0 FFMA; 1 LOP3; 2 FFMA+LOP3 2:1; 3 FFMA+LOP3 1:1; 5 mma; 6 mma + 4 FFMA; 7 mma + 8 FFMA; 8 mma + 16 FFMA; 9 IMAD;
// 10 FFMA+IMAD 1:1; 11 mma + 12 FFMA + 4 LOP3
#define F(i) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(f[(i) % 8]) : "f"(x), "f"(y));
#define L(i) asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(u[(i) % 8]) : "r"(p), "r"(q));
#define I(i) asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(u[(i) % 8]) : "r"(p), "r"(q));
#define M(i) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
    : "+f"(d[(i) % 4][0]), "+f"(d[(i) % 4][1]), "+f"(d[(i) % 4][2]), "+f"(d[(i) % 4][3]) : "r"(p), "r"(q), "r"(p), "r"(q), "r"(q), "r"(p));

template <int KIND> __global__ void issue(long long* out, float* sink, float x, float y, unsigned p, unsigned q) {
    __shared__ Span span;
    float f[8], d[4][4];
    unsigned u[8];
    for (int i = 0; i < 8; i++) f[i] = x + i, u[i] = p * threadIdx.x + i;
    for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) d[i][j] = x;
    begin(&span);
#pragma unroll 1
    for (int t = 0; t < TURNS; t++) {
#pragma unroll
        for (int i = 0; i < 32; i++) {
            if (KIND == 0) { F(i) }
            if (KIND == 1) { L(i) }
            if (KIND == 2) { F(i) if (i % 2) { L(i / 2) } }
            if (KIND == 3) { F(i) L(i) }
            if (KIND >= 5 && KIND <= 8 || KIND == 11) { if (i % 8 == 0) { M(i / 8) } }
            if (KIND == 6 && i % 8 < 4 || KIND == 7) { F(i) }
            if (KIND == 8) { F(i) F(i + 4) }
            if (KIND == 9) { I(i) }
            if (KIND == 10) { F(i) I(i) }
            if (KIND == 11) { F(i) if (i % 2) { F(i + 4) L(i / 2) } }
        }
    }
    end(&span, out);
    float r = 0;
    for (int i = 0; i < 8; i++) r += f[i] + u[i];
    for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) r += d[i][j];
    if (r == 12345.678f) *sink = r;
}

// WAYS groups of lanes each run 64 FFMA of their own in a turn: how much longer is a warp's turn?
template <int WAYS> __global__ void ways(long long* out, float* sink, float x, float y) {
    __shared__ Span span;
    float f[8];
    for (int i = 0; i < 8; i++) f[i] = x + i;
    int way = threadIdx.x % WAYS;
    begin(&span);
#pragma unroll 1
    for (int t = 0; t < TURNS; t++) {
#pragma unroll
        for (int w = 0; w < WAYS; w++)
            if (way == w) {
#pragma unroll
                for (int i = 0; i < 64; i++) { F(i) }
            }
    }
    end(&span, out);
    float r = 0;
    for (int i = 0; i < 8; i++) r += f[i];
    if (r == 12345.678f) *sink = r;
}

// The stores of a CTA's tile of 128 x 128 in the layout of mma's fragments: 256 threads, 64 words each, pairs of columns.
// MODE 0: no guard. 1: each pair of stores under a predicate of its lane. 2: a branch, of which ptxas makes a predicate.
template <int MODE> __global__ void tile(long long* out, float* c, int rows, int columns, int stride, float x) {
    __shared__ Span span;
    c += blockIdx.x * 128 * (long long)stride;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row0 = warp / 4 * 64 + lane / 4, column0 = warp % 4 * 32 + lane % 4 * 2;
    begin(&span);
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int row = row0 + i * 8, column = column0 + j * 8;
            float* at = c + row * (long long)stride + column;
            if (MODE == 0) asm volatile("st.global.v2.f32 [%0], {%1, %1};" :: "l"(at), "f"(x) : "memory");
            if (MODE == 1)
                asm volatile("{.reg .pred a, b; setp.lt.s32 a, %2, %3; setp.lt.and.s32 b, %4, %5, a;"
                             "@b st.global.v2.f32 [%0], {%1, %1};}" :: "l"(at), "f"(x), "r"(row), "r"(rows), "r"(column), "r"(columns) : "memory");
            if (MODE == 2)
                asm volatile("{.reg .pred a, b; setp.lt.s32 a, %2, %3; setp.lt.and.s32 b, %4, %5, a;"
                             "@!b bra over; st.global.v2.f32 [%0], {%1, %1}; over:}" :: "l"(at), "f"(x), "r"(row), "r"(rows), "r"(column), "r"(columns) : "memory");
        }
    end(&span, out);
}

long long* cycles;
float *sink, *c;

template <class Launch> double median(int ctas, Launch launch) {
    std::vector<long long> all;
    for (int i = 0; i < 5; i++) {
        launch();
        std::vector<long long> host(ctas);
        if (cudaMemcpy(host.data(), cycles, ctas * sizeof(long long), cudaMemcpyDeviceToHost)) return -1;
        if (i >= 2) all.insert(all.end(), host.begin(), host.end());
    }
    std::sort(all.begin(), all.end());
    return (double)all[all.size() / 2];
}

template <int KIND> void issued(const char* name, int counting, int others, int sms) {
    for (int warps = 1; warps <= 8; warps *= 2) {
        double took = median(sms, [=] { issue<KIND><<<sms, 128 * warps>>>(cycles, sink, 1.5f, 0.25f, 3, 5); });
        double n = (double)TURNS * warps * (counting + others);
        printf("{\"what\":\"issue\",\"body\":\"%s\",\"warps_per_scheduler\":%d,\"cycles_per_turn_and_warp\":%.3f,\"counting\":%d,\"others\":%d,\"instructions_per_cycle\":%.4f}\n",
               name, warps, took / TURNS / warps, counting, others, n / took);
    }
}
template <int WAYS> void diverged(int sms) {
    for (int warps = 1; warps <= 4; warps *= 2) {
        double took = median(sms, [=] { ways<WAYS><<<sms, 128 * warps>>>(cycles, sink, 1.5f, 0.25f); });
        printf("{\"what\":\"divergence\",\"ways\":%d,\"warps_per_scheduler\":%d,\"cycles_per_turn_and_warp\":%.3f}\n", WAYS, warps, took / TURNS / warps);
    }
}
template <int MODE> void stored(const char* name, int sms) {
    int edges[][2] = {{128, 128}, {128, 124}, {124, 128}, {128, 68}, {128, 66}, {128, 4}, {1, 128}};
    for (auto& e : edges) {
        if (MODE == 0 && (e[0] < 128 || e[1] < 128)) continue;
        double took = median(sms, [=] { tile<MODE><<<sms, 256>>>(cycles, c, e[0], e[1], 4096, 1.f); });
        printf("{\"what\":\"tile\",\"stores\":\"%s\",\"rows\":%d,\"columns\":%d,\"cycles\":%.0f}\n", name, e[0], e[1], took);
    }
}

int main() {
    cudaDeviceProp is;
    OK(cudaGetDeviceProperties(&is, 0));
    int sms = is.multiProcessorCount;
    OK(cudaMalloc(&cycles, sms * sizeof(long long)));
    OK(cudaMalloc(&sink, 4));
    OK(cudaMalloc(&c, (size_t)sms * 128 * 4096 * 4));
    printf("{\"what\":\"device\",\"name\":\"%s\",\"sms\":%d}\n", is.name, sms);
    issued<0>("FFMA", 32, 0, sms);
    issued<1>("LOP3", 32, 0, sms);
    issued<9>("IMAD", 32, 0, sms);
    issued<2>("FFMA, every second with a LOP3", 32, 16, sms);
    issued<3>("FFMA and LOP3", 32, 32, sms);
    issued<10>("FFMA and IMAD", 32, 32, sms);
    issued<5>("mma m16n8k16 fp16", 4, 0, sms);
    issued<6>("mma with 4 FFMA", 4, 16, sms);
    issued<7>("mma with 8 FFMA", 4, 32, sms);
    issued<8>("mma with 16 FFMA", 4, 64, sms);
    issued<11>("mma with 12 FFMA and 4 LOP3", 4, 64, sms);
    diverged<1>(sms); diverged<2>(sms); diverged<4>(sms); diverged<8>(sms); diverged<32>(sms);
    stored<0>("no guard", sms); stored<1>("predicate", sms); stored<2>("branch", sms);
    OK(cudaDeviceSynchronize());
    return 0;
}
