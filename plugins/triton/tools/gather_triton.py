"""Compiles the kernel of plugins/triton for a target, without a GPU, and writes what ptxas reports of it.

    pip install triton==3.6.0
    python gather_triton.py TARGET [trans_a|trans_b] < configurations > rows

A configuration is a line bm,bn,bk,stages,warps,even_k; a row has the columns of triton.csv. The kernel is specialised
as Triton does for a launch with sizes and strides that 16 divides.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import triton
import triton.backends.nvidia
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(REPOSITORY / folder) for folder in ("plugins/triton", "sdk/python", "bindings/python")]
from origami_gemm_plugin import Config, Problem  # noqa: E402
from origami_triton import kernel  # noqa: E402

TOOLS = os.path.join(os.path.dirname(triton.backends.nvidia.__file__), "bin")

# The shared memory that a CTA may use. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute
# Capability".
SHARED = {80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10, 100: 227 << 10, 103: 227 << 10}


def build(target, layout, bm, bn, bk, stages, warps, even_k):
    major = {"trans_a": {"a_major": "m"}, "trans_b": {"b_major": "k"}}.get(layout, {})
    signature, constants, attributes = kernel.specialised(
        Problem(4096, 4096, 4096, **major), Config(kernel.FAMILY, bm, bn, bk, 8, warps, stages, 1)
    )
    constants[kernel.multiply.arg_names.index("EVEN_K"),] = bool(even_k)
    source = ASTSource(kernel.multiply, signature, constants, attributes)
    return triton.compile(
        source, target=GPUTarget("cuda", target, 32), options=dict(num_warps=warps, num_stages=stages)
    )


def assemble(ptx, target):
    """Returns the registers per thread and the bytes of stack."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "k.ptx")
        with open(name, "w") as f:
            f.write(ptx)
        arch = f"sm_{target}a" if target in (90, 100, 103) else f"sm_{target}"
        log = subprocess.run(
            [os.path.join(TOOLS, "ptxas-blackwell" if target >= 100 else "ptxas"), "-lineinfo", "-v", "--gpu-name", arch, name, "-o", name + ".o"],
            capture_output=True,
            text=True,
            check=True,
        ).stderr
    return int(re.search(r"Used (\d+) registers", log)[1]), int(re.search(r"(\d+) bytes stack frame", log)[1])


def main():
    target = int(sys.argv[1])
    layout = sys.argv[2] if len(sys.argv) > 2 else ""
    for line in sys.stdin:
        bm, bn, bk, stages, warps, even_k = (int(v) for v in line.split(","))
        built = build(target, layout, bm, bn, bk, stages, warps, even_k)
        registers, stack = assemble(built.asm["ptx"], target)
        shared = built.metadata.shared
        status = "ok" if shared <= SHARED[target] else "OutOfResources"
        # The driver rounds the local memory of a thread up to eight bytes; n_spills counts words of it.
        words = (stack + 7) // 8 * 2
        print(target, bm, bn, bk, stages, warps, 8, even_k, registers, words, shared, status,
              int(layout == "trans_a"), int(layout == "trans_b"), sep=",", flush=True)


if __name__ == "__main__":
    main()
