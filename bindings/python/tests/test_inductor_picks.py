"""The picks that are made today, at the times that were recorded in Inductor (experiments/inductor-on-h200 and
persistent-on-h100). They need liborigami, and neither torch nor a GPU."""

import json
import pathlib
import re
import statistics
import unittest

from origami_gemm import Model
from origami_gemm.inductor import _problem
from origami_gemm.inductor._problem import Matrix
from tests import needs

needs.all_of(required=("ORIGAMI_REQUIRE_LIB",))

MEASURED = pathlib.Path(__file__).resolve().parents[3] / "experiments"
# How many of today's picks Inductor timed; their times ÷ those of its best Triton kernels, as a geometric mean and at worst.
LEAST, MEAN, WORST = 21, 0.99, 1.10
TYPES = {"bf16": ("bfloat16", 2), "fp16": ("float16", 2), "fp8": ("float8_e4m3fn", 1)}
ROW = re.compile(r"\w+ (?P<sizes>[\dx]+) (?P<dtype>\w+) (?P<layout>[NT]{2}): (?P<pick>\d+x\d+x\d+ [^;]*?)(?: and .*)?;")
SPARE = 8


def matrix(sizes, transposed, dtype):
    """A dense matrix, whose last two dimensions may be swapped in memory."""
    name, itemsize = TYPES[dtype]
    *_, rows, columns = sizes
    inner = (1, rows) if transposed else (columns, 1)
    return Matrix(sizes, (rows * columns, *inner) if len(sizes) == 3 else inner, name, itemsize)


def asked(row):
    """The problem that the model was asked about, from a row of the report of a graph without dynamic sizes."""
    *batch, m, n, k = map(int, row["sizes"].split("x"))
    dtype = row["dtype"]
    a, b = (matrix((*batch, *sizes), turned == "T", dtype)
            for sizes, turned in zip(((m, k), (k, n)), row["layout"]))
    out = "bfloat16" if dtype == "fp8" else TYPES[dtype][0]
    problem = _problem.problem(a, b, out, False)
    return _problem.with_constants(problem, TYPES[dtype][1], {"m", "n", "k", "lda", "ldb"})


def picked(model, row):
    problem = asked(row)
    picks = model.rank(**problem, top=1 + SPARE)
    return str(next(p for p in picks if _problem.configuration(p, problem["dtype"])))


def median(contender):
    return contender.get("kernel_s", {}).get("median")


def fastest(contender):
    """What Inductor's own timing preferred: a Pick's words, or the name of a kernel of cuBLAS."""
    timed = (contender.get("timed") or [{}])[-1]
    value = dict(re.findall(r"(\w+)=(\d+)", timed.get("description", "")))
    words = "{BLOCK_M}x{BLOCK_N}x{BLOCK_K} w{num_warps} s{num_stages} g{GROUP_M}"
    return words.format(**value) if "BLOCK_M" in value else timed.get("best", "–")


def best_triton(contenders):
    """The seconds of the fastest Triton kernel of Inductor's list. Where cuBLAS was faster and the list without it was not
    measured, the difference is that of Inductor's own timing. None if that is not known."""
    own, triton = contenders.get("own", {}), lambda name: name[:1].isdigit()  # functions of cuBLAS have names
    if triton(fastest(own)):
        return median(own)
    if alone := median(contenders.get("own-triton", {})):
        return alone
    times = (own.get("timed") or [{}])[-1].get("ms", [])
    kernels = [ms for name, ms in times if triton(name)]
    return median(own) + (min(kernels) - times[0][1]) / 1e3 if kernels and median(own) else None


class Orders(unittest.TestCase):
    """Inductor's templates mm and the persistent one with TMA: 16 picks of each family were timed in both."""

    FIRST, ENOUGH = (1, 2, 4, 8), 16

    def ranked(self, model, problem):
        picks = [p for p in model.rank(**problem, top=4 * self.ENOUGH) if _problem.configuration(p, problem["dtype"])]
        return [(p.seconds, (p.block_m, p.block_n, p.block_k, p.num_warps, p.num_stages, p.group_m))
                for p in picks[:self.ENOUGH]]

    def orders(self, models, problem):
        """Kernels, templates and configurations, in the order of each candidate."""
        tiled, persistent = (self.ranked(model, problem) for model in models)
        mm, tma = [("mm", c) for _, c in tiled], [("tma", c) for _, c in persistent]
        together = sorted([(s, ("mm", c)) for s, c in tiled] + [(s, ("tma", c)) for s, c in persistent], key=lambda x: x[0])
        return {"mm": mm, "tma": tma, "tma by the other model": [("tma", c) for _, c in tiled],
                "together": [kernel for _, kernel in together], "half of each": [k for pair in zip(tma, mm) for k in pair]}

    def test_both_templates_together(self):
        """No other order of Inductor's templates puts faster kernels first, and the best four are near the best of all."""
        tiled, found = Model("sm90", "h100"), {}
        models = tiled, tiled.sibling("triton_persistent")
        data = json.loads((MEASURED / "persistent-on-h100" / "inductor.json").read_text())
        for name, product in data["products"].items():
            dtype, sizes = name.split()
            if dtype != "bf16":
                continue
            timed = {(template, tuple(values)): us for template, *values, us, _ in product["kernels"]}
            asked = dict(zip("mnk", map(int, sizes.split("x"))), dtype=dtype, trans_b=True)
            for order, kernels in self.orders(models, asked).items():
                known = [timed[k] for k in kernels if k in timed]
                for first in self.FIRST:
                    found.setdefault((order, first), []).append(min(timed.values()) / min(known[:first]))
        means = {key: statistics.geometric_mean(shares) for key, shares in found.items()}
        for first in self.FIRST:
            best = max(means[order, n] for order, n in means if n == first)
            self.assertGreaterEqual(means["together", first], best - 0.005, first)
        self.assertGreater(means["together", 1], 0.97)
        self.assertGreater(means["together", 4], 0.99)


class Replayed(unittest.TestCase):
    def test_picks_of_today(self):
        """Most were timed in Inductor, and are as fast as is documented beside its best Triton kernel."""
        model, ratios = Model("sm90", "h200"), {}
        for name, product in json.loads((MEASURED / "inductor-on-h200" / "result.json").read_text())["products"].items():
            contenders = product["contenders"]
            best = best_triton(contenders)
            times = {fastest(contenders[c]): median(contenders[c])
                     for c in ("own", "own-triton", "top4", "top4-triton", "top1") if c in contenders}
            # Without cuBLAS the pick ran, whatever Inductor's timing prefers.
            alone = contenders.get("top1-triton", {})
            row = next(filter(None, map(ROW.match, (alone or contenders.get("top1", {})).get("report", []))), None)
            if not best or not row:
                continue
            if median(alone):
                times[row["pick"]] = median(alone)
            elif row["pick"] not in times:  # cuBLAS was faster
                continue
            today = picked(model, row)
            if today in times:
                ratios[name] = times[today] / best
        self.assertGreaterEqual(len(ratios), LEAST)
        self.assertLessEqual(statistics.geometric_mean(ratios.values()), MEAN)
        self.assertLessEqual(max(ratios.values()), WORST, max(ratios, key=ratios.get))


if __name__ == "__main__":
    unittest.main()
