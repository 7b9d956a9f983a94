"""What was measured in Inductor on an H200 (experiments/inductor-on-h200) against its goals, and the picks that
are made today against those that were measured. The latter needs liborigami; neither needs torch or a GPU."""

import json
import os
import pathlib
import re
import statistics
import sys
import unittest

from origami_gemm import Error, Model
from origami_gemm.inductor import _problem
from origami_gemm.inductor._problem import Matrix

MEASURED = pathlib.Path(__file__).resolve().parents[3] / "experiments" / "inductor-on-h200"
sys.path.append(str(MEASURED))
import table  # noqa: E402

sys.path.append(str(MEASURED.parent / "persistent-on-h100"))
import orders  # noqa: E402

RESULT = json.loads((MEASURED / "result.json").read_text())
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


class Goals(unittest.TestCase):
    """The measurement meets the goals of the experiment."""

    # A product with a single row has no report, since Inductor makes no matrix product of it.
    ROWS = {name: row for name, row in RESULT["products"].items()
            if any(c.get("report") for c in row["contenders"].values())}

    def test_kernels(self):
        for contender, least, mean in (("top1", 33, 1.02), ("top4", 30, 1.00)):
            with self.subTest(contender):
                ratios = table.ratios(self.ROWS, contender)
                self.assertGreaterEqual(len(ratios), least)
                self.assertLessEqual(statistics.geometric_mean(ratios.values()), mean)
                self.assertLessEqual(max(ratios.values()), 1.10, max(ratios, key=ratios.get))

    def test_first_calls(self):
        sooner = table.firsts(self.ROWS, "top1")
        self.assertGreaterEqual(len(sooner), 33)
        self.assertGreaterEqual(statistics.geometric_mean(sooner.values()), 8)
        self.assertGreater(min(sooner.values()), 1, min(sooner, key=sooner.get))

    def test_results(self):
        for name, row in RESULT["products"].items():
            contenders = row["contenders"]
            limit = table.EQUAL * contenders["default"]["error"]
            for contender, measured in contenders.items():
                if "failed" in measured:  # Inductor's own list may take too long
                    self.assertEqual(contender, "own", name)
                    continue
                with self.subTest(name, contender=contender):
                    self.assertLessEqual(measured["error"], limit)

    def test_models(self):
        self.assertEqual(set(RESULT["models"]), {"llama-block", "transformers-llama"})
        for name, model in RESULT["models"].items():
            base, pick = (model["contenders"][c] for c in ("default", "top1-default-mode"))
            with self.subTest(name):
                self.assertAlmostEqual(pick["loss"] / base["loss"], 1, delta=1e-6)
                self.assertAlmostEqual(pick["gradient"] / base["gradient"], 1, delta=1e-4)


class Orders(unittest.TestCase):
    def test_both_templates_together(self):
        """No other order of Inductor's templates puts faster kernels first, and the best four are near the best of all."""
        try:
            models = orders.models()
        except Error as e:
            if os.environ.get("ORIGAMI_REQUIRE_LIB") == "1":
                raise
            self.skipTest(str(e))
        found = orders.shares(json.loads((orders.HERE / "inductor.json").read_text()), models, "bf16")
        means = {key: statistics.geometric_mean(shares) for key, shares in found.items()}
        for first in orders.FIRST:
            best = max(means[order, n] for order, n in means if n == first)
            self.assertGreaterEqual(means["both together", first], best - 0.005, first)
        self.assertGreater(means["both together", 1], 0.97)
        self.assertGreater(means["both together", 4], 0.99)


class Replayed(unittest.TestCase):
    def test_picks_of_today(self):
        """Most were timed in Inductor, and are as fast as is documented beside its best Triton kernel."""
        try:
            model = Model("sm90", "h200")
        except Error as e:
            if os.environ.get("ORIGAMI_REQUIRE_LIB") == "1":
                raise
            self.skipTest(str(e))
        ratios = {}
        for name, product in RESULT["products"].items():
            contenders = product["contenders"]
            best = table.best_triton(contenders)
            times = {table.fastest(contenders[c]): table.median(contenders[c])
                     for c in ("own", "own-triton", "top4", "top4-triton", "top1") if c in contenders}
            # Without cuBLAS the pick ran, whatever Inductor's timing prefers.
            alone = contenders.get("top1-triton", {})
            row = next(filter(None, map(ROW.match, (alone or contenders.get("top1", {})).get("report", []))), None)
            if not best or not row:
                continue
            if table.median(alone):
                times[row["pick"]] = table.median(alone)
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
