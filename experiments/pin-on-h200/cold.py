"""The first and the later steps of a block with a dozen autotuned kernels: autotuned, pinned with no answers kept, and
pinned with the answers of an earlier process. Each is a process with an empty cache of compiled kernels.

    python3 cold.py        # on an H200, to $OUT/cold.json"""

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


def block(torch, device="cuda"):
    """A delta rule with its convolution and norms, forward and backward: 4 × 4,096 tokens, 16 heads of 128."""
    from fla.modules.conv.causal_conv1d import causal_conv1d
    from fla.modules.fused_norm_gate import rms_norm_gated
    from fla.modules.layernorm import rms_norm
    from fla.ops.delta_rule import chunk_delta_rule

    b, t, h, d = 4, 4096, 16, 128
    R = lambda *s: (torch.randn(s, device=device) * .1).bfloat16().requires_grad_()
    x, w, norm = R(b, t, 3 * h * d), R(3 * h * d, 4), R(h * d)
    beta, gate, head = torch.rand(b, t, h, device=device).bfloat16().requires_grad_(), R(b, t, h, d), R(d)

    def step():
        y = causal_conv1d(x, w, activation="silu")
        y = (y[0] if isinstance(y, tuple) else y).view(b, t, 3, h, d)
        q, k, v = y.unbind(2)
        o, _ = chunk_delta_rule(q.contiguous(), k.contiguous(), v.contiguous(), beta, use_qk_l2norm_in_kernel=True)
        o = rms_norm_gated(o, gate, head, None)
        rms_norm(o.reshape(b * t, h * d), norm, None).float().square().mean().backward()

    return step


def one(way):
    import torch

    begun = time.time()
    step = block(torch)
    torch.cuda.synchronize()
    ready = time.time()
    from origami_gemm import pin

    with pin.everywhere("sm90@h200") if way != "autotuned" else contextlib.nullcontext([]) as launches:
        step()
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
    print(json.dumps({"way": way, "imports and inputs s": round(ready - begun, 2), "first step s": round(first, 2),
                      "step ms": round(sorted(times[10:])[10], 3), "pinned launches": len({id(t) for t, *_ in launches})}))


def main():
    rows = []
    with tempfile.TemporaryDirectory() as answers:
        for turn in range(2):
            for way in "autotuned", "pinned, nothing kept", "pinned, answers kept":
                with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as empty:
                    env = {**os.environ, "TRITON_CACHE_DIR": cache, "FLA_CACHE_MODE": "disabled",
                           "ORIGAMI_PIN_CACHE": answers if "answers" in way or turn == 0 else empty}
                    done = subprocess.run([sys.executable, __file__, way], env=env, capture_output=True, text=True)
                    line = done.stdout.strip().splitlines()[-1:] or [json.dumps({"way": way, "error": done.stderr[-400:]})]
                    rows.append({"turn": turn, **json.loads(line[0])})
                    print(rows[-1], flush=True)
                    (OUT / "cold.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    one(sys.argv[1]) if sys.argv[1:] else main()
