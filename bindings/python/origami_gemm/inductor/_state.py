"""What is in force in this process. Imports no torch."""

from __future__ import annotations

import dataclasses

from origami_gemm.inductor._report import Recorder
from origami_gemm.inductor._settings import Settings


@dataclasses.dataclass(frozen=True)
class State:
    """settings: None if Inductor is on its own. forced: whether max_autotune_gemm is on only because of us, so that
    what is left to Inductor gets what it would have got without us: one kernel of cuBLAS, and no timing."""

    settings: Settings | None = None
    forced: bool = False


state = State()
recorder = Recorder()
# The products that were compiled, as entries of Inductor's lookup table.
pinned: dict[str, list[dict]] = {}
