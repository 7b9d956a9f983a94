"""Writes what ptxas reports of the Triton kernels of this machine's Triton, without a GPU: the file of --compiled.

    origami-plugin-triton table ARCH [CONFIGURATIONS] [trans_a|trans_b] > table.csv
    origami --arch ARCH select --compiled table.csv -m 4096 -n 4096 -k 4096

ARCH is as in sm89. CONFIGURATIONS is a CSV file (- for stdin) with the columns block_m, block_n, block_k, num_stages,
num_warps and perhaps even_k, as `origami rank --format csv` also writes them; without it, the 150 tiles of tritonBLAS
with 8 warps and 2 stages. Kernels are fp16, specialised as Triton does for a launch with sizes and strides that 16
divides. A process per core compiles. It needs triton, and no torch.
"""

import csv
import itertools
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile

import triton
import triton.backends.nvidia
from origami_gemm_plugin import Config, Problem
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from . import kernel

TOOLS = os.path.join(os.path.dirname(triton.backends.nvidia.__file__), "bin")
COLUMNS = "target,bm,bn,bk,stages,warps,gm,even_k,n_regs,n_spills,shared,status,trans_a,trans_b"
NAMES = ("block_m", "block_n", "block_k", "num_stages", "num_warps")
TILES, DEPTHS = (16, 32, 64, 128, 256), (16, 32, 64, 128, 256, 512)

# The shared memory that a CTA may use. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute
# Capability".
SHARED = {75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10, 100: 227 << 10, 103: 227 << 10,
          120: 99 << 10, 121: 99 << 10}


def build(target, layout, bm, bn, bk, stages, warps, even_k):
    major = {"trans_a": {"a_major": "m"}, "trans_b": {"b_major": "k"}}.get(layout, {})
    signature, constants, attributes = kernel.specialised(
        Problem(4096, 4096, 4096, **major), Config(kernel.FAMILY, bm, bn, bk, 8, warps, stages, 1)
    )
    constants[kernel.multiply.arg_names.index("EVEN_K"),] = bool(even_k)
    source = ASTSource(kernel.multiply, signature, constants, attributes)
    # kernel.build leaves a binary alone in Triton's cache, without the PTX that assemble reads.
    triton.knobs.compilation.always_compile, triton.knobs.compilation.store_binary_only = True, False
    return triton.compile(
        source, target=GPUTarget("cuda", target, 32), options=dict(num_warps=warps, num_stages=stages)
    )


def assemble(ptx, target):
    """Returns the registers per thread and the bytes of stack."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "k.ptx")
        with open(name, "w") as f:
            f.write(ptx)
        arch = f"sm_{target}a" if target >= 90 else f"sm_{target}"
        log = subprocess.run(
            [os.path.join(TOOLS, "ptxas-blackwell" if target >= 100 else "ptxas"), "-lineinfo", "-v", "--gpu-name", arch, name, "-o", name + ".o"],
            capture_output=True,
            text=True,
            check=True,
        ).stderr
    return int(re.search(r"Used (\d+) registers", log)[1]), int(re.search(r"(\d+) bytes stack frame", log)[1])


def row(job):
    target, layout, *config, even_k = job
    try:
        built = build(*job)
        registers, stack = assemble(built.asm["ptx"], target)
        shared = built.metadata.shared
        status = "ok" if shared <= SHARED[target] else "OutOfResources"
    except Exception as error:  # whatever the compiler raises: the kernel does not build
        registers, stack, shared, status = 0, 0, 0, type(error).__name__
    # The driver rounds the local memory of a thread up to eight bytes; n_spills counts words of it.
    return [target, *config, 8, even_k, registers, (stack + 7) // 8 * 2, shared, status, int(layout == "trans_a"),
            int(layout == "trans_b")]


def main(arguments):
    arch, file, layout, *_ = [*arguments, "", "", ""]
    target = int(arch[2:]) if re.fullmatch(r"sm\d+", arch) else 0
    if target not in SHARED:
        raise SystemExit(__doc__ if not arch else f"origami-plugin-triton table: no architecture {arch!r}; use one of "
                         + ", ".join(f"sm{cc}" for cc in SHARED))
    if file in ("trans_a", "trans_b"):
        file, layout = "", file
    configs = [[*c, 2, 8, 1] for c in itertools.product(TILES, TILES, DEPTHS)]
    if file:
        try:
            with (sys.stdin if file == "-" else open(file, newline="")) as lines:
                configs = [[int(r.get(n) or r["config." + n]) for n in NAMES] + [int(r.get("even_k") or 1)]
                           for r in csv.DictReader(lines)]
        except (OSError, KeyError, ValueError) as error:
            raise SystemExit(f"origami-plugin-triton table: {file}: {error!r}; give a CSV file with the columns "
                             + ", ".join(NAMES)) from error
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(COLUMNS.split(","))
    with multiprocessing.get_context("fork").Pool() as pool:
        for one in pool.imap(row, dict.fromkeys((target, layout, *c) for c in configs)):
            out.writerow(one)
            sys.stdout.flush()
