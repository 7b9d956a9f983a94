"""Measures listed configurations of the Triton family on listed problems, on the GPU of this machine.

    python3 triton_measure.py OUT SET… [--budget SECONDS]

A SET is a folder with configs.csv, and with problems in fit.csv and test.csv (plugins/nvidia/data/sweeps has some). For
each list the data set OUT/<set>-<list> is written, in JSON Lines. The sets are measured in the order given, until the
budget is used up. What OUT has already is not measured again, so that the same command continues.

Kernels are compiled on all cores first, then measured as the executor does: L2 flushed before each run, standard normal
operands. Before, each kernel multiplies matrices of -1, 0 and 1. Those sums are exact in every type, so that any
deviation is an error. A kernel that is much slower than the best of its problem gets fewer runs.
"""

import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import statistics
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(REPOSITORY / folder) for folder in ("plugins/triton", "sdk/python", "bindings/python")]
from origami_gemm_plugin import Config, InputError, PluginError, Problem  # noqa: E402
from origami_triton import VERSION, kernel  # noqa: E402

LISTS = ("fit", "test")
LIBRARY = "torch.matmul"
# What else multiplies groups: in one launch.
OF_GROUPS = "torch._grouped_mm"
# Runs of a kernel, and of one that is HOPELESS times slower than the best of its problem: odd numbers.
RUNS, FEW = 9, 3
HOPELESS = 2
# A kernel gets FEW runs too if these take this long.
LONG_SECONDS = 30e-3
# The share of the remaining time that compilation may take. Kernels that are not ready then are left out.
COMPILING = 0.6
# The exit status after a kernel that cost the process its context. The same command continues behind it.
LOST = 75


def read_problems(path):
    """The problems of a CSV file with columns of the command line's --problems."""
    for row in csv.DictReader(path.read_text().splitlines()):
        numbers = {name: int(row[name]) for name in ("m", "n", "k")}
        numbers |= {name: int(value) for name, value in row.items() if name.startswith(("ld", "align")) and value}
        yield Problem(
            a_major="m" if row["trans_a"] == "1" else "k", b_major="k" if row["trans_b"] == "1" else "n",
            dtype=row["dtype"], out_dtype=row.get("out_dtype") or "", **numbers,
            groups=tuple(map(int, filter(None, (row.get("groups") or "").split(",")))),
        )


def read_configs(path, family=kernel.FAMILY):
    for row in csv.DictReader(path.read_text().splitlines()):
        yield Config(family, **{name: int(value) for name, value in row.items()})


def record(problem):
    """A problem as a line of a data set has it."""
    p = problem
    text = {"m": p.m, "n": p.n, "k": p.k, "batch": p.batch, "trans_a": p.a_major == "m", "trans_b": p.b_major == "k",
            "dtype": p.dtype}
    if p.out_dtype:
        text["out_dtype"] = p.output
    text |= {f"ld{matrix}": p.ld(matrix) for matrix in "abc" if p.ld(matrix) != p.rows(matrix)[1]}
    text |= {f"align_{matrix}": p.align(matrix) for matrix in "abc" if p.align(matrix) != kernel.DIVISOR}
    return text | ({"groups": list(p.groups)} if p.groups else {})


def config_record(c):
    names = ("block_m", "block_n", "block_k", "group_m", "num_warps", "num_stages", "split_k")
    return {name: getattr(c, name) for name in names}


def sample_fields(samples):
    """The times of a line. samples are pairs of seconds and clock."""
    seconds = [s for s, _ in samples]
    median = statistics.median(seconds)
    fields = {"median_seconds": median, "samples_seconds": seconds,
              "spread": statistics.median(abs(s - median) for s in seconds) / median}
    clocks = [clock for _, clock in samples if clock]
    if clocks:
        fields |= {"clock_min_hz": min(clocks), "clock_max_hz": max(clocks)}
        if (max(clocks) - min(clocks)) / max(clocks) > 0.02:
            fields["clock_moved"] = True
    return fields


class Log:
    """A data set that grows."""

    def __init__(self, folder, conditions, software):
        folder.mkdir(parents=True, exist_ok=True)
        self.conditions = conditions
        description = conditions | {
            "software": software, "source": "plugins/triton/tools/triton_measure.py on one " + conditions["device_name"]
        }
        (folder / "dataset.json").write_text(json.dumps(description, indent=2) + "\n")
        path = folder / "measurements.jsonl"
        self.known = set()
        if path.exists():
            text = path.read_bytes()
            path.write_bytes(text[: text.rfind(b"\n") + 1])  # without a line that was cut off
            for line in path.read_text().splitlines():
                line = json.loads(line)
                self.known.add(self.key(line["problem"], line.get("config"), line.get("library")))
        self.file = path.open("a")

    @staticmethod
    def key(problem, config, library):
        return json.dumps([problem, config, library], sort_keys=True)

    def close(self):
        self.file.close()

    def has(self, problem, config=None, library=None):
        return self.key(record(problem), config and config_record(config), library) in self.known

    def write(self, problem, status, config=None, library=None, **fields):
        line = {"schema": 1, "phase": "sweep", "status": status, **self.conditions, "problem": record(problem)}
        line |= {"config": config_record(config)} if config else {"library": library}
        self.file.write(json.dumps(line | fields) + "\n")
        self.file.flush()


class Sweep:
    """device has arch, name, software, build, prepare, check, library and timed, as module device_of_gpu has them."""

    def __init__(self, device, out, budget, device_id="h200", clock=time.monotonic):
        self.device, self.out, self.device_id, self.clock = device, out, device_id, clock
        self.end = clock() + budget
        self.refused = {}  # by the key of the code

    def left(self):
        return self.end - self.clock()

    def log(self, name):
        conditions = {"arch": self.device.arch, "device": self.device_id, "device_name": self.device.name,
                      "driver_device_name": self.device.name, "kernel": kernel.FAMILY, "warm_l2": False,
                      "input": "normal", "executor": "triton", "executor_version": VERSION}
        return Log(self.out / name, conditions, self.device.software)

    def run(self, folder):
        """Measures a set. Returns whether it is complete."""
        began, configs = self.clock(), list(read_configs(folder / "configs.csv"))
        lists = [(self.log(f"{folder.name}-{name}"), list(read_problems(folder / f"{name}.csv"))) for name in LISTS]
        jobs = [(p, c) for log, problems in lists for p in problems for c in configs if not log.has(p, c)]
        ready = self.compile(jobs)
        compiled = self.clock() - began
        done = 0
        for log, problems in lists:
            for p in problems:
                if self.left() < 0:
                    break
                done += self.problem(log, p, [c for c in configs if not log.has(p, c) and keys_of(p, c) <= ready])
        for log, _ in lists:
            log.close()
        print(f"{folder.name}: {done} of {len(jobs)} measured, {compiled:.0f} s compiling, "
              f"{self.clock() - began - compiled:.0f} s measuring, {self.left():.0f} s left", flush=True)
        return done == len(jobs)

    def compile(self, jobs):
        """Compiles what the jobs need, the largest kernels first. Returns the keys of what was compiled in time."""
        wanted = {}
        for p, c in jobs:
            wanted.setdefault(frozenset(keys_of(p, c)), (p, c))
        limit = self.left() * COMPILING
        size = {key: c.block_m * c.block_n * c.block_k for key, (p, c) in wanted.items()}
        ready = set()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            order = sorted(wanted, key=size.get, reverse=True)
            futures = {pool.submit(self.device.build, *wanted[key]): key for key in order}
            try:
                for future in concurrent.futures.as_completed(futures, timeout=max(limit, 0)):
                    key = futures[future]
                    try:
                        refusal = future.result()
                    except InputError as error:
                        refusal = str(error)
                    ready |= key
                    if refusal:
                        self.refused |= dict.fromkeys(key, refusal)
            except concurrent.futures.TimeoutError:
                pool.shutdown(cancel_futures=True)
                print(f"no time to compile {len(wanted) - len(ready)} of {len(wanted)} kernels", flush=True)
        return ready

    def problem(self, log, p, configs):
        """Measures configurations on a problem, and the library. Returns how many configurations were measured."""
        libraries = [x for x in (LIBRARY, *[OF_GROUPS] * bool(p.groups)) if not log.has(p, library=x)]
        if not configs and not libraries:
            return 0
        try:
            self.device.prepare(p)
        except InputError as error:
            print(f"  {p} is left out: {error}", flush=True)
            return 0
        best, done = None, 0
        for library in libraries:
            self.library(log, p, library)
        for c in configs:
            if self.left() < 0:
                return done
            done += 1
            refusal = next((self.refused[key] for key in keys_of(p, c) if key in self.refused), "")
            if refusal:
                log.write(p, "not_built", c, detail=one_line(refusal))
                continue
            try:
                best = self.config(log, p, c, best)
            except PluginError as error:
                log.write(p, "failed", c, detail=one_line(str(error)))
                print(f"{p} {c}: {error}", flush=True)
                sys.exit(LOST)
            except InputError as error:
                log.write(p, "not_built", c, detail=one_line(str(error)))
        flops = 2 * p.m * p.n * p.k
        if best:
            found = f"{best[0] * 1e6:.1f} us, {flops / best[0] / 1e12:.0f} T/s, {best[1]}"
            print(f"  {p}: {found}; {self.left():.0f} s left", flush=True)
        return done

    def config(self, log, p, c, best):
        """Checks and times a kernel. Returns the best time and configuration so far."""
        run, resources, numerics = self.device.check(p, c)
        fields = {"resources": resources, "numerics": numerics}
        if numerics["wrong_elements"] or numerics["out_of_bounds_bytes"]:
            print(f"WRONG {p} {c}: {numerics}", flush=True)
            log.write(p, "wrong_numerics", c, **fields)
            return best
        samples = self.samples(run, best)
        fields |= sample_fields(samples)
        log.write(p, "ok", c, **fields)
        median = fields["median_seconds"]
        return (median, c) if best is None or median < best[0] else best

    def samples(self, run, best=None):
        samples = [self.device.timed(run) for _ in range(FEW)]
        times = [s for s, _ in samples]
        if sum(times) < LONG_SECONDS and not (best and min(times) > HOPELESS * best[0]):
            samples += [self.device.timed(run) for _ in range(RUNS - FEW)]
        return samples

    def library(self, log, p, name):
        try:
            run = self.device.library(p, name)
        except InputError as error:
            print(f"  {name} of {p}: {error}", flush=True)
            return
        fields = sample_fields(self.samples(run))
        log.write(p, "ok", library=name, **fields)
        print(f"  {p}: {name} {fields['median_seconds'] * 1e6:.1f} us", flush=True)


def keys_of(p, c):
    """The keys of the code of a configuration."""
    return {kernel.key(p, c)} | ({kernel.key_of_sum(p, c)} if c.split_k > 1 else set())


def one_line(text):
    """A text as the detail of a line, with its end, which has the error."""
    return " ".join(text.split())[-1000:]


def arguments(description):
    """The arguments of a command that measures."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("sets", type=pathlib.Path, nargs="+")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which nothing new is begun")
    parser.add_argument("--device", default="h200", help="the device's id in the catalogue")
    return parser


def measure(sweep, sets):
    """Measures all sets, and says whether nothing is left."""
    complete = all([sweep.run(folder) for folder in sets])
    sweep.device.close()
    print("complete" if complete else "incomplete: the same command continues", flush=True)
    return complete


def main():
    options = arguments("Measures listed Triton kernels on listed problems.").parse_args()
    began = time.monotonic()
    from gpu_of_tools import OnGpu

    sweep = Sweep(OnGpu(), options.out, options.budget - (time.monotonic() - began), options.device)
    measure(sweep, options.sets)


if __name__ == "__main__":
    main()
