"""Compiles the kernel of bindings/python/examples/matmul.py with unaligned operands, without a GPU, and writes what
ptxas reports of it.

    PYTHONPATH=bindings/python python3 spills.py TARGET < configurations > rows

A configuration is a line of spills.csv up to the unaligned operands (a, b or ab) without the target, a row one of
spills.csv. Needs triton 3.6, no torch. Row-major; sizes, strides and addresses of the other operands are divisible by
16.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import types

import triton.backends.nvidia
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

sys.modules.setdefault("torch", types.ModuleType("torch"))  # which the example needs to run, not to compile
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bindings" / "python" / "examples"))
from matmul import matmul_kernel  # noqa: E402

PTXAS = pathlib.Path(triton.backends.nvidia.__file__).parent / "bin" / "ptxas"


def build(target, block_m, block_n, block_k, warps, stages, unaligned):
    """Registers per thread, and bytes of its stack, which is what it spills."""
    names = matmul_kernel.arg_names
    constants = {"BLOCK_SIZE_M": block_m, "BLOCK_SIZE_N": block_n, "BLOCK_SIZE_K": block_k, "GROUP_SIZE_M": 8,
                 "stride_ak": 1, "stride_bn": 1, "stride_cn": 1}
    signature = {
        name: "constexpr" if name in constants else "*fp16" if name.endswith("_ptr") else "i32" for name in names
    }
    odd = {"a": {"K", "stride_am"}, "b": {"N", "stride_bk", "stride_cm"}}
    divisible = set(names) - set(constants) - set().union(*(odd[operand] for operand in unaligned))
    source = ASTSource(matmul_kernel.fn, signature, {(names.index(name),): value for name, value in constants.items()},
                       {(names.index(name),): [["tt.divisibility", 16]] for name in divisible})
    compiled = triton.compile(
        source, target=GPUTarget("cuda", target, 32), options={"num_warps": warps, "num_stages": stages}
    )
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder, "kernel.ptx")
        ptx.write_text(compiled.asm["ptx"])
        command = [
            PTXAS,
            "-v",
            "--gpu-name",
            f"sm_{target}" + "a" * (target == 90),
            ptx,
            "-o",
            ptx.with_suffix(".cubin"),
        ]
        log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return int(re.search(r"Used (\d+) registers", log)[1]), int(re.search(r"(\d+) bytes stack frame", log)[1])


for line in sys.stdin:
    *numbers, unaligned = line.strip().split(",")
    print(
        sys.argv[1], *numbers, unaligned, *build(int(sys.argv[1]), *map(int, numbers), unaligned), sep=",", flush=True
    )
