"""One GPU: the operands of a problem, timing, and handling of failures."""

from __future__ import annotations

import contextlib
import logging
import threading

import torch

from origami_gemm_plugin import Config, InputError, PluginError, Problem, Sample

from . import kernel
from .driver import Driver, State

_log = logging.getLogger(__name__)

# The guard band before and after each matrix, in bytes. Each byte there, and between the rows of a matrix, is poison:
# as a float of any type it is NaN. A kernel that reads outside its operands thus gives NaN, or a wrong sum of integers,
# and a write outside the output is detected.
FENCE = 4096
POISON = 0xFF
# The largest alignment in bytes that a problem has.
ALIGNED = 16
# The same numbers in every run, so that a wrong result stays wrong.
SEED = 0x6F726967
FLUSH = 4  # times the L2: what is written between runs
# The cycles for which the device is kept busy while the host puts two events and a launch on the stream. That takes
# Triton some tens of microseconds. If the device was still faster, the pause is doubled.
PAUSE = 100_000
LONGEST_PAUSE = PAUSE << 6

# The element types in PyTorch. The operands of tf32 are those 32-bit floats that tf32 has, because the tensor cores
# leave out the other bits.
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "tf32": torch.float32,
          "fp8": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2, "int8": torch.int8, "int32": torch.int32}
TF32_MASK = ~((1 << 13) - 1)


class Matrix:
    """A matrix between fences, with the leading dimension and the alignment of the problem, poisoned."""

    def __init__(self, p: Problem, name: str, device: torch.device):
        dtype = DTYPES[p.output if name == "c" else p.dtype]
        rows, elements = p.rows(name)
        if name == "b" and p.groups:
            rows *= len(p.groups)
        self.start = FENCE + p.align(name) % ALIGNED
        size = ((rows - 1) * p.ld(name) + elements) * dtype.itemsize
        self.memory = torch.full((self.start + size + FENCE,), POISON, dtype=torch.uint8, device=device)
        self.end = self.start + size
        self._gap = (p.ld(name) - elements) * dtype.itemsize
        flat = self.memory[self.start : self.end].view(dtype)
        self.rows = flat.as_strided((rows, elements), (p.ld(name), 1), flat.storage_offset())

    def outside(self) -> torch.Tensor:
        """How many bytes around the elements are no longer poison."""
        written = (self.memory[: self.start] != POISON).sum() + (self.memory[self.end :] != POISON).sum()
        rows, elements = self.rows.shape
        if self._gap and rows > 1:
            pitch = self.rows.stride(0) * self.rows.element_size()
            first = self.start + elements * self.rows.element_size()
            written += (self.memory.as_strided((rows - 1, self._gap), (pitch, 1), first) != POISON).sum()
        return written


class Operands:
    """The matrices of a problem on the device."""

    def __init__(self, p: Problem, device: torch.device):
        self.problem, self.device = p, device
        self.processors = 1  # without a GPU
        if device.type == "cuda":
            self.processors = torch.cuda.get_device_properties(device).multi_processor_count
        random = torch.Generator(device).manual_seed(SEED)
        self.a = self._random(p, "a", p.a_major == "m", random)
        self.b = self._random(p, "b", p.b_major == "k", random)
        self.matrix_c = Matrix(p, "c", device)
        self.c = self.matrix_c.rows
        self.want: torch.Tensor | None = None  # the expected C (module checks)
        self._parts: torch.Tensor | None = None
        self._tables: dict[int, torch.Tensor] = {}

    def products(self):
        """What is multiplied: the rows of A and C, and the B. Without groups that is one product."""
        if not self.problem.groups:
            yield slice(self.problem.m), self.b
            return
        first = 0
        for height, b in zip(self.problem.groups, self.b, strict=True):
            if height:
                yield slice(first, first + height), b
            first += height

    def table(self, config: Config) -> torch.Tensor:
        """The table of groups on the device."""
        if config.block_m not in self._tables:
            entries = kernel.table(self.problem, config)
            self._tables[config.block_m] = torch.tensor(entries, dtype=torch.int32, device=self.device)
        return self._tables[config.block_m]

    def _random(self, p: Problem, name: str, transposed: bool, random: torch.Generator) -> torch.Tensor:
        rows = Matrix(p, name, self.device).rows
        if p.dtype == "int8":
            rows.random_(-127, 128, generator=random)
        elif rows.dtype.itemsize > 1:
            rows.normal_(generator=random)
        else:  # PyTorch draws no 8-bit floats
            rows.copy_(torch.randn(rows.shape, generator=random, device=self.device))
        if p.dtype == "tf32":
            bits = rows.view(torch.int32)
            bits.bitwise_and_(TF32_MASK)
        if name == "b" and p.groups:
            rows = rows.unflatten(0, (len(p.groups), -1))
        return rows.mT if transposed else rows

    def parts(self, split: int, dtype: torch.dtype) -> torch.Tensor:
        """Room for the sums of the programs that split K."""
        size = split * self.problem.m * self.problem.n
        if self._parts is None or self._parts.numel() < size:
            self._parts = None
            self._parts = torch.empty(size, dtype=dtype, device=self.device)
        return self._parts


class Gpu:
    """A device with the state that is kept on it between calls."""

    def __init__(self, driver: Driver, index: int):
        self.driver, self.device = driver, torch.device("cuda", index)
        self.name, self.state = driver.name(index), State(driver.uuid(index))
        self.attributes = driver.attributes(index) | self.state.attributes()
        # Held while kernels are timed and while one is loaded. A load keeps the locks of the driver and of Python for
        # milliseconds. A launch between two events that waits for them would be timed with the wait.
        self.quiet = threading.Lock()
        self._running = threading.Lock()  # checks and measurements take turns
        self._operands: Operands | None = None  # of the last problem
        with torch.cuda.device(self.device):
            self._flush = torch.empty(
                int(FLUSH * self.attributes.get("l2_bytes", 64 << 20)), dtype=torch.uint8, device=self.device
            )
            self._begin, self._end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    @contextlib.contextmanager
    def running(self, doing: str, problem: Problem):
        """Gives a caller that runs kernels the device and the operands of a problem."""
        with self._running, self.guarded(doing, problem):
            if self._operands is None or self._operands.problem != problem:
                self._operands = None
                torch.cuda.empty_cache()  # blocks of other sizes could prevent large allocations
                self._operands = Operands(problem, self.device)
            yield self._operands

    @contextlib.contextmanager
    def guarded(self, doing: str, problem: Problem):
        """Makes the device current, and translates exceptions of PyTorch and Triton."""
        try:
            with torch.cuda.device(self.device):
                yield
        except torch.cuda.OutOfMemoryError as error:
            self._operands = None
            torch.cuda.empty_cache()
            free, total = torch.cuda.mem_get_info(self.device)
            raise InputError(
                f"{problem} does not fit: {free / 1e9:.1f} GB of {total / 1e9:.1f} GB of the device's memory are free",
                where="triton",
                fix="leave it out, or free the device's memory",
            ) from error
        except RuntimeError as error:
            what = f"{doing} on {problem}: {(str(error).strip() or type(error).__name__).splitlines()[0]}"
            if self._lost():
                raise PluginError(what, where="triton") from error
            raise InputError(what, where="triton", fix="take another configuration") from error

    def _lost(self) -> bool:
        """Whether the context is lost. After an illegal access, for example, every call returns the same error."""
        try:
            torch.cuda.synchronize(self.device)
            return False
        except RuntimeError:
            return True

    def timed(self, run, warm: bool) -> Sample:
        """Runs once and returns the time on the device. The flush of the L2 (or, for a warm L2, a run that fills it)
        and a pause keep the device busy until everything is on the stream. A run that the device reached earlier is not
        counted, because the time between the events could then include a late launch."""
        pause = PAUSE
        while True:
            if warm:
                run()
            else:
                self._flush.zero_()
            torch.cuda._sleep(pause)
            self._begin.record()
            run()
            self._end.record()
            late = self._begin.query()
            clock = self.state.clock()  # while it runs
            self._end.synchronize()
            if not late or pause >= LONGEST_PAUSE:
                break
            pause *= 2
        if late:
            _log.warning(
                "the host needs longer than %d cycles of the device for a launch: times include waiting", pause
            )
        return Sample(self._begin.elapsed_time(self._end) / 1e3, clock)
