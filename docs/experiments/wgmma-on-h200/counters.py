"""Launches exported row-by-row fp16 kernels on random matrices, for a profiler to read the hardware counters.

    ncu --section SpeedOfLight --section MemoryWorkloadAnalysis --section WarpStateStats --csv --page raw \
        python3 counters.py FOLDER M N K

A is M×K and B N×K, both contiguous along K, as kernels exported with --trans-b take them.
"""

import glob
import importlib.util
import os
import sys

import torch

folder, m, n, k = sys.argv[1], *map(int, sys.argv[2:5])
a, b = (torch.randn(s, device="cuda", dtype=torch.half) for s in ((m, k), (n, k)))
c = torch.empty(m, n, device="cuda", dtype=torch.half)
want = a.float() @ b.float().t()
for path in sorted(glob.glob(os.path.join(folder, "*.py"))):
    spec = importlib.util.spec_from_file_location("gemm", path)
    gemm = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gemm)
    c.fill_(float("nan"))
    gemm.Kernel()(a, b, c, stream=torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    off = float((c.float() - want).abs().max() / want.abs().max())
    print(f"{gemm.NAME}: largest error {off:.1e}", file=sys.stderr)
    if not off < 2e-3:
        sys.exit(1)
