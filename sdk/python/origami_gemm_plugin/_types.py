"""The types of origami_gemm_plugin, which its author fills in and reads. They import nothing else of the package."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol


class DiagnosticError(Exception):
    """A failure in one line for the user: what was wrong, where, and what to do."""

    kind = "KIND_INTERNAL"

    def __init__(self, what: str, *, where: str = "", fix: str = ""):
        super().__init__(what)
        self.what, self.where, self.fix = what, where, fix

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}; {self.fix}" if self.fix else text


class InputError(DiagnosticError):
    """This configuration or problem cannot be built or run here (the compiler's log, too little memory); others can."""

    kind = "KIND_INPUT"


class PluginError(DiagnosticError):
    """Running this kernel has cost the process its device context. The host ends the process and starts another."""

    kind = "KIND_PLUGIN"


class DeviceError(DiagnosticError):
    """There is no device or driver, or it was lost. Nothing more can be run."""

    kind = "KIND_DEVICE"


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The name of an executor ("cuda"), in lower case, and its version."""

    name: str
    version: str


@dataclasses.dataclass(frozen=True)
class Device:
    """A device of this machine."""

    name: str  # as the driver tells it
    arch: str  # the id of its architecture: "sm90"
    attributes: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """What the driver knows that a hardware description can be derived from: by parameter name (num_sms, clock,
    l2_bytes, dram_bandwidth, …), in base units (Hz, B, B/s, W)."""
    kernels: Sequence[str] = ()
    """The kernel families that can be compiled for it."""
    libraries: Sequence[str] = ()
    """The vendor's libraries that are there to compare with, the default one first."""


@dataclasses.dataclass(frozen=True)
class Config:
    """A kernel configuration. For a library of Device.libraries only its kernel is set.

    axes has the values on the axes that the kernel family declares, except for those at their default, as (name, value)
    pairs sorted by name."""

    kernel: str
    block_m: int = 0
    block_n: int = 0
    block_k: int = 0
    group_m: int = 0
    num_warps: int = 0
    num_stages: int = 0
    split_k: int = 0
    axes: tuple[tuple[str, str], ...] = ()

    def axis(self, name: str, default: str) -> str:
        """The value on a named axis."""
        return dict(self.axes).get(name, default)

    def __str__(self) -> str:
        if not self.block_m:
            return self.kernel
        group = f" g{self.group_m}" if self.group_m else ""
        split = f" k{self.split_k}" if self.split_k != 1 else ""
        block = f"{self.block_m}x{self.block_n}x{self.block_k}"
        axes = "".join(f" {name}={value}" for name, value in self.axes)
        return f"{block} w{self.num_warps} s{self.num_stages}{group}{split}{axes}"


@dataclasses.dataclass(frozen=True)
class Resources:
    """What the compiler and the driver report of a kernel; 0 is unknown."""

    registers: int = 0  # per thread
    spill_bytes: float = 0  # per thread
    shared_memory_bytes: float = 0  # per CTA
    ctas_per_sm: int = 0


@dataclasses.dataclass(frozen=True)
class Numerics:
    """The outcome of a result check."""

    max_error: float
    """The largest |got − want| / (|want| + √k) over the checked elements, infinite where one is not a number. √k is the
    size of an element where A and B are standard normal."""
    tolerance: float  # what was allowed
    checked: int  # elements compared
    wrong: int  # elements beyond the tolerance
    out_of_bounds: int  # bytes that the kernel wrote where it must not
    reference: str  # what was compared with


@dataclasses.dataclass(frozen=True)
class MeasureOptions:
    """The conditions of a measurement."""

    warm_l2: bool = False  # keep the L2 contents between runs; else they are flushed before each
    input: str = ""  # distribution of the operands; empty is the executor's default, standard normal ("normal")
    warmup: int = 0  # runs before the first that is timed


@dataclasses.dataclass(frozen=True)
class Sample:
    """One timed run."""

    seconds: float
    clock_hz: float = 0  # of the SMs or CUs around the run; 0 is unknown


@dataclasses.dataclass(frozen=True)
class Environment:
    """What a measurement depends on beside the kernel. 0 and "" are unknown."""

    time_ns: int = 0  # since 1970-01-01 UTC
    driver: str = ""
    runtime: str = ""
    clock_hz: float = 0
    power_watts: float = 0
    power_limit_watts: float = 0
    temperature_celsius: float = 0
    throttle_reasons: Sequence[str] = ()


class Kernel(Protocol):
    """A compiled configuration on a problem."""

    @property
    def resources(self) -> Resources: ...

    def check(self) -> Numerics:
        """Runs the kernel once on random inputs, into an output that is poisoned and fenced before, and compares every
        element with a reference."""
        ...

    def measure(self, options: MeasureOptions, runs: int) -> Sequence[Sample]:
        """Times a number of runs, in order, after the runs of the warm-up. How often it is called, and when there are
        enough samples, is up to the host. Nothing is checked here."""
        ...

    def close(self) -> None:
        """Frees the kernel. No other call of it is in progress."""
        ...


class Executor(Protocol):
    """Compiles, checks and measures. Called from several threads."""

    def devices(self) -> Sequence[Device]: ...

    def compile(self, device: int, problem: Problem, config: Config) -> Kernel:
        """Builds the kernel of one configuration for one problem. A compiler's log is part of the InputError."""
        ...

    def environment(self, device: int) -> Environment:
        """Reads the device's state now."""
        ...

    def close(self) -> None: ...


class Provider(Protocol):
    """Makes an executor. It may also have a method health(), which says in a DiagnosticError why it cannot work at
    all, and two attributes: named_axes and whole_problems. If named_axes is True, the executor heeds Config.axes. If
    whole_problems is True, it heeds the out_dtype, leading dimensions, alignments and groups of a Problem, and fp8_e5m2. It
    refuses what it cannot do with an InputError. Otherwise the package refuses all of that."""

    @property
    def manifest(self) -> Manifest:
        """Who the executor is. It is cheap, and needs neither a device nor the libraries that open() does."""
        ...

    def open(self) -> Executor:
        """Readies the executor, when the first call needs it. A missing driver or device is a DeviceError."""
        ...
