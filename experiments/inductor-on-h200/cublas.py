"""Where may cuBLAS be taken without timing? Rules for aten="auto", on products that were recorded on an H200.

    python3 cublas.py

Needs Go and liborigami (`make lib`), no GPU and no torch; takes a minute. The records are those of plugins/nvidia/data that have
Triton's kernels and torch.matmul on the same products. The pick is the model's best of the kernels that were recorded.
A rule takes cuBLAS alone up to a ratio of the predicted times, cuBLAS ÷ pick, and the faster of the two above: those are
timed. Times are then divided by that of the fastest kernel recorded, of Triton or cuBLAS.
"""

import collections
import csv
import gzip
import json
import pathlib
import statistics
import subprocess
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "bindings" / "python"))

from origami_gemm import Model  # noqa: E402
from origami_gemm.inductor import _cublas  # noqa: E402

NAMES = ("block_m", "block_n", "block_k", "num_warps", "num_stages")
DATA = CHECKOUT / "plugins" / "nvidia" / "data"
SETS = ("bf16", "bt", "fp16", "fp8", "layouts", "split", "tf32", "unaligned")
TABLES = ("h200-triton", "h200-triton-other", "h200-triton-bt",
          *(f"grids/deepbench-{dtype}/h200-{layout}" for dtype in ("fp16", "tf32") for layout in ("nn", "nt", "tn")))
LONG = 32  # where K is so many times M and N, Inductor divides it, and nothing is picked
RATIOS = (0.8, 0.85, 0.9, 0.95, 1.0)


def records():
    """Problems, seconds of torch.matmul, and those of Triton's kernels without split K by (block_m, …, num_stages)."""
    folders = [DATA / "h200-triton-executor"]
    folders += [f for name in SETS for s in (name, f"random-{name}", f"random2-{name}")
                for f in sorted((DATA / "sweeps" / s).glob("h200-*"))]
    for folder in folders:
        problems = collections.defaultdict(lambda: (None, {}))
        lines = subprocess.run(["go", "run", "./internal/pack", folder / "measurements.jsonl.cols"], cwd=CHECKOUT,
                               check=True, stdout=subprocess.PIPE, text=True).stdout
        for line in lines.splitlines():
            record = json.loads(line)
            if record["status"] != "ok":
                continue
            seconds = statistics.median(record["samples_seconds"])
            key = json.dumps(record["problem"], sort_keys=True)
            library, kernels = problems[key]
            if record.get("library"):
                library = seconds
            elif record["config"].get("split_k", 1) in (0, 1):
                c = record["config"]
                kernels[tuple(c[n] for n in NAMES)] = seconds
            problems[key] = library, kernels
        for key, (library, kernels) in problems.items():
            problem = json.loads(key)
            problem["align"] = tuple(problem.pop(f"align_{x}", 16) for x in "abc")
            yield problem, library, kernels
    for name in TABLES:
        about = json.loads((DATA / name / "dataset.json").read_text())
        layout = {key: about.get(key, default) for key, default in (("dtype", "fp16"), ("trans_a", False),
                                                                    ("trans_b", False))}
        libraries = next((DATA / name / f for f in ("cublas.csv", "torch.matmul.csv") if (DATA / name / f).exists()))
        times = collections.defaultdict(dict)
        for file in (DATA / name).glob("times*.csv.gz"):
            for row in csv.DictReader(gzip.open(file, "rt")):
                if row.get("split", "1") == "1" and row["gm"] == "8":
                    c = tuple(int(row[x]) for x in ("bm", "bn", "bk", "warps", "stages"))
                    times[row["m"], row["n"], row["k"]][c] = float(row["ms"]) / 1e3
        for row in csv.DictReader(open(libraries)):
            sizes = row["m"], row["n"], row["k"]
            yield dict(zip("mnk", map(int, sizes)), **layout), float(row["ms"]) / 1e3, times[sizes]


class Product:
    def __init__(self, model, problem, library, kernels):
        self.problem, self.library, self.best = problem, library, min(library, *kernels.values())
        # Of those recorded, the one that the model ranks first.
        ranking = (p for p in model.rank(**problem, top=1 << 14) if p.split_k == 1)
        pick = next(p for p in ranking if tuple(getattr(p, n) for n in NAMES) in kernels)
        self.pick = kernels[tuple(getattr(pick, n) for n in NAMES)]
        self.predicted = _cublas.seconds(model, problem, pick)
        self.ratio = self.predicted / pick.seconds if self.predicted else None

    def taken(self, limit):
        """The time with the rule, and whether cuBLAS is taken untimed."""
        alone = self.ratio is not None and self.ratio <= limit
        return (self.library if alone else min(self.library, self.pick)) / self.best, alone


def products():
    model = Model("sm90", "h200")
    for problem, library, kernels in records():
        if library and len(kernels) > 1 and problem["k"] < LONG * max(problem["m"], problem["n"]):
            yield Product(model, problem, library, kernels)


def main():
    every = list(products())
    ratios = sorted(p.ratio * p.pick / p.library for p in every if p.ratio)
    tenths = statistics.quantiles(ratios, n=10)
    print(f"{len(every)} products, {len(ratios)} in the reach of both models. Predicted ÷ measured cuBLAS ÷ pick: "
          f"{statistics.geometric_mean(ratios):.3f}, p10 {tenths[0]:.2f}, p90 {tenths[-1]:.2f}.\n")
    print("| cuBLAS alone up to | products alone | these: geometric mean | worst | all: geometric mean | worst |")
    print("| --- | --- | --- | --- | --- | --- |")
    for limit in (0, *RATIOS, 1e9):
        taken = [p.taken(limit) for p in every]
        alone = [t for t, untimed in taken if untimed]
        own = (f"{len(alone)} | {statistics.geometric_mean(alone):.3f} | {max(alone):.3f}" if alone else "0 | – | –")
        times = [t for t, _ in taken]
        name = "never" if not limit else "always, if known" if limit > 1e3 else limit
        print(f"| {name} | {own} | {statistics.geometric_mean(times):.3f} | {max(times):.3f} |")
    for name, time in (("the pick alone", lambda p: p.pick), ("cuBLAS alone", lambda p: p.library)):
        times = [time(p) / p.best for p in every]
        print(f"| *{name}* | {len(times)} | | | {statistics.geometric_mean(times):.3f} | {max(times):.3f} |")
    print("\nBy type, cuBLAS alone up to", _cublas.ALONE)
    for dtype in ("fp16", "bf16", "fp8", "tf32"):
        times = [p.taken(_cublas.ALONE)[0] for p in every if p.problem["dtype"] == dtype]
        untimed = sum(p.taken(_cublas.ALONE)[1] for p in every if p.problem["dtype"] == dtype)
        print(f"{dtype}: {len(times)} products, {untimed} alone, {statistics.geometric_mean(times):.3f}, worst "
              f"{max(times):.3f}")


if __name__ == "__main__":
    main()
