"""Prints the tables of README.md from what bench.py wrote, compressed.

    python3 table.py result.csv.gz
"""

import csv
import gzip
import math
import sys

WAYS = {
    "split": lambda r: r["way"] == "split",
    "powers": lambda r: r["way"] == "split" and int(r["split"]).bit_count() == 1,
    "whole": lambda r: r["way"] == "split" and r["split"] == "1",
    "stream": lambda r: r["way"] == "stream",
    "matmul": lambda r: r["way"] == "torch.matmul",
}
SMS = 132
# The names of the groups of sizes, and which sizes they have.
CLASSES = {of: lambda size, of=of: of in size[0].split() for of in ("split", "waves", "prefill")}
LEAST_K = 3584
WAVES = {
    "up to 1": lambda size: waves(size) <= 1,
    f"1 to 1.25, k ≥ {LEAST_K}": lambda size: 1 < waves(size) <= 1.25 and size[3] >= LEAST_K,
    f"1 to 1.25, k < {LEAST_K}": lambda size: 1 < waves(size) <= 1.25 and size[3] < LEAST_K,
    "1.25 to 2": lambda size: 1.25 < waves(size) <= 2,
    "above 2": lambda size: waves(size) > 2,
}


def waves(size):
    """The waves of 128×256 tiles."""
    return -(-size[1] // 128) * -(-size[2] // 256) / SMS


def name(r):
    """A configuration in words."""
    tile = "×".join(r[key] for key in ("bm", "bn", "bk"))
    if r["way"] == "split":
        return f"{tile}, {r['warps']} warps, split {r['split']}"
    return f"{tile}, {r['warps']} warps, {r['programs']} share {r['shared']}, {r['sum']}"


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def group(title, best, groups):
    """The table of groups of sizes."""
    print(f"| {title} | sizes | stream-K ÷ split-K | best | worst | ÷ split 1, 2, 4 … | ÷ no split | "
          "the faster ÷ split-K |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for label, wanted in groups.items():
        some = [found for size, found in best.items() if wanted(size) and found["stream"]]
        if not some:
            continue
        split, powers, whole = (
            [float(found["stream"]["us"]) / float(found[way]["us"]) for found in some]
            for way in ("split", "powers", "whole"))
        print(f"| {label} | {len(some)} | {mean(split):.3f} | {min(split):.3f} | {max(split):.3f} | "
              f"{mean(powers):.3f} | {mean(whole):.3f} | {mean([min(1, x) for x in split]):.3f} |")
    print()


def main():
    sizes, best = {}, {}
    with gzip.open(sys.argv[1], "rt") as file:
        for r in csv.DictReader(file):
            if r["phase"] == "turns":
                sizes.setdefault((r["class"], int(r["m"]), int(r["n"]), int(r["k"])), []).append(r)
    for size, rows in sizes.items():
        best[size] = {way: min(filter(wanted, rows), key=lambda r: float(r["us"]), default=None)
                      for way, wanted in WAYS.items()}
    group("list", best, CLASSES)
    group("waves", {size: found for size, found in best.items() if size[0] != "split"}, WAVES)
    print("| size | waves | split-K | stream-K | stream-K ÷ split-K | `torch.matmul` ÷ split-K | best of split-K | "
          "best of stream-K |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for size, found in sorted(best.items(), key=lambda one: (one[0][0] == "split", waves(one[0]), one[0])):
        split, stream = found["split"], found["stream"]
        us = float(split["us"])
        mine = f"{stream['us']} µs | {float(stream['us']) / us:.3f}" if stream else "– | –"
        print(f"| {'×'.join(map(str, size[1:]))} | {waves(size):.2f} | {us:.2f} µs | {mine} | "
              f"{float(found['matmul']['us']) / us:.3f} | {name(split)} | {name(stream) if stream else '–'} |")


if __name__ == "__main__":
    main()
