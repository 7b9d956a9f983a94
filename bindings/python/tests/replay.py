"""A GPU for tests, whose kernels take the times that an H200 took (plugins/nvidia/data/grids/slides).

Whoever writes this file as a plugin sets TIMES, a times.csv.gz, FOLDER, and PACE, the seconds that a measurement takes. The
file runs@ and the name of the GPU in the folder is as long as kernels have run."""

import csv
import functools
import gzip
import os
import time

from origami_gemm_plugin import Device, Environment, InputError, Manifest, Numerics, Resources, Sample, serve_executor


@functools.cache
def times():
    with gzip.open(TIMES, "rt") as f:
        return {tuple(map(int, row[:10])): float(row[10]) / 1e3 for row in list(csv.reader(f))[1:] if row[10]}


class Kernel:
    resources = Resources(registers=32)

    def __init__(self, problem, seconds):
        self.problem, self.seconds = problem, seconds

    def check(self):
        return Numerics(0, 1e-3, self.problem.m * self.problem.n, 0, 0, "nothing")

    def measure(self, options, runs):
        with open(f"{FOLDER}/runs@{os.getppid()}", "ab") as f:  # `origami lend` started this process
            f.write(b".")
        time.sleep(PACE)
        return [Sample(self.seconds)] * runs

    def close(self):
        pass


class Executor:
    def devices(self):
        return [Device("NVIDIA H200", "sm90", {"memory_bytes": 1e11}, ["triton"])]

    def compile(self, device, problem, config):
        c = config
        key = (problem.m, problem.n, problem.k, c.block_m, c.block_n, c.block_k, c.num_stages, c.num_warps, c.group_m, c.split_k)
        if key not in times():
            raise InputError("it was not recorded")
        return Kernel(problem, times()[key])

    def environment(self, device):
        return Environment(time_ns=time.time_ns(), driver="1")

    def close(self):
        pass


class Provider:
    manifest = Manifest("replay", "1.0.0")

    def open(self):
        return Executor()


if __name__ == "__main__":
    serve_executor(Provider())
