"""Kernels of the tests of origami_gemm.pin. Their TTGIR (Triton 3.6, sm90) is beside this file."""

import triton
import triton.language as tl

CONFIGS = [triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=w, num_stages=s) for bm, bn, bk, w, s in (
    (128, 256, 64, 8, 3), (128, 128, 64, 4, 4), (64, 64, 32, 4, 4), (32, 32, 32, 2, 2), (256, 256, 64, 8, 4))]


@triton.jit
def product(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    pa, pb = a + m[:, None] * sa + k[None, :], b + k[:, None] * sb + n[None, :]
    for i in range(0, tl.cdiv(K, BK)):
        x = tl.load(pa, mask=k[None, :] < K - i * BK, other=0.0)
        y = tl.load(pb, mask=k[:, None] < K - i * BK, other=0.0)
        total = tl.dot(x, y, total)
        pa += BK
        pb += BK * sb
    tl.store(c + m[:, None] * sc + n[None, :], total.to(tl.bfloat16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def causal(x, y, offsets, D, BD: tl.constexpr):
    """The sums of a row's softmax over the rows up to it; the last of a loop's bounds is data."""
    row, d = tl.program_id(0), tl.arange(0, BD)
    total = tl.zeros((BD,), tl.float32)
    for i in range(0, row + 1):
        v = tl.load(x + i * D + d, mask=d < D, other=-float("inf")).to(tl.float32)
        v = tl.exp(v - tl.max(v, 0))
        total += v / tl.sum(v, 0)
    for i in range(0, tl.load(offsets + row)):
        total += i
    tl.store(y + row * D + d, total, mask=d < D)
