"""A small network under torch.compile, with Inductor's own kernels and with origami's picks: seconds of the first call,
time of a step, and what was picked.

    python3 inductor.py [TOP]

Needs torch, an NVIDIA GPU that origami models, and liborigami (`make lib`).
"""

import pathlib
import sys
import time

import torch

sys.path.insert(
    0, str(pathlib.Path(__file__).resolve().parents[1])
)  # of a checkout; not needed where the package is installed
import origami_gemm.inductor as oi
from torch._inductor.utils import fresh_cache


def network():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(4096, 14336), torch.nn.GELU(), torch.nn.Linear(14336, 4096))
    return layers.to("cuda", torch.bfloat16)


def run(name, x):
    """Compiles and runs the network. Its result."""
    torch._dynamo.reset()
    step = torch.compile(network(), mode="max-autotune-no-cudagraphs")
    with torch.no_grad(), fresh_cache():
        begin = time.perf_counter()
        y = step(x)
        torch.cuda.synchronize()
        first = time.perf_counter() - begin
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        for _ in range(20):
            step(x)
        events[1].record()
        torch.cuda.synchronize()
    print(f"{name}: first call {first:.1f} s, then {events[0].elapsed_time(events[1]) / 20:.3f} ms")
    return y


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else "1"
    x = torch.randn(2048, 4096, device="cuda", dtype=torch.bfloat16)
    own = run("Inductor's own list", x)
    with oi.enable(top if top == "auto" else int(top)):
        ours = run(f"origami, top={top}", x)
    print(oi.report())
    torch.testing.assert_close(ours, own, rtol=2e-2, atol=2e-2)


if __name__ == "__main__":
    main()
