"""Tests that need no GPU. Those that need Triton or PyTorch are skipped without."""

import dataclasses
import importlib.util
import math
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

from origami_gemm_plugin import Config, DeviceError, InputError, Problem

HAS_TRITON = importlib.util.find_spec("triton") is not None
HAS_TORCH = HAS_TRITON and importlib.util.find_spec("torch") is not None
SIZES = (
    Problem(64, 96, 128),
    Problem(33, 50, 30),
    Problem(64, 96, 128, a_major="m"),
    Problem(48, 40, 72, b_major="k", dtype="bf16"),
    Problem(1, 7, 16),
    Problem(33, 50, 30, lda=37, ldb=64, ldc=56, align_a=2, align_b=8, align_c=4),
    Problem(33, 50, 30, a_major="m", b_major="k", out_dtype="fp32", lda=40, ldc=51, align_c=4),
    Problem(64, 96, 128, dtype="fp32"),
    Problem(33, 50, 30, dtype="tf32", ldb=57, align_b=4),
    Problem(48, 40, 72, dtype="fp8", b_major="k"),
    Problem(33, 50, 31, dtype="fp8_e5m2", out_dtype="bf16", align_a=1),
    Problem(33, 50, 31, dtype="int8", ldc=53),
)
GROUPED = (
    Problem(97, 50, 64, groups=(33, 0, 64)),
    Problem(97, 50, 63, groups=(0, 0, 1, 31, 32, 33, 0), b_major="k", lda=72, ldb=70, ldc=56),
    Problem(80, 40, 96, groups=(16,) * 5, out_dtype="fp32"),
    Problem(40, 24, 64, groups=(40, 0), dtype="int8"),
)
CONFIG = Config("triton", 64, 64, 64, 8, 4, 3, 1)


def program(code, **environment):
    """What a text does as a process of its own."""
    path = [str(pathlib.Path(__file__).parent), *sys.path]
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={"PYTHONPATH": ":".join(path), **environment})


class Identity(unittest.TestCase):
    def test_says_who_it_is_without_triton_and_torch(self):
        code = (
            "import sys; sys.modules['torch'] = sys.modules['triton'] = None\n"
            "from origami_triton import Provider; print(Provider().manifest.name)"
        )
        out = program(code)
        self.assertEqual((out.stdout, out.stderr), ("triton\n", ""))

    def test_without_torch_there_is_no_device(self):
        code = (
            "import sys; sys.modules['torch'] = None\nimport origami_triton\n"
            "from origami_gemm_plugin import DeviceError\nfrom origami_triton import Provider\n"
            "origami_triton.Driver = list\n"
            "try: Provider().open()\nexcept DeviceError as error: print(error)"
        )
        out = program(code)
        self.assertIn("install torch and triton", out.stdout, out.stderr)


@unittest.skipUnless(HAS_TRITON, "needs triton")
class Kernel(unittest.TestCase):
    def setUp(self):
        from origami_triton import kernel

        self.kernel = kernel

    def key(self, m, n, k, **config):
        problem = {name: config.pop(name) for name in list(config) if name.startswith(("dtype", "out", "ld", "align"))}
        return self.keys(Problem(m, n, k, **problem), dataclasses.replace(CONFIG, **config))

    def keys(self, problem, config):
        return [self.kernel.key(code) for code in self.kernel.codes(problem, config)]

    def test_one_kernel_serves_many_sizes(self):
        one = self.key(4096, 4096, 4096)
        self.assertEqual(one, self.key(1024, 512, 128))
        for other in (
            self.key(4096, 4096, 4080),
            self.key(4095, 4096, 4096),
            self.key(4096, 4096, 1),
            self.key(4096, 4096, 4096, group_m=4),
            self.key(4096, 4096, 4096, num_warps=8),
            self.key(4096, 4096, 4096, num_stages=2),
            self.key(4096, 4096, 4096, block_k=32),
            self.key(4096, 4096, 4096, split_k=2),
            self.key(4096, 4096, 4096, dtype="bf16"),
            self.key(4096, 4096, 4096, out_dtype="fp32"),
            self.key(4096, 4096, 4096, lda=4104),
            self.key(4096, 4096, 4096, align_b=8),
        ):
            self.assertNotEqual(one, other)
        self.assertEqual(one, self.key(4096, 4096, 4096, lda=4112, ldb=8192))
        self.assertNotEqual(self.key(64, 64, 64, dtype="fp32"), self.key(64, 64, 64, dtype="tf32"))

    def test_strides(self):
        for p in SIZES:
            i = self.kernel.integers(p, CONFIG)
            a = [[r * i["stride_am"] + c * i["stride_ak"] for c in range(p.k)] for r in range(p.m)]
            b = [[r * i["stride_bk"] + c * i["stride_bn"] for c in range(p.n)] for r in range(p.k)]
            for name, matrix, contiguous in (("a", a, p.a_major == "k"), ("b", b, p.b_major == "n")):
                rows, elements = p.rows(name)
                want = [row * p.ld(name) + column for row in range(rows) for column in range(elements)]
                self.assertEqual(sorted(sum(matrix, [])), want)  # each element once
                if len(matrix) > 1:
                    self.assertEqual(matrix[0][1] - matrix[0][0] == 1, contiguous)

    def test_parts(self):
        """The programs that split K share one kernel per specialisation, and write dense sums."""
        config = Config("triton", 64, 64, 64, 8, 4, 3, 4)
        p = Problem(128, 96, 512, ldc=97, align_c=2)
        signature, _, attributes = self.kernel.specialised(p, config)
        names = self.kernel.multiply.arg_names
        self.assertEqual((signature["c"], self.kernel.integers(p, config)["stride_cm"]), ("*fp32", 96))
        self.assertIn((names.index("c"),), attributes)
        self.assertTrue(self.kernel.constants(p, config)["EVEN_K"])
        self.assertFalse(self.kernel.constants(Problem(128, 96, 576), config)["EVEN_K"])
        signature, _, attributes = self.kernel.specialised_sum(p, config)
        self.assertEqual((signature["parts"], signature["c"]), ("*fp32", "*fp16"))
        self.assertNotIn((self.kernel.add_parts.arg_names.index("c"),), attributes)
        for n, want in ((1, (512, 1)), (7, (64, 8)), (512, (1, 512)), (4096, (1, 512))):
            self.assertEqual(self.kernel.blocks_of_sum(n), want)

    def test_one_kernel_serves_many_lists(self):
        """One kernel serves as many groups as its table has room for. The programs are those of the tiles."""
        kernel, config = self.kernel, Config("triton", 32, 16, 64, 8, 4, 3, 1)
        p = Problem(97, 50, 64, groups=(33, 0, 64))
        self.assertEqual(kernel.table(p, config), [0, 2, 2, 4, 4, 0, 33, 33, 97, 97])
        self.assertEqual(kernel.tiles(p, config), 4 * 4)
        self.assertEqual(kernel.tiles(Problem(97, 50, 64), config), 4 * 4)
        key = self.keys(p, config)
        self.assertEqual(key, self.keys(Problem(129, 50, 64, groups=(0, 40, 80, 9)), config))
        for other in (Problem(97, 50, 64), Problem(97, 50, 64, groups=(20, 20, 20, 20, 17))):
            self.assertNotEqual(key, self.keys(other, config))

    def test_groups_compile(self):
        for p in GROUPED[:2]:
            for code in self.kernel.codes(p, Config("triton", 16, 16, 16, 8, 4, 2, 1)):
                self.assertIn("cubin", self.kernel.build(code, 80).asm)

    def test_compilers(self):
        from origami_triton.compilers import Compilers

        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict("os.environ", TRITON_CACHE_DIR=folder):
            compilers = Compilers(80, 2)
            try:
                good = Config("triton", 16, 16, 16, 8, 4, 2, 1)
                self.assertEqual(compilers.build(Problem(64, 64, 64), good), "")
                self.assertTrue(list(pathlib.Path(folder).rglob("multiply.cubin")))
                self.assertFalse(list(pathlib.Path(folder).rglob("add_parts.cubin")))
                split = Config("triton", 16, 16, 32, 8, 4, 2, 4)
                for dtype in ("bf16", "fp32", "tf32", "int8"):
                    self.assertEqual(compilers.build(Problem(64, 64, 63, dtype=dtype, align_a=4), split), "", dtype)
                for p in (Problem(1, 64, 64), Problem(64, 1, 64), Problem(64, 64, 1), Problem(1, 1, 1)):
                    self.assertEqual(compilers.build(p, split), "", p)  # sizes and strides of 1 are constants
                self.assertTrue(list(pathlib.Path(folder).rglob("add_parts.cubin")))
                self.assertIn(
                    "power of 2", compilers.build(Problem(64, 64, 64), Config("triton", 48, 16, 16, 8, 4, 2, 1))
                )
                for process in compilers._all:  # a crash is over with the job that it met
                    process.kill()
                    process.wait()
                self.assertEqual(compilers.build(Problem(64, 64, 64), good), "")
            finally:
                compilers.close()
            self.assertTrue(all(process.poll() is not None for process in compilers._all))

    def test_compilers_do_not_outlive_the_plugin(self):
        code = """
import os, signal
from origami_gemm_plugin import Config, Problem
from origami_triton.compilers import Compilers
compilers = Compilers(80, 1)
compilers.build(Problem(64, 64, 64), Config("triton", 16, 16, 16, 8, 4, 2, 1))
print(compilers._all[0].pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
        with tempfile.TemporaryDirectory() as folder:
            out = program(code, TRITON_CACHE_DIR=folder)
        # It returned when the compiler, too, had closed the standard error that it shares with the plugin.
        pid = int(out.stdout)
        for _ in range(50):
            try:
                if " Z " in pathlib.Path(f"/proc/{pid}/stat").read_text():  # a zombie
                    break
            except FileNotFoundError:
                break
            time.sleep(0.1)
        else:
            self.fail(f"the compiler {pid} lives on")


@unittest.skipUnless(HAS_TORCH, "needs torch and triton")
class Checks(unittest.TestCase):
    """The check of results, on the CPU."""

    def operands(self, p):
        import torch
        from origami_triton import gpu

        return gpu.Operands(p, torch.device("cpu"))

    def check(self, p, spoil=lambda o: None):
        from origami_triton import checks

        o = self.operands(p)

        def run():
            for rows, b in o.products():
                o.c[rows] = (o.a[rows].double() @ b.double()).to(o.c.dtype)
            spoil(o)

        with unittest.mock.patch.object(checks, "CHUNK", 1000):  # several chunks each way
            return checks.check(o, run)

    def test_right_results(self):
        for p in SIZES + GROUPED:
            n = self.check(p)
            self.assertTrue(
                0 <= n.max_error <= n.tolerance and n.wrong == 0 and n.out_of_bounds == 0 and n.checked == p.m * p.n,
                (p, n),
            )

    def test_a_missing_product(self):
        """In every type, the check finds that one product of each sum is missing."""
        for p in SIZES:

            def leave_out(o):
                o.c.copy_(o.a[:, 1:].double() @ o.b[1:].double())

            self.assertGreater(self.check(p, leave_out).wrong, p.m * p.n / 5, p)

    def test_a_write_between_rows(self):
        for p in (Problem(48, 40, 72, ldc=41), Problem(48, 40, 72, dtype="int8", ldc=48, align_c=4)):

            def beyond(o):
                size = o.c.element_size()
                o.matrix_c.memory[o.matrix_c.start + (40 + 3 * p.ldc) * size] = 7  # behind row 3
                o.matrix_c.memory[o.matrix_c.start - 1] = 7

            n = self.check(p, beyond)
            self.assertEqual((n.wrong, n.out_of_bounds), (0, 2))

    def test_the_b_of_another_group(self):
        """The check finds rows that were multiplied by the B of a neighbour."""
        from origami_triton import checks, executor

        for p in GROUPED[:2]:
            o = self.operands(p)
            multiply, products = executor.multiplication(p, o), list(o.products())

            def run():
                multiply()
                (rows, _), (_, other) = products[:2]
                o.c[rows] = (o.a[rows].double() @ other.double()).to(o.c.dtype)

            self.assertGreater(checks.check(o, run).wrong, p.n / 2, p)

    def test_groups_have_operands(self):
        for p in GROUPED:
            o = self.operands(p)
            self.assertEqual(tuple(o.b.shape), (len(p.groups), p.k, p.n))
            self.assertEqual([(rows.start, rows.stop) for rows, _ in o.products()],
                             [(sum(p.groups[:i]), sum(p.groups[: i + 1])) for i, g in enumerate(p.groups) if g])
            self.assertEqual(o.b.stride(0), p.stride("b"))

    def test_the_library_multiplies_groups(self):
        from origami_triton import checks, executor

        for p in GROUPED[:2]:
            o = self.operands(p)
            n = checks.check(o, executor.multiplication(p, o))
            self.assertEqual((n.wrong, n.out_of_bounds), (0, 0))

    def test_wrong_results(self):
        p = SIZES[0]

        def add(o):
            o.c[-1, -1] += 1
            o.c[5, 6] += 1

        def leave_out(o):
            o.c[7] = float("nan")

        def overflow(o):
            o.c[0, 0] = float("inf")

        def beyond(o):
            o.matrix_c.memory[-4096:-4090] = 1

        self.assertEqual(self.check(p, add).wrong, 2)
        n = self.check(p, leave_out)
        self.assertEqual((n.wrong, n.max_error), (p.n, math.inf))
        self.assertEqual(self.check(p, overflow).max_error, math.inf)
        n = self.check(p, beyond)
        self.assertEqual((n.wrong, n.out_of_bounds), (0, 6))

    def test_operands(self):
        for p in SIZES:
            a, b = self.operands(p).a, self.operands(p).b
            self.assertEqual((tuple(a.shape), tuple(b.shape)), ((p.m, p.k), (p.k, p.n)))
            if min(p.m, p.n, p.k) > 1:
                self.assertEqual((a.stride(1) == 1, b.stride(1) == 1), (p.a_major == "k", p.b_major == "n"))
            self.assertTrue(a.double().equal(self.operands(p).a.double()))
            for name, matrix in (("a", a), ("b", b), ("c", self.operands(p).c)):
                if p.rows(name)[0] > 1:
                    self.assertEqual(max(matrix.stride()), p.ld(name), (p, name))
                divisor = 1
                while divisor < 16 and matrix.data_ptr() % (2 * divisor) == 0:
                    divisor *= 2
                self.assertEqual(divisor, p.align(name), (p, name))

    def test_operands_of_tf32_have_its_bits(self):
        import torch

        a = self.operands(Problem(64, 64, 64, dtype="tf32")).a
        self.assertEqual(int((a.view(torch.int32) & 0x1FFF).count_nonzero()), 0)

    def test_input(self):
        from origami_triton import executor

        executor.check_config(CONFIG, SIZES[0])
        for p in SIZES:
            executor.check_problem(p)
        for name, values in (("block_m", (48,)), ("block_n", (8,)), ("block_k", (0,)), ("num_warps", (3, 64)),
                             ("num_stages", (0,)), ("group_m", (0,)), ("split_k", (0, 1 << 13))):
            for value in values:
                with self.assertRaises(InputError, msg=f"{name} {value}"):
                    executor.check_config(dataclasses.replace(CONFIG, **{name: value}), SIZES[0])
        with self.assertRaisesRegex(InputError, "block_k"):
            executor.check_config(dataclasses.replace(CONFIG, block_k=16), Problem(64, 64, 64, dtype="int8"))
        for p in (
            Problem(64, 64, 64, batch=2),
            Problem(64, 64, 64, dtype="fp4"),
            Problem(1 << 16, 64, 1 << 15),
            Problem(64, 64, 64, lda=1 << 26),
        ):
            with self.assertRaises(InputError, msg=str(p)):
                executor.check_problem(p)

    def test_no_gpu(self):
        import torch

        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        from origami_triton import Provider

        with self.assertRaises(DeviceError):
            Provider().open()


@unittest.skipUnless(HAS_TORCH, "needs torch and triton")
class Interpreted(unittest.TestCase):
    def test_the_kernel_multiplies(self):
        """Under Triton's interpreter, on the CPU: every layout and type but bf16, which it cannot multiply, sizes that
        no block divides, splits of K, groups, and one program for all tiles."""
        code = """
import numpy, torch, triton
from origami_gemm_plugin import Config, Problem
from origami_triton import checks, executor, gpu, kernel
import test_triton

class Launch:  # the interpreter's, like that of a compiled kernel
    def __init__(self, function): self.function = function
    def __getitem__(self, grid): return self.function[grid]

for family, split in (("triton", 1), ("triton", 3), ("triton_persistent", 1)):
    c = Config(family, 32, 16, 32, 2, 4, 2, split)
    for p in test_triton.SIZES + test_triton.GROUPED:
        if p.dtype == "bf16" or p.output == "bf16" or p.groups and family == "triton_persistent":
            continue
        multiply = kernel.product(p, c)
        o = gpu.Operands(p, torch.device("cpu"))
        run = executor.launcher(p, c, o, Launch(multiply), Launch(kernel.add_parts))
        try:
            n = checks.check(o, run)
        except triton.runtime.errors.InterpreterError as error:
            raise SystemExit(f"cannot interpret with numpy {numpy.__version__}: {error}")
        right = n.max_error <= n.tolerance and not n.wrong and not n.out_of_bounds and n.checked == p.m * p.n
        print("right" if right else f"{p} {c} {n}")
"""
        out = program(code, TRITON_INTERPRET="1")
        if "cannot interpret" in out.stderr:
            self.skipTest(out.stderr)
        some = [p for p in SIZES + GROUPED if p.dtype != "bf16" and p.output != "bf16"]
        self.assertEqual(out.stdout, "right\n" * (2 * len(some) + sum(not p.groups for p in some)), out.stderr)


@unittest.skipUnless(HAS_TORCH, "needs torch and triton")
class Timing(unittest.TestCase):
    def test_a_run_that_the_device_reached_early_is_repeated(self):
        from origami_triton import gpu

        for early, pauses in ((0, [1]), (2, [1, 2, 4]), (9, [1, 2, 4, 8, 16, 32, 64])):
            on = gpu.Gpu.__new__(gpu.Gpu)  # without a device
            on._flush, on._begin, on._end, on.state = (unittest.mock.Mock() for _ in range(4))
            on._begin.query.side_effect = [True] * early + [False]
            on._begin.elapsed_time.return_value, on.state.clock.return_value = 2.5, 1.98e9
            run = unittest.mock.Mock()
            late = self.assertLogs(gpu.__name__) if early == 9 else self.assertNoLogs(gpu.__name__)
            with unittest.mock.patch("torch.cuda._sleep") as sleep, late:
                sample = on.timed(run, warm=False)
            self.assertEqual((sample.seconds, sample.clock_hz), (2.5e-3, 1.98e9))
            self.assertEqual([call.args[0] // gpu.PAUSE for call in sleep.call_args_list], pauses)
            self.assertEqual((run.call_count, on._flush.zero_.call_count), (len(pauses), len(pauses)))


class State(unittest.TestCase):
    def test_reasons(self):
        from origami_triton.driver import reasons

        self.assertEqual(reasons(0x1), [])
        self.assertEqual(reasons(0x1 | 0x4 | 0x40), ["sw_power_cap", "hw_thermal"])
        self.assertEqual(reasons(0x4 | 0x1000), ["sw_power_cap", "0x1000"])


@unittest.skipUnless(HAS_TRITON, "needs triton")
class Table(unittest.TestCase):
    def test_rows_are_the_shipped_ones(self):
        from origami_triton import table

        folder = pathlib.Path(__file__).parents[2] / "nvidia" / "data" / "compiled"
        shipped = (folder / "triton.csv").read_text().splitlines()
        self.assertEqual(shipped[0], table.COLUMNS)
        for job in ((89, "", 256, 256, 16, 2, 8, 1), (80, "", 64, 64, 64, 3, 4, 1), (89, "", 256, 256, 64, 3, 8, 1)):
            self.assertIn(",".join(map(str, table.row(job))), shipped)

if __name__ == "__main__":
    unittest.main()
