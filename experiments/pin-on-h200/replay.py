"""Scores pins on recorded times, without a GPU and without Triton.

    python3 replay.py times.jsonl[.gz] ttgir.json[.xz]

A line of the first has args (numbers, and [dtype, shape, strides, ...] for tensors), and configs with id, kwargs, grid, n_regs,
n_spills, shared, ttgir (a key of the second) and us.
"""

import gzip
import json
import lzma
import math
import sys

from origami_gemm import lib
from origami_gemm.pin import ttgir, work

OPEN = {"gz": gzip.open, "xz": lzma.open}


def opened(path):
    return OPEN.get(path.rsplit(".", 1)[-1], open)(path, "rt")


def main():
    texts = json.load(opened(sys.argv[2]))
    library, shares, inside, right, withheld = lib.load(), {}, [], [], 0
    for row in map(json.loads, opened(sys.argv[1])):
        good = [c for c in row["configs"] if c.get("us")]
        if len(good) < 2:
            continue
        kernels = []
        try:
            parsed = {h: ttgir.parse(texts[h]) for h in {c["ttgir"] for c in good}}
            for c in good:
                kernel, _ = work.describe(parsed[c["ttgir"]], {**row["args"], **c["kwargs"]}, c["grid"], c["n_regs"],
                                          c["n_spills"], c["shared"])
                kernels.append(kernel)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, ZeroDivisionError, OverflowError) as e:
            print("withheld:", row["case"], repr(e)[:120])
            withheld += 1
            pick = min(range(len(good)), key=lambda i: (good[i]["n_spills"], -good[i]["num_warps"], i))
        else:
            answer = library.ask({"ask": "pin", "arch": "sm90", "device": "h200", "kernels": kernels})
            pick, times = answer["pick"], answer["times"]
            inside += [t["interval"][0] <= c["us"] * 1e-6 <= t["interval"][1] for t, c in zip(times, good)]
            for i, (x, a) in enumerate(zip(times, good)):
                for y, b in zip(times[:i], good):
                    if max(x["seconds"], y["seconds"]) > 1.2 * min(x["seconds"], y["seconds"]):
                        right.append((x["seconds"] < y["seconds"]) == (a["us"] < b["us"]))
        shares.setdefault(row["kernel"], []).append(min(c["us"] for c in good) / good[pick]["us"])
    every = [s for of in shares.values() for s in of]
    for kernel, of in shares.items():
        print(f"{kernel[-60:]:60s} {math.exp(sum(map(math.log, of)) / len(of)):.3f} {min(of):.3f}")
    print(f"{len(every)} cases: geomean {math.exp(sum(map(math.log, every)) / len(every)):.4f}, worst {min(every):.4f}, "
          f"withheld {withheld}; intervals hold {sum(inside) / len(inside):.4f}; order right {sum(right) / len(right):.4f}")


if __name__ == "__main__":
    main()
