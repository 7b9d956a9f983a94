"""Tests of tools/triton_measure.py, which need no GPU."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import warnings

from origami_gemm_plugin import Config, InputError, PluginError, Problem

HAS_TRITON = importlib.util.find_spec("triton") is not None
HAS_TORCH = HAS_TRITON and importlib.util.find_spec("torch") is not None
TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
SWEEPS = TOOLS.parents[1] / "nvidia" / "data" / "sweeps"
GRIDS = SWEEPS.parent / "grids"

PROBLEMS = """m,n,k,trans_a,trans_b,dtype,lda,ldb,ldc,align_a,align_b,align_c
64,64,64,0,0,fp16,,,,,,
64,64,65,1,1,tf32,80,,72,4,,
"""
CONFIGS = """block_m,block_n,block_k,group_m,num_warps,num_stages,split_k
16,64,32,8,4,3,1
64,64,32,8,4,3,4
32,32,32,8,4,3,1
"""


class Device:
    """A GPU on which a kernel takes as many microseconds as its block has columns."""

    arch, name, software = "sm90", "NVIDIA H200", "nothing"

    def __init__(self):
        self.built, self.runs, self.checked = [], 0, []
        self.lost = None

    def build(self, p, c):
        self.built.append((p, c))
        return "CompilationError: no\nsuch kernel" if c.block_m == 32 and p.dtype == "tf32" else ""

    def prepare(self, p):
        pass

    def check(self, p, c):
        if (p.m, c.block_m) == self.lost:
            raise PluginError("an illegal memory access", where="triton")
        self.checked.append((p, c))
        numerics = {"max_error": 0, "tolerance": 0, "checked_elements": p.m * p.n, "wrong_elements": 0,
                    "out_of_bounds_bytes": 0, "reference": "exact"}
        if c.split_k > 1 and p.dtype == "tf32":
            numerics |= {"max_error": None, "wrong_elements": 7}
        resources = {"registers": 64, "spill_bytes": 0, "shared_bytes": 0, "ctas_per_sm": 2}
        return lambda: c.block_n * 1e-6, resources, numerics

    def library(self, p, name):
        if p.dtype == "tf32":
            raise InputError("refused")
        return lambda: 20e-6

    def timed(self, run):
        self.runs += 1
        return run(), 1.98e9

    def close(self):
        pass


@unittest.skipUnless(HAS_TRITON, "needs triton")
class Measure(unittest.TestCase):
    def setUp(self):
        with unittest.mock.patch.object(sys, "path", [str(TOOLS), *sys.path]):
            import triton_measure
        self.tool = triton_measure
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.set = pathlib.Path(folder.name) / "some"
        self.set.mkdir()
        (self.set / "configs.csv").write_text(CONFIGS)
        head, *rows = PROBLEMS.splitlines()
        (self.set / "fit.csv").write_text(PROBLEMS)
        (self.set / "test.csv").write_text(f"{head}\n128,64,64,0,0,fp16,,,,,,\n")
        self.out = pathlib.Path(folder.name) / "out"

    def run_it(self, device, budget=1000.0, **options):
        with unittest.mock.patch("builtins.print"):
            return self.tool.Sweep(device, self.out, budget, **options).run(self.set)

    def lines(self, name="some-fit"):
        text = (self.out / name / "measurements.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def test_a_sweep(self):
        device = Device()
        self.assertTrue(self.run_it(device))
        lines = self.lines()
        self.assertEqual(
            [(line.get("library"), line["problem"]["dtype"], line["status"]) for line in lines],
            [("torch.matmul", "fp16", "ok"), (None, "fp16", "ok"), (None, "fp16", "ok"), (None, "fp16", "ok"),
             (None, "tf32", "ok"), (None, "tf32", "wrong_numerics"), (None, "tf32", "not_built")],
        )
        self.assertEqual(
            lines[4]["problem"],
            {"m": 64, "n": 64, "k": 65, "batch": 1, "trans_a": True, "trans_b": True, "dtype": "tf32", "lda": 80,
             "ldc": 72, "align_a": 4},
        )
        self.assertEqual((lines[1]["median_seconds"], lines[1]["spread"], lines[1]["clock_min_hz"]), (64e-6, 0, 1.98e9))
        self.assertEqual(lines[6]["detail"], "CompilationError: no such kernel")
        self.assertEqual(len(self.lines("some-test")), 4)
        # A kernel for several problems is compiled once. 128 rows and 64 are both multiples of 16.
        self.assertEqual(len(device.built), 6)

    def test_groups(self):
        """A problem in groups is compared with both libraries, and is read back as it was written."""
        (self.set / "fit.csv").write_text('m,n,k,trans_a,trans_b,dtype,groups\n40,64,64,0,0,bf16,"33,0,7"\n')
        self.run_it(Device())
        lines = self.lines()
        self.assertEqual([line.get("library") for line in lines], ["torch.matmul", "torch._grouped_mm", *[None] * 3])
        self.assertEqual(lines[2]["problem"]["groups"], [33, 0, 7])
        again = Device()
        self.assertTrue(self.run_it(again))
        self.assertEqual((self.lines(), again.checked), (lines, []))

    def test_it_continues(self):
        self.run_it(Device())
        before = self.lines()
        path = self.out / "some-fit" / "measurements.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]) + '{"schema": 1, "cut')
        device = Device()
        self.assertTrue(self.run_it(device))
        self.assertEqual(self.lines(), before)
        self.assertEqual([c.block_m for _, c in device.checked], [32, 16, 64])

    def test_it_continues_behind_a_kernel_that_costs_the_context(self):
        device = Device()
        device.lost = (64, 64)
        with self.assertRaises(SystemExit) as left, warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # of the files that this process leaves behind
            self.run_it(device)
        self.assertEqual(left.exception.code, self.tool.LOST)
        self.assertEqual((self.lines()[-1]["status"], len(self.lines())), ("failed", 3))
        device = Device()
        self.assertTrue(self.run_it(device))
        self.assertNotIn((64, 64, "fp16"), [(p.m, c.block_m, p.dtype) for p, c in device.checked])

    def test_the_budget(self):
        now = iter(range(10_000))
        device = Device()
        self.assertFalse(self.run_it(device, 9, clock=lambda: next(now)))
        self.assertLess(0, len(device.checked))
        self.assertLess(len(device.checked), 6)

    def test_what_is_slow_gets_fewer_runs(self):
        device = Device()
        sweep = self.tool.Sweep(device, self.out, 1000)
        self.assertEqual(len(sweep.samples(lambda: 10e-6, (6e-6, None))), self.tool.RUNS)
        self.assertEqual(len(sweep.samples(lambda: 13e-6, (6e-6, None))), self.tool.FEW)
        self.assertEqual(len(sweep.samples(lambda: 11e-3)), self.tool.FEW)

    def test_the_lists(self):
        """The lists of problems and configurations that are shipped can be read, and fit and test are apart."""
        folders = sorted(path.parent for path in SWEEPS.glob("*/fit.csv") if (path.parent / "configs.csv").exists())
        self.assertGreaterEqual(len(folders), 7)
        for folder in folders:
            fit, test = (list(self.tool.read_problems(folder / f"{name}.csv")) for name in self.tool.LISTS)
            configs = list(self.tool.read_configs(folder / "configs.csv"))
            self.assertEqual(len({*fit, *test}), len(fit) + len(test), folder)
            self.assertEqual(len(set(configs)), len(configs), folder)
            self.assertTrue(fit and test and configs)


class Batches(Device):
    """The same for a grid. A kernel with 32 rows is wrong."""

    late = 0

    def state(self):
        return {"clock_hz": 1.98e9}

    def code(self, p, c):
        return types.SimpleNamespace(resources=types.SimpleNamespace(
            registers=64, spill_bytes=8, shared_memory_bytes=1024)), None

    def check_all(self, p, codes):
        return {c: (1, 0) for c in codes if c.block_m == 32}, {c: [c.block_n * 1e-6] for c in codes}

    def batch(self, p, codes, times):
        return {c: [c.block_n * 1e-6] * times for c in codes}


@unittest.skipUnless(HAS_TRITON, "needs triton")
class Grid(unittest.TestCase):
    def setUp(self):
        with unittest.mock.patch.object(sys, "path", [str(TOOLS), *sys.path]):
            import triton_grid
        self.tool = triton_grid
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.set = pathlib.Path(folder.name) / "some"
        self.set.mkdir()
        (self.set / "configs.csv").write_text(CONFIGS + "32,256,32,8,4,3,1\n16,256,32,8,4,3,1\n")
        (self.set / "problems.csv").write_text("m,n,k,trans_a,trans_b,dtype\n64,64,64,0,0,fp16\n64,64,64,0,1,fp16\n"
                                               "128,64,65,0,0,fp16\n")
        self.out = pathlib.Path(folder.name) / "out"

    def run_it(self, device, budget=1000.0, **options):
        with unittest.mock.patch("builtins.print"):
            return self.tool.Grid(device, self.out, budget, **options).run(self.set)

    def test_a_grid(self):
        device = Batches()
        self.assertTrue(self.run_it(device))
        times = (self.out / "some-nn" / "times.csv").read_text().splitlines()
        self.assertEqual(times, [
            ",".join(self.tool.TIMES),
            "64,64,64,16,64,32,3,4,8,1,0.064,9", "64,64,64,64,64,32,3,4,8,4,0.064,9", "64,64,64,16,256,32,3,4,8,1,0.256,1",
            "128,64,65,16,64,32,3,4,8,1,0.064,9", "128,64,65,64,64,32,3,4,8,4,0.064,9",
            "128,64,65,16,256,32,3,4,8,1,0.256,1",
        ])
        self.assertEqual((self.out / "some-nt" / "torch.matmul.csv").read_text(), "m,n,k,ms,reps\n64,64,64,0.02,9\n")
        self.assertIn("16,64,32,3,4,8,1,0,64,2,1024,ok\n", (self.out / "some-nn" / "kernels.csv").read_text())
        again = Batches()
        self.assertTrue(self.run_it(again))
        self.assertEqual((again.built, (self.out / "some-nn" / "times.csv").read_text().splitlines()), ([], times))

    def test_the_budget(self):
        now = iter(range(10_000))
        device = Batches()
        self.assertFalse(self.run_it(device, 6, clock=lambda: next(now)))
        self.assertTrue(self.run_it(device))
        self.assertEqual(len((self.out / "some-nn" / "times.csv").read_text().splitlines()), 7)

    def test_pruned(self):
        small, split = Config("triton", 16, 32, 32, 8, 4, 3, 1), Config("triton", 64, 64, 32, 8, 4, 3, 4)
        for size, pruned in ((64, (False, False)), (2048, (True, True)), (1024, (False, False)), (1152, (False, True))):
            p = Problem(size, size, 64)
            self.assertEqual((self.tool.prunes(p, small), self.tool.prunes(p, split)), pruned, size)

    def test_kind(self):
        """Problems of a kind have the same code."""
        sizes = (1, 8, 16, 24, 176, 512, 704)
        problems = [Problem(m, n, k, a_major=major, dtype=dtype) for m in (1, 16, 35) for n in sizes for k in (64, 176, 35)
                    for major in "km" for dtype in ("fp16", "tf32")]
        configs = [Config("triton", 16, 32, 32, 8, 4, 3, split) for split in (1, 4)]
        codes = {}
        for p in problems:
            for c in configs:
                code = self.tool.keys_of(p, c)
                self.assertEqual(codes.setdefault(self.tool.kind(p, c), code), code, (p, c))

    def test_the_lists(self):
        folders = sorted(path for path in GRIDS.iterdir() if path.is_dir())
        self.assertEqual([len(list(self.tool.read_problems(folder / "problems.csv"))) for folder in folders],
                         [243, 243, 54, 54, 729])
        for folder in folders:
            for configs in [list(self.tool.read_configs(folder / "configs.csv"))]:
                self.assertTrue(len(set(configs)) == len(configs) > 40, folder)


@unittest.skipUnless(HAS_TORCH, "needs torch and triton")
class Exact(unittest.TestCase):
    def test_the_check(self):
        """Under Triton's interpreter, on the CPU: sums of -1, 0 and 1 are exact, and an error is found."""
        code = """
import contextlib, numpy, torch, triton, types
import gpu_of_tools, test_triton
from origami_gemm_plugin import Config
from origami_triton import kernel

class Launch:
    def __init__(self, function): self.function = function
    def __getitem__(self, grid): return lambda *a: (self.function[grid](*a), spoil())

spoil = lambda: None
def built(function):
    resources = types.SimpleNamespace(registers=1, spill_bytes=0, shared_memory_bytes=0, ctas_per_sm=1)
    return lambda p, c: types.SimpleNamespace(compiled=Launch(function), resources=resources)

x = gpu_of_tools.OnGpu.__new__(gpu_of_tools.OnGpu)
x.on = types.SimpleNamespace(device=torch.device("cpu"), guarded=lambda *a: contextlib.nullcontext(),
    built=built(kernel.multiply), built_sum=built(kernel.add_parts))
for p in test_triton.SIZES:
    if p.dtype == "bf16" or p.output == "bf16":
        continue
    x.prepare(p)
    c = Config("triton", 32, 16, 32, 2, 4, 2, 2)
    spoil = lambda: None
    try:
        run, _, numerics = x.check(p, c)
    except triton.runtime.errors.InterpreterError as error:
        raise SystemExit(f"cannot interpret with numpy {numpy.__version__}: {error}")
    run()
    def spoil(): x.exact.c[0, 0] += 1; x.exact.matrix_c.memory[0] = 0
    _, _, wrong = x.check(p, c)
    print(*(n[name] for n in (numerics, wrong) for name in ("wrong_elements", "out_of_bounds_bytes")))
"""
        here = str(pathlib.Path(__file__).parent)
        out = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": ":".join([here, str(TOOLS), *sys.path]), "TRITON_INTERPRET": "1"},
        )
        if "cannot interpret" in out.stderr:
            self.skipTest(out.stderr)
        self.assertEqual(set(out.stdout.splitlines()), {"0 0 1 1"}, out.stderr)


if __name__ == "__main__":
    unittest.main()
