"""Compiles the kernel of plugins/triton for every type, layout and alignment, without a GPU, and writes how it loads
its operands, and what ptxas reports of it.

    pip install triton==3.6.0
    PYTHONPATH=..:../../../sdk/python python gather_types.py > ../../nvidia/kernel/triton/testdata/types.csv

`async` lists the asynchronous copies of the whole kernel by width, as 8x16: eight of 16 bytes, and `loads` the loads
that are not. A copy of a K step is there once per stage: in front of the loop, and inside.
"""

import collections
import csv
import re
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from origami_triton.table import Config, Problem, assemble, kernel

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


def build(target, dtype, out_dtype, storage, block):
    trans_a, trans_b, lda, ldb = storage
    bm, bn, bk, stages, warps = block
    p = Problem(4096, 4096, 4096, dtype=dtype, out_dtype=out_dtype, a_major="m" if trans_a else "k",
                b_major="k" if trans_b else "n", lda=lda, ldb=ldb)
    source = ASTSource(kernel.multiply, *kernel.specialised(p, Config(kernel.FAMILY, bm, bn, bk, 8, warps, stages, 1)))
    options = {"num_warps": warps, "num_stages": stages}
    built = triton.compile(source, target=GPUTarget("cuda", target, 32), options=options)
    ptx = built.asm["ptx"]
    copies = re.findall(r"cp\.async\.c[ag]\.shared\.global \[[^\]]*\], \[[^\]]*\], (?:0x)?(\w+)", ptx)
    loads = re.findall(r"\bld\.global((?:\.\w+)*)", ptx)
    instructions = re.findall(r"(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)[\w.:]*", ptx)
    instruction = {re.sub(r"\.(sync|aligned|row|col)", "", text) for text in instructions}
    return [target, dtype, p.output, *storage, *block, " ".join(sorted(instruction)) or "fma",
            widths(int(c, 16) for c in copies), widths(map(load_width, loads)), *assemble(ptx, target),
            built.metadata.shared, built.metadata.tmem_size]


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow("target,dtype,out_dtype,trans_a,trans_b,lda,ldb,bm,bn,bk,stages,warps,instruction,async,loads,n_regs,"
                 "n_spills,shared,tensor_columns".split(","))
    for target in TARGETS:
        for dtype in TYPES:
            if dtype.startswith("fp8") and target < LEAST_FP8:
                continue
            kinds = [("", storage) for storage in STORAGE]
            kinds += [(out_dtype, STORAGE[1]) for of, out_dtype in OUTPUTS if of == dtype]
            for block in BLOCKS:
                if dtype != "fp32" or block[0] * block[1] <= 64 * 64:
                    for out_dtype, storage in kinds:
                        out.writerow(build(target, dtype, out_dtype, storage, block))
                        sys.stdout.flush()


if __name__ == "__main__":
    main()
