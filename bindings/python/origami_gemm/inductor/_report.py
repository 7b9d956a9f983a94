"""What was picked for each operation, and why, or why Inductor was left alone."""

from __future__ import annotations

import dataclasses
import threading

from origami_gemm.lib import Pick

KEPT = 10_000  # rows; older ones are dropped
TRITON, GENERATED = "Triton", "generated"  # where kernels are from


@dataclasses.dataclass(frozen=True)
class Row:
    """An operation that Inductor asked about. picks is empty if cuBLAS was taken untimed, or if Inductor's own list was
    used, and reason says why. family says where the picks' kernels are from."""

    op: str
    problem: dict  # Model.rank's arguments; empty if they were not understood
    picks: tuple[Pick, ...] = ()
    runner_up: Pick | None = None  # the best configuration that Inductor was not given
    others: int = 0  # choices beside the picks: cuBLAS
    dynamic: bool = False  # whether a size is a hint
    hint: int | None = None  # of torch._inductor.config.multi_kernel_hints
    reason: str = ""
    cublas_seconds: float | None = None  # of cuBLAS by its model; None if that does not know, or was not asked
    family: str = TRITON
    tma: tuple[bool, ...] = ()  # of each pick, whether it is for Inductor's persistent template with TMA

    @property
    def cublas_alone(self) -> bool:
        """Whether cuBLAS was taken without timing."""
        return not self.picks and self.cublas_seconds is not None

    def sizes(self) -> str:
        p = self.problem
        if not p:
            return "?"
        batch = f"{p['batch']}x" if p.get("batch", 1) > 1 else ""
        return f"{batch}{p['m']}x{p['n']}x{p['k']}" + ("~" if self.dynamic else "")

    def operands(self) -> str:
        p = self.problem
        if not p:
            return "?"
        layout = ("T" if p.get("trans_a") else "N") + ("T" if p.get("trans_b") else "N")
        return f"{p['dtype']} {layout}"

    def why(self) -> str:
        """What the model says of the first pick."""
        if self.cublas_alone:
            return (f"predicted {_time(self.cublas_seconds)}; the best {self.family} kernel, {self.runner_up}, "
                    f"{_time(self.runner_up.seconds)}")
        if not self.picks:
            return self.reason
        first = self.picks[0]
        text = f"predicted {_time(first.seconds)}"
        if first.interval:
            low, high = first.interval
            text += f" ({_time(low)} to {_time(high)})"
        text += f", {first.bound} bound" + (f", {first.evidence}" if first.evidence not in (None, "checked") else "")
        if self.cublas_seconds is not None:
            text += f"; cuBLAS {_time(self.cublas_seconds)}"
        if self.runner_up and first.seconds:
            text += f"; the next costs {100 * (self.runner_up.seconds / first.seconds - 1):.1f} % more"
        return text

    def chosen(self) -> str:
        if self.cublas_alone:
            return "cuBLAS"
        if not self.picks:
            return "Inductor's own list"
        more = len(self.picks) - 1 + self.others
        origin = ", generated" if self.family == GENERATED else ", persistent with TMA" if any(self.tma[:1]) else ""
        return str(self.picks[0]) + origin + (f" and {more} more, timed" if more else "")

    def __str__(self):
        at = f" at hint {self.hint}" if self.hint is not None else ""
        return f"{self.op} {self.sizes()} {self.operands()}{at}: {self.chosen()}; {self.why()}"


class Report(tuple):
    """The rows in the order of the questions. Printed, a table in which equal rows are counted."""

    def __str__(self):
        if not self:
            return ("no operation yet. Graphs are compiled at their first call. Those from Inductor's cache on disk "
                    "ask nothing; TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 compiles them again")
        counted = {}
        for row in self:
            cells = (row.op, row.sizes() + (f" at {row.hint}" if row.hint is not None else ""), row.operands(),
                     row.chosen(), row.why())
            counted[cells] = counted.get(cells, 0) + 1
        lines = [("op", "MxNxK", "type", "×", "choice", "why")]
        lines += [(*cells[:3], str(count), *cells[3:]) for cells, count in counted.items()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        picked = sum(bool(row.picks) or row.cublas_alone for row in self)
        text.append(f"{picked} of {len(self)} operations picked by the model")
        if any(row.dynamic for row in self):
            text.append("~ a dynamic size: the pick is for its hint")
        return "\n".join(text)

    __repr__ = __str__


class Recorder:
    """The rows of this process. Several threads may compile."""

    def __init__(self):
        self._lock, self._rows, self._reasons = threading.Lock(), [], set()

    def add(self, row: Row) -> bool:
        """Keeps a row. True if it is the first with its reason, for this operation."""
        with self._lock:
            if len(self._rows) >= KEPT:
                del self._rows[: KEPT // 2]
            self._rows.append(row)
            if not row.reason or (row.op, row.reason) in self._reasons:
                return False
            self._reasons.add((row.op, row.reason))
            return True

    def report(self) -> Report:
        with self._lock:
            return Report(self._rows)

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()
            self._reasons.clear()


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"
