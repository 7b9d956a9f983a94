"""One GPU: the operands of a problem, timing, and handling of failures."""

from __future__ import annotations

import contextlib
import logging
import threading

import torch

from origami.plugin import InputError, PluginError, Problem, Sample

from .driver import Driver, State

_log = logging.getLogger(__name__)

# The guard band before and after each matrix, in bytes. Each byte is poison: as fp16 or bf16 it is NaN. A kernel that
# reads outside its operands thus gives NaN, and a write outside the output is detected.
FENCE = 4096
POISON = 0xFF
# The same numbers in every run, so that a wrong result stays wrong.
SEED = 0x6F726967
FLUSH = 4  # times the L2: what is written between runs
# The cycles for which the device is kept busy while the host puts two events and a launch on the stream. That takes
# Triton some tens of microseconds. If the device was still faster, the pause is doubled.
PAUSE = 100_000
LONGEST_PAUSE = PAUSE << 6


class Operands:
    """The matrices of a problem on the device, each between fences."""

    def __init__(self, p: Problem, dtype: torch.dtype, device: torch.device):
        self.problem, self.device = p, device
        random = torch.Generator(device).manual_seed(SEED)
        self.a = self._random(p.m, p.k, p.a_major == "m", dtype, random)
        self.b = self._random(p.k, p.n, p.b_major == "k", dtype, random)
        self.bytes_of_c, self.c = self._matrix(p.m, p.n, dtype)
        self.want: torch.Tensor | None = None  # the expected C, in fp32 (module checks)

    def _matrix(self, rows: int, columns: int, dtype: torch.dtype):
        size = rows * columns * dtype.itemsize
        memory = torch.full((FENCE + size + FENCE,), POISON, dtype=torch.uint8, device=self.device)
        return memory, memory[FENCE : FENCE + size].view(dtype).view(rows, columns)

    def _random(
        self, rows: int, columns: int, transposed: bool, dtype: torch.dtype, random: torch.Generator
    ) -> torch.Tensor:
        _, matrix = self._matrix(*((columns, rows) if transposed else (rows, columns)), dtype)
        matrix.normal_(generator=random)
        return matrix.t() if transposed else matrix


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
    def running(self, doing: str, problem: Problem, dtype: torch.dtype):
        """Gives a caller that runs kernels the device and the operands of a problem."""
        with self._running, self.guarded(doing, problem):
            if self._operands is None or self._operands.problem != problem:
                self._operands = None
                torch.cuda.empty_cache()  # blocks of other sizes could prevent large allocations
                self._operands = Operands(problem, dtype, self.device)
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
