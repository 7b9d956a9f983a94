"""Sweeps a Triton GEMM over configurations and sizes on the GPU of this machine, and writes a data set, a folder for
`origami bench --records`.

    python3 triton_sweep.py FOLDER [--trans-b] [--seconds N] < sizes.csv

Reads the columns m, n, k (multiples of 16). fp16 in, fp32 accumulation, fp16 out; A row-major, B row-major or, with
--trans-b, K-contiguous; standard normal operands. Every result is checked against cuBLAS before it counts. Times are
medians of runs with a cold L2 (four times its size is written before each), by device events. Kernels are compiled on
all cores first.
"""

import argparse
import csv
import itertools
import json
import multiprocessing
import pathlib
import statistics
import sys
import time

import torch
import triton
from triton.runtime.errors import OutOfResources

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(REPOSITORY / folder) for folder in ("plugins/triton", "sdk/python", "bindings/python")]
from origami_triton.kernel import multiply  # noqa: E402  the one that the executor "triton" runs too

GROUP = 8


def space():
    """The block sizes, stages and warps of h200-triton: what may fit the 227 KB of a CTA."""
    for bm, bn, bk, stages, warps in itertools.product(
        (16, 32, 64, 128, 256), (16, 32, 64, 128, 256), (16, 32, 64, 128, 256, 512), (2, 3, 4, 5), (4, 8)
    ):
        # With two stages Triton may keep one block in shared memory and the next in registers.
        if (bm + bn) * bk * 2 * (1 if stages == 2 else stages) <= 232448:
            yield bm, bn, bk, stages, warps


def arguments(a, b, c, m, n, k, trans_b, config, even):
    """Pointers, sizes and strides as the launch has them, so that a compilation ahead is the one that the launch
    finds."""
    bm, bn, bk, stages, warps = config
    strides = (k, 1, 1, k, n) if trans_b else (k, 1, n, 1, n)
    return (a, b, c, m, n, k, *strides), dict(
        BM=bm, BN=bn, BK=bk, GROUP=GROUP, EVEN_K=even, num_stages=stages, num_warps=warps
    )


def compile_one(job):
    config, even, trans_b = job
    args, options = arguments(torch.float16, torch.float16, torch.float16, 4096, 4096, 4096, trans_b, config, even)
    begin = time.time()
    try:
        multiply.warmup(*args, grid=(1,), **options)
    except Exception as error:  # the launch meets it again and says what it is
        print(config, error, file=sys.stderr)
    return time.time() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--trans-b", action="store_true")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="stop before a size that would begin later than this"
    )
    options = parser.parse_args()
    begin = time.time()
    sizes = [tuple(int(row[name]) for name in "mnk") for row in csv.DictReader(sys.stdin)]
    configs = list(space())
    jobs = [(c, even, options.trans_b) for c in configs for even in sorted({k % c[2] == 0 for _, _, k in sizes})]
    with multiprocessing.get_context("spawn").Pool() as pool:
        pool.map(compile_one, jobs, chunksize=4)
    print(f"{len(jobs)} kernels compiled after {time.time() - begin:.0f} s", file=sys.stderr)

    options.folder.mkdir(parents=True, exist_ok=True)
    flush = torch.empty(4 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.int8, device="cuda")
    kernels, kernel_rows = {}, []
    times = csv.writer(open(options.folder / "times.csv", "w", buffering=1), lineterminator="\n")
    times.writerow("m,n,k,bm,bn,bk,stages,warps,gm,ms,reps".split(","))
    library = csv.writer(open(options.folder / "cublas.csv", "w", buffering=1), lineterminator="\n")
    library.writerow("m,n,k,ms,reps".split(","))
    wrong = 0
    for m, n, k in sizes:
        if time.time() - begin > options.seconds:
            print(f"no time left for {m}x{n}x{k}", file=sys.stderr)
            continue
        started = time.time()
        a = torch.randn(m, k, device="cuda", dtype=torch.float16)
        b = (
            torch.randn(n, k, device="cuda", dtype=torch.float16).t()
            if options.trans_b
            else torch.randn(k, n, device="cuda", dtype=torch.float16)
        )
        want = torch.matmul(a, b)
        c = torch.empty_like(want)
        best = 1e9

        def measure(run, best):
            samples = []
            while len(samples) < 20:
                flush.zero_()
                first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                first.record()
                run()
                last.record()
                last.synchronize()
                samples.append(first.elapsed_time(last))
                if samples[0] > 6 * best or len(samples) >= 5 and sum(samples) > 40:
                    break
            return statistics.median(samples), len(samples)

        for _ in range(3):
            torch.matmul(a, b, out=c)
        library.writerow([m, n, k, *measure(lambda: torch.matmul(a, b, out=c), 1e9)])
        for config in configs:
            even = k % config[2] == 0
            args, keywords = arguments(a, b, c, m, n, k, options.trans_b, config, even)
            grid = (triton.cdiv(m, config[0]) * triton.cdiv(n, config[1]),)
            if (config, even) not in kernels:
                row = [*config[:3], config[3], config[4], GROUP, int(even)]
                try:
                    kernel = multiply.warmup(*args, grid=grid, **keywords)
                    kernel._init_handles()
                    kernels[config, even] = kernel
                    kernel_rows.append(row + [kernel.n_regs, kernel.n_spills, kernel.metadata.shared, "ok"])
                except OutOfResources:
                    kernels[config, even] = None
                    kernel_rows.append(row + [0, 0, 0, "OutOfResources"])
            if kernels[config, even] is None:
                continue

            def run():
                multiply[grid](*args, **keywords)

            c.fill_(float("nan"))
            run()
            if not ((c.float() - want.float()).abs() <= 2e-3 * (want.float().abs() + k ** 0.5)).all():
                wrong += 1
                print(f"{m}x{n}x{k} {config}: wrong", file=sys.stderr)
                continue
            median, runs = measure(run, best)
            best = min(best, median)
            times.writerow([m, n, k, *config, GROUP, f"{median:.6g}", runs])
        print(f"{m}x{n}x{k}: best {best:.4f} ms, {time.time() - started:.1f} s", file=sys.stderr)
    with open(options.folder / "kernels.csv", "w") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow("bm,bn,bk,stages,warps,gm,even_k,n_regs,n_spills,shared,status".split(","))
        out.writerows(kernel_rows)
    (options.folder / "dataset.json").write_text(
        json.dumps(
            {
                "arch": "sm90",
                "device": "h200",
                "kernel": "triton",
                "dtype": "fp16",
                "trans_a": False,
                "trans_b": options.trans_b,
                "group_m": GROUP,
                "warm_l2": False,
                "input": "random normal",
                "library": "cublas",
                "software": f"Triton {triton.__version__}, PyTorch {torch.__version__} (CUDA {torch.version.cuda})",
                "source": "plugins/triton/tools/triton_sweep.py on one " + torch.cuda.get_device_name(0),
            },
            indent=2,
        )
        + "\n"
    )
    print(f"{wrong} wrong results", file=sys.stderr)


if __name__ == "__main__":
    main()
