"""Times the kernels of the Triton family by themselves on the GPU of this machine: the rung `characterized`.

    python3 triton_characterize.py > characterization.csv

Nothing here depends on a problem that anybody wants solved. Each kernel runs as one CTA alone, as one CTA on every SM,
and with as many CTAs on every SM as fit, each for two lengths of K, with a warm L2. The slope over K is what a step
along K costs a CTA alone, beside the other SMs, and beside its neighbours on the SM; the intercept is launch, prologue
and epilogue.

Columns: the configuration; `trans_b` 1 for B stored K-contiguous; `ctas`, how many fit an SM; then the median
microseconds of 11 runs: `one_2048`, `one_6144`, `chip_2048`, `chip_6144`, `full_2048`, `full_6144`. Grids: 1×1 tiles,
12×11, and 12×(11·ctas) on 132 SMs; the number is K.
"""

import csv
import itertools
import multiprocessing
import pathlib
import statistics
import sys

import torch
from triton.runtime.errors import OutOfResources

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(REPOSITORY / folder) for folder in ("plugins/triton", "sdk/python", "bindings/python")]
from origami_triton.kernel import multiply  # noqa: E402  the one that the executor "triton" runs too

K = (2048, 6144)
# Cycles that keep the device busy while the host launches, which takes Triton some tens of microseconds.
PAUSE = 400_000


def space():
    """The block sizes, stages and warps of h200-triton: what may fit the 227 KB of a CTA."""
    for bm, bn, bk, stages, warps in itertools.product(
        (16, 32, 64, 128, 256), (16, 32, 64, 128, 256), (16, 32, 64, 128, 256, 512), (2, 3, 4, 5), (4, 8)
    ):
        # With two stages Triton may keep one block in shared memory and the next in registers.
        if (bm + bn) * bk * 2 * (1 if stages == 2 else stages) <= 232448:
            yield bm, bn, bk, stages, warps


def arguments(a, b, c, m, n, k, trans_b, config):
    """Pointers, sizes and strides as the launch has them, so that a compilation ahead is the one that the launch finds."""
    bm, bn, bk, stages, warps = config
    strides = (k, 1, 1, k, n) if trans_b else (k, 1, n, 1, n)
    return (a, b, c, m, n, k, *strides), dict(BM=bm, BN=bn, BK=bk, GROUP=8, EVEN_K=True, num_stages=stages, num_warps=warps)


def compile_one(job):
    config, trans_b = job
    args, options = arguments(torch.float16, torch.float16, torch.float16, 4096, 4096, 4096, trans_b, config)
    try:
        multiply.warmup(*args, grid=(1,), **options)
    except Exception as error:  # the launch meets it again and says what it is
        print(config, error, file=sys.stderr)


def resident(kernel, warps, properties):
    """CTAs per SM. Registers are given out to warps by 256, 1 KiB of shared memory per CTA is the system's (CUDA
    occupancy)."""
    registers = -(-kernel.n_regs // 8) * 8 * 32 * warps
    by_registers = properties.regs_per_multiprocessor // registers
    by_shared = properties.shared_memory_per_multiprocessor // (kernel.metadata.shared + 1024)
    return max(1, min(by_registers, by_shared, 64 // warps, 32))


def main():
    jobs = [(config, trans_b) for trans_b in (False, True) for config in space()]
    with multiprocessing.get_context("spawn").Pool() as pool:
        pool.map(compile_one, jobs, chunksize=4)
    properties = torch.cuda.get_device_properties(0)
    sms = properties.multi_processor_count
    rows, columns = 12, -(-sms // 12)
    largest = 1 << 29
    a = torch.randn(largest, device="cuda", dtype=torch.float16)
    b = torch.randn(largest, device="cuda", dtype=torch.float16)
    c = torch.empty(largest, device="cuda", dtype=torch.float16)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(
        "bm,bn,bk,stages,warps,trans_b,ctas,one_2048,one_6144,chip_2048,chip_6144,full_2048,full_6144".split(",")
    )
    for config, trans_b in jobs:
        bm, bn, _, _, warps = config
        args, keywords = arguments(a, b, c, 4096, 4096, 4096, trans_b, config)
        try:
            kernel = multiply.warmup(*args, grid=(1,), **keywords)
            kernel._init_handles()
        except OutOfResources:
            continue
        ctas = resident(kernel, warps, properties)
        times = []
        for tiles_m, tiles_n in ((1, 1), (rows, columns), (rows, columns * ctas)):
            for k in K:
                m, n = tiles_m * bm, tiles_n * bn
                assert max(m * k, n * k, m * n) <= largest
                args, keywords = arguments(a, b, c, m, n, k, trans_b, config)

                def run():
                    multiply[(tiles_m * tiles_n,)](*args, **keywords)

                run()
                samples = []
                for _ in range(11):
                    run()
                    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                    torch.cuda._sleep(PAUSE)
                    begin.record()
                    run()
                    end.record()
                    end.synchronize()
                    samples.append(begin.elapsed_time(end) * 1e3)
                times.append(f"{statistics.median(samples):.6g}")
        out.writerow([*config, int(trans_b), ctas, *times])


if __name__ == "__main__":
    main()
