"""LAUNCHES of `python -m origami_gemm.pin check`: the autotuned kernels of measure.py's cases, caught without a GPU."""

import os

os.environ.setdefault("ONLY", "4x4096|8192x4096")
import measure  # noqa: E402
from origami_gemm.pin._compile import without_memory  # noqa: E402

LAUNCHES = []


def _collect(case, tuner, name, args, kwargs):
    grid = kwargs.get("grid")
    rest = {k: without_memory(v) for k, v in kwargs.items() if k not in ("grid", "warmup")}
    LAUNCHES.append({"name": f"{name} | {case}", "kernel": tuner, "args": tuple(map(without_memory, args)), "kwargs": rest,
                     "grid": grid, "configs": list(tuner.configs)})


measure.no_gpu()
measure.each("cpu", _collect, False)
