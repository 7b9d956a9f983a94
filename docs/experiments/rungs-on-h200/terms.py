#!/usr/bin/env python3
"""Where a rung that knows more picks a slower kernel, which term of the model turned the order.

    python3 terms.py ORIGAMI

ORIGAMI is the program. The data sets are those of the checkout. README.md says what is printed.
"""

import csv
import io
import json
import math
import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "plugins/nvidia/data"
KINDS = ["fp16", "bt", "split", "unaligned", "bf16", "fp8", "int8", "tf32"]
SETS = {f"{part}-{kind}": ("triton", f"sweeps/{part}-{kind}/h200-test")
        for kind in KINDS for part in ("random", "random2")}
SETS["other"] = ("triton", "h200-triton-other")
SETS["bt"] = ("triton", "h200-triton-bt")
for kind in ("split", "fp8", "int8", "tf32", "layouts", "unaligned"):
    SETS[f"mma {kind}"] = ("mma", f"sweeps/{kind}/mma-test")
RUNGS = ["spec", "calibrated", "compiled", "characterized"]
# The parts of a time, and the costs of one K step, of which the largest bind.
PARTS = ["launch", "fill", "loop", "epilogue", "pass", "power", "reduction", "timing"]
STEPS = ["tensor_step", "shared_step", "convert_step", "issue_step", "copy_step", "chain_step", "line_step", "l2_step",
         "dram_step", "spill_step", "repeat_step"]
L2 = 4980.2  # B/cycle, l2_perf_ratio of rung calibrated
LOST = 0.01  # a pick that is this much slower counts


def run(program, kernel, *arguments, arch="sm90@h200"):
    done = subprocess.run([program, "--in-process", "--arch", arch, *arguments, "--kernel", kernel],
                          capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def picks(program, kernel, folder, rung, arch="sm90@h200"):
    text = run(program, kernel, "--format", "csv", "eval", "--rung", rung, "--times", str(DATA / folder), arch=arch)
    keys = ("m", "n", "k", "batch", "trans_a", "trans_b", "dtype")
    rows = csv.DictReader(io.StringIO(text or ""))
    return {tuple(r[k] for k in keys): r for r in rows if float(r["efficiency"] or 0) > 0}


def config(row):
    tile = "x".join(row[k] for k in ("block_m", "block_n", "block_k"))
    text = f"{tile},w{row['num_warps']},s{row['num_stages']},g{row['group_m']}"
    return text + (f",split={row['split_k']}" if row["split_k"] != "1" else "")


def explain(program, kernel, rung, problem, a, b):
    m, n, k, batch, trans_a, trans_b, dtype = problem
    flags = ["-m", m, "-n", n, "-k", k, "--batch", batch, "--dtype", dtype, "--rung", rung, "--config", a, "--diff", b]
    flags += ["--trans-a"] * (trans_a == "1") + ["--trans-b"] * (trans_b == "1")
    text = run(program, kernel, "explain", *flags, "--json")
    if not text:
        return None
    both = json.loads(text)
    return [both[x] for x in ("first", "second")]


def values(side):
    return {k: float(t.get("value") or 0) for k, t in side["terms"].items() if k in PARTS + STEPS}


def why(program, kernel, poor, rich, problem, fast, slow):
    """What turned the order of two kernels between two rungs."""
    sides = [explain(program, kernel, rung, problem, fast, slow) for rung in (poor, rich)]
    if not all(sides):
        return "not explained"
    t = [[values(x) for x in side] for side in sides]
    total = sides[1][0]["predicted"]["cycles"]
    # What the slow kernel gained on the fast one, as a share of the time.
    ahead = [{p: x[0].get(p, 0) - x[1].get(p, 0) for p in PARTS} for x in t]
    shift = {p: (ahead[1][p] - ahead[0][p]) / total for p in PARTS}
    part = max(shift, key=shift.get)
    text = f"{part} {100 * shift[part]:+.1f} %"
    if part in ("loop", "pass"):
        grown = [{s: t[1][i].get(s, 0) / t[0][i][s] - 1 for s in STEPS if t[0][i].get(s)} for i in (0, 1)]
        step = max(grown[0], key=lambda s: abs(grown[0][s]))
        bounds = ", ".join(f"{x[0]['predicted']['bound']}/{x[1]['predicted']['bound']}" for x in sides)
        text += f" ({step} {100 * grown[0][step]:+.0f} and {100 * grown[1].get(step, 0):+.0f} %; bound {bounds})"
    return text


def score(rows):
    return f"{math.exp(sum(math.log(float(r['efficiency'])) for r in rows.values()) / len(rows)):.3f}"


def main(program):
    turned = []
    print("| sweep | kernels | sizes | " + " | ".join(RUNGS) + " |")
    print("| --- " * (len(RUNGS) + 3) + "|")
    for name, (kernel, folder) in SETS.items():
        of = [picks(program, kernel, folder, rung) for rung in RUNGS]
        cells = []
        for i, rows in enumerate(of):
            if not rows:
                cells.append("")
                continue
            cells.append(score(rows))
            before = of[i - 1] if i else None
            for problem, r in rows.items():
                old = before and before.get(problem)
                if old and float(r["efficiency"]) < (1 - LOST) * float(old["efficiency"]):
                    fast, slow = config(old), config(r)
                    turned.append([name, RUNGS[i], "×".join(problem[:3]), f"{fast} {float(old['efficiency']):.3f}",
                                   f"{slow} {float(r['efficiency']):.3f}",
                                   why(program, kernel, RUNGS[i - 1], RUNGS[i], problem, fast, slow)])
        print(f"| {name} | {kernel} | {len(of[0])} | {' | '.join(cells)} |", flush=True)
    print("\n| sweep | from this rung | size | pick before | pick from it | what turned the order |")
    print("| --- " * 6 + "|")
    for row in turned:
        print("| " + " | ".join(row) + " |")
    factors = (1, 1.15, 1.3, 1.5, 1.7)
    print("\n| sweep | " + " | ".join(f"× {f}" for f in factors) + " |")
    print("| --- " * (len(factors) + 1) + "|")
    for name, (kernel, folder) in SETS.items():
        if kernel == "triton":
            of = [picks(program, kernel, folder, "compiled", f"sm90@h200:l2_perf_ratio={L2 * f:g}") for f in factors]
            print(f"| {name} | {' | '.join(map(score, of))} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
