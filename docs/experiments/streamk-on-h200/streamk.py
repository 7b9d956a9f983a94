"""A stream-K GEMM in Triton (Osama et al., Stream-K, PPoPP 2023).

A launch has `programs` programs that share the K steps of the first `shared` tiles evenly, and one for each tile
after them. A program takes its steps from the last to the first. So it first computes the beginning of a tile that a
later program ends, stores those sums, and goes on. Only its last tile can need the sums of other programs, which are
all earlier ones. The device starts programs in order, so every wait ends, whatever fits on the device at a time.

The sums of a shared tile are added in one of two ways, always in the same order:

flags: the program that ends a tile waits for the flag of each earlier one and adds its sums. It clears the flag again.
launch: every program stores its sums, and a second kernel adds them up.

The check of all this needs no GPU:

    TRITON_INTERPRET=1 python3 streamk.py
"""

import pathlib
import sys

import torch
import triton
import triton.language as tl

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(REPOSITORY / folder) for folder in ("plugins/triton", "sdk/python", "bindings/python")]
from origami_gemm_plugin import Config, Problem  # noqa: E402
from origami_triton import kernel  # noqa: E402

# The elements of C that a program of add_shared sums up, and its warps.
ELEMENTS, SUM_WARPS = 1024, 4


@triton.jit
def stream(a, b, c, parts, flags, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, shared, programs,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EVEN_K: tl.constexpr,
           FLAGS: tl.constexpr):
    tiles_m, tiles_n, steps = tl.cdiv(m, BM), tl.cdiv(n, BN), tl.cdiv(k, BK)
    pid = tl.program_id(0)
    each, more = shared * steps // programs, shared * steps % programs
    begin = pid * each + min(pid, more)
    end = begin + each + (pid < more).to(tl.int32)
    if pid >= programs:
        begin = (shared + pid - programs) * steps
        end = begin + steps
    inner = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    while end > begin:
        tile = (end - 1) // steps
        start = max(begin, tile * steps)
        skipped = start - tile * steps
        # The order of tiles is that of the kernel `multiply`.
        first = tile // (GROUP * tiles_n) * GROUP
        height = min(tiles_m - first, GROUP)
        inside = tile % (GROUP * tiles_n)
        row, column = first + inside % height, inside // height
        rows = (row * BM + tl.arange(0, BM)) % m
        columns = (column * BN + tl.arange(0, BN)) % n
        depth = skipped * BK + tl.arange(0, BK)
        at_a = a + rows[:, None] * stride_am + depth[None, :] * stride_ak
        at_b = b + depth[:, None] * stride_bk + columns[None, :] * stride_bn
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(0, end - start):
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
        ends = end == (tile + 1) * steps
        if FLAGS:
            other, at = pid, start
            if ends:
                while at > tile * steps:
                    other -= 1
                    while tl.atomic_add(flags + other, 0, sem="acquire") == 0:
                        pass
                    total += tl.load(parts + other.to(tl.int64) * (BM * BN) + inner, cache_modifier=".cg")
                    tl.atomic_xchg(flags + other, 0, sem="relaxed")
                    at = other * each + min(other, more)
            stores = ends
        else:
            stores = ends & (skipped == 0)
        if stores:
            rows = row * BM + tl.arange(0, BM)
            columns = column * BN + tl.arange(0, BN)
            valid = (rows[:, None] < m) & (columns[None, :] < n)
            at_c = c + rows[:, None].to(tl.int64) * stride_cm + columns[None, :]
            tl.store(at_c, total.to(c.dtype.element_ty), mask=valid)
        else:
            # A program has at most one part that does not end its tile, and one that only ends it.
            slot = pid + programs * ends.to(tl.int32)
            tl.store(parts + slot.to(tl.int64) * (BM * BN) + inner, total)
            if FLAGS:
                tl.debug_barrier()
                tl.atomic_xchg(flags + pid, 1, sem="release")
        end = start


@triton.jit
def program_of(step, each, more):
    # The program that takes a step of the shared tiles.
    large = more * (each + 1)
    return tl.where(step < large, step // (each + 1), more + (step - large) // max(each, 1))


@triton.jit
def add_shared(parts, c, m, n, k, stride_cm, shared, programs, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
               GROUP: tl.constexpr, ROWS: tl.constexpr):
    # Adds up the sums of a shared tile that several programs computed, ROWS rows of it.
    tiles_m, tiles_n, steps = tl.cdiv(m, BM), tl.cdiv(n, BN), tl.cdiv(k, BK)
    each, more = shared * steps // programs, shared * steps % programs
    tile = tl.program_id(0)
    begins = program_of(tile * steps, each, more)
    ends = program_of((tile + 1) * steps - 1, each, more)
    if begins < ends:
        first = tile // (GROUP * tiles_n) * GROUP
        height = min(tiles_m - first, GROUP)
        inside = tile % (GROUP * tiles_n)
        row, column = first + inside % height, inside // height
        within = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
        inner = within[:, None] * BN + tl.arange(0, BN)[None, :]
        total = tl.load(parts + (programs + ends).to(tl.int64) * (BM * BN) + inner)
        for other in range(begins, ends):
            total += tl.load(parts + tl.cast(other, tl.int64) * (BM * BN) + inner)
        rows = row * BM + within
        columns = column * BN + tl.arange(0, BN)
        valid = (rows[:, None] < m) & (columns[None, :] < n)
        at_c = c + rows[:, None].to(tl.int64) * stride_cm + columns[None, :]
        tl.store(at_c, total.to(c.dtype.element_ty), mask=valid)


def tiles_of(p, c):
    return triton.cdiv(p.m, c.block_m) * triton.cdiv(p.n, c.block_n)


def shared_tiles(p, c, programs, two):
    """The number of shared tiles: those beyond whole waves of `programs` tiles, which is all if they fill no wave. With
    `two`, the two-tile hybrid, those of one wave more. None if there are none, or too few steps to share."""
    tiles = tiles_of(p, c)
    shared = tiles % programs + two * programs
    if tiles % programs == 0 or shared > tiles or shared * triton.cdiv(p.k, c.block_k) < 2 * programs:
        return None
    return shared


def constants(p, c, flags):
    return {"BM": c.block_m, "BN": c.block_n, "BK": c.block_k, "GROUP": c.group_m, "EVEN_K": p.k % c.block_k == 0,
            "FLAGS": flags}


def constants_of_sum(c):
    return {"BM": c.block_m, "BN": c.block_n, "BK": c.block_k, "GROUP": c.group_m,
            "ROWS": min(c.block_m, ELEMENTS // c.block_n)}


def build(p, c, flags, capability):
    """Compiles both kernels, specialised like those of the executor. Returns the second one only if it is needed."""
    types = {"a": "fp16", "b": "fp16", "c": "fp16", "parts": "fp32", "flags": "int32"}
    aligned = {name: True for name in types}
    sizes = kernel.integers(p, c)
    # Their value differs from launch to launch, so that Triton must not know what divides it. 7 stands for them all.
    spread = {"shared": 7, "programs": 7}
    options = {"num_warps": c.num_warps, "num_stages": c.num_stages}
    if c.num_warps == 8 and c.block_m * c.block_n <= 128 * 128:
        options["maxnreg"] = 128  # so that two CTAs fit on an SM, as those of `multiply` do
    special = kernel._specialised(stream, constants(p, c, flags), sizes | spread, types, aligned)
    first = kernel._compile(stream, special, capability, options)
    if flags:
        return first, None
    some = {name: sizes[name] for name in ("m", "n", "k", "stride_cm")} | spread
    special = kernel._specialised(add_shared, constants_of_sum(c), some, types, aligned)
    return first, kernel._compile(add_shared, special, capability, {"num_warps": SUM_WARPS})


def launcher(p, c, a, b, out, parts, flags, programs, shared, first, second):
    """A function that launches. `flags` are zero, and None if a second kernel adds up."""
    tiles = tiles_of(p, c)
    sizes = kernel.integers(p, c)
    launch = first[programs + tiles - shared, 1, 1]
    # Without flags, any pointer will do.
    pointers = (a, b, out, parts, parts if flags is None else flags)
    fixed = constants(p, c, flags is not None)
    arguments = (*pointers, *sizes.values(), shared, programs, *fixed.values())
    if second is None:
        return lambda: launch(*arguments)
    fixed = constants_of_sum(c)
    launch_sum = second[shared, c.block_m // fixed["ROWS"], 1]
    of_sum = (parts, out, p.m, p.n, p.k, sizes["stride_cm"], shared, programs, *fixed.values())

    def run():
        launch(*arguments)
        launch_sum(*of_sum)

    return run


def room(c, programs):
    """The elements of `parts`."""
    return 2 * programs * c.block_m * c.block_n


def check():
    """Multiplies small integers in Triton's interpreter. Every element of every result is compared."""
    random = torch.Generator().manual_seed(1)
    done = 0
    for m, n, k in ((48, 80, 96), (64, 64, 512), (33, 50, 70), (16, 16, 640), (96, 160, 32)):
        p, c = Problem(m, n, k), Config(kernel.FAMILY, 16, 32, 16, 2, 4, 2)
        a = torch.randint(-3, 4, (m, k), generator=random).half()
        b = torch.randint(-3, 4, (k, n), generator=random).half()
        want = (a.double() @ b.double()).half()
        for programs in (1, 2, 3, 5, 7, 13, 24):
            for two in (False, True):
                shared = shared_tiles(p, c, programs, two)
                if shared is None:
                    continue
                for by_flags in (True, False):
                    parts = torch.full((room(c, programs),), float("nan"))
                    out = torch.full((m, n), float("nan"), dtype=torch.float16)
                    flags = torch.zeros(programs, dtype=torch.int32) if by_flags else None
                    launcher(p, c, a, b, out, parts, flags, programs, shared, stream,
                             None if by_flags else add_shared)()
                    what = f"{m}x{n}x{k}, {programs} programs, {shared} shared tiles, flags {by_flags}"
                    assert torch.equal(out, want), what
                    assert flags is None or not flags.any(), f"a flag is left set: {what}"
                    done += 1
    print(f"{done} launches right")


if __name__ == "__main__":
    check()
