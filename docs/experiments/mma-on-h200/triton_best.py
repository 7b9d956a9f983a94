"""Times the best recorded Triton configuration of each problem again, on the GPU of this machine.

    origami --arch sm90@h200 bench --kernel mma --format csv > mma.csv
    python3 triton_best.py mma.csv plugins/nvidia/data/h200-triton > triton.csv

Takes the problems of the first file (columns m, n, k) and of all configurations recorded for each the fastest; writes
m, n, k, config, milliseconds. Conditions as origami's: fp16, standard normal operands, four times the L2 written before
each run, device events around the launch. The median of 21 runs after 10 that warm up: Triton's launch takes the host
some time, which the flush covers once clocks are up.
"""

import csv
import gzip
import pathlib
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
    for i in range(31):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        if i >= 10:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def fastest(folder):
    """The fastest recorded row of each size."""
    best = {}
    for path in sorted(pathlib.Path(folder).glob("times*.csv.gz")):
        with gzip.open(path, "rt") as file:
            for row in csv.DictReader(file):
                key = tuple(int(row[name]) for name in "mnk")
                if key not in best or float(row["ms"]) < float(best[key]["ms"]):
                    best[key] = row
    return best


def main():
    best = fastest(sys.argv[2])
    device = torch.cuda.get_device_properties(0)
    flush = torch.empty(4 * device.L2_cache_size, dtype=torch.int8, device="cuda")
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["m", "n", "k", "config", "milliseconds"])
    for row in csv.DictReader(open(sys.argv[1])):
        m, n, k = (int(row[name]) for name in "mnk")
        bm, bn, bk, warps, stages, group = (
            int(best[m, n, k][name]) for name in ("bm", "bn", "bk", "warps", "stages", "gm")
        )
        config = f"{bm}x{bn}x{bk},warps={warps},stages={stages},group={group}"
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
            sys.exit(f"{m}x{n}x{k} {config}: error {error}")
        out.writerow([m, n, k, config, median_milliseconds(run, flush)])
        sys.stdout.flush()


main()
