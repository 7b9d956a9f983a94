"""Compares two ways to add up the parts of a split K, on the GPU of this machine.

    python3 atomic.py > atomic.csv

parts: the executor's. Each program stores its fp32 sums in a matrix of its own, and a second kernel adds them up.
atomic: every program adds to one fp32 matrix by atomics. It has to be zeroed before, and converted to fp16 afterwards.
atomic_fp16: every program rounds its sums and adds them to the fp16 output by atomics, as many kernels do. The output is
zeroed before. Times are medians of 15 runs in turns, cold L2, all launches included. error is the largest error relative
to |want| + √k, where 4.9e-4 is the rounding of the output.
"""

import csv
import math
import pathlib
import statistics
import sys

import torch
import triton
import triton.language as tl

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(REPOSITORY / folder) for folder in ("plugins/triton", "sdk/python", "bindings/python")]
from origami_gemm_plugin import Config, Problem  # noqa: E402
from origami_triton import executor, gpu, kernel  # noqa: E402
from origami_triton.driver import Driver  # noqa: E402

SIZES = ((64, 64, 32768), (16, 4096, 4096), (64, 4096, 14336), (64, 576, 7168), (128, 7168, 2048), (256, 256, 8192),
         (512, 512, 4096), (1024, 1024, 8192))
TILES = ((16, 64, 128, 4, 4), (64, 64, 128, 4, 4))
RUNS = 15


@triton.jit
def multiply_atomic(a, b, c, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
                    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EVEN_K: tl.constexpr,
                    SPLIT: tl.constexpr):
    # The kernel `multiply` with another end.
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    pid = tl.program_id(0)
    first = pid // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    inside = pid % (GROUP * tiles_n)
    row, column = first + inside % height, inside // height
    rows = (row * BM + tl.arange(0, BM)) % m
    columns = (column * BN + tl.arange(0, BN)) % n
    depth = tl.arange(0, BK) + tl.program_id(1) * BK
    at_a = a + rows[:, None] * stride_am + depth[None, :] * stride_ak
    at_b = b + depth[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BK * SPLIT)):
        left = k - step * (BK * SPLIT)
        x = tl.load(at_a) if EVEN_K else tl.load(at_a, mask=depth[None, :] < left, other=0.0)
        y = tl.load(at_b) if EVEN_K else tl.load(at_b, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(x, y, total)
        at_a += BK * SPLIT * stride_ak
        at_b += BK * SPLIT * stride_bk
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    at = c + rows[:, None].to(tl.int64) * stride_cm + columns[None, :]
    tl.atomic_add(at, total.to(c.dtype.element_ty), mask=inside, sem="relaxed")


def ways(p, c, o, on):
    """The functions to compare, by name."""
    sizes, fixed = kernel.integers(p, c), kernel.constants(p, c)
    del fixed["PRECISION"]
    tiles = triton.cdiv(p.m, c.block_m) * triton.cdiv(p.n, c.block_n)
    sums = torch.empty(p.m, p.n, dtype=torch.float32, device=on.device)
    options = {"num_warps": c.num_warps, "num_stages": c.num_stages}

    def atomic():
        sums.zero_()
        multiply_atomic[tiles, c.split_k](o.a, o.b, sums, *sizes.values(), **fixed, **options)
        o.c.copy_(sums)

    def atomic_fp16():
        o.c.zero_()
        multiply_atomic[tiles, c.split_k](o.a, o.b, o.c, *sizes.values(), **fixed, **options)

    parts = executor.launcher(p, c, o, on.built(p, c).compiled, on.built_sum(p, c).compiled)
    return {"parts": parts, "atomic": atomic, "atomic_fp16": atomic_fp16}


def main():
    on = executor._Gpu(Driver(), 0)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow("m,n,k,bm,bn,bk,warps,stages,split,way,us,error".split(","))
    for m, n, k in SIZES:
        p = Problem(m, n, k)
        o = gpu.Operands(p, on.device)
        want = o.a.double() @ o.b.double()
        for bm, bn, bk, warps, stages in TILES:
            for split in (4, 16):
                c = Config(kernel.FAMILY, bm, bn, bk, 8, warps, stages, split)
                runs = ways(p, c, o, on)
                errors = {}
                for name, run in runs.items():
                    run()
                    errors[name] = ((o.c - want).abs() / (want.abs() + math.sqrt(k))).max().item()
                samples = {name: [] for name in runs}
                for _ in range(RUNS):
                    for name, run in runs.items():
                        samples[name].append(on.timed(run, warm=False).seconds)
                for name, times in samples.items():
                    us = f"{statistics.median(times) * 1e6:.2f}"
                    out.writerow([m, n, k, bm, bn, bk, warps, stages, split, name, us, f"{errors[name]:.2e}"])
                sys.stdout.flush()
    on.compilers.close()


if __name__ == "__main__":
    main()
