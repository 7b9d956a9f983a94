#!/usr/bin/env python3
"""The executor example of origami: it compiles, checks and times GEMM kernels of one device.

It stands in for a device that does not exist: a kernel takes as long as its arithmetic and its traffic to memory take,
and a little more or less. An executor of a real device compiles, checks and times kernels in the methods below. What
they must do is in lib/origami_gemm_plugin/__init__.py, once that is installed beside this file:

    python3 -m pip install --target lib ORIGAMI/sdk/python      # in ORIGAMI is origami's source

`origami plugin trust` takes the SHA-256 of this file. It covers neither lib nor the python3 of the first line.
"""

import math
import pathlib
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
try:
    from origami_gemm_plugin import (
        Device, Environment, InputError, Manifest, Numerics, Resources, Sample, serve_executor,
    )
except ImportError as error:
    sys.exit(f"origami-plugin-example: {error}; install what it needs into lib, as the head of {__file__} says")

# One device. Its architecture is one that origami has, so that origami can rank kernels for it; the kernel families
# are those of that architecture that this executor can compile.
DEVICE = Device("simulated device", "sm90", kernels=["triton"])
FLOPS_PER_SECOND, BYTES_PER_SECOND = 500e12, 3e12
BYTES = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}  # of an element; other types are refused
# The standard deviations of the logarithms of times: of the kernels of a problem, and of the runs of a kernel.
KERNEL_NOISE, RUN_NOISE = 0.03, 0.005


def known(device):
    if device != 0:
        raise InputError(f"there is no device {device}", fix="use 0")


class Kernel:
    """A kernel that is ready to run."""

    resources = Resources()  # registers and so on, as far as the compiler says

    def __init__(self, problem, config):
        p = problem
        tiles = p.batch * math.ceil(p.m / config.block_m) * math.ceil(p.n / config.block_n) * config.split_k
        loads = tiles * (config.block_m + config.block_n) * math.ceil(p.k / config.split_k) * BYTES[p.dtype]
        self.random = random.Random(f"{problem} {config}")  # equal kernels take equally long
        self.seconds = max(2 * p.m * p.n * p.k * p.batch / FLOPS_PER_SECOND, loads / BYTES_PER_SECOND)
        self.seconds *= math.exp(self.random.gauss(0, KERNEL_NOISE))

    def check(self):
        """Runs the kernel once and compares its result with one that is computed in another way."""
        return Numerics(max_error=0, tolerance=1e-3, checked=1, wrong=0, out_of_bounds=0,
                        reference="nothing: a simulated kernel has no result")

    def measure(self, options, runs):
        """Times runs of the kernel, after options.warmup others."""
        if options.input not in ("", "normal"):
            raise InputError(f"there is no distribution {options.input}", fix="use normal")
        return [Sample(self.seconds * math.exp(self.random.gauss(0, RUN_NOISE))) for _ in range(runs)]

    def close(self):
        pass


class Executor:
    def devices(self):
        return [DEVICE]

    def compile(self, device, problem, config):
        known(device)
        if config.kernel not in DEVICE.kernels:
            raise InputError(f"there are no kernels of {config.kernel}", fix=f"use {', '.join(DEVICE.kernels)}")
        if problem.dtype not in BYTES:
            raise InputError(f"there are no kernels for {problem.dtype}", fix=f"use {', '.join(BYTES)}")
        return Kernel(problem, config)

    def environment(self, device):
        """The state of the device: clock, temperature and power, as far as it is known."""
        known(device)
        return Environment(time_ns=time.time_ns())

    def close(self):
        pass


class Provider:
    manifest = Manifest("example", "0.1.0")

    def open(self):
        """Opens the devices. Without a driver or a device, raise DeviceError here."""
        return Executor()


if __name__ == "__main__":
    serve_executor(Provider())
