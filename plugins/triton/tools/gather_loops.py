"""Compiles a kernel of plugins/triton for sm_90, without a GPU, and writes what the assembler makes of its K loop.

    pip install triton==3.6.0
    PYTHONPATH=..:../../../sdk/python python gather_loops.py [triton_persistent] < configurations > rows

A configuration is a line dtype,trans_a,trans_b,bm,bn,bk,stages,warps,even_k. A row repeats it, then has registers per
thread, spilled registers, shared memory, and of the loop in SASS: its instructions, those from the first asynchronous
copy to the last, the matrix instructions, and the waits for matrix instructions. More than one wait means that ptxas
serialised wgmma. Sizes and strides are multiples of 16.
"""

import concurrent.futures
import csv
import os
import re
import subprocess
import sys
import tempfile

import triton
import triton.backends.nvidia

from origami_triton.table import Config, Problem, kernel
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TOOLS = os.path.join(os.path.dirname(triton.backends.nvidia.__file__), "bin")
TARGET = 90
FAMILY = sys.argv[1] if len(sys.argv) > 1 else kernel.FAMILY
REGISTER_BYTES = 4


def tool(name, *arguments):
    return subprocess.run([os.path.join(TOOLS, name), *arguments], capture_output=True, text=True, check=True).stdout


def loop(sass):
    """The instructions of the innermost loop that has matrix instructions."""
    labels, found = {}, []
    lines = [line.strip() for line in sass.splitlines()]
    for number, line in enumerate(lines):
        if label := re.match(r"(\.L_x_\d+):", line):
            labels[label[1]] = number
        branch = re.search(r"BRA.*`\((\.L_x_\d+)\)", line)
        if branch and branch[1] in labels:
            body = [re.search(r"\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", text) for text in lines[labels[branch[1]]:number + 1]]
            names = [name[1] for name in body if name]
            if any(re.match("HGMMA|QGMMA|IGMMA|HMMA|IMMA|QMMA", name) for name in names):
                if not found or len(names) < len(found):
                    found = names
    return found


def facts(line):
    dtype, trans_a, trans_b, bm, bn, bk, stages, warps, even_k = line.split(",")
    problem = Problem(4096, 4096, 4096, dtype=dtype, a_major="m" if trans_a == "1" else "k",
                      b_major="k" if trans_b == "1" else "n")
    config = Config(FAMILY, int(bm), int(bn), int(bk), 8, int(warps), int(stages), 1)
    signature, constants, attributes = kernel.specialised(problem, config)
    function = kernel.product(problem, config)
    constants[function.arg_names.index("EVEN_K"),] = even_k == "1"
    try:
        built = triton.compile(ASTSource(function, signature, constants, attributes),
                               target=GPUTarget("cuda", TARGET, 32),
                               options=dict(num_warps=int(warps), num_stages=int(stages)))
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(built.asm["cubin"])
            file.flush()
            usage = tool("cuobjdump", "--dump-resource-usage", file.name)
            names = loop(tool("nvdisasm", "-c", file.name))
    except Exception as failure:  # noqa: BLE001
        return [line, "", "", "", "", "", "", "", type(failure).__name__]
    copies = [number for number, name in enumerate(names) if name.startswith("LDGSTS")]
    matrix = [name for name in names if re.match("HGMMA|QGMMA|IGMMA|HMMA|IMMA|QMMA", name)]
    return [line, int(re.search(r"REG:(\d+)", usage)[1]), int(re.search(r"STACK:(\d+)", usage)[1]) // REGISTER_BYTES,
            built.metadata.shared, len(names), copies[-1] - copies[0] + 1 if copies else 0, len(matrix),
            sum(name.startswith("WARPGROUP.DEPBAR") for name in names), "ok"]


def main():
    triton.knobs.compilation.store_binary_only = True
    lines = sys.stdin.read().split()
    out = sys.stdout
    out.write("dtype,trans_a,trans_b,bm,bn,bk,stages,warps,even_k,n_regs,n_spills,shared,loop,copying,matrix,waits,status\n")
    with concurrent.futures.ProcessPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        for row in pool.map(facts, lines, chunksize=8):
            out.write(",".join(map(str, row)) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
