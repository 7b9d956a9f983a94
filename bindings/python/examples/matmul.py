"""C = A B by a Triton kernel whose launch configuration is origami's pick, checked against torch.

    python3 matmul.py [M N K]

Needs torch, triton, an NVIDIA GPU that origami models, and liborigami (`make lib`).
"""

import pathlib
import sys

import torch
import triton
import triton.language as tl

sys.path.insert(
    0, str(pathlib.Path(__file__).resolve().parents[1])
)  # of a checkout; not needed where the package is installed
import origami_gemm.triton


@origami_gemm.triton.pick(m="M", n="N", k="K", a="a_ptr")
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    # Which tile of C: GROUP_SIZE_M rows of tiles are walked before the next column, so that the L2 serves more of B.
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_SIZE_M), tl.cdiv(N, BLOCK_SIZE_N)
    program = tl.program_id(0)
    first = program // (GROUP_SIZE_M * tiles_n) * GROUP_SIZE_M
    height = min(tiles_m - first, GROUP_SIZE_M)
    within = program % (GROUP_SIZE_M * tiles_n)
    tile_m, tile_n = first + within % height, within // height

    # Rows and columns beyond the matrices wrap around: what they compute is not stored.
    rows = (tile_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    columns = (tile_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    depth = tl.arange(0, BLOCK_SIZE_K)
    at_a = a_ptr + rows[:, None].to(tl.int64) * stride_am + depth[None, :] * stride_ak
    at_b = b_ptr + depth[:, None] * stride_bk + columns[None, :].to(tl.int64) * stride_bn
    total = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        left = K - step * BLOCK_SIZE_K
        x = tl.load(at_a, mask=depth[None, :] < left, other=0.0)
        y = tl.load(at_b, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(x, y, total)
        at_a += BLOCK_SIZE_K * stride_ak
        at_b += BLOCK_SIZE_K * stride_bk

    rows = tile_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    columns = tile_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    at_c = c_ptr + rows[:, None].to(tl.int64) * stride_cm + columns[None, :] * stride_cn
    tl.store(at_c, total.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul(a, b, kernel=matmul_kernel):
    (m, k), (_, n) = a.shape, b.shape
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    launch(kernel, a, b, c)
    return c


def launch(kernel, a, b, c, **meta):
    (m, k), (_, n) = a.shape, b.shape
    return kernel[lambda META: (triton.cdiv(m, META["BLOCK_SIZE_M"]) * triton.cdiv(n, META["BLOCK_SIZE_N"]),)](
        a, b, c, m, n, k, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1), **meta)


def wrong(c, a, b):
    """Whether an element of C is off by more than rounding to 16 bits and the order of fp32 sums explain, taking
    torch.matmul in fp32 for right: 2e-3 (|want| + sqrt(K)), for bf16 eight times that."""
    want = torch.matmul(a.float(), b.float())
    tolerance = 2e-3 if a.dtype == torch.float16 else 1.6e-2
    return not bool(((c.float() - want).abs() <= tolerance * (want.abs() + a.shape[1] ** 0.5)).all())  # which no NaN is


def main():
    m, n, k = map(int, sys.argv[1:4]) if len(sys.argv) > 3 else (4096, 4096, 4096)
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    c = matmul(a, b)
    if wrong(c, a, b):
        sys.exit(f"{m}x{n}x{k}: wrong")
    model = origami_gemm.triton.model_of_gpu()
    pick = model.select(m, n, k)
    took = triton.testing.do_bench(lambda: matmul(a, b))
    print(f"{m}x{n}x{k} on {model.description['device_name']}: right")
    print(f"launched with {matmul_kernel.best_config}")
    print(f"predicted {pick.seconds * 1e6:.1f} us, took {took * 1e3:.1f} us, {2 * m * n * k / took / 1e9:.0f} TFLOP/s")


if __name__ == "__main__":
    main()
