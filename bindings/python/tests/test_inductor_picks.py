"""The picks for Inductor that are made today, against those that were measured on an H200
(docs/experiments/inductor-on-h200). Needs liborigami, no torch and no GPU."""

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

MEASURED = pathlib.Path(__file__).resolve().parents[3] / "docs" / "experiments" / "inductor-on-h200"
sys.path.append(str(MEASURED))
import table  # noqa: E402

LEAST, MEAN, WORST = 18, 0.99, 1.07  # products; times of the picks in those of Inductor's best Triton kernels
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


class Replayed(unittest.TestCase):
    def test_picks_of_today(self):
        """They were timed in Inductor, and are as fast as is documented beside its best Triton kernel."""
        try:
            model = Model("sm90", "h200")
        except Error as e:
            if os.environ.get("ORIGAMI_REQUIRE_LIB") == "1":
                raise
            self.skipTest(str(e))
        products = json.loads((MEASURED / "result.json").read_text())["products"]
        ratios = {}
        for name, product in products.items():
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
            with self.subTest(name):
                self.assertIn(today, times, "this pick was not timed in Inductor")
                ratios[name] = times[today] / best
        self.assertGreaterEqual(len(ratios), LEAST)
        self.assertLessEqual(statistics.geometric_mean(ratios.values()), MEAN)
        self.assertLessEqual(max(ratios.values()), WORST, max(ratios, key=ratios.get))


if __name__ == "__main__":
    unittest.main()
