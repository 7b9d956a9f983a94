"""Does a single pick gain from an epilogue that is part of its kernel? Times both forms in Inductor, for functions of
different length and for blocks that fill an SM alone or not.

    python3 epilogues.py --out RESULT.json [--seconds 100]

Conditions are those of measure.py. Results are written after every row.
"""

import argparse
import json
import pathlib
from unittest import mock

import measure  # before torch: it sets the environment
import torch
import torch.nn.functional as F
from torch._inductor.utils import fresh_cache

import origami_gemm.inductor as oi
import origami_gemm.triton
from origami_gemm.inductor import _choices

FUNCTIONS = {
    "gelu": F.gelu,
    "silu": F.silu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "tanh": torch.tanh,
    "relu": F.relu,
}
SIZES = ((4096, 16384, 4096), (2048, 4096, 1024), (512, 3072, 768))
PICKS = (None, (128, 128, 4), (128, 128, 8))  # the best, or the best with this block and number of warps
ROWS = [("gelu", s, p) for p in PICKS for s in SIZES] + [
    (f, s, p) for f in ("silu", "gelu-tanh", "tanh", "relu") for s in SIZES[:2] for p in PICKS[:1]]


def compiled(function, arguments, pick, fused):
    """The function with one pick of ours, and that pick."""
    ranking = origami_gemm.triton.ranking

    def filtered(model, problem, top):
        fixed = dict(zip(("block_m", "block_n", "num_warps"), pick or ()))
        return ranking(model, problem, top, fixed)

    torch._dynamo.reset()
    oi.clear()
    with (
        mock.patch.object(origami_gemm.triton, "ranking", filtered),
        mock.patch.object(_choices, "_fused", lambda *_: fused),
        fresh_cache(), oi.enable(aten=False), torch.no_grad(),
    ):
        call = torch.compile(measure.fresh(function, "fused" if fused else "apart"), dynamic=False)
        result = call(*arguments)
    return call, result, oi.report()[0]


def row(machine, name, sizes, pick):
    m, n, k = sizes
    activation = FUNCTIONS[name]
    x, w, bias = (torch.randn(*s, device="cuda") for s in ((m, k), (n, k), (n,)))
    want = activation(F.linear(x, w / k**0.5, bias))
    x, w, bias = x.bfloat16(), (w / k**0.5).bfloat16(), bias.bfloat16()

    def function(x, w, bias):
        return activation(F.linear(x, w, bias))

    calls, made = {}, {"function": name, "sizes": sizes}
    for fused in (True, False):
        call, result, report = compiled(function, (x, w, bias), pick, fused)
        made["pick"] = str(report.picks[0])
        made.setdefault("error", {})[fused] = measure.error(result, want)
        calls[fused] = machine.captured(lambda call=call: call(x, w, bias))
    with torch.no_grad():
        times = machine.seconds(calls)
    return made | {"fused_s": times[True]["median"], "apart_s": times[False]["median"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=100)
    options = parser.parse_args()
    machine = measure.Machine(False)
    rows = []
    for name, sizes, pick in ROWS:
        if measure.time.perf_counter() - measure.BEGIN > options.seconds:
            measure.say(f"{name} {sizes} {pick} is left")
            continue
        try:
            rows.append(row(machine, name, sizes, pick))
        except Exception as e:  # the others can still be measured
            rows.append({"function": name, "sizes": sizes, "pick": pick} | measure.failure(e))
        measure.say(str(rows[-1]))
        pathlib.Path(options.out).write_text(json.dumps({"machine": machine.describe(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
