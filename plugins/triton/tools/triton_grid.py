"""Measures every listed configuration of the Triton family on every listed problem, on the GPU of this machine: brute
force, for thousands of problems.

    python3 triton_grid.py OUT SET… [--budget SECONDS] [--prune] [--kernel FAMILY]

A SET is a folder with configs.csv and problems.csv (plugins/nvidia/data/grids has some). For each type and layout the
data set OUT/<set>-<layout> is written, in CSV. The problems are measured in the order given, until the budget is used
up. A problem that OUT has already is not measured again, so that the same command continues.

With --prune, a configuration is left out at problems for which it has too many CTAs: MOST_SPLIT if it splits K, and
MOST_SMALL if its tile is smaller than 64x64. At 825 problems of an H200 that were measured in full, none of these was the
fastest, and they took 70 % of the time.

triton_measure.py waits for each run. Here all runs of a round are put on the stream at once, and the device never waits
for the host: each run begins with a flush of the L2 and a pause. Each kernel first multiplies matrices of -1, 0 and 1,
whose sums are exact, and runs once. Those that are not much slower than the fastest run again, in ROUNDS.
"""

import contextlib
import csv
import json
import statistics
import sys
import time

from triton_measure import LIBRARY, Sweep, arguments, kernel, keys_of, measure, read_configs, read_problems

# Who runs again, by the time ÷ the fastest one's, and how often. Nine samples in all.
ROUNDS = ((2, 2), (1.25, 2), (1.1, 4))
TIMES = ("m", "n", "k", "bm", "bn", "bk", "stages", "warps", "gm", "split", "ms", "reps")
KERNELS = ("bm", "bn", "bk", "stages", "warps", "gm", "split", "even_k", "n_regs", "n_spills", "shared", "status")
LIBRARIES = ("m", "n", "k", "ms", "reps")
# See above. An H200 has 132 SMs.
MOST_SPLIT, MOST_SMALL, SMALL = 8 * 132, 32 * 132, 64 * 64
# Seconds between two readings of clock, power and temperature.
READINGS = 5


def kind(p, c):
    """What the code depends on, for problems without leading dimensions: cheaper to make than kernel.key."""
    sizes = [(v == 1, v % kernel.DIVISOR == 0) for v in (p.m, p.n, p.k)]
    sums = kernel.blocks_of_sum(p.n) if c.split_k > 1 else 0
    return c, p.dtype, p.a_major, p.b_major, *sizes, p.k % (c.block_k * c.split_k) == 0, sums


def prunes(p, c):
    """Whether --prune leaves out a configuration at a problem."""
    ctas = kernel.tiles(p, c) * c.split_k
    return c.split_k > 1 and ctas > MOST_SPLIT or c.block_m * c.block_n < SMALL and ctas > MOST_SMALL


def layout(p):
    return ("t" if p.a_major == "m" else "n") + ("t" if p.b_major == "k" else "n")


def columns(c):
    return [c.block_m, c.block_n, c.block_k, c.num_stages, c.num_warps, c.group_m, c.split_k]


class Table:
    """A data set in CSV that grows."""

    def __init__(self, folder, description):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "dataset.json").write_text(json.dumps(description, indent=2) + "\n")
        self.folder = folder
        with contextlib.ExitStack() as files:
            self.times, known = self._open(files, "times.csv", TIMES)
            self.kernels, kernels = self._open(files, "kernels.csv", KERNELS)
            self.library, _ = self._open(files, LIBRARY + ".csv", LIBRARIES)
            self.environment = files.enter_context((folder / "environment.ndjson").open("a"))
            self.close = files.pop_all().close
        self.known = {tuple(map(int, row[:3])) for row in known}
        self.built = {tuple(row[:8]) for row in kernels}
        self.read = -READINGS

    def _open(self, files, name, header):
        path, rows = self.folder / name, []
        if path.exists():
            rows = list(csv.reader(path.read_text().splitlines()))[1:]
        file = files.enter_context(path.open("a"))
        if not path.stat().st_size:
            file.write(",".join(header) + "\n")
        return file, rows

    def has(self, p):
        return (p.m, p.n, p.k) in self.known

    def problem(self, p, samples, library):
        """Writes the samples of a problem, by configuration."""
        def row(*cells):
            return ",".join(map(str, (p.m, p.n, p.k, *cells))) + "\n"

        def times(seconds):
            return f"{statistics.median(seconds) * 1e3:.4g}", len(seconds)

        self.library.write(row(*times(library)))
        self.times.write("".join(row(*columns(c), *times(seconds)) for c, seconds in samples.items()))
        self.library.flush()
        self.times.flush()

    def kernel(self, p, c, resources):
        """Writes what the compiler reports of a kernel, once."""
        cells = [*map(str, columns(c)), str(int(p.k % (c.block_k * c.split_k) == 0))]
        if tuple(cells) in self.built:
            return
        self.built.add(tuple(cells))
        if resources is None:
            cells += ["", "", "", "refused"]
        else:
            cells += map(str, (resources.registers, resources.spill_bytes // 4, resources.shared_memory_bytes, "ok"))
        self.kernels.write(",".join(cells) + "\n")
        self.kernels.flush()

    def reading(self, now, state):
        """Writes the state of the device, every few seconds."""
        if now - self.read >= READINGS:
            self.read = now
            self.environment.write(json.dumps(state()) + "\n")
            self.environment.flush()


class Grid(Sweep):
    """device has code, check_all, batch, state and late besides, as class Batches of gpu_of_tools has them."""

    prune, family = False, kernel.FAMILY

    def run(self, folder):
        """Measures a set. Returns whether it is complete."""
        began, all_configs = self.clock(), list(read_configs(folder / "configs.csv", self.family))

        def configs(p):
            return [c for c in all_configs if not (self.prune and prunes(p, c))]

        problems, tables = list(read_problems(folder / "problems.csv")), {}
        for p in problems:
            if layout(p) not in tables:
                tables[layout(p)] = self.table(folder.name, p)
        problems = [p for p in problems if not tables[layout(p)].has(p)]
        jobs = {kind(p, c): (p, c) for p in problems for c in configs(p)}
        ready = self.compile(list(jobs.values()))
        print(f"{folder.name}: {len(jobs)} kernels compiled after {self.clock() - began:.0f} s", flush=True)
        self.codes, done = {}, 0
        for p in problems:
            if self.left() < 0:
                break
            done += self.grid(tables[layout(p)], p, configs(p), ready)
        for table in tables.values():
            table.close()
        print(f"{folder.name}: {done} of {len(problems)} problems, {self.clock() - began:.0f} s, {self.left():.0f} s left, "
              f"{self.device.late} runs repeated", flush=True)
        return done == len(problems)

    def table(self, name, p):
        description = {
            "arch": self.device.arch, "device": self.device_id, "device_name": self.device.name,
            "driver_device_name": self.device.name, "kernel": self.family, "warm_l2": False, "input": "normal",
            "software": self.device.software, "source": "plugins/triton/tools/triton_grid.py on one " + self.device.name,
            "dtype": p.dtype, "trans_a": p.a_major == "m", "trans_b": p.b_major == "k", "group_m": 8, "library": LIBRARY,
        }
        return Table(self.out / f"{name}-{layout(p)}", description)

    def code(self, p, c, ready):
        """The compiled kernels of a configuration, None if there are none."""
        at = kind(p, c)
        if at not in self.codes:
            keys = keys_of(p, c)
            fits = keys <= ready and not keys & self.refused.keys()
            self.codes[at] = self.device.code(p, c) if fits else None
        return self.codes[at]

    def grid(self, table, p, configs, ready):
        """Measures the configurations on a problem, and the library. Returns 1 if it did."""
        codes = {c: self.code(p, c, ready) for c in configs}
        for c, code in codes.items():
            table.kernel(p, c, code and code[0].resources)
        table.reading(self.clock(), self.device.state)
        self.device.prepare(p)
        wrong, samples = self.device.check_all(p, {c: code for c, code in codes.items() if code})
        for c in wrong:
            print(f"WRONG {p} {c}: {wrong[c]}", flush=True)
            samples.pop(c, None)
        if not samples:
            return 0
        for most, runs in ROUNDS:
            least = min(statistics.median(seconds) for seconds in samples.values())
            again = {c: codes[c] for c in samples if statistics.median(samples[c]) <= most * least}
            for c, seconds in self.device.batch(p, again, runs).items():
                samples[c] += seconds
        library = self.device.library(p, LIBRARY)
        table.problem(p, samples, [self.device.timed(library)[0] for _ in range(9)])
        return 1


def main():
    parser = arguments("Measures all listed Triton kernels on all listed problems.")
    parser.add_argument("--prune", action="store_true", help="leave out configurations with too many CTAs")
    parser.add_argument("--kernel", default=kernel.FAMILY, choices=kernel.FAMILIES, help="the kernel family")
    options = parser.parse_args()
    began = time.monotonic()
    from gpu_of_tools import Batches

    sweep = Grid(Batches(), options.out, options.budget - (time.monotonic() - began), options.device)
    sweep.prune, sweep.family = options.prune, options.kernel
    sys.exit(0 if measure(sweep, options.sets) else 1)


if __name__ == "__main__":
    main()
