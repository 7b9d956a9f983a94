"""Prints the tables of README.md from what bench.py wrote.

    python3 table.py result.csv
"""

import csv
import math
import sys

WAYS = {
    "split": lambda r: r["way"] == "split",
    "powers": lambda r: r["way"] == "split" and int(r["split"]).bit_count() == 1,
    "whole": lambda r: r["way"] == "split" and r["split"] == "1",
    "stream": lambda r: r["way"] == "stream",
    "matmul": lambda r: r["way"] == "torch.matmul",
}


def name(r):
    """A configuration in words."""
    tile = "×".join(r[key] for key in ("bm", "bn", "bk"))
    if r["way"] == "split":
        return f"{tile}, {r['warps']} warps, split {r['split']}"
    return f"{tile}, {r['warps']} warps, {r['programs']} share {r['shared']}, {r['sum']}"


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    with open(sys.argv[1]) as file:
        rows = list(csv.DictReader(file))
    sizes = {}
    for r in rows:
        if r["phase"] == "turns":
            sizes.setdefault((r["class"], int(r["m"]), int(r["n"]), int(r["k"])), []).append(r)
    best = {}
    for size, measured in sizes.items():
        best[size] = {}
        for way, wanted in WAYS.items():
            best[size][way] = min(filter(wanted, measured), key=lambda r: float(r["us"]), default=None)
    print("| class | sizes | stream ÷ split | worst | best | ÷ split 1, 2, 4 … | ÷ no split | gain of having both |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for of in ("split", "waves", "prefill", ""):
        some = [found for size, found in best.items() if of in size[0] and found["stream"]]
        def ratios(way, some=some):
            return [float(found["stream"]["us"]) / float(found[way]["us"]) for found in some]
        split = ratios("split")
        print(f"| {of or 'all'} | {len(some)} | {mean(split):.3f} | {max(split):.3f} | {min(split):.3f} | "
              f"{mean(ratios('powers')):.3f} | {mean(ratios('whole')):.3f} | "
              f"{1 - mean([min(1, x) for x in split]):.1%} |")
    print("\n| size | split | stream | stream ÷ split | `torch.matmul` ÷ split | best split | best stream |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (of, m, n, k), found in sorted(best.items()):
        split, stream = found["split"], found["stream"]
        us = float(split["us"])
        mine = f"{stream['us']} µs | {float(stream['us']) / us:.3f}" if stream else "– | –"
        print(f"| {m}×{n}×{k} | {us:.2f} µs | {mine} | {float(found['matmul']['us']) / us:.3f} | {name(split)} | "
              f"{name(stream) if stream else '–'} |")


if __name__ == "__main__":
    main()
