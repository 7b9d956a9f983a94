"""Compares stream-K with the executor's split-K on the GPU of this machine.

    python3 bench.py OUT.csv [SECONDS]

For each size of sizes.csv: every tile with every split, and with every stream-K launch, is checked against float64 and
timed (phase `all`). Then the three fastest of each way, the fastest without a split, the fastest whose split is a power
of two, and torch.matmul are timed again in turns (phase `turns`). Ratios are to be taken from that phase. Times are
medians with a cold L2, all launches included. No size is begun after SECONDS.
"""

import concurrent.futures
import csv
import math
import multiprocessing
import os
import pathlib
import statistics
import sys
import time

import streamk
import torch
from origami_gemm_plugin import Config, InputError, Problem
from origami_triton import checks, executor, gpu, kernel
from origami_triton.driver import Driver

# bm, bn, bk, warps, stages
TILES = ((16, 32, 256, 4, 3), (16, 64, 128, 4, 4), (16, 128, 128, 4, 3), (32, 32, 128, 4, 4), (32, 64, 128, 4, 4),
         (64, 64, 64, 4, 4), (64, 64, 128, 4, 4), (64, 128, 64, 4, 4), (64, 128, 128, 4, 4), (128, 64, 64, 4, 4),
         (64, 256, 64, 8, 4), (128, 128, 64, 4, 3), (128, 128, 64, 8, 3), (128, 128, 64, 8, 4), (128, 256, 64, 8, 3),
         (128, 256, 64, 8, 4), (256, 128, 64, 8, 3))
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 32)
GROUP = 8
SMS = 132
# The programs that share tiles, and the CTAs per SM that a kernel must have for them.
PROGRAMS = ((66, 1), (132, 1), (264, 2), (528, 4))
SMALL, MOST_TILES = 128 * 128, 16 * SMS  # a tile below this that gives more CTAs is left out
MOST_SPLIT = 8 * SMS  # with more tiles, K is not split
RUNS, FEW, TURNS = 7, 2, 41
HOPELESS = 1.5
FINALISTS = 3
COLUMNS = ("phase,class,m,n,k,way,bm,bn,bk,warps,stages,split,programs,shared,sum,registers,spill_bytes,ctas_per_sm,"
           "runs,us,error").split(",")


def sizes():
    with open(pathlib.Path(__file__).with_name("sizes.csv")) as file:
        return [(row["class"], Problem(*(int(row[name]) for name in "mnk"))) for row in csv.DictReader(file)]


def configs(p):
    """The configurations of the executor's kernel."""
    for bm, bn, bk, warps, stages in TILES:
        for split in SPLITS:
            c = Config(kernel.FAMILY, bm, bn, bk, GROUP, warps, stages, split)
            most = MOST_SPLIT if split > 1 else MOST_TILES if bm * bn < SMALL else math.inf
            if streamk.tiles_of(p, c) <= most and split * bk <= p.k + bk - 1:
                yield c


def key(p, c, flags):
    return kernel.key(p, c) + str(flags)


def compile_stream(job):
    p, c, flags = job
    try:
        streamk.build(p, c, flags, 90)
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Bench:
    def __init__(self, out):
        self.on = executor._Gpu(Driver(), 0)
        self.writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        self.writer.writeheader()
        self.out = out
        self.kernels = {}
        self.flags = torch.zeros(PROGRAMS[-1][0], dtype=torch.int32, device=self.on.device)

    def compile(self, problems):
        """Fills Triton's cache in one process per core."""
        split, stream = {}, {}
        for p in problems:
            for c in configs(p):
                split.setdefault(kernel.key(p, c), (p, c))
                if c.split_k > 1:
                    split.setdefault(kernel.key_of_sum(p, c), (p, c))
                else:
                    for flags in (True, False):
                        stream.setdefault(key(p, c, flags), (p, c, flags))
        cores = os.cpu_count() or 1
        with concurrent.futures.ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
            refused = [text for text in pool.map(compile_stream, stream.values()) if text]
        with concurrent.futures.ThreadPoolExecutor(cores) as pool:
            jobs = set(split.values())
            refused += [text for text in pool.map(lambda job: self.on.compilers.build(*job), jobs) if text]
        print(f"{len(stream)} and {len(split)} kernels compiled, refused: {refused}", flush=True)

    def stream_kernel(self, p, c, flags):
        if key(p, c, flags) not in self.kernels:
            first, second = streamk.build(p, c, flags, self.on.capability)
            resources = executor.Built(self.on, first).resources
            if second:
                second._init_handles()
            self.kernels[key(p, c, flags)] = first, second, resources
        return self.kernels[key(p, c, flags)]

    def ways(self, p, o):
        """What is to be timed: fields of a row, and a function that launches."""
        for c in configs(p):
            fields = {"way": "split", "bm": c.block_m, "bn": c.block_n, "bk": c.block_k, "warps": c.num_warps,
                      "stages": c.num_stages, "split": c.split_k}
            try:
                built = self.on.built(p, c)
                add = self.on.built_sum(p, c).compiled if c.split_k > 1 else None
                yield fields | resources(built.resources), executor.launcher(p, c, o, built.compiled, add)
                if c.split_k == 1:
                    yield from self.streams(p, c, o, fields)
            except InputError as error:
                print(f"{p} {c}: {error}", flush=True)

    def streams(self, p, c, o, fields):
        for flags in (True, False):
            first, second, used = self.stream_kernel(p, c, flags)
            for programs, occupancy in PROGRAMS:
                if used.ctas_per_sm < occupancy or programs < SMS <= streamk.tiles_of(p, c):
                    continue
                for two in (False, True):
                    shared = streamk.shared_tiles(p, c, programs, two)
                    if shared is None:
                        continue
                    parts = torch.empty(streamk.room(c, programs), dtype=torch.float32, device=o.device)
                    more = {"way": "stream", "programs": programs, "shared": shared,
                            "sum": "flags" if flags else "launch"}
                    yield fields | more | resources(used), streamk.launcher(
                        p, c, o.a, o.b, o.c, parts, self.flags if flags else None, programs, shared, first, second)

    def size(self, name, p):
        o = gpu.Operands(p, self.on.device)
        at = {"class": name, "m": p.m, "n": p.n, "k": p.k}
        found, best = [], {}
        for fields, run in self.ways(p, o):
            numerics = checks.check(o, run)
            wrong = numerics.wrong or numerics.out_of_bounds
            result = o.c.clone()
            samples = [self.time(run) for _ in range(FEW)]
            if min(samples) < HOPELESS * best.get(fields["way"], samples[0]):
                samples += [self.time(run) for _ in range(RUNS - FEW)]
            # The order of the sums is fixed, so that every run gives the same bits.
            wrong = wrong or not torch.equal(o.c, result)
            if wrong:
                print(f"WRONG {p} {fields} {numerics}", flush=True)
            us = statistics.median(samples)
            best[fields["way"]] = min(us, best.get(fields["way"], us))
            self.write("all", at | fields, us, len(samples), "wrong" if wrong else f"{numerics.max_error:.2e}")
            if not wrong:
                found.append((us, fields, run))
        self.turns(at, p, o, sorted(found, key=lambda one: one[0]))

    def turns(self, at, p, o, found):
        chosen = {}
        for wanted in (lambda f: f["way"] == "split", lambda f: f["way"] == "stream"):
            for i in [i for i, one in enumerate(found) if wanted(one[1])][:FINALISTS]:
                chosen[i] = found[i][1:]
        for wanted in (lambda f: f.get("split") == 1, lambda f: f["split"].bit_count() == 1):
            i = next(i for i, one in enumerate(found) if one[1]["way"] == "split" and wanted(one[1]))
            chosen[i] = found[i][1:]
        contenders = [*chosen.values(), ({"way": "torch.matmul"}, executor.multiplication(p, o))]
        for _, run in contenders:
            run()
        samples = [[] for _ in contenders]
        for _ in range(TURNS):
            for (_, run), times in zip(contenders, samples, strict=True):
                times.append(self.time(run))
        for (fields, _), times in zip(contenders, samples, strict=True):
            self.write("turns", at | fields, statistics.median(times), TURNS, "")
        self.out.flush()

    def time(self, run):
        return self.on.timed(run, warm=False).seconds * 1e6

    def write(self, phase, fields, us, runs, error):
        self.writer.writerow({"phase": phase, **fields, "us": f"{us:.2f}", "runs": runs, "error": error})


def resources(r):
    return {"registers": r.registers, "spill_bytes": r.spill_bytes, "ctas_per_sm": r.ctas_per_sm}


def main():
    began = time.monotonic()
    limit = float(sys.argv[2]) if len(sys.argv) > 2 else float("inf")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    with open(sys.argv[1], "w") as out:
        bench = Bench(out)
        todo = sizes()
        bench.compile([p for _, p in todo])
        print(f"{time.monotonic() - began:.0f} s", bench.on.name, executor.RUNTIME, bench.on.state.environment(""),
              flush=True)
        for name, p in todo:
            if time.monotonic() - began > limit:
                print(f"{p} and those after it are left out", flush=True)
                break
            bench.size(name, p)
            print(f"{time.monotonic() - began:.0f} s {p}", flush=True)
        bench.on.compilers.close()


if __name__ == "__main__":
    main()
