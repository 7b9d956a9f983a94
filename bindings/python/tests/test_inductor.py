"""origami_gemm.inductor without PyTorch: what is asked of the model, the settings, the report."""

import os
import pathlib
import subprocess
import sys
import types
import unittest
import unittest.mock

import origami_gemm.inductor as oi
from origami_gemm import Error, Pick
from origami_gemm.inductor import _problem, _report, _settings
from origami_gemm.inductor._problem import Matrix, NotUnderstood

CLIENT = pathlib.Path(__file__).resolve().parents[1]


def matrix(*sizes, strides=None, dtype="bfloat16", itemsize=2, offset=0):
    if strides is None:
        strides = [1]
        for size in reversed(sizes[1:]):
            strides.insert(0, strides[0] * size)
    return Matrix(sizes, tuple(strides), dtype, itemsize, offset)


def pick(block_m=128, block_n=256, block_k=64, split_k=1, axes="", seconds=189e-6, interval=None, group_m=8):
    return Pick(block_m, block_n, block_k, group_m, 8, 3, split_k, 0, 0, "compute", 3e5, seconds, interval, axes)


class Problem(unittest.TestCase):
    def ask(self, a, b, out="bfloat16", tf32=False):
        return _problem.problem(a, b, out, tf32)

    def test_layouts(self):
        plain = {"m": 512, "n": 768, "k": 1024, "dtype": "bf16", "out_dtype": "bf16", "align": (16, 16, 16)}
        for a, b, more in (
            (matrix(512, 1024), matrix(1024, 768), dict(trans_a=False, lda=0, trans_b=False, ldb=0)),
            (matrix(512, 1024), matrix(1024, 768, strides=(1, 1024)), dict(trans_a=False, lda=0, trans_b=True, ldb=0)),
            (matrix(512, 1024, strides=(1, 600)), matrix(1024, 768, strides=(800, 1)),
             dict(trans_a=True, lda=600, trans_b=False, ldb=800)),
            (matrix(512, 1024, strides=(2048, 1)), matrix(1024, 768, strides=(1, 4096)),
             dict(trans_a=False, lda=2048, trans_b=True, ldb=4096)),
        ):
            self.assertEqual(self.ask(a, b), plain | more)

    def test_a_single_row_or_column_has_no_leading_dimension(self):
        one = self.ask(matrix(1, 1024), matrix(1024, 768, strides=(1, 1024)))
        self.assertEqual((one["trans_a"], one["lda"], one["trans_b"]), (False, 0, True))
        self.assertEqual(self.ask(matrix(1, 1024, strides=(7, 1)), matrix(1024, 768))["lda"], 0)
        self.assertEqual(self.ask(matrix(1, 1024, strides=(1, 3)), matrix(1024, 768))["trans_a"], True)
        column = self.ask(matrix(512, 1024), matrix(1024, 1))
        self.assertEqual((column["n"], column["ldb"]), (1, 0))
        deep = self.ask(matrix(512, 1, strides=(1, 1)), matrix(1, 768))
        self.assertEqual((deep["trans_a"], deep["lda"]), (False, 0))

    def test_batches(self):
        heads = matrix(32, 512, 64, strides=(64, 2048, 1))  # of a tensor of 512 tokens with 32 heads
        asked = self.ask(heads, matrix(32, 64, 512, strides=(64, 1, 2048)))
        self.assertEqual((asked["batch"], asked["lda"], asked["trans_b"], asked["ldb"]), (32, 2048, True, 2048))
        self.assertEqual(self.ask(matrix(1, 512, 64, strides=(0, 64, 1)), matrix(1, 64, 512))["batch"], 1)

    def test_constants_need_whole_copies_only(self):
        def constants(itemsize=2, static=("m", "n", "k", "lda", "ldb"), **more):
            asked = dict(m=8, n=776, k=4104, trans_a=False, trans_b=False, lda=0, ldb=0) | more
            new = _problem.with_constants(asked, itemsize, set(static))
            return {name: value for name, value in new.items() if value != asked[name]}

        self.assertEqual(constants(), {"n": 784, "k": 4112})
        self.assertEqual(constants(trans_a=True), {"m": 16, "n": 784, "k": 4112})
        self.assertEqual(constants(lda=8200), {"n": 784, "k": 4112, "lda": 8208})
        self.assertEqual(constants(static=("n",)), {"n": 784})  # k is dynamic
        self.assertEqual(constants(k=4100), {"n": 784})  # 8 bytes
        self.assertEqual(constants(itemsize=4, k=4100), {"n": 784, "k": 4112})
        self.assertEqual(constants(itemsize=1), {})
        self.assertEqual(constants(lda=4106), {})  # the rows of A would overlap, and are not aligned

    def test_addresses(self):
        for offset, aligned in ((0, 16), (8, 16), (1, 2), (4, 8), (6, 4)):
            asked = self.ask(matrix(512, 1024, offset=offset), matrix(1024, 768))
            self.assertEqual(asked["align"], (aligned, 16, 16))

    def test_types(self):
        a, b = matrix(512, 1024, dtype="float32", itemsize=4), matrix(1024, 768, dtype="float32", itemsize=4)
        self.assertEqual(self.ask(a, b, "float32")["dtype"], "fp32")
        self.assertEqual(self.ask(a, b, "float32", tf32=True)["dtype"], "tf32")
        for name, dtype in (("float8_e4m3fn", "fp8"), ("float8_e5m2", "fp8_e5m2")):
            x = [matrix(*s, dtype=name, itemsize=1) for s in ((512, 1024), (1024, 768))]
            self.assertEqual(self.ask(*x)["dtype"], dtype)

    def test_what_no_model_knows(self):
        good = matrix(1024, 768)
        for a, b, out, why in (
            (matrix(512, 1024, strides=(4096, 2)), good, "bfloat16", "without gaps"),
            (matrix(512, 1024, strides=(512, 1)), good, "bfloat16", "overlap"),
            (matrix(512, 1024, strides=(0, 1)), good, "bfloat16", "overlap"),
            (matrix(4, 512, 1024, strides=(0, 1024, 1)), matrix(4, 1024, 768), "bfloat16", "same matrix"),
            (matrix(512, 1024, dtype="float64"), matrix(1024, 768, dtype="float64"), "float64", "float64"),
            (matrix(512, 1024, dtype="float16"), good, "bfloat16", "of one type"),
            (matrix(512, 1024), good, "int32", "int32"),
            (matrix(2, 3, 512, 1024), matrix(2, 3, 1024, 768), "bfloat16", "4 dimensions"),
        ):
            with self.assertRaisesRegex(NotUnderstood, why):
                self.ask(a, b, out)


class Template(unittest.TestCase):
    def test_configuration(self):
        self.assertEqual(_problem.configuration(pick(), "bf16"), {
            "BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 8, "num_stages": 3})
        for refused in (pick(split_k=4), pick(axes="grid=persistent"), pick(block_m=8)):
            self.assertIsNone(_problem.configuration(refused, "bf16"))
        self.assertIsNone(_problem.configuration(pick(block_k=16), "fp8"))
        self.assertIsNotNone(_problem.configuration(pick(block_k=16), "bf16"))


class Settings(unittest.TestCase):
    def test_environment(self):
        for text in ("", "0", "off", " False "):
            self.assertIsNone(_settings.parse(text))
        for text, top, aten in (("1", 1, "auto"), ("on", 1, "auto"), ("top=4", 4, "auto"), ("top=4,aten=1", 4, True),
                                ("aten=Auto", 1, "auto"), ("TOP=auto, aten=0", "auto", False)):
            s = _settings.parse(text)
            self.assertEqual((s.top, s.aten), (top, aten), text)
        for text in ("4", "top", "top=", "top=0", "top=x", "top=99", "top=1,top=2", "aten=yes", "model=h200",
                     "top=1;aten=1"):
            with self.assertRaisesRegex(Error, "^ORIGAMI_INDUCTOR is"):
                _settings.parse(text)

    def test_arguments(self):
        for arguments in (dict(top=0), dict(top="many"), dict(top=1.5), dict(aten="no"), dict(aten=2), dict(model="h200")):
            with self.assertRaises(Error):
                _settings.Settings(**arguments)

    def test_no_torch(self):
        code = ("import sys; sys.modules['torch'] = None\n"
                "import origami_gemm.inductor as oi\n"
                "print(oi.report())\n"
                "oi.disable()\n"
                "try: oi.enable()\n"
                "except oi.Error as e: print(e.kind, e)")
        for text in ("", "1"):
            out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                 env=os.environ | {"PYTHONPATH": str(CLIENT), "ORIGAMI_INDUCTOR": text})
            self.assertRegex(out.stdout, r"device PyTorch cannot be imported \(.*\); install torch 2\.\d+", out.stderr)
            self.assertEqual("PyTorch cannot be imported" in out.stderr, text == "1")

    def test_other_versions_are_left_alone(self):
        for version, hip in (("1.13", None), ("2.9.1", None), ("2.11.0", "7.0")):
            torch = types.SimpleNamespace(__version__=version, version=types.SimpleNamespace(hip=hip))
            log = self.assertLogs("origami_gemm.inductor", "WARNING")
            with unittest.mock.patch.dict(sys.modules, torch=torch), log:
                enabled = oi.enable()
            self.assertIn("disabled", repr(enabled))


class Report(unittest.TestCase):
    PROBLEM = {"m": 512, "n": 768, "k": 1024, "dtype": "bf16", "trans_a": False, "trans_b": True}

    def test_table(self):
        recorder = _report.Recorder()
        self.assertIn("no operation yet", str(recorder.report()))
        row = _report.Row("mm", self.PROBLEM, (pick(interval=(150e-6, 220e-6)), pick()), pick(seconds=199e-6), 1)
        recorder.add(row)
        recorder.add(row)
        recorder.add(_report.Row("bmm", self.PROBLEM | {"batch": 4}, (pick(seconds=2e-3),), dynamic=True, hint=64))
        recorder.add(_report.Row("mm", {}, reason="element type float64"))
        lines = str(recorder.report()).splitlines()
        self.assertEqual(len(lines), 6)
        self.assertRegex(lines[1], r"mm +512x768x1024 +bf16 NT +2 +128x256x64.* and 2 more, timed +predicted 189 µs "
                                   r"\(150 µs to 220 µs\), compute bound; the next costs 5.3 % more")
        self.assertRegex(lines[2], r"bmm +4x512x768x1024~ at 64 .*predicted 2 ms")
        self.assertRegex(lines[3], r"mm +\? +\? +1 +Inductor's own list +element type float64")
        self.assertEqual(lines[4], "3 of 4 operations picked by the model")
        self.assertIn("hint", lines[5])

    def test_one_line_of_log_per_reason(self):
        recorder = _report.Recorder()
        first = [recorder.add(_report.Row(op, {}, reason=why)) for op, why in
                 (("mm", "x"), ("mm", "x"), ("mm", "y"), ("bmm", "x"), ("mm", ""))]
        self.assertEqual(first, [True, False, True, True, False])

    def test_memory_is_bounded(self):
        recorder = _report.Recorder()
        for _ in range(_report.KEPT + 5):
            recorder.add(_report.Row("mm", {}))
        self.assertLessEqual(len(recorder.report()), _report.KEPT)


if __name__ == "__main__":
    unittest.main()
