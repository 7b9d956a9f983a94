"""The executor: Triton kernels on the GPUs of this machine, and torch.matmul for comparison."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Sequence

import torch
import triton

from origami_gemm_plugin import (
    Config,
    Device,
    DeviceError,
    Environment,
    InputError,
    MeasureOptions,
    Numerics,
    Problem,
    Resources,
    Sample,
)

from . import checks, gpu, kernel
from .compilers import Compilers
from .driver import Driver

LIBRARY = "torch.matmul"
RUNTIME = f"Triton {triton.__version__}, PyTorch {torch.__version__} (CUDA {torch.version.cuda})"

OF_8_BITS = ("fp8", "fp8_e5m2", "int8")
OPERANDS = ("fp16", "bf16", "fp32", "tf32", *OF_8_BITS)
# Offsets within A and B are computed in 32-bit integers.
MOST_ELEMENTS = (1 << 31) - 1
# The parts into which K can be split: the largest number of a configuration.
MOST_PARTS = 1 << 12
# tl.arange takes powers of two, tl.dot none below 16, and along K none below 32 for 8-bit types; a CTA has at most 1024
# threads.
BLOCKS = {1 << i for i in range(4, 13)}
LEAST_K8 = 32
WARPS = {1 << i for i in range(6)}


class Executor:
    """Implements origami_gemm_plugin.Executor."""

    def __init__(self, driver: Driver):
        self._driver = driver
        if not torch.cuda.is_available():
            raise DeviceError(
                "PyTorch finds no GPU",
                where="triton",
                fix="install a build of PyTorch for CUDA that the driver supports",
            )
        # cuBLAS then accumulates in fp32 throughout, like the kernels that it is compared with.
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        self._lock = threading.Lock()
        self._gpus: list[_Gpu | None] = [None] * self._driver.count()

    def devices(self) -> Sequence[Device]:
        return [self._gpu(i).describe() for i in range(len(self._gpus))]

    def compile(self, device: int, problem: Problem, config: Config):
        check_problem(problem)
        if config.kernel == LIBRARY:
            return Library(self._gpu(device), problem, config)
        _refuse((config.kernel not in kernel.FAMILIES, f'there is no kernel family "{config.kernel}"',
                 f"use {', '.join(kernel.FAMILIES)} or {LIBRARY}"))
        check_config(config, problem)
        return Kernel(self._gpu(device), problem, config)

    def environment(self, device: int) -> Environment:
        return self._gpu(device).state.environment(RUNTIME)

    def close(self) -> None:
        for on in self._gpus:
            if on:
                on.compilers.close()

    def _gpu(self, index: int) -> _Gpu:
        """A device, opened."""
        with self._lock:
            gpus = len(self._gpus)
            _refuse((index >= gpus, f"there is no device {index}", f"the devices: 0 to {gpus - 1}"))
            found = self._gpus[index] or _Gpu(self._driver, index)
            self._gpus[index] = found
            return found


def check_problem(p: Problem) -> None:
    """Raises InputError for a problem that the kernels cannot compute."""
    _refuse((p.dtype not in OPERANDS, f"operands of type {p.dtype} cannot be multiplied", f"use {', '.join(OPERANDS)}"),
            (p.dtype == "int8" and p.output != "int32",
             f"operands of type int8 have results of type int32 here, not {p.output}", "use int32"),
            (p.batch != 1, f"the kernel multiplies one pair of matrices, not a batch of {p.batch}", "use batch 1"),
            (max(p.stride("a"), p.stride("b"), p.m, p.n, p.k) > MOST_ELEMENTS,
             f"an operand of {p} has more than 2^31 - 1 elements", "split the problem"))


def check_config(c: Config, p: Problem) -> None:
    """Raises InputError for a configuration that could crash Triton's compiler."""
    fix, persistent = "take another configuration", c.kernel == kernel.PERSISTENT
    _refuse(*((getattr(c, name) not in BLOCKS, f"{name} of {c} is no power of two from 16 to 4096", fix)
              for name in ("block_m", "block_n", "block_k")),
            (p.dtype in OF_8_BITS and c.block_k < LEAST_K8,
             f"block_k of {c} is below {LEAST_K8}, the smallest for operands of {p.dtype}", fix),
            (c.num_warps not in WARPS, f"the number of warps of {c} is no power of two from 1 to 32", fix),
            (min(c.num_stages, c.group_m) < 1, f"{c} needs a stage and a launch-order group of at least 1", fix),
            (not 1 <= c.split_k <= MOST_PARTS, f"{c} splits K into {c.split_k} parts", f"use split 1 to {MOST_PARTS}"),
            (persistent and c.split_k > 1, f"{c} splits K, which {c.kernel} does not", "use split 1"),
            (persistent and p.groups, f"{c.kernel} multiplies no groups", f"use {kernel.FAMILY}"))


def _refuse(*checks):
    """Raises the first error: what is wrong, and what to do."""
    for wrong, what, fix in checks:
        if wrong:
            raise InputError(what, where="triton", fix=fix)


class _Gpu(gpu.Gpu):
    """A device with the kernels that were compiled for it."""

    def __init__(self, driver: Driver, index: int):
        super().__init__(driver, index)
        self.capability = int(
            10 * self.attributes["compute_capability_major"] + self.attributes["compute_capability_minor"]
        )
        # One process per core: the host compiles a few kernels ahead of the measured one, and more would wait.
        self.compilers = Compilers(self.capability, os.cpu_count() or 1)
        # The built kernels, and why the others were not built. Triton unloads no kernel, so they are kept for the next
        # problem, which may use the same.
        self._built: dict[str, Built] = {}
        self._refused: dict[str, str] = {}

    def describe(self) -> Device:
        # The smallest that Triton compiles for.
        kernels = list(kernel.FAMILIES) if self.capability >= 80 else []
        return Device(self.name, f"sm{self.capability}", self.attributes, kernels, [LIBRARY])

    def built(self, problem: Problem, config: Config) -> list[Built]:
        """The kernels of a configuration, compiled and loaded if necessary."""
        return [self._kept(code, problem, config) for code in kernel.codes(problem, config)]

    def _kept(self, code, problem: Problem, config: Config) -> Built:
        key = kernel.key(code)
        if key in self._built:
            return self._built[key]
        if key not in self._refused and (refusal := self.compilers.build(problem, config)):
            self._refused[key] = refusal
        _refuse((key in self._refused, f"it does not compile: {self._refused.get(key)}", "take another configuration"))
        with self.quiet, self.guarded(f"loading {config}", problem):
            if key not in self._built:
                self._built[key] = Built(self, kernel.build(code, self.capability))
            return self._built[key]


class Built:
    """A compiled kernel on the device."""

    def __init__(self, on: _Gpu, compiled):
        try:
            compiled._init_handles()  # loads it; the registers are then known
        except triton.runtime.errors.OutOfResources as error:
            raise InputError(str(error), where="triton", fix="take another configuration") from error
        self.compiled = compiled
        shared, warps = compiled.metadata.shared, compiled.metadata.num_warps
        # Triton counts words of local memory.
        self.resources = Resources(
            compiled.n_regs, 4 * compiled.n_spills, shared, on.driver.ctas_per_sm(compiled.function, 32 * warps, shared)
        )


class _Program:
    """A kernel or library that runs on a problem's operands."""

    resources = Resources()

    def __init__(self, on: _Gpu, problem: Problem, config: Config):
        self._on, self._problem, self._config = on, problem, config

    def _bind(self, operands: gpu.Operands):
        """A function that launches."""
        raise NotImplementedError

    def check(self) -> Numerics:
        with self._on.running(f"checking {self._config}", self._problem) as operands:
            return checks.check(operands, self._bind(operands))

    def measure(self, options: MeasureOptions, runs: int) -> Sequence[Sample]:
        known = options.input in ("", "normal")
        _refuse((not known, f'there is no input distribution "{options.input}"', "use normal"))
        with self._on.running(f"measuring {self._config}", self._problem) as operands, self._on.quiet:
            run = self._bind(operands)
            for _ in range(options.warmup):
                run()
            return [self._on.timed(run, options.warm_l2) for _ in range(runs)]

    def close(self) -> None:
        pass


class Kernel(_Program):
    """A Triton kernel on a problem."""

    def __init__(self, on: _Gpu, problem: Problem, config: Config):
        super().__init__(on, problem, config)
        self._built = on.built(problem, config)
        self.resources = self._built[0].resources

    def _bind(self, operands):
        return launcher(self._problem, self._config, operands, *(built.compiled for built in self._built))


def launcher(p: Problem, c: Config, operands: gpu.Operands, multiply, add_parts=None):
    """A function that launches a compiled configuration on the operands."""
    launch, out = multiply[kernel.programs(p, c, operands.processors), c.split_k, 1], operands.c
    if c.split_k > 1:
        out = operands.parts(c.split_k, gpu.DTYPES[kernel.sums(p)])
    table = (operands.table(c),) if p.groups else ()
    arguments = (operands.a, operands.b, out, *table, *kernel.integers(p, c).values(), *kernel.constants(p, c).values())
    if c.split_k == 1:
        return lambda: launch(*arguments)
    rows, columns = kernel.blocks_of_sum(p.n)
    launch_sum = add_parts[triton.cdiv(p.m, rows), triton.cdiv(p.n, columns), 1]
    of_sum = (out, operands.c, *kernel.integers_of_sum(p).values(), *kernel.constants_of_sum(p, c).values())

    def run():
        launch(*arguments)
        launch_sum(*of_sum)

    return run


class Library(_Program):
    """PyTorch's multiplication, for which cuBLAS chooses the kernel."""

    def _bind(self, operands):
        return multiplication(self._problem, operands)


def multiplication(p: Problem, o: gpu.Operands):
    """A function that multiplies the operands by cuBLAS: torch.matmul, and its counterparts for 8-bit types. Groups are
    multiplied one after another."""
    # Read when the launch is made. Launches take turns.
    torch.backends.cuda.matmul.allow_tf32 = p.dtype == "tf32"
    multiply = _product(p.dtype, o.a.dtype, o.c.dtype, o.device)
    operands = [(o.a[rows], b, o.c[rows]) for rows, b in o.products()]

    def run():
        for a, b, c in operands:
            multiply(a, b, out=c)

    return run


def _product(name: str, dtype, out, device):
    """PyTorch's function that multiplies matrices of a type."""
    if name == "int8":
        return torch._int_mm
    if name in ("fp8", "fp8_e5m2"):
        one = torch.ones((), device=device)
        # Sums as precise as tl.dot's by default.
        return functools.partial(torch._scaled_mm, scale_a=one, scale_b=one, out_dtype=out, use_fast_accum=True)
    return torch.matmul if out == dtype else functools.partial(torch.mm, out_dtype=out)
