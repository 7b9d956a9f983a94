"""What travels between a host and an executor, and the conversions to the types of origami_gemm_plugin.

A message is one JSON value in a field of bytes. That, and the two details of errors, are protobuf so simple that it is
read and written here.
"""

from __future__ import annotations

import dataclasses
import json
import math

from ._types import (
    Config,
    Device,
    Environment,
    InputError,
    MeasureOptions,
    Numerics,
    Resources,
    Sample,
)
from ._problem import BITS, MAX_GROUPS, MAX_VECTOR, OUTPUTS, Problem

PACKAGE = "origami.plugin.v1"

# The limits of one call, as in Go.
MAX_RUNS = 1 << 16
# Block sizes, warps, stages and splits have at most this, and a problem padded to it must not overflow 63 bits in
# 8-byte elements.
MAX_CONFIG_NUMBER = 1 << 12


def malformed(what: str) -> InputError:
    return InputError(f"malformed request: {what}", fix="report it to the authors of the calling program")


def value(message: bytes):
    """The JSON value of a message, whose field 1 it is. Other fields do not matter. An empty message has none."""
    at = 0
    try:
        while at < len(message):
            tag, at = _read_varint(message, at)
            size = {1: 8, 5: 4}.get(tag & 7, 0)
            if tag & 7 in (0, 2):
                size, at = _read_varint(message, at)
            if tag == 0x0A:
                return json.loads(message[at : at + size])
            at += size if tag & 7 else 0
    except (IndexError, ValueError) as error:
        raise malformed(f"no JSON: {error}") from None
    return None


def fields(of, **kinds) -> dict:
    """The values of an object, each of a kind. A missing one is 0, empty or false."""
    if not isinstance(of, dict):
        raise malformed(f"{of!r} is no object")
    for key, found in of.items():
        if key not in kinds:
            raise malformed(f"no such key: {key}")
        if type(found) is not kinds[key] and (kinds[key], type(found)) != (float, int):
            raise malformed(f"{key} is {found!r}")
    return {key: of.get(key, kind()) for key, kind in kinds.items()}


def device_index(number: int) -> int:
    if number < 0:
        raise malformed(f"device {number}")
    return number


_PROBLEM = dict.fromkeys(("m", "n", "k", "batch", "lda", "ldb", "ldc", "align_a", "align_b", "align_c"), int) | {
    "trans_a": bool, "trans_b": bool, "dtype": str, "out_dtype": str, "groups": list, "nest": str, "alpha": float,
    "beta": float, "epilogue": str}


def from_problem(of) -> Problem:
    q = fields(of, **_PROBLEM)
    for wrong, what in ((q["nest"], "multiply matrices, and the problem has nested indices"),
                        (q["alpha"] not in (0, 1) or q["beta"],
                         f"compute A·B, and alpha is {q['alpha'] or 1:g} and beta {q['beta']:g}"),
                        (q["epilogue"], f"compute A·B, and the problem has the epilogue {q['epilogue']}")):
        if wrong:
            raise InputError("executors in Python " + what, fix="use another executor, such as cuda")
    aligned = (q["align_" + matrix] or MAX_VECTOR for matrix in "abc")
    p = Problem(q["m"], q["n"], q["k"], q["batch"], "m" if q["trans_a"] else "k", "k" if q["trans_b"] else "n", q["dtype"],
                q["out_dtype"], q["lda"], q["ldb"], q["ldc"], *aligned, tuple(q["groups"]))
    for name, size in (("m", p.m), ("n", p.n), ("k", p.k), ("batch", p.batch)):
        if size < 1:
            raise InputError(f"{name} is {size}, or missing", fix="give a whole number of at least 1")
    if p.dtype not in OUTPUTS:
        raise InputError(f"dtype {p.dtype!r} is no type of operands", fix="use one of " + ", ".join(OUTPUTS))
    if p.output not in OUTPUTS[p.dtype]:
        raise InputError(f"no hardware multiplies {p.dtype} operands into {p.output} results",
                         fix="use an output type of " + ", ".join(OUTPUTS[p.dtype]))
    for matrix in "ab":
        if p.ld(matrix) * BITS[p.dtype] % 8:
            raise InputError(f"a row of {matrix.upper()} has {p.ld(matrix)} elements of {p.dtype}, which are no whole number"
                             " of bytes", fix=f"use rows of a multiple of {8 // math.gcd(8, BITS[p.dtype])} elements")
    m, n, k = (-(-v // MAX_CONFIG_NUMBER) * MAX_CONFIG_NUMBER for v in (p.m, p.n, p.k))
    if 8 * m * n * k * p.batch >= 1 << 63:
        raise InputError(f"m·n·k·batch of {p} overflows 64-bit arithmetic once padded to whole tiles",
                         fix="split the problem: padded m·n·k·batch must stay below 2^60")
    for matrix in "abc":
        _check_storage(p, matrix)
    if p.groups:
        _check_groups(p)
    return p


def _check_groups(p: Problem) -> None:
    """Refuses groups that do not make up the problem."""
    if len(p.groups) > MAX_GROUPS:
        raise InputError(f"there are {len(p.groups)} groups", fix=f"give at most {MAX_GROUPS}")
    if min(p.groups) < 0:
        raise InputError(f"a group has {min(p.groups)} rows", fix="give whole numbers of at least 0")
    if sum(p.groups) != p.m:
        raise InputError(f"the groups have {sum(p.groups)} rows, and m is {p.m}", fix="let m be their sum")
    if p.batch != 1:
        raise InputError(f"a batch of {p.batch} has groups", fix="list the groups of all in one problem")
    if p.a_major != "k":
        raise InputError("A with groups is contiguous along m", fix="let it be contiguous along k")


def _check_storage(p: Problem, matrix: str) -> None:
    """Refuses rows that overlap and addresses that no element can have."""
    rows, elements = p.rows(matrix)
    ld, align, bits = p.ld(matrix), p.align(matrix), BITS[p.output if matrix == "c" else p.dtype]
    if ld < elements:
        raise InputError(f"ld{matrix} is {ld}, and a row of {matrix.upper()} has {elements} elements",
                         fix=f"give at least {elements}, or leave it out for dense rows")
    if 8 * -(-rows // MAX_CONFIG_NUMBER) * MAX_CONFIG_NUMBER * ld * p.batch >= 1 << 63:
        raise InputError(f"{matrix.upper()} with ld{matrix} {ld} overflows 64-bit arithmetic",
                         fix=f"give a leading dimension near the {elements} elements of a row")
    if align & (align - 1) or align > MAX_VECTOR:
        raise InputError(f"align_{matrix} is {align}", fix="give 1, 2, 4, 8 or 16 bytes")
    if align * 8 < bits:
        raise InputError(f"align_{matrix} is {align}, and an element of {matrix.upper()} has {bits // 8} bytes",
                         fix="give at least the size of an element")


_CONFIG = dict.fromkeys(("block_m", "block_n", "block_k", "group_m", "num_warps", "num_stages", "split_k"), int)


def from_config(of) -> Config:
    q = fields(of, **_CONFIG, axes=dict, kernel=str)
    if not q["kernel"]:
        raise malformed("a configuration without a kernel family")
    c = Config(**q | {"axes": tuple(sorted(q["axes"].items()))})
    if any(q[name] for name in _CONFIG):  # else it is a library's
        for name in _CONFIG:
            least = 0 if name == "group_m" else 1  # the group may be left to the launch
            if not least <= q[name] <= MAX_CONFIG_NUMBER:
                raise InputError(
                    f"{name} of {c} is outside 1 to {MAX_CONFIG_NUMBER}", fix="give whole numbers in that range"
                )
    return c


def from_measure(of) -> tuple[int, MeasureOptions, int]:
    q = fields(of, kernel=int, warm_l2=bool, input=str, warmup=int, runs=int)
    if not 1 <= q["runs"] <= MAX_RUNS:
        raise malformed(f"{q['runs']} runs")
    if q["warmup"] < 0:
        raise malformed(f"the warm-up is {q['warmup']}")
    return q["kernel"], MeasureOptions(q["warm_l2"], q["input"], q["warmup"]), q["runs"]


def message(answer) -> bytes:
    """A message with a value. Numbers and texts that are 0 or empty may be missing in it, and are unknown."""
    return _field(1, json.dumps(answer, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace"))


def device(d: Device) -> dict:
    attributes = {name: float(value) for name, value in d.attributes.items()}
    return {"name": d.name, "arch": d.arch, "attributes": attributes, "kernels": list(d.kernels),
            "libraries": list(d.libraries)}


def compiled(number: int, r: Resources) -> dict:
    return {"kernel": number, "registers": r.registers, "spill_bytes": r.spill_bytes,
            "shared_bytes": r.shared_memory_bytes, "ctas_per_sm": r.ctas_per_sm}


def numerics(n: Numerics) -> dict:
    """There is no largest error if a result is not a number."""
    return {key: found for key, found in dataclasses.asdict(n).items() if key != "max_error" or math.isfinite(found)}


def samples(list: list[Sample]) -> list:
    return [dataclasses.asdict(s) for s in list]


def environment(e: Environment) -> dict:
    values = dataclasses.asdict(e) | {"throttle_reasons": list(e.throttle_reasons)}
    return {"time": values.pop("time_ns")} | values


def diagnostic(error: BaseException, longest: int) -> tuple[bytes, str]:
    """The failure as a detail of a status, whose texts are cut, and its kind."""
    kind = getattr(error, "kind", "KIND_INTERNAL")
    what = getattr(error, "what", None) or f"{type(error).__name__}: {error}"
    texts = (what[:longest], getattr(error, "where", ""), getattr(error, "fix", ""))
    kinds = ("KIND_UNSPECIFIED", "KIND_INTERNAL", "KIND_INPUT", "KIND_PLUGIN", "KIND_DEVICE")
    words = b"".join(_field(number, _text(text)) for number, text in enumerate(texts, 2))
    return _detail("Diagnostic", b"\x08" + _varint(kinds.index(kind)) + words), kind


def missing_kernel() -> bytes:
    """The detail of a call about a kernel that is not held."""
    return _detail("Missing", b"\x08\x03")


def _detail(name: str, content: bytes) -> bytes:
    """A google.protobuf.Any."""
    return _field(1, f"type.googleapis.com/{PACKAGE}.{name}".encode()) + _field(2, content)


def status(code: int, text: str, detail: bytes) -> bytes:
    """A google.rpc.Status, as it travels in the trailer grpc-status-details-bin: fields code = 1, message = 2 and
    details = 3, a list of Any."""
    return b"\x08" + _varint(code) + _field(2, _text(text)) + _field(3, detail)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out + bytes([n]))


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    n = shift = 0
    while True:
        byte = message[at]
        n, shift, at = n | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return n, at


def _text(s: str) -> bytes:
    """Text of a driver or a user as a protobuf string, which must be UTF-8."""
    return s.encode("utf-8", "replace")
