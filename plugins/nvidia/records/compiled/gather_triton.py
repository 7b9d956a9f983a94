"""Compiles a tutorial-style Triton GEMM for a target, without a GPU, and writes what ptxas reports of it.

    pip install triton==3.6.0
    python gather_triton.py TARGET [trans_a|trans_b] < configurations > rows

A configuration is a line bm,bn,bk,stages,warps,even_k; a row has the columns of triton.csv. The kernel is specialised as
Triton does for a launch with sizes and strides that 16 divides.
"""
import os
import re
import subprocess
import sys
import tempfile

import triton
import triton.backends.nvidia
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

PTXAS = os.path.join(os.path.dirname(triton.backends.nvidia.__file__), "bin", "ptxas")

# The shared memory that a CTA may use. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute
# Capability".
SHARED = {80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10}


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
         BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr, EVEN_K: tl.constexpr):
    pid = tl.program_id(0)
    grid_m = tl.cdiv(M, BM)
    grid_n = tl.cdiv(N, BN)
    width = GM * grid_n
    first_m = pid // width * GM
    size = min(grid_m - first_m, GM)
    pid_m = first_m + (pid % width) % size
    pid_n = (pid % width) // size
    rm = (pid_m * BM + tl.arange(0, BM)) % M
    rn = (pid_n * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    a = a_ptr + rm[:, None] * stride_am + rk[None, :] * stride_ak
    b = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        if EVEN_K:
            x = tl.load(a)
            y = tl.load(b)
        else:
            x = tl.load(a, mask=rk[None, :] < K - k * BK, other=0.0)
            y = tl.load(b, mask=rk[:, None] < K - k * BK, other=0.0)
        sums = tl.dot(x, y, sums)
        a += BK * stride_ak
        b += BK * stride_bk
    out = sums.to(c_ptr.dtype.element_ty)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    c = c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn
    tl.store(c, out, mask=(rm[:, None] < M) & (rn[None, :] < N))


def build(target, layout, bm, bn, bk, stages, warps, even_k):
    constants = dict(BM=bm, BN=bn, BK=bk, GM=8, EVEN_K=bool(even_k), stride_cn=1)
    constants["stride_am" if layout == "trans_a" else "stride_ak"] = 1
    constants["stride_bk" if layout == "trans_b" else "stride_bn"] = 1
    signature, attributes = {}, {}
    for i, name in enumerate(gemm.arg_names):
        if name in constants:
            signature[name] = "constexpr"
        else:
            signature[name] = "*fp16" if name.endswith("_ptr") else "i32"
            attributes[(i,)] = [("tt.divisibility", 16)]
    source = ASTSource(gemm, signature, {(gemm.arg_names.index(k),): v for k, v in constants.items()}, attributes)
    return triton.compile(source, target=GPUTarget("cuda", target, 32), options=dict(num_warps=warps, num_stages=stages))


def assemble(ptx, target):
    """Returns the registers per thread and the bytes of stack."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "k.ptx")
        with open(name, "w") as f:
            f.write(ptx)
        arch = f"sm_{target}a" if target == 90 else f"sm_{target}"
        log = subprocess.run([PTXAS, "-lineinfo", "-v", "--gpu-name", arch, name, "-o", name + ".o"], capture_output=True, text=True, check=True).stderr
    return int(re.search(r"Used (\d+) registers", log)[1]), int(re.search(r"(\d+) bytes stack frame", log)[1])


def main():
    target = int(sys.argv[1])
    layout = sys.argv[2] if len(sys.argv) > 2 else ""
    for line in sys.stdin:
        bm, bn, bk, stages, warps, even_k = (int(v) for v in line.split(","))
        kernel = build(target, layout, bm, bn, bk, stages, warps, even_k)
        registers, stack = assemble(kernel.asm["ptx"], target)
        shared = kernel.metadata.shared
        status = "ok" if shared <= SHARED[target] else "OutOfResources"
        # The driver rounds the local memory of a thread up to eight bytes; n_spills counts words of it.
        words = (stack + 7) // 8 * 2
        print(target, bm, bn, bk, stages, warps, 8, even_k, registers, words, shared, status,
              int(layout == "trans_a"), int(layout == "trans_b"), sep=",", flush=True)


if __name__ == "__main__":
    main()
