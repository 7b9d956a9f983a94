"""A tile of a product in Triton, and the persistent kernel of the family `triton_persistent`. It needs nothing else of the
plugin."""

import triton
import triton.language as tl


@triton.jit
def multiply_persistent(a, b, c, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
                        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
                        EVEN_K: tl.constexpr, SPLIT: tl.constexpr = 1, PRECISION: tl.constexpr = "tf32", bias=None):
    # A program computes one tile after another. There are no more programs than SMs, so that all of them run at once.
    # Whatever their number, a tile is computed by the same operations in the same order.
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    for index in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=False):
        row, column = place(index, tiles_m, tiles_n, GROUP)
        tile(a, b, c, row, column, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
             BM, BN, BK, EVEN_K, SPLIT, PRECISION, bias)


@triton.jit
def place(pid, tiles_m, tiles_n, GROUP: tl.constexpr):
    # The tile of a program: GROUP rows of tiles before the next column.
    first = pid // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    inside = pid % (GROUP * tiles_n)
    return first + inside % height, inside // height


@triton.jit
def tile(a, b, c, row, column, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
         BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN_K: tl.constexpr, SPLIT: tl.constexpr,
         PRECISION: tl.constexpr, bias=None):
    # One tile of C. SPLIT programs take turns along K, and each stores its sums in a matrix of its own.
    rows = (row * BM + tl.arange(0, BM)) % m
    columns = (column * BN + tl.arange(0, BN)) % n
    depth = tl.arange(0, BK)
    if SPLIT > 1:
        depth += tl.program_id(1) * BK
    at_a = a + rows[:, None] * stride_am + depth[None, :] * stride_ak
    at_b = b + depth[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for step in range(0, tl.cdiv(k, BK * SPLIT)):
        if EVEN_K:
            x = tl.load(at_a)
            y = tl.load(at_b)
        else:
            left = k - step * (BK * SPLIT)
            x = tl.load(at_a, mask=depth[None, :] < left, other=0.0)
            y = tl.load(at_b, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(x, y, total, input_precision=PRECISION, out_dtype=total.dtype)
        at_a += BK * SPLIT * stride_ak
        at_b += BK * SPLIT * stride_bk
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    if bias is not None:
        total += tl.load(bias + columns, mask=columns < n, other=0.0).to(total.dtype)[None, :]
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None].to(tl.int64) * stride_cm + columns[None, :], total.to(c.dtype.element_ty), mask=inside)
