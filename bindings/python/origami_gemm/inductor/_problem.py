"""The matrices of an operation as the problem that a Model is asked about. Sizes and strides are plain numbers."""

from __future__ import annotations

import dataclasses
import math

WIDEST = 16  # bytes; larger alignments of an address change no kernel
SPECIALIZED = 16  # Triton knows of an integer argument whether this divides it, and no other divisor

# The element types of PyTorch that the models know. 32-bit floats depend on a switch.
DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8_e5m2"}
OUTPUTS = DTYPES | {"float32": "fp32"}


class NotUnderstood(Exception):
    """Why an operation is left to Inductor."""


@dataclasses.dataclass(frozen=True)
class Matrix:
    """An operand as Inductor describes it. offset is where it begins in its storage, in elements."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str  # as torch's without "torch."
    itemsize: int
    offset: int = 0


def problem(a: Matrix, b: Matrix, out_dtype: str, tf32: bool) -> dict:
    """Model.rank's arguments for C = A B, where A and B may have a batch dimension in front. Raises NotUnderstood."""
    if a.dtype != b.dtype:
        raise NotUnderstood(f"A is {a.dtype} and B is {b.dtype}; the models know operands of one type")
    if not 2 <= len(a.sizes) == len(b.sizes) <= 3:
        raise NotUnderstood(f"operands with {len(a.sizes)} and {len(b.sizes)} dimensions")
    (m, k), n = a.sizes[-2:], b.sizes[-1]
    asked = {"m": m, "n": n, "k": k, "dtype": _dtype(a.dtype, tf32), "out_dtype": _known(OUTPUTS, out_dtype)}
    if len(a.sizes) == 3:
        asked["batch"] = a.sizes[0]
        for name, x in (("A", a), ("B", b)):
            if x.sizes[0] > 1 and x.strides[0] == 0:
                raise NotUnderstood(f"{name} is the same matrix for the whole batch; the models count each")
    asked["trans_a"], asked["lda"] = _rows("A", a)
    asked["trans_b"], asked["ldb"] = _rows("B", b)
    asked["align"] = (_alignment(a), _alignment(b), WIDEST)  # Inductor allocates C
    return asked


def with_constants(asked: dict, itemsize: int, static: set[str]) -> dict:
    """The problem to ask about for a kernel in which the sizes named in static are constants.

    The kernels of the model have sizes as arguments. Their copies are 16 bytes wide only if SPECIALIZED divides the
    sizes. Of a constant, Triton knows all divisors, so 16 bytes are enough: such sizes are rounded up to a multiple of
    SPECIALIZED. Blocks are multiples of it, so there are as many blocks as before."""

    def rounded(size):
        return -(-size // SPECIALIZED) * SPECIALIZED if size * itemsize % WIDEST == 0 else size

    # M is no extent of a copy, unless A is contiguous along it.
    names = static & ({"n", "k", "lda", "ldb"} | ({"m"} if asked["trans_a"] else set()))
    new = asked | {name: rounded(asked[name]) for name in names}
    rows = {"lda": "m" if asked["trans_a"] else "k", "ldb": "k" if asked["trans_b"] else "n"}
    fits = all(not new[ld] or new[ld] >= new[row] for ld, row in rows.items())
    return new if fits else asked


def _dtype(name: str, tf32: bool) -> str:
    if name == "float32":
        return "tf32" if tf32 else "fp32"
    return _known(DTYPES, name)


def _known(names: dict, name: str) -> str:
    if name not in names:
        raise NotUnderstood(f"element type {name}")
    return names[name]


def _rows(name: str, x: Matrix) -> tuple[bool, int]:
    """Whether a matrix is contiguous along its first dimension, and its leading dimension: 0 if it is dense."""
    (rows, columns), (ld, step) = x.sizes[-2:], x.strides[-2:]
    if step == 1 or columns == 1 and (ld != 1 or rows == 1):
        turned = False
    elif ld == 1 or rows == 1:
        turned, rows, columns, ld = True, columns, rows, step
    else:
        raise NotUnderstood(f"{name} has the strides {x.strides[-2:]}; the models know rows or columns without gaps")
    if rows > 1 and ld < columns:
        raise NotUnderstood(f"rows of {name} overlap: its strides are {x.strides[-2:]}")
    return turned, 0 if rows == 1 or ld == columns else ld


def _alignment(x: Matrix) -> int:
    """The bytes that divide the address: Inductor aligns whole storages to 16 bytes."""
    return math.gcd(x.offset * x.itemsize, WIDEST) or WIDEST


def configuration(pick, dtype: str) -> dict | None:
    """The meta-parameters of Inductor's template for a Pick, without those that do not come from the model. None if the
    template cannot be built so."""
    blocks = pick.block_m, pick.block_n, pick.block_k
    # What Inductor asks of its own configurations: tl.dot's least block, and for fp8 the depth of an instruction.
    if min(blocks) < 16 or dtype.startswith("fp8") and pick.block_k < 32 or pick.split_k != 1 or pick.axes:
        return None
    return {
        "BLOCK_M": pick.block_m, "BLOCK_N": pick.block_n, "BLOCK_K": pick.block_k, "GROUP_M": pick.group_m or 8,
        "num_warps": pick.num_warps, "num_stages": pick.num_stages,
    }
