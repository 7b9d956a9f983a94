"""The kernels of the families, and the properties of a problem and a configuration that determine their code. It
needs no GPU."""

import itertools

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from .product import multiply_persistent, place, tile

FAMILY = "triton"
PERSISTENT = "triton_persistent"
FAMILIES = (FAMILY, PERSISTENT)

# The names of element types in Triton. tf32 is how 32-bit floats are multiplied.
POINTERS = {"fp16": "fp16", "bf16": "bf16", "fp32": "fp32", "tf32": "fp32", "fp8": "fp8e4nv", "fp8_e5m2": "fp8e5",
            "int8": "i8", "int32": "i32"}
# Of a number, Triton knows at compile time whether it is a multiple of this. Pointers count in bytes.
DIVISOR = 16
# The elements of C that a program of add_parts sums up.
ELEMENTS = 512


@triton.jit
def multiply(a, b, c, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
             BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EVEN_K: tl.constexpr,
             SPLIT: tl.constexpr = 1, PRECISION: tl.constexpr = "tf32"):
    row, column = place(tl.program_id(0), tl.cdiv(m, BM), tl.cdiv(n, BN), GROUP)
    if SPLIT > 1:
        c += tl.program_id(1).to(tl.int64) * m * n
    tile(a, b, c, row, column, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
         BM, BN, BK, EVEN_K, SPLIT, PRECISION)


@triton.jit
def multiply_groups(a, b, c, table, m, n, k, stride_am, stride_ak, stride_bg, stride_bk, stride_bn, stride_cm,
                    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EVEN_K: tl.constexpr,
                    SPLIT: tl.constexpr = 1, PRECISION: tl.constexpr = "tf32", GROUPS: tl.constexpr = 1):
    # Rows of A and C come in groups, and each group has a B. A program finds its group from the sums of the tiles of
    # those before. The table has these, then the rows before each group. An empty group has no program.
    tiles_n = tl.cdiv(n, BN)
    pid = tl.program_id(0)
    before = tl.load(table + tl.arange(0, GROUPS))
    index = tl.sum((before * tiles_n <= pid).to(tl.int32)) - 1
    first = tl.load(table + index)
    tiles_m = tl.load(table + index + 1) - first
    row, column = place(pid - first * tiles_n, tiles_m, tiles_n, GROUP)
    above = tl.load(table + GROUPS + 1 + index)
    height = tl.load(table + GROUPS + 2 + index) - above
    if SPLIT > 1:
        c += tl.program_id(1).to(tl.int64) * m * n
    a += above.to(tl.int64) * stride_am
    b += index.to(tl.int64) * stride_bg
    c += above.to(tl.int64) * stride_cm
    tile(a, b, c, row, column, height, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
         BM, BN, BK, EVEN_K, SPLIT, PRECISION)


@triton.jit
def add_parts(parts, c, m, n, stride_cm, SPLIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    # The sum of SPLIT matrices m×n, always in the same order.
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    at = parts + rows[:, None].to(tl.int64) * n + columns[None, :]
    size = tl.cast(m, tl.int64) * n
    total = tl.load(at, mask=inside, other=0)
    for _ in tl.static_range(1, SPLIT):
        at += size
        total += tl.load(at, mask=inside, other=0)
    tl.store(c + rows[:, None].to(tl.int64) * stride_cm + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


def integers(problem, config) -> dict[str, int]:
    """The integer arguments of a launch: sizes, and strides in elements."""
    lda, ldb = problem.ld("a"), problem.ld("b")
    am, ak = (lda, 1) if problem.a_major == "k" else (1, lda)
    bk, bn = (ldb, 1) if problem.b_major == "n" else (1, ldb)
    cm = problem.ld("c") if config.split_k == 1 else problem.n
    of_group = {"stride_bg": problem.stride("b")} if problem.groups else {}
    return {"m": problem.m, "n": problem.n, "k": problem.k, "stride_am": am, "stride_ak": ak, **of_group,
            "stride_bk": bk, "stride_bn": bn, "stride_cm": cm}


def constants(problem, config) -> dict:
    """The compile-time arguments."""
    return {
        "BM": config.block_m,
        "BN": config.block_n,
        "BK": config.block_k,
        "GROUP": config.group_m,
        "EVEN_K": problem.k % (config.block_k * config.split_k) == 0,
        "SPLIT": config.split_k,
        "PRECISION": "ieee" if problem.dtype == "fp32" else "tf32",
        **({"GROUPS": triton.next_power_of_2(len(problem.groups))} if problem.groups else {}),
        **({"bias": None} if config.kernel == PERSISTENT else {}),
    }


def product(problem, config):
    """The kernel that multiplies."""
    if config.kernel == PERSISTENT:
        return multiply_persistent
    return multiply_groups if problem.groups else multiply


def table(problem, config) -> list[int]:
    """The table of multiply_groups: the rows of tiles before each group, and the rows. There are as many entries as the
    next power of two and one. Those without a group begin behind the last tile, so that no program is theirs."""
    groups = triton.next_power_of_2(len(problem.groups))
    heights = [*problem.groups, *[0] * (groups - len(problem.groups))]
    tiles = itertools.accumulate((triton.cdiv(height, config.block_m) for height in heights), initial=0)
    return [*tiles, *itertools.accumulate(heights, initial=0)]


def tiles(problem, config) -> int:
    """The number of tiles of C."""
    heights = problem.groups or (problem.m,)
    return sum(triton.cdiv(height, config.block_m) for height in heights) * triton.cdiv(problem.n, config.block_n)


def programs(problem, config, processors: int) -> int:
    """The number of programs that multiply, or of those that share a tile if K is split."""
    count = tiles(problem, config)
    return min(count, processors) if config.kernel == PERSISTENT else count


def sums(problem) -> str:
    """The type of the sums over K."""
    return "int32" if problem.dtype == "int8" else "fp32"


def specialised(problem, config) -> tuple[dict, dict, dict]:
    """Signature, constants and attributes of the compilation, specialised like a launch of Triton: an integer that is 1
    is a constant, a multiple of 16 is known as such, and so is an address. One kernel thus serves many sizes."""
    aligned = {matrix: problem.align(matrix) >= DIVISOR for matrix in "abc"}
    types = {"a": problem.dtype, "b": problem.dtype, "c": problem.output}
    if config.split_k > 1:
        types["c"], aligned["c"] = sums(problem), True
    if problem.groups:
        types["table"], aligned["table"] = "int32", True
    return _specialised(product(problem, config), constants(problem, config), integers(problem, config), types, aligned)


def _specialised(function, fixed, sizes, types, aligned):
    signature, values, attributes = {}, {}, {}
    for i, name in enumerate(function.arg_names):
        if name in fixed or sizes.get(name) == 1:
            signature[name], values[(i,)] = "constexpr", fixed.get(name, 1)
            continue
        signature[name] = "i32" if name in sizes else "*" + POINTERS[types[name]]
        if sizes[name] % DIVISOR == 0 if name in sizes else aligned[name]:
            attributes[(i,)] = [["tt.divisibility", DIVISOR]]
    return signature, values, attributes


def blocks_of_sum(n: int) -> tuple[int, int]:
    """The rows and columns that a program of add_parts takes of a C with n columns."""
    columns = min(triton.next_power_of_2(n), ELEMENTS)
    return ELEMENTS // columns, columns


def constants_of_sum(problem, config) -> dict:
    """The compile-time arguments of add_parts."""
    rows, columns = blocks_of_sum(problem.n)
    return {"SPLIT": config.split_k, "ROWS": rows, "COLUMNS": columns}


def integers_of_sum(problem) -> dict[str, int]:
    """The integer arguments of add_parts."""
    return {"m": problem.m, "n": problem.n, "stride_cm": problem.ld("c")}


def specialised_sum(problem, config) -> tuple[dict, dict, dict]:
    """The same as specialised() for add_parts."""
    return _specialised(
        add_parts, constants_of_sum(problem, config), integers_of_sum(problem),
        {"parts": sums(problem), "c": problem.output}, {"parts": True, "c": problem.align("c") >= DIVISOR},
    )


def codes(problem, config):
    """The kernels of a configuration, each a function, its specialisation, and options of the compiler: the kernel that
    multiplies, and the kernel that adds up the parts if K is split."""
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    yield product(problem, config), specialised(problem, config), options
    if config.split_k > 1:
        yield add_parts, specialised_sum(problem, config), {"num_warps": 4}


def key(code) -> str:
    """Identifies code: problems and configurations with the same keys run the same kernels."""
    function, specialisation, options = code
    return f"{function.__name__} {specialisation} {options}"


def build(code, capability: int):
    """Compiles for a compute capability (90 for sm_90), or takes the result from Triton's cache on disk."""
    # Intermediate forms are not needed, for thousands of kernels.
    triton.knobs.compilation.store_binary_only = True
    function, specialisation, options = code
    target = GPUTarget("cuda", capability, 32)
    return triton.compile(ASTSource(function, *specialisation), target=target, options=options)
