"""Which order puts Inductor's kernels best? Speed of the best of the first n kernels of an order ÷ speed of the best of all
that inductor.py timed, cuBLAS left out.

    python3 orders.py inductor.json

Needs liborigami (`make lib`), neither torch nor a GPU."""

import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "bindings" / "python"))

from origami_gemm import Model  # noqa: E402
from origami_gemm.inductor import _problem  # noqa: E402

FIRST = 1, 2, 4, 8
ENOUGH = 16  # picks of each family that were timed in both templates


def ranked(model, problem):
    """The picks of a model that a template can be built with: predicted seconds, and what a kernel is timed under."""
    picks = [p for p in model.rank(**problem, top=4 * ENOUGH) if _problem.configuration(p, problem["dtype"])]
    return [(p.seconds, (p.block_m, p.block_n, p.block_k, p.num_warps, p.num_stages, p.group_m)) for p in picks[:ENOUGH]]


def orders(models, problem):
    """Kernels in the order of each candidate: templates and configurations."""
    tiled, persistent = (ranked(model, problem) for model in models)
    mm, tma = [("mm", c) for _, c in tiled], [("tma", c) for _, c in persistent]
    together = sorted([(s, ("mm", c)) for s, c in tiled] + [(s, ("tma", c)) for s, c in persistent], key=lambda x: x[0])
    return {
        "mm by `triton`": mm,
        "TMA by `triton_persistent`": tma,
        "TMA by `triton`": [("tma", c) for _, c in tiled],
        "both together": [kernel for _, kernel in together],
        "half of each, TMA first": [k for pair in zip(tma, mm) for k in pair],
    }


def times(product):
    """Microseconds of each kernel that was timed."""
    return {(template, tuple(values)): us for template, *values, us, _ in product["kernels"]}


def problem(name):
    dtype, sizes = name.split()
    m, n, k = map(int, sizes.split("x"))
    return {"m": m, "n": n, "k": k, "dtype": dtype, "trans_b": True} | ({"out_dtype": "bf16"} if dtype == "fp8" else {})


def shares(data, models, dtype):
    """Of each order, for each n: the shares of the products of a type."""
    found = {}
    for name, product in data["products"].items():
        asked = problem(name)
        if asked["dtype"] != dtype:
            continue
        timed = times(product)
        best = min(timed.values())
        for order, kernels in orders(models, asked).items():
            known = [timed[k] for k in kernels if k in timed]
            for n in FIRST:
                found.setdefault((order, n), []).append(best / min(known[:n]))
    return found


def models():
    tiled = Model("sm90", "h100")
    return tiled, tiled.sibling("triton_persistent")


def main():
    data = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for dtype in sorted({problem(name)["dtype"] for name in data["products"]}):
        found = shares(data, models(), dtype)
        print(f"\n| {dtype} | " + " | ".join(f"first {n}" for n in FIRST) + " |\n|" + " --- |" * (1 + len(FIRST)))
        for order in dict.fromkeys(order for order, _ in found):
            cells = [f"{statistics.geometric_mean(found[order, n]):.3f} ({min(found[order, n]):.3f})" for n in FIRST]
            print(f"| {order} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
