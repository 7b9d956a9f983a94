#!/usr/bin/env python3
"""Tuners that replay the same recorded times: how much slower than the fastest kernel their picks are, by budget.

    python3 compare.py ORIGAMI [--keep FILE]

ORIGAMI is the program. The data sets are those of the checkout. result.json is written beside this script. --keep names
a file that keeps what the other tuners measured, which does not change with origami. Beside it are the tuners and their settings.
"""

import argparse
import contextlib
import csv
import gzip
import io
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "plugins/nvidia/data"
# No number of the model and no variance of the tuner was fitted to these sizes. The order of its sizes was chosen on them.
SETS = {
    "fp16": ["sweeps/random-fp16/h200-test", "sweeps/random2-fp16/h200-test", "h200-triton-other"],
    "fp16, B K-contiguous": ["sweeps/random-bt/h200-test", "sweeps/random2-bt/h200-test"],
    "fp16, split K": ["sweeps/random-split/h200-test", "sweeps/random2-split/h200-test"],
    "bf16": ["sweeps/random-bf16/h200-test", "sweeps/random2-bf16/h200-test"],
    "fp8": ["sweeps/random-fp8/h200-test", "sweeps/random2-fp8/h200-test"],
    "int8": ["sweeps/random-int8/h200-test", "sweeps/random2-int8/h200-test"],
    "tf32": ["sweeps/random-tf32/h200-test", "sweeps/random2-tf32/h200-test"],
}
BUDGETS = [1, 2, 4, 8, 10, 16, 32]
SEEDS = 3
PARAMETERS = ["block_m", "block_n", "block_k", "num_warps", "num_stages", "split_k"]
KERNEL_TUNER = ["random_sample", "genetic_algorithm", "simulated_annealing", "greedy_ils", "diff_evo", "bayes_opt"]
# The steps of Tensile: stages, then tiles with warps as branches, and in each the depth.
STEPS = ["num_stages", ("block_m", "block_n", "num_warps"), "block_k", "split_k"]
KEYS = ["m", "n", "k", "batch", "trans_a", "trans_b", "dtype"]


def measurements(path):
    """The measurements of a file in columns."""
    text = subprocess.run(["go", "run", "./internal/pack", path], cwd=HERE.parents[1], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return map(json.loads, text.splitlines())


def problems(folder):
    """The problems of a data set, as rows of a problems file."""
    rows = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("measurements"):
            for r in measurements(path):
                p = r["problem"]
                rows[tuple(int(v) if isinstance(v, bool) else v for v in (p[k] for k in KEYS))] = None
        elif path.name.startswith("times"):
            with gzip.open(path, "rt") as f:
                for r in csv.DictReader(f):
                    rows[int(r["m"]), int(r["n"]), int(r["k"]), 1, 0, 0, "fp16"] = None
    return list(rows)


class Origami:
    def __init__(self, program):
        self.program = program

    def tune(self, file, folder, *flags):
        done = subprocess.run(
            [self.program, "--in-process", "--arch", "sm90@h200", "tune", file, "--records", folder, "--json", *flags],
            capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, done.args))}: {done.stderr}")
        *sizes, summary = map(json.loads, done.stdout.splitlines())
        return sizes, summary["summary"]


def write_problems(rows, name):
    with open(name, "w") as f:
        f.write(",".join(KEYS) + "\n")
        f.writelines(",".join(map(str, r)) + "\n" for r in rows)


def write_steps(rows, configs, name):
    """A tuning file with steps: one set of all sizes, as Tensile has it."""
    def values(p):
        return sorted({c[p] for c in configs})

    m, n, k, _, trans_a, trans_b, dtype = rows[0]
    steps = []
    for step in STEPS:
        if isinstance(step, tuple):
            steps.append("- fork: {" + ", ".join(f"{p}: {values(p)}" for p in step if len(values(p)) > 1) + "}")
        elif len(values(step)) > 1:
            steps.append(f"- each: {{{step}: {values(step)}}}")
    fixed = ", ".join(f"{p}: {values(p)[0]}" for p in PARAMETERS if len(values(p)) == 1)
    with open(name, "w") as f:
        f.write(f"kernel: triton\nproblems:\n- dtype: {dtype}\n  trans_a: {str(bool(trans_a)).lower()}\n"
                f"  trans_b: {str(bool(trans_b)).lower()}\n  sets:\n  - name: all\n    fixed: {{{fixed}}}\n    steps:\n")
        f.writelines(f"    {s}\n" for s in steps)
        f.write("    sizes:\n")
        f.writelines(f"    - exact: [{r[0]}, {r[1]}, {r[2]}]\n" for r in rows)


def parse(config):
    """The parameters of a configuration's text, as in 128x256x64,w8,s3,g8,k4."""
    tile, *rest = config.replace(",", " ").split()
    c = dict(zip(PARAMETERS, map(int, tile.split("x"))))
    named = {x[0]: int(x[1:]) for x in rest if x[1:].isdigit()}
    c.update(num_warps=named["w"], num_stages=named["s"], split_k=named.get("k", 1))
    return c


# A searcher takes the times of one size, by the values of the parameters, the budget and a seed, and returns the times
# that it measured, in order. Configurations that are not recorded do not build: asking for one costs nothing.


def at_random(times, budget, seed):
    return random.Random(seed).sample(sorted(times.values(), key=str), min(budget, len(times)))


def tpe(times, budget, seed):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
    values = [sorted({c[i] for c in times}) for i in range(len(PARAMETERS))]
    seen = {}
    for _ in range(40 * budget):
        trial = study.ask()
        c = tuple(trial.suggest_categorical(p, v) for p, v in zip(PARAMETERS, values))
        if c not in times:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        seen[c] = times[c]
        study.tell(trial, math.log(times[c]))
        if len(seen) == budget:
            break
    return list(seen.values())


def kernel_tuner(strategy):
    def search(times, budget, seed):
        import kernel_tuner
        import numpy

        random.seed(seed)
        numpy.random.seed(seed)
        params = {p: sorted({c[i] for c in times}) for i, p in enumerate(PARAMETERS)}
        cache = {"device_name": "recorded", "kernel_name": "gemm", "problem_size": [1, 1, 1],
                 "tune_params_keys": PARAMETERS, "tune_params": params, "objective": "time", "cache": {}}
        for c, t in times.items():
            cache["cache"][",".join(map(str, c))] = {
                **dict(zip(PARAMETERS, c)), "time": 1e3 * t, "times": [1e3 * t], "compile_time": 0,
                "verification_time": 0, "benchmark_time": 0, "framework_time": 0, "strategy_time": 0,
                "timestamp": "2026-01-01 00:00:00+00:00"}

        def recorded(block_m, block_n, block_k, num_warps, num_stages, split_k):
            return (block_m, block_n, block_k, num_warps, num_stages, split_k) in times

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            file = os.path.join(folder, "cache.json")
            with open(file, "w") as f:
                json.dump(cache, f)
            results, _ = kernel_tuner.tune_kernel(
                "gemm", "__global__ void gemm() {}", (1, 1, 1), [], params, lang="CUDA", cache=file, simulation_mode=True,
                restrictions=recorded, strategy=strategy,
                strategy_options={"max_fevals": min(budget, len(times))}, verbose=False, quiet=True)
        seen = {}
        for r in results:
            seen.setdefault(tuple(r[p] for p in PARAMETERS), r["time"] / 1e3)
        return list(seen.values())

    return search


def persistent(search, times, seed):
    """What a search measures. kernel_tuner's genetic algorithm ends with an error at a configuration without a neighbour
    in the space, which a sparse space has: then it begins again with another seed."""
    for again in range(20):
        try:
            return search(times, BUDGETS[-1], seed + 1000 * again)
        except TypeError:
            pass
    return [max(times.values())]


def rivals():
    out = {"random": at_random, "Optuna TPE": tpe}
    out.update({f"kernel_tuner {s}": kernel_tuner(s) for s in KERNEL_TUNER})
    return out


def noise_of(folder):
    """The relative standard error of recorded times: that of a median, of the samples of each."""
    errors = []
    for path in sorted(folder.glob("measurements*")):
        for r in measurements(path):
            samples = r.get("samples_seconds") or []
            if "config" in r and r["status"] == "ok" and len(samples) >= 5:
                s = statistics.stdev(samples) / statistics.median(samples)
                errors.append(1.2533 * s / math.sqrt(len(samples)))
    return statistics.median(errors) if errors else None


def mean(ratios):
    return math.expm1(statistics.fmean(map(math.log, ratios)))


def summary(ratios):
    return {"regret": mean(ratios), "worst": max(ratios) - 1, "sizes": len(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("origami")
    parser.add_argument("--keep")
    args = parser.parse_args()
    origami, kept = Origami(args.origami), {}
    if args.keep and os.path.exists(args.keep):
        kept = json.loads(Path(args.keep).read_text())
    ratios = {}  # [group][method][budget] = time of the pick ÷ that of the fastest, by size
    spent = {}  # [group][method][budget] = measurements per size

    def note(group, method, budget, values, measured=None):
        ratios.setdefault(group, {}).setdefault(method, {}).setdefault(budget, []).extend(values)
        if measured is not None:
            spent.setdefault(group, {}).setdefault(method, {}).setdefault(budget, []).append(measured)

    warnings.filterwarnings("ignore")
    for group, folders in SETS.items():
        for name in folders:
            folder = DATA / name
            with tempfile.TemporaryDirectory() as scratch:
                rows, file = problems(folder), os.path.join(scratch, "sizes.csv")
                write_problems(rows, file)
                sizes, _ = origami.tune(file, folder, "--strategy", "all")
                tables = [{tuple(parse(s["config"])[p] for p in PARAMETERS): s["seconds"] for s in size["steps"]
                           if "seconds" in s} for size in sizes]
                fastest = [min(t.values()) for t in tables]
                # The first predictions in their order, without learning.
                for budget in [0, *BUDGETS]:
                    note(group, "origami, the model's order", budget,
                         [min(list(t.values())[:max(1, budget)]) / f for t, f in zip(tables, fastest)])
                for budget in BUDGETS:
                    tuned, total = origami.tune(file, folder, "--regret", "0.001%", "--max-measurements",
                                                str(budget * len(rows)))
                    note(group, "origami", budget, [1 + s["known_regret"] for s in tuned],
                         total["measurements"] / len(rows))
                tuned, total = origami.tune(file, folder)
                note(group, "origami, until 1 % is expected", "as needed", [1 + s["known_regret"] for s in tuned],
                     total["measurements"] / len(rows))
                steps = os.path.join(scratch, "steps.yaml")
                write_steps(rows, [dict(zip(PARAMETERS, c)) for c in set().union(*tables)], steps)
                tuned, total = origami.tune(steps, folder, "--strategy", "steps")
                note(group, "Tensile's steps", "as needed", [1 + s["known_regret"] for s in tuned],
                     total["measurements"] / len(rows))
            for method, search in rivals().items():
                seeds = 40 if method == "random" else SEEDS
                for row, times, best in zip(rows, tables, fastest):
                    for seed in range(seeds):
                        key = f"{name} {row} {method} {seed}"
                        if key not in kept:
                            kept[key] = persistent(search, times, seed)
                        for budget in BUDGETS:
                            note(group, method, budget, [min(kept[key][:budget]) / best])
                if args.keep:
                    Path(args.keep).write_text(json.dumps(kept))
            print(name, len(rows), "sizes", file=sys.stderr)
    for budgets in list(ratios.values()):
        for method, of in budgets.items():
            for budget, values in of.items():
                ratios.setdefault("all", {}).setdefault(method, {}).setdefault(budget, []).extend(values)
    for group in list(spent):
        for method, of in spent[group].items():
            for budget, values in of.items():
                spent.setdefault("all", {}).setdefault(method, {}).setdefault(budget, []).extend(values)
    result = {"budgets": BUDGETS, "seeds": SEEDS, "groups": []}
    for group, methods in ratios.items():
        out = {"group": group, "methods": []}
        for method, of in methods.items():
            points = [{"budget": b, **summary(v)} for b, v in of.items()]
            for p in points:
                if p["budget"] in spent.get(group, {}).get(method, {}):
                    p["measured"] = statistics.fmean(spent[group][method][p["budget"]])
            out["methods"].append({"method": method, "points": points})
        result["groups"].append(out)
    result["noise"] = {n: e for f in SETS.values() for n in f if (e := noise_of(DATA / n))}
    (HERE / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    for group in result["groups"]:
        print(group["group"])
        for m in group["methods"]:
            print(f"  {m['method']:34}", *(f"{p['budget']}: {100 * p['regret']:.2f} ({100 * p['worst']:.1f})"
                                          for p in m["points"]))


if __name__ == "__main__":
    main()
