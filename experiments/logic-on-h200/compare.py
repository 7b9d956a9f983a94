#!/usr/bin/env python3
"""Libraries of few kernels on sizes left out: origami's, and classifiers that learn from the same recorded times.

    python3 compare.py ORIGAMI

ORIGAMI is the program. The data sets are those of the checkout. result.json is written beside this script, and the
table is printed. docs/library-logic.md says what is compared.
"""

import csv
import gzip
import io
import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "plugins/nvidia/data"
# Sets whose sizes are pooled and dealt out to halves. The flags are those of their type and layout.
POOLS = {
    "fp16, B K-contiguous": ("bt", ["--trans-b"]),
    "bf16": ("bf16", ["--dtype", "bf16"]),
    "fp8": ("fp8", ["--dtype", "fp8", "--trans-b"]),
    "int8": ("int8", ["--dtype", "int8", "--trans-b"]),
    "tf32": ("tf32", ["--dtype", "tf32"]),
}
KERNELS = [1, 4, 8, 16, 32]
DEALS = 1
PARAMETERS = ["block_m", "block_n", "block_k", "num_warps", "num_stages"]
COLUMNS = ["bm", "bn", "bk", "warps", "stages"]


def lines(name):
    """The measurements of both random sets of a name: size, kernel, time and the line itself."""
    for part in ("random", "random2"):
        file = DATA / f"sweeps/{part}-{name}/h200-test/measurements.jsonl.cols"
        text = subprocess.run(["go", "run", "./internal/pack", file], cwd=HERE.parents[1], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        for line in text.splitlines(keepends=True):
            r = json.loads(line)
            if "config" in r and r.get("samples_seconds"):
                p = r["problem"]
                seconds = statistics.median(r["samples_seconds"])
                yield (p["m"], p["n"], p["k"]), tuple(r["config"][k] for k in PARAMETERS), seconds, line


def pool(name):
    """The times of the kernels that all sizes of a pool have, the lines with them by size, and these kernels."""
    times, text = {}, {}
    for size, kernel, seconds, line in lines(name):
        times.setdefault(size, {})[kernel] = seconds
        text.setdefault(size, []).append((kernel, line))
    common = set.intersection(*map(set, times.values()))
    times = {s: {k: t[k] for k in common} for s, t in times.items()}
    return times, {s: [line for k, line in text[s] if k in common] for s in times}, sorted(common)


def recorded(folder):
    times = {}
    with gzip.open(folder / "times.csv.gz", "rt") as f:
        for r in csv.DictReader(f):
            if r["gm"] == "8":
                size = int(r["m"]), int(r["n"]), int(r["k"])
                times.setdefault(size, {})[tuple(int(r[c]) for c in COLUMNS)] = float(r["ms"]) / 1e3
    return times


def write(folder, like, text, sizes):
    folder.mkdir()
    shutil.copy(like / "dataset.json", folder)
    with gzip.open(folder / "measurements.jsonl.gz", "wt") as f:
        for s in sizes:
            f.writelines(text[s])
    return folder


def splits(scratch):
    """Groups with the folders and times of the sizes to build from, and of those to ask for."""
    built = recorded(DATA / "h200-triton")
    full = max(map(len, built.values()))
    built = {s: t for s, t in built.items() if len(t) == full}
    asked = recorded(DATA / "h200-triton-other")
    for size, kernel, seconds, _ in lines("fp16"):
        asked.setdefault(size, {})[kernel] = seconds
    folders = [DATA / "h200-triton-other", *(DATA / f"sweeps/{p}-fp16/h200-test" for p in ("random", "random2"))]
    common = sorted(set.intersection(*map(set, [*built.values(), *asked.values()])))
    yield "fp16", [], None, built, folders, asked, common
    for group, (name, flags) in POOLS.items():
        times, text, common = pool(name)
        like = DATA / f"sweeps/random-{name}/h200-test"
        sizes = sorted(times)
        for deal in range(DEALS):
            order = random.Random(deal).sample(sizes, len(sizes))
            halves = order[: len(order) // 2], order[len(order) // 2 :]
            for i, (a, b) in enumerate((halves, halves[::-1])):
                at = scratch / f"{name}-{deal}-{i}"
                at.mkdir()
                yield (group, flags, write(at / "built", like, text, a), {s: times[s] for s in a},
                       [write(at / "asked", like, text, b)], {s: times[s] for s in b}, common)


def run(program, *arguments):
    done = subprocess.run([program, "--in-process", "--arch", "sm90@h200", *map(str, arguments)], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, done.args))}: {done.stderr}")
    return done.stdout


def origami(program, scratch, flags, built, folders, n):
    """The losses of a library of origami and of the model's picks among all kernels, by size."""
    file = scratch / "library.yaml"
    records = ["--records", built] if built else []
    run(program, "logic", "build", *flags, *records, "--most", n, "--output", file)
    asked = [a for f in folders for a in ("--records", f)]
    text = run(program, "--format", "csv", "logic", "eval", file, *asked)
    rows = list(csv.DictReader(io.StringIO(text)))
    own = f"the kernel of {file}"
    return tuple([math.log(float(r["seconds." + choice]) / float(r["seconds.fastest"])) for r in rows]
                 for choice in (own, "the model's pick"))


def greedy(t, n):
    """The kernel that lowers the mean logarithm of the fastest time most, again and again."""
    kept, best = [], np.full(len(t), np.inf)
    while len(kept) < n:
        means = np.log(np.minimum(t, best[:, None])).mean(0)
        k = int(means.argmin())
        if kept and not means[k] < np.log(best).mean() - 1e-12:
            break
        kept.append(k)
        best = np.minimum(best, t[:, k])
    return kept


def clusters(t, n):
    """Sizes in clusters by the relative speeds of all kernels, and the best kernel of each cluster."""
    speed = t.min(1, keepdims=True) / t
    of = KMeans(min(n, len(t)), n_init=10, random_state=0).fit_predict(speed)
    return sorted({int(np.log(t[of == c]).mean(0).argmin()) for c in set(of)})


def features(sizes):
    x = np.log2(np.array(sizes, float))
    return np.column_stack([x, x[:, 0] + x[:, 1], x.sum(1)])


def classifiers(built, asked, n):
    """The losses of classifiers, by name, and of the best of greedy's kernels at each size."""
    t, u = (np.array([[v[k] for k in built[2]] for v in x[1].values()]) for x in (built, asked))
    x, z = features(built[0]), features(asked[0])
    every = np.array([min(v.values()) for v in asked[1].values()])
    out = {}
    for how, choose in (("greedy", greedy), ("clusters", clusters)):
        kept = np.array(choose(t, n))
        y = kept[t[:, kept].argmin(1)]
        distance = ((x[:, None, :3] - z[None, :, :3]) ** 2).sum(2)
        answers = {"nearest size": y[distance.argmin(0)]}
        for name, model in (("decision tree", DecisionTreeClassifier(random_state=0)),
                            ("random forest", RandomForestClassifier(100, random_state=0))):
            answers[name] = model.fit(x, y).predict(z)
        for name, k in answers.items():
            out[f"{name}, {how}"] = list(np.log(u[np.arange(len(u)), k] / every))
        if how == "greedy":
            out["oracle"] = list(np.log(u[:, kept].min(1) / every))
    return out


def regret(losses):
    return {"mean": math.expm1(sum(losses) / len(losses)), "worst": math.expm1(max(losses)), "sizes": len(losses)}


def percent(r):
    return f"{100 * r['mean']:.1f} % ({100 * r['worst']:.0f} %)"


def main(program):
    losses = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for group, flags, built, times, folders, asked, common in splits(scratch):
            for n in KERNELS:
                at = losses.setdefault(group, {}).setdefault(n, {})
                own, model = origami(program, scratch, flags, built, folders, n)
                found = classifiers((list(times), times, common), (list(asked), asked, common), n)
                for name, more in ({"origami": own, "model, all kernels": model} | found).items():
                    at.setdefault(name, []).extend(more)
            print(group, file=sys.stderr, flush=True)
    result = {g: {n: {name: regret(x) for name, x in at.items()} for n, at in by.items()} for g, by in losses.items()}
    (HERE / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    print("| sweep | kernels | origami | the model, all kernels | best of the library | tree | forest | nearest size |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for group, by in result.items():
        for n, at in by.items():
            best = [min((at[f"{c}, {how}"] for how in ("greedy", "clusters")), key=lambda r: r["mean"])
                    for c in ("decision tree", "random forest", "nearest size")]
            cells = [at["origami"], at["model, all kernels"], at["oracle"], *best]
            print(f"| {group} | {n} | {' | '.join(map(percent, cells))} |")


if __name__ == "__main__":
    main(sys.argv[1])
