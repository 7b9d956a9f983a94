"""The first and the later steps of Mamba-2's chunked scan, five autotuned kernels with 42 configurations: autotuned, pinned
with no answers kept, and pinned with the answers of an earlier process. Each is a process with an empty cache of compiled
kernels, and the three are compared on the same values.

    python3 cold.py [autotuned] [pinned] [kept]        # on an H200, to $OUT/cold-WAYS.json; sources: get.sh kinds"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
OUT = pathlib.Path(os.environ.get("OUT", HERE / "out"))
if (HERE / "src").exists():
    sys.path.insert(0, str(HERE / "src"))


def block(torch, device="cuda", b=4, t=4096, h=24, d=64, n=128):
    """The scan of a model's layer over 4 × 4,096 tokens, 24 heads of 64 and a state of 128."""
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    torch.manual_seed(0)

    def R(*shape, scale=1.0, dtype=torch.bfloat16):
        return torch.randn(shape, device=device).mul_(scale).to(dtype)

    x, B, C = R(b, t, h, d), R(b, t, 1, n, scale=.1), R(b, t, 1, n, scale=.1)
    dt, A = R(b, t, h, scale=.1, dtype=torch.float32).abs(), -R(h, dtype=torch.float32).abs()
    D = R(h, dtype=torch.float32)
    return lambda: mamba_chunk_scan_combined(x, dt, A, B, C, 256, D=D)


def one(way):
    import torch

    begun = time.time()
    step = block(torch)
    torch.cuda.synchronize()
    ready = time.time()
    from origami_gemm import pin

    with torch.no_grad(), pin.everywhere("sm90@h200") if way != "autotuned" else contextlib.nullcontext([]) as launches:
        out = step()
        torch.cuda.synchronize()
        first = time.time() - ready
        times = []
        for _ in range(30):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            step()
            b.record()
            torch.cuda.synchronize()
            times.append(a.elapsed_time(b))
    print(json.dumps({"imports and inputs s": round(ready - begun, 2), "first step s": round(first, 2),
                      "step ms": round(sorted(times[10:])[10], 3), "pinned kernels": len({id(t) for t, *_ in launches}),
                      "mean of |result|": float(out.float().abs().mean())}))


def main(ways):
    rows, answers = [], os.environ.get("ORIGAMI_PIN_CACHE") or tempfile.mkdtemp()
    for way in ways:
        with tempfile.TemporaryDirectory() as cache:
            env = {**os.environ, "TRITON_CACHE_DIR": cache, "ORIGAMI_PIN_CACHE": answers}
            begun = time.time()
            limit, one = float(os.environ.get("LIMIT", 1e6)), [sys.executable, __file__, "one", way]
            try:
                done = subprocess.run(one, env=env, capture_output=True, text=True, timeout=limit)
                row = {"error": done.stderr[-800:]} if done.returncode else json.loads(done.stdout.splitlines()[-1])
            except subprocess.TimeoutExpired:
                row = {"error": f"not done in {limit} s"}
        rows.append({"way": way, **row, "process s": round(time.time() - begun, 1)})
        print(rows[-1], flush=True)
        (OUT / f"cold-{'-'.join(ways)}.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    one(sys.argv[2]) if sys.argv[1:2] == ["one"] else main(sys.argv[1:] or ["autotuned", "pinned", "kept"])
