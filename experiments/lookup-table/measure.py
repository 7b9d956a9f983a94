"""A model of Llama's form under torch.compile four ways: plain, max-autotune, origami's enable(), and a file that
origami_gemm.inductor.pin() wrote, in processes without origami. Time of the first call with empty caches and with full
ones, time of a step, error.

    python3 experiments/run.py lookup-table [--layers 8] [--turns 3]

Needs an NVIDIA GPU, PyTorch 2.10 or later, and liborigami (`make lib`). Each number is of a process of its own; the ways
take turns. A step is the median of 30 replays of a CUDA graph, by device events. The error is ‖y − y₀‖ ÷ ‖y₀‖, where y₀
is the same model in fp32."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
WAYS = ("plain", "tuned", "enabled", "pinned")
TOKENS = {"decode": 16, "prefill": 2048}
TUNED = "max-autotune-no-cudagraphs"


def model(torch, layers, width=4096, inner=14336, heads=32):
    F = torch.nn.functional

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(width) for _ in range(2))
            self.qkv, self.out = torch.nn.Linear(width, 3 * width, bias=True), torch.nn.Linear(width, width, bias=False)
            self.gate, self.up, self.down = (torch.nn.Linear(*sizes, bias=False) for sizes in
                                             ((width, inner), (width, inner), (inner, width)))

        def forward(self, x):
            q, k, v = (t.view(1, -1, heads, width // heads).transpose(1, 2) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(x.shape))
            y = self.norms[1](x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    torch.manual_seed(0)
    with torch.device("cuda"):
        return torch.nn.Sequential(*(Block() for _ in range(layers))).to(torch.bfloat16).eval().requires_grad_(False)


def one(way, folder, layers, fill):
    """A process: prints what it measured. With fill, the enabled way writes the file of the pinned one."""
    if way == "enabled":
        sys.path.insert(0, str(CHECKOUT / "bindings" / "python"))
    import bench
    import torch

    if way == "enabled":
        import origami_gemm.inductor as oi

        oi.enable()
    elif way == "pinned":
        sys.path.insert(0, folder)
        import pinned

        pinned.enable()
    net, out = model(torch, layers), {}
    torch._dynamo.config.automatic_dynamic_shapes = False
    compiled = torch.compile(net, mode=TUNED if way == "tuned" else None)
    for name, tokens in TOKENS.items():
        x = torch.randn(1, tokens, 4096, device="cuda").to(torch.bfloat16)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        y = compiled(x)
        torch.cuda.synchronize()
        first = time.perf_counter() - begin
        step = bench.graph([lambda: compiled(x)])
        times = [bench.seconds(step.replay) for _ in range(30)]
        wide = net.float()(x.float())
        net.to(torch.bfloat16)
        out[name] = {"first_call": first, "step": statistics.median(times),
                     "error": ((y.float() - wide).norm() / wide.norm()).item()}
    if way == "enabled":
        print(oi.report(), file=sys.stderr)
        if fill:
            out["products"] = oi.pin(os.path.join(folder, "pinned.py"))
    if way == "pinned":
        assert not any(name.startswith("origami") for name in sys.modules)
    import triton

    print(json.dumps({**out, **bench.about(), "triton": triton.__version__}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("WAY", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--fill", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(*args.one, args.layers, args.fill)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(args.turns + 1):  # the first one has empty caches
            for way in WAYS:
                environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/{way}", "TRITON_CACHE_DIR": f"{folder}/{way}-triton"}
                command = [sys.executable, __file__, str(args.result), "--layers", str(args.layers), "--one", way, folder]
                begin = time.perf_counter()
                done = subprocess.run(command + ["--fill"] * (turn == 0), env=environment, stdout=subprocess.PIPE, text=True, check=True)
                row = {"way": way, "turn": turn, "process": time.perf_counter() - begin, **json.loads(done.stdout.splitlines()[-1])}
                rows.append(row)
                args.result.write_text(json.dumps(rows, indent=1) + "\n")
    for name in TOKENS:
        plain = None
        for way in WAYS:
            mine = [row for row in rows if row["way"] == way]
            step = statistics.median(row[name]["step"] for row in mine)
            plain = plain or step
            full = statistics.median(row[name]["first_call"] for row in mine[1:] or mine)
            print(f"{name:8} {way:8} first call {mine[0][name]['first_call']:7.1f} s, with full caches {full:6.1f} s, "
                  f"step {1e3 * step:7.3f} ms, ÷ plain {step / plain:.3f}, error {mine[0][name]['error']:.1e}")


if __name__ == "__main__":
    main()
