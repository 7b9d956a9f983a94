"""The kernel of the family `triton`, and the properties of a problem and a configuration that determine its code. It
needs no GPU."""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

FAMILY = "triton"


@triton.jit
def multiply(a, b, c, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
             BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EVEN_K: tl.constexpr):
    # One tile of C per program, GROUP rows of tiles before the next column.
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    pid = tl.program_id(0)
    first = pid // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    inside = pid % (GROUP * tiles_n)
    row, column = first + inside % height, inside // height
    rows = (row * BM + tl.arange(0, BM)) % m
    columns = (column * BN + tl.arange(0, BN)) % n
    depth = tl.arange(0, BK)
    at_a = a + rows[:, None] * stride_am + depth[None, :] * stride_ak
    at_b = b + depth[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BK)):
        if EVEN_K:
            x = tl.load(at_a)
            y = tl.load(at_b)
        else:
            left = k - step * BK
            x = tl.load(at_a, mask=depth[None, :] < left, other=0.0)
            y = tl.load(at_b, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(x, y, total)
        at_a += BK * stride_ak
        at_b += BK * stride_bk
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None].to(tl.int64) * stride_cm + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


def integers(problem) -> dict[str, int]:
    """The integer arguments of a launch: sizes, and strides in elements."""
    m, n, k = problem.m, problem.n, problem.k
    am, ak = (k, 1) if problem.a_major == "k" else (1, m)
    bk, bn = (n, 1) if problem.b_major == "n" else (1, k)
    return {"m": m, "n": n, "k": k, "stride_am": am, "stride_ak": ak, "stride_bk": bk, "stride_bn": bn, "stride_cm": n}


def constants(problem, config) -> dict:
    """The compile-time arguments."""
    return {
        "BM": config.block_m,
        "BN": config.block_n,
        "BK": config.block_k,
        "GROUP": config.group_m,
        "EVEN_K": problem.k % config.block_k == 0,
    }


def specialised(problem, config) -> tuple[dict, dict, dict]:
    """Signature, constants and attributes of the compilation, specialised like a launch of Triton: an integer that is 1
    is a constant, a multiple of 16 is known as such, and pointers are aligned. One kernel thus serves many sizes."""
    fixed = constants(problem, config)
    signature, values, attributes = {}, {}, {}
    sizes = integers(problem)
    for i, name in enumerate(multiply.arg_names):
        if name in fixed or sizes.get(name) == 1:
            signature[name], values[(i,)] = "constexpr", fixed.get(name, 1)
        elif name in sizes:
            signature[name] = "i32"
            if sizes[name] % 16 == 0:
                attributes[(i,)] = [["tt.divisibility", 16]]
        else:
            signature[name] = "*" + problem.dtype
            attributes[(i,)] = [["tt.divisibility", 16]]
    return signature, values, attributes


def key(problem, config) -> str:
    """Identifies the code: problems and configurations with the same key run the same kernel."""
    return f"{specialised(problem, config)} {config.num_warps} {config.num_stages}"


def build(problem, config, capability: int):
    """Compiles for a compute capability (90 for sm_90), or takes the result from Triton's cache on disk."""
    signature, values, attributes = specialised(problem, config)
    source = ASTSource(multiply, signature, values, attributes)
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    # Intermediate forms are not needed, for thousands of kernels.
    triton.knobs.compilation.store_binary_only = True
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
