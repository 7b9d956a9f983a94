"""Compiles the kernels of plugins/triton without a GPU, and writes what Triton and ptxas make of them.

    pip install triton==3.6.0
    python gather.py resources TARGET [trans_a|trans_b] < configurations   # rows of compiled/triton.csv in plugins/nvidia/data
    python gather.py types > ../../nvidia/kernel/triton/testdata/types.csv
    python gather.py loops [triton_persistent] < configurations            # the K loop in SASS, for sm_90

resources  a configuration is a line bm,bn,bk,stages,warps,even_k
types      every type, layout and alignment: `async` lists the asynchronous copies of the whole kernel by width, as 8x16:
           eight of 16 bytes, and `loads` the loads that are not. A copy of a K step is there once per stage: in front of the
           loop, and inside
loops      a configuration is a line dtype,trans_a,trans_b,bm,bn,bk,stages,warps,even_k. A row has of the loop: its
           instructions, those from the first asynchronous copy to the last, the matrix instructions, and the waits for
           matrix instructions. More than one wait means that ptxas serialised wgmma

Kernels are specialised as Triton does for a launch with sizes and strides that 16 divides.
"""

import collections
import concurrent.futures
import csv
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
from origami_gemm.pin import cubin  # noqa: E402
from origami_gemm_plugin import Config, Problem  # noqa: E402
from origami_triton import kernel  # noqa: E402

OUT = csv.writer(sys.stdout, lineterminator="\n")
# The shared memory that a CTA may use. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute
# Capability".
SHARED = {80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10, 100: 227 << 10, 103: 227 << 10}
MATRIX = re.compile("HGMMA|QGMMA|IGMMA|HMMA|IMMA|QMMA")


def compiled(problem, target, blocks, family=kernel.FAMILY, even_k=None):
    """A kernel, its registers and the bytes of a thread's stack. blocks are bm, bn, bk, stages and warps."""
    bm, bn, bk, stages, warps = blocks
    config = Config(family, bm, bn, bk, 8, warps, stages, 1)
    function, (signature, constants, attributes) = kernel.product(problem, config), kernel.specialised(problem, config)
    if even_k is not None:
        constants[function.arg_names.index("EVEN_K"),] = even_k
    built = triton.compile(ASTSource(function, signature, constants, attributes), target=GPUTarget("cuda", target, 32),
                           options={"num_warps": warps, "num_stages": stages})
    return built, *cubin.resources(built.asm["cubin"], built.metadata.name)


def problem(dtype="fp16", trans_a=0, trans_b=0, **more):
    return Problem(4096, 4096, 4096, dtype=dtype, a_major="m" if trans_a else "k", b_major="k" if trans_b else "n", **more)


def resources(target, layout=""):
    trans_a, trans_b = int(layout == "trans_a"), int(layout == "trans_b")
    for line in sys.stdin:
        *blocks, even_k = (int(v) for v in line.split(","))
        built, registers, stack = compiled(problem("fp16", trans_a, trans_b), int(target), blocks, even_k=bool(even_k))
        status = "ok" if built.metadata.shared <= SHARED[int(target)] else "OutOfResources"
        # The driver rounds the local memory of a thread up to eight bytes; n_spills counts words of it.
        OUT.writerow([target, *blocks, 8, even_k, registers, (stack + 7) // 8 * 2, built.metadata.shared, status, trans_a,
                      trans_b])
        sys.stdout.flush()


TARGETS = (90, 80, 100, 103)
LEAST_FP8 = 89
# block_m, block_n, block_k, stages, warps. fp32 has no matrix instruction, and large blocks of it take long to compile.
BLOCKS = ((16, 64, 64, 3, 4), (128, 128, 64, 3, 8), (64, 64, 32, 4, 4))
# trans_a, trans_b, lda, ldb
STORAGE = ((0, 0, 0, 0), (0, 1, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0),
           (0, 0, 4104, 0), (0, 0, 0, 4104), (0, 1, 0, 4104), (1, 0, 4104, 0))
TYPES = ("fp16", "fp8", "int8", "tf32", "fp8_e5m2", "fp32")
OUTPUTS = (("fp16", "fp32"), ("fp8", "fp32"), ("fp8", "bf16"))


def widths(found):
    counts = collections.Counter(found)
    return " ".join(f"{number}x{width}" for width, number in sorted(counts.items()))


def load_width(modifiers):
    """The bytes of a ld.global with modifiers such as .v4.b32."""
    vector, bits = re.search(r"\.v(\d)", modifiers), re.search(r"\.[busf](\d+)", modifiers)
    return (int(vector[1]) if vector else 1) * int(bits[1]) // 8


def of_type(target, dtype, out_dtype, storage, blocks):
    trans_a, trans_b, lda, ldb = storage
    p = problem(dtype, trans_a, trans_b, out_dtype=out_dtype, lda=lda, ldb=ldb)
    built, *taken = compiled(p, target, blocks)
    ptx = built.asm["ptx"]
    copies = re.findall(r"cp\.async\.c[ag]\.shared\.global \[[^\]]*\], \[[^\]]*\], (?:0x)?(\w+)", ptx)
    loads = re.findall(r"\bld\.global((?:\.\w+)*)", ptx)
    instructions = re.findall(r"(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)[\w.:]*", ptx)
    instruction = {re.sub(r"\.(sync|aligned|row|col)", "", text) for text in instructions}
    return [target, dtype, p.output, *storage, *blocks, " ".join(sorted(instruction)) or "fma",
            widths(int(c, 16) for c in copies), widths(map(load_width, loads)), *taken, built.metadata.shared,
            built.metadata.tmem_size]


def types():
    OUT.writerow("target,dtype,out_dtype,trans_a,trans_b,lda,ldb,bm,bn,bk,stages,warps,instruction,async,loads,n_regs,"
                 "n_spills,shared,tensor_columns".split(","))
    for target in TARGETS:
        for dtype in TYPES:
            if dtype.startswith("fp8") and target < LEAST_FP8:
                continue
            kinds = [("", storage) for storage in STORAGE]
            kinds += [(out_dtype, STORAGE[1]) for of, out_dtype in OUTPUTS if of == dtype]
            for blocks in BLOCKS:
                if dtype != "fp32" or blocks[0] * blocks[1] <= 64 * 64:
                    for out_dtype, storage in kinds:
                        OUT.writerow(of_type(target, dtype, out_dtype, storage, blocks))
                        sys.stdout.flush()


def innermost(sass):
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
            if any(map(MATRIX.match, names)) and (not found or len(names) < len(found)):
                found = names
    return found


def of_loop(family, line):
    dtype, *numbers = line.split(",")
    trans_a, trans_b, *blocks, even_k = map(int, numbers)
    try:
        built, registers, stack = compiled(problem(dtype, trans_a, trans_b), 90, blocks, family, even_k == 1)
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(built.asm["cubin"])
            file.flush()
            tool = os.path.join(os.path.dirname(triton.backends.nvidia.__file__), "bin", "nvdisasm")
            names = innermost(subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout)
    except Exception as failure:  # noqa: BLE001
        return [*line.split(","), *[""] * 7, type(failure).__name__]
    copies = [number for number, name in enumerate(names) if name.startswith("LDGSTS")]
    return [*line.split(","), registers, stack // 4, built.metadata.shared, len(names),
            copies[-1] - copies[0] + 1 if copies else 0, sum(map(bool, map(MATRIX.match, names))),
            sum(name.startswith("WARPGROUP.DEPBAR") for name in names), "ok"]


def loops(family=kernel.FAMILY):
    lines = sys.stdin.read().split()
    OUT.writerow("dtype,trans_a,trans_b,bm,bn,bk,stages,warps,even_k,n_regs,n_spills,shared,loop,copying,matrix,waits,status"
                 .split(","))
    with concurrent.futures.ProcessPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        for row in pool.map(of_loop, [family] * len(lines), lines, chunksize=8):
            OUT.writerow(row)
            sys.stdout.flush()


if __name__ == "__main__":
    {"resources": resources, "types": types, "loops": loops}[sys.argv[1]](*sys.argv[2:])
