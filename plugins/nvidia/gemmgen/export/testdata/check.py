"""Runs exported fp16 kernels, row-major, through their Python launchers on tensors of PyTorch.

    python3 check.py FOLDER M N K [BETA [EPILOGUE]]
"""

import glob
import importlib.util
import os
import sys

import torch

folder, m, n, k = sys.argv[1], *map(int, sys.argv[2:5])
beta = float(sys.argv[5]) if len(sys.argv) > 5 else 0.0
epilogue = sys.argv[6].split("+") if len(sys.argv) > 6 else []
torch.manual_seed(1)
a, b, old = (torch.randint(-1, 2, s, device="cuda").half() for s in ((m, k), (k, n), (m, n)))
bias = torch.randint(-2, 3, (n,), device="cuda").half()
want = 2 * (a.double() @ b.double()) + beta * old.double()
if "bias" in epilogue:
    want += bias.double()
activations = {
    "relu": torch.relu, "silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu,
    "relu2": lambda x: torch.relu(x).square(), "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}
for name in epilogue:
    want = activations.get(name, lambda x: x)(want)
exact = set(epilogue) <= {"bias", "relu"}
for path in sorted(glob.glob(os.path.join(folder, "*.py"))):
    spec = importlib.util.spec_from_file_location("gemm", path)
    gemm = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gemm)
    kernel = gemm.Kernel()
    for run in range(2):
        c = old.clone()
        kernel(a, b, c, *([bias] if "bias" in epilogue else []), alpha=2, beta=beta, stream=torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        off = (c.double() - want).abs()
        wrong = int((off > (0 if exact else 0.001 * (1 + want.abs()))).sum())
        print(f"{gemm.NAME}: run {run}, {wrong} of {m * n} elements are wrong")
        if wrong:
            sys.exit(1)
