"""Times the best recorded Triton configuration of each problem again, on the GPU of this machine.

    origami bench --arch sm90@h200 --format csv | python3 triton_best.py > triton.csv

Reads the columns m, n, k and best; writes m, n, k, config, milliseconds. Conditions as origami's: fp16, standard normal
operands, four times the L2 written before each run, device events around the launch, median of at least 15 runs.
"""

import csv
import re
import statistics
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def multiply(a, b, c, m, n, k, stride_a, stride_b, stride_c,
             BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    pid = tl.program_id(0)
    first = pid // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    inside = pid % (GROUP * tiles_n)
    row, column = first + inside % height, inside // height
    rows = (row * BM + tl.arange(0, BM)) % m
    columns = (column * BN + tl.arange(0, BN)) % n
    depth = tl.arange(0, BK)
    at_a = a + rows[:, None] * stride_a + depth[None, :]
    at_b = b + depth[:, None] * stride_b + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BK)):
        left = k - step * BK
        x = tl.load(at_a, mask=depth[None, :] < left, other=0.0)
        y = tl.load(at_b, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(x, y, total)
        at_a += BK
        at_b += BK * stride_b
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None].to(tl.int64) * stride_c + columns[None, :], total.to(tl.float16), mask=inside)


def median_milliseconds(run, flush):
    times = []
    for i in range(18):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def main():
    device = torch.cuda.get_device_properties(0)
    flush = torch.empty(4 * device.L2_cache_size, dtype=torch.int8, device="cuda")
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["m", "n", "k", "config", "milliseconds"])
    for row in csv.DictReader(sys.stdin):
        m, n, k = int(row["m"]), int(row["n"]), int(row["k"])
        bm, bn, bk, warps, stages, group = map(int, re.match(r"(\d+)x(\d+)x(\d+),warps=(\d+),stages=(\d+),group=(\d+)", row["best"]).groups())
        a = torch.randn(m, k, device="cuda", dtype=torch.float16)
        b = torch.randn(k, n, device="cuda", dtype=torch.float16)
        c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
        grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)

        def run():
            multiply[grid](a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0),
                           BM=bm, BN=bn, BK=bk, GROUP=group, num_warps=warps, num_stages=stages)

        run()
        some = torch.randint(0, m, (min(m, 64),), device="cuda")
        want = a[some].double() @ b.double() if k * n < 1 << 27 else a[some].float() @ b.float()
        error = ((c[some] - want).abs() / (want.abs() + k ** 0.5)).max().item()
        if not error < 1e-3:
            sys.exit(f"{m}x{n}x{k} {row['best']}: error {error}")
        out.writerow([m, n, k, row["best"], median_milliseconds(run, flush)])
        sys.stdout.flush()


main()
