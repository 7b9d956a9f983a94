"""Times the kernels of the Triton family by themselves on the GPU of this machine: the rung `characterized`.

    python3 triton_characterize.py [--trans-b] > characterization.csv

Nothing here depends on a problem that anybody wants solved. Each kernel runs as one CTA alone, as one CTA on every SM, and with as
many CTAs on every SM as fit, each for two lengths of K, with a warm L2. The slope over K is what a step along K costs a CTA
alone, beside the other SMs, and beside its neighbours on the SM; the intercept is launch, prologue and epilogue.

Columns: the configuration; `ctas`, how many fit an SM; then the median microseconds of 11 runs: `one_k1`, `one_k2`, `wave_k1`,
`wave_k2`, `full_k1`, `full_k2`. Grids: 1×1 tiles, 12×11, and 12×(11·ctas) on 132 SMs. `k1` is 2048 and `k2` 6144.
"""

import argparse
import csv
import multiprocessing
import statistics
import sys

import torch
from triton.runtime.errors import OutOfResources

from triton_sweep import arguments, compile_one, multiply, space

K = (2048, 6144)


def resident(kernel, warps, properties):
    """CTAs per SM. Registers are given out to warps by 256, 1 KiB of shared memory per CTA is the system's (CUDA occupancy)."""
    registers = -(-kernel.n_regs // 8) * 8 * 32 * warps
    by_registers = properties.regs_per_multiprocessor // registers
    by_shared = properties.shared_memory_per_multiprocessor // (kernel.metadata.shared + 1024)
    return max(1, min(by_registers, by_shared, 64 // warps, 32))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trans-b", action="store_true")
    options = parser.parse_args()
    configs = list(space())
    with multiprocessing.get_context("spawn").Pool() as pool:
        pool.map(compile_one, [(c, True, options.trans_b) for c in configs], chunksize=4)
    properties = torch.cuda.get_device_properties(0)
    sms = properties.multi_processor_count
    rows, columns = 12, -(-sms // 12)
    largest = 1 << 29
    a = torch.randn(largest, device="cuda", dtype=torch.float16)
    b = torch.randn(largest, device="cuda", dtype=torch.float16)
    c = torch.empty(largest, device="cuda", dtype=torch.float16)
    pause = torch.empty(64 << 20, dtype=torch.int8, device="cuda")
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow("bm,bn,bk,stages,warps,ctas,one_k1,one_k2,wave_k1,wave_k2,full_k1,full_k2".split(","))
    for config in configs:
        bm, bn, _, _, warps = config
        args, keywords = arguments(a, b, c, 4096, 4096, 4096, options.trans_b, config, True)
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
                args, keywords = arguments(a, b, c, m, n, k, options.trans_b, config, True)

                def run():
                    multiply[(tiles_m * tiles_n,)](*args, **keywords)

                run()
                samples = []
                for _ in range(11):
                    pause.zero_()  # keeps the device busy while the host launches
                    run()
                    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                    begin.record()
                    run()
                    end.record()
                    end.synchronize()
                    samples.append(begin.elapsed_time(end) * 1e3)
                times.append(f"{statistics.median(samples):.6g}")
        out.writerow([*config, ctas, *times])


if __name__ == "__main__":
    main()
