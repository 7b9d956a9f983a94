"""The messages of package origami.plugin.v1, and the conversions between them and the types of origami_gemm_plugin.

Message classes are made at run time from wire.binpb, a FileDescriptorSet. Generated Python would only work with the
major version of protobuf that it was generated for.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
import math

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

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


def _load() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(
        importlib.resources.files(__package__).joinpath("wire.binpb").read_bytes()
    )
    for file in files.file:  # a file comes after those that it imports
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _load()


def message(name: str):
    """The class of a message of the package."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))


def methods(service: str) -> dict:
    """The request and response classes of a service's methods, by method name."""
    descriptor = _POOL.FindServiceByName(f"{PACKAGE}.{service}")
    return {
        m.name: (message_factory.GetMessageClass(m.input_type), message_factory.GetMessageClass(m.output_type))
        for m in descriptor.methods
    }


def enum_names(name: str, prefix: str) -> dict[int, str]:
    """The values of an enum, as their names without the prefix, in lower case."""
    return {v.number: v.name.removeprefix(prefix).lower() for v in _POOL.FindEnumTypeByName(f"{PACKAGE}.{name}").values}


MAJORS = enum_names("Major", "MAJOR_")
DTYPES = enum_names("ElementType", "ELEMENT_TYPE_")

# The limits of one call, as in Go.
MAX_RUNS = 1 << 16
MAX_DEVICE = (1 << 31) - 1
# Block sizes, warps, stages and splits have at most this, and a problem padded to it must not overflow 63 bits in
# 8-byte elements.
MAX_CONFIG_NUMBER = 1 << 12


def malformed(what: str) -> InputError:
    return InputError(f"malformed request: {what}", fix="report it to the authors of the calling program")


def device_index(number: int) -> int:
    if not 0 <= number <= MAX_DEVICE:
        raise malformed(f"device {number}")
    return number


def from_problem(q) -> Problem:
    names = []
    for table, value, what in (
        (MAJORS, q.a_major, "major"),
        (MAJORS, q.b_major, "major"),
        (DTYPES, q.element_type, "element type"),
        (DTYPES, q.output_type, "element type"),
    ):
        if value not in table:
            raise malformed(f"unknown {what} {value}")
        names.append(table[value])
    if names[-1] == "unspecified":
        names[-1] = ""
    if q.nest:
        raise InputError("executors in Python multiply matrices, and the problem has nested indices",
                         fix="use another executor, such as cuda")
    if q.alpha not in (0, 1) or q.beta:
        raise InputError(f"executors in Python compute A·B, and alpha is {q.alpha or 1:g} and beta {q.beta:g}",
                         fix="use another executor, such as cuda")
    if q.epilogue:
        raise InputError(f"executors in Python compute A·B, and the problem has the epilogue {q.epilogue}",
                         fix="use another executor, such as cuda")
    aligned = (align or MAX_VECTOR for align in (q.align_a, q.align_b, q.align_c))
    p = Problem(q.m, q.n, q.k, q.batch, *names, q.lda, q.ldb, q.ldc, *aligned, tuple(q.groups))
    for name, value in (("m", p.m), ("n", p.n), ("k", p.k), ("batch", p.batch)):
        if value == 0:
            raise InputError(f"{name} is missing or zero", fix="give a whole number of at least 1")
        if value < 0:
            raise InputError(f"{name} is negative ({value})", fix="give a whole number of at least 1")
    if p.dtype == "unspecified":
        raise InputError("dtype is missing", fix="use one of " + ", ".join(OUTPUTS))
    if p.dtype not in OUTPUTS:
        raise InputError(f"dtype {p.dtype} is a type of results only", fix="use one of " + ", ".join(OUTPUTS))
    if p.output not in OUTPUTS[p.dtype]:
        raise InputError(f"no hardware multiplies {p.dtype} operands into {p.output} results",
                         fix="use an output type of " + ", ".join(OUTPUTS[p.dtype]))
    for matrix in "ab":
        if p.ld(matrix) * BITS[p.dtype] % 8:
            raise InputError(f"a row of {matrix.upper()} has {p.ld(matrix)} elements of {p.dtype}, which are no whole number"
                             " of bytes", fix=f"use rows of a multiple of {8 // math.gcd(8, BITS[p.dtype])} elements")
    if p.a_major not in ("k", "m"):
        raise InputError("a_major is missing", fix="A is contiguous along k or m")
    if p.b_major not in ("k", "n"):
        raise InputError("b_major is missing", fix="B is contiguous along k or n")
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


_COLUMNS = ("block_m", "block_n", "block_k", "group_m", "num_warps", "num_stages", "split_k")


def from_config(q) -> Config:
    numbers = {name: list(getattr(q, name)) for name in _COLUMNS}
    lengths = {len(column) for column in numbers.values()}
    if lengths != {1}:
        raise malformed(f"{max(lengths)} configurations where one is expected")
    index = list(q.kernel) or [0]
    if len(index) != 1 or index[0] >= len(q.kernels):
        raise malformed("a configuration without a kernel family")
    c = Config(q.kernels[index[0]], **{name: column[0] for name, column in numbers.items()}, axes=_from_axes(q.axes))
    if any(column[0] for column in numbers.values()):  # else it is a library's
        for name, (value,) in numbers.items():
            least = 0 if name == "group_m" else 1  # the group may be left to the launch
            if not least <= value <= MAX_CONFIG_NUMBER:
                raise InputError(
                    f"{name} of {c} is outside 1 to {MAX_CONFIG_NUMBER}", fix="give whole numbers in that range"
                )
    return c


def _from_axes(columns) -> tuple[tuple[str, str], ...]:
    """The named axes of one configuration that are not at their default."""
    axes = []
    for column in columns:
        if len(column.index) != 1 or column.index[0] > len(column.values):
            raise malformed(f"a value on the axis {column.name!r} that the list does not have")
        if column.index[0]:
            axes.append((column.name, column.values[column.index[0] - 1]))
    return tuple(sorted(axes))


def from_measure(q) -> tuple[MeasureOptions, int]:
    if not 1 <= q.runs <= MAX_RUNS:
        raise malformed(f"{q.runs} runs")
    if q.warmup < 0:
        raise malformed(f"the warm-up is {q.warmup}")
    return MeasureOptions(q.warm_l2, q.input, q.warmup), q.runs


def to_json(value):
    """An answer of one value. Numbers and texts that are 0 or empty may be missing in it, and are unknown."""
    return message("Json")(json=encoded(value))


def encoded(value) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")


def device(d: Device) -> dict:
    attributes = {name: float(value) for name, value in d.attributes.items()}
    return {"name": d.name, "arch": d.arch, "attributes": attributes, "kernels": list(d.kernels),
            "libraries": list(d.libraries)}


def resources(r: Resources) -> bytes:
    return encoded({"registers": r.registers, "spill_bytes": r.spill_bytes, "shared_bytes": r.shared_memory_bytes,
                    "ctas_per_sm": r.ctas_per_sm})


def to_numerics(n: Numerics):
    return message("CheckResponse")(**dataclasses.asdict(n) | {"reference": _text(n.reference)})


def to_samples(samples: list[Sample]):
    return message("MeasureResponse")(
        times_seconds=[s.seconds for s in samples], clocks_hz=[s.clock_hz for s in samples]
    )


def environment(e: Environment) -> dict:
    values = dataclasses.asdict(e) | {"throttle_reasons": list(e.throttle_reasons)}
    return {"time": values.pop("time_ns")} | values


def to_diagnostic(error: BaseException):
    """The failure as a message, and its kind."""
    kind = getattr(error, "kind", "KIND_INTERNAL")
    what = getattr(error, "what", None) or f"{type(error).__name__}: {error}"
    where, fix = getattr(error, "where", ""), getattr(error, "fix", "")
    return message("Diagnostic")(kind=kind, what=_text(what), where=_text(where), fix=_text(fix)), kind


def status(code: int, text: str, detail) -> bytes:
    """A google.rpc.Status, as it travels in the trailer grpc-status-details-bin: fields code = 1, message = 2 and
    details = 3, a list of Any. It is encoded by hand, because the package with its class depends on one version of
    grpcio."""
    packed = any_pb2.Any()
    packed.Pack(detail)
    out = b"\x08" + _varint(code)
    for tag, part in ((b"\x12", text.encode()), (b"\x1a", packed.SerializeToString())):
        out += tag + _varint(len(part)) + part
    return out


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out + bytes([n]))


def _text(s: str) -> str:
    """Text of a driver or a user as a protobuf string, which must be UTF-8."""
    return s.encode("utf-8", "replace").decode()
