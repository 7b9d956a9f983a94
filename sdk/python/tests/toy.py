"""An executor on a device that does not exist, for tests: its kernels misbehave as their number of stages says."""

import os
import time

from origami_gemm_plugin import (
    Device,
    DeviceError,
    Environment,
    InputError,
    Manifest,
    Numerics,
    PluginError,
    Resources,
    Sample,
    serve_executor,
)

# What num_stages stands for, beyond which a kernel is well.
WRONG, REFUSED, LOST, CRASH, HANG, BUG, NO_DEVICE, LONG_LOG, SLOW = range(10, 19)


class Kernel:
    resources = Resources(registers=128, spill_bytes=8, shared_memory_bytes=4096, ctas_per_sm=2)

    def __init__(self, problem, config):
        self.problem, self.config, self.runs = problem, config, 0

    def check(self):
        stages = self.config.num_stages
        if stages == LOST:
            raise PluginError("an illegal address", where="toy")
        if stages == CRASH:
            os._exit(3)
        if stages == HANG:
            time.sleep(60)
        if stages == BUG:
            raise ZeroDivisionError("a mistake")
        if stages == NO_DEVICE:
            raise DeviceError("the device fell off the bus")
        wrong = 7 if stages == WRONG else 0
        count = self.problem.m * self.problem.n
        return Numerics(float("inf") if wrong else 1e-4, 1e-3, count, wrong, 0, "nothing")

    def measure(self, options, runs):
        if options.input not in ("", "normal"):
            raise InputError(f"no inputs are {options.input}")
        self.runs += options.warmup + runs
        if self.config.num_stages == SLOW:
            time.sleep(1)
        return [Sample(1e-3 * self.config.block_m + 1e-9 * self.runs, 1e9 if options.warm_l2 else 2e9)] * runs

    def close(self):
        print("closed", self.config)


class Executor:
    def devices(self):
        print("a line that is no handshake")
        return [Device("Toy \u2122", "toy1", {"num_sms": 3, "clock": 1.5e9}, ["toy"], ["toylib"])]

    def compile(self, device, problem, config):
        if device != 0:
            raise InputError(f"there is no device {device}", where="toy", fix="use 0")
        if config.num_stages == REFUSED:
            raise InputError(f"{config} on {problem} does not build", where="toy", fix="take another")
        if config.num_stages == LONG_LOG:
            raise InputError("ptxas says äöü\n" * 100_000)
        if config.kernel not in ("toy", "toylib"):
            raise InputError(f"{config.kernel} is no toy")
        return Kernel(problem, config)

    def environment(self, device):
        if device != 0:
            raise InputError(f"there is no device {device}")
        return Environment(1_700_000_000_000_000_001, "driver 1", "toy", 1.5e9, 300.5, 700, -3.5, ["heat"])

    def close(self):
        pass


class Provider:
    manifest = Manifest("toy", "1.2.3")

    def open(self):
        if os.environ.get("CUDA_VISIBLE_DEVICES") == "none":  # one of the variables that a host hands on
            raise DeviceError("no toys", fix="buy some")
        return Executor()


if __name__ == "__main__":
    serve_executor(Provider())
