"""Tests on a GPU: skipped without one, or failing if ORIGAMI_REQUIRE_GPU=1."""

import os
import statistics
import subprocess
import sys
import time
import unittest

from origami_gemm_plugin import Config, DeviceError, InputError, MeasureOptions, Problem


def config(m=128, n=128, k=64, group=8, warps=8, stages=3, split=1):
    return Config("triton", m, n, k, group, warps, stages, split)


class WithGPU(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from origami_triton import Provider

        try:
            cls.executor = Provider().open()
        except DeviceError as error:
            if os.environ.get("ORIGAMI_REQUIRE_GPU"):
                raise
            raise unittest.SkipTest(str(error))
        cls.addClassCleanup(cls.executor.close)


class Persistent(WithGPU):
    def config(self, m, n, k, warps, stages):
        return Config("triton_persistent", m, n, k, 8, warps, stages, 1)

    def test_results_are_right(self):
        for p in (
            Problem(256, 512, 1024, b_major="k", dtype="bf16"),
            Problem(1, 4096, 1000, b_major="k", dtype="bf16"),
            Problem(3000, 2500, 328, b_major="k"),  # more tiles than SMs
            Problem(100, 50, 130, dtype="tf32", b_major="k", lda=133, align_b=4),
            Problem(512, 256, 320, a_major="m"),
        ):
            for c in (self.config(128, 128, 64, 8, 3), self.config(16, 32, 128, 4, 2), self.config(64, 128, 32, 4, 4)):
                n = self.executor.compile(0, p, c).check()
                self.assertTrue(n.max_error <= n.tolerance and n.wrong == 0 and n.out_of_bounds == 0, (p, c, n))

    def test_no_split_and_no_groups(self):
        split = Config("triton_persistent", 64, 64, 64, 8, 4, 3, 2)
        groups = Problem(64, 64, 64, groups=(32, 32))
        for p, c in ((Problem(64, 64, 64), split), (groups, self.config(64, 64, 64, 4, 3))):
            with self.assertRaisesRegex(InputError, "triton_persistent"):
                self.executor.compile(0, p, c)

    def test_bits_do_not_depend_on_m(self):
        """A row has the same bits for every M, tile, number of warps, stages and programs, where block_k and the matrix
        instruction are the same."""
        import torch
        from origami_triton import kernel

        n, k = 768, 1088
        a = torch.randn(1024, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        bias = torch.randn(n, device="cuda", dtype=torch.bfloat16)
        want, tried = {}, 0
        for block_k in (64, 128):
            for m, n_, warps, stages in ((64, 64, 4, 3), (64, 128, 4, 2), (128, 64, 4, 3), (128, 128, 8, 3)):
                for rows in (1, 5, 64, 200, 1024):
                    for first in (0, 1024 - rows):
                        for programs in (7, 10_000):
                            c = self.config(m, n_, block_k, warps, stages)
                            p = Problem(rows, n, k, b_major="k", dtype="bf16")
                            out = torch.empty(rows, n, device="cuda", dtype=torch.bfloat16)
                            part = a[first : first + rows]
                            kernel.multiply_persistent[min(programs, kernel.tiles(p, c)),](
                                part, b, out, *kernel.integers(p, c).values(),
                                **kernel.constants(p, c) | {"bias": bias}, num_warps=warps, num_stages=stages)
                            all_rows = want.setdefault(block_k, torch.full_like(a[:, :n], float("nan")))
                            old = all_rows[first : first + rows]
                            new = torch.isnan(old)
                            self.assertTrue(torch.equal(old[~new], out[~new]), (c, rows, first, programs))
                            old[new] = out[new]
                            tried += 1
        exact = a.double() @ b.double().T + bias.double()
        for all_rows in want.values():
            self.assertLess((all_rows.double() - exact).abs().max().item(), 1)
        self.assertEqual(tried, 2 * 4 * 5 * 2 * 2)


class OnGPU(WithGPU):
    def test_devices(self):
        d = self.executor.devices()[0]
        self.assertRegex(d.arch, r"^sm\d+$")
        for name in (
            "num_sms",
            "clock",
            "l2_bytes",
            "dram_bandwidth",
            "memory_bytes",
            "shared_memory_bytes",
            "register_file",
        ):
            self.assertGreater(d.attributes[name], 0, name)
        self.assertEqual((list(d.kernels), list(d.libraries)), (["triton", "triton_persistent"], ["torch.matmul"]))
        print(d)

    def test_environment(self):
        e = self.executor.environment(0)
        self.assertIn("Triton", e.runtime)
        self.assertLess(abs(time.time_ns() - e.time_ns), 60e9)
        print(e)

    def test_results_are_right(self):
        for p in (
            Problem(256, 512, 1024),
            Problem(100, 50, 30),
            Problem(1, 17, 31),
            Problem(512, 256, 320, a_major="m"),
            Problem(512, 256, 320, b_major="k"),
            Problem(512, 256, 320, a_major="m", b_major="k", dtype="bf16"),
            Problem(130, 70, 4096, dtype="bf16"),
            Problem(130, 70, 4096, dtype="bf16", out_dtype="fp32", lda=4098, ldb=80, ldc=72, align_a=2, align_c=4),
            Problem(512, 256, 320, a_major="m", b_major="k", lda=520, ldb=321, align_a=8, align_b=4, align_c=2),
            Problem(300, 512, 1024, groups=(0, 33, 0, 260, 7)),
            Problem(300, 70, 321, dtype="bf16", b_major="k", groups=(1,) * 200 + (100,), ldb=328),
            Problem(256, 512, 1024, dtype="fp32"),
            Problem(256, 512, 1024, dtype="tf32"),
            Problem(100, 50, 130, dtype="tf32", b_major="k", lda=133, align_b=4),
        ):
            for c in (
                config(), config(16, 32, 128, warps=4, stages=2), config(32, 64, 32, warps=4, split=5),
                Config("torch.matmul"),
            ):
                k = self.executor.compile(0, p, c)
                n = k.check()
                self.assertTrue(
                    n.max_error <= n.tolerance and n.wrong == 0 and n.out_of_bounds == 0 and n.checked == p.m * p.n,
                    (p, c, n),
                )
                k.close()

    def test_results_of_8_bit_operands_are_right(self):
        for p in (
            Problem(256, 512, 1024, dtype="fp8", b_major="k"),
            Problem(256, 512, 1024, dtype="fp8"),
            Problem(130, 70, 14000, dtype="fp8", b_major="k", out_dtype="bf16", ldc=71),
            Problem(100, 50, 130, dtype="fp8_e5m2", a_major="m", lda=101, align_b=1),
            Problem(256, 512, 1024, dtype="int8", b_major="k"),
            Problem(100, 50, 130, dtype="int8", a_major="m", lda=101, ldc=55, align_b=1),
        ):
            for c in (config(), config(16, 32, 128, warps=4, stages=2), config(32, 64, 64, warps=4, split=5)):
                n = self.executor.compile(0, p, c).check()
                print(f"{p} {c}: error {n.max_error:.2g} of {n.tolerance:.2g}")
                self.assertTrue(n.max_error <= n.tolerance and n.wrong == 0 and n.out_of_bounds == 0, (p, c, n))
        for p in (
            Problem(256, 512, 1024, dtype="fp8", b_major="k"),
            Problem(256, 512, 1024, dtype="int8", b_major="k"),
        ):
            n = self.executor.compile(0, p, Config("torch.matmul")).check()
            self.assertTrue(n.max_error <= n.tolerance and n.wrong == 0, (p, n))

    def test_resources(self):
        r = self.executor.compile(0, Problem(4096, 4096, 4096), config()).resources
        self.assertTrue(32 <= r.registers <= 255 and r.shared_memory_bytes > 0 and r.ctas_per_sm >= 1, r)
        # A CTA of 4 warps that holds 256 × 256 sums needs 512 registers per thread for them alone.
        spilled = self.executor.compile(0, Problem(4096, 4096, 4096), config(256, 256, 16, warps=4, stages=2)).resources
        self.assertGreater(spilled.spill_bytes, 0)

    def test_input_errors(self):
        for p, c, says in (
            (Problem(4096, 4096, 4096), config(256, 256, 256, stages=5), "shared memory"),
            (Problem(64, 64, 64, batch=2), config(), "batch"),
            (Problem(64, 64, 64), config(48), "power of two"),
            (Problem(64, 64, 64), Config("cublas"), "kernel family"),
        ):
            for _ in range(2):  # the second is remembered
                with self.assertRaisesRegex(InputError, says):
                    self.executor.compile(0, p, c)
        with self.assertRaisesRegex(InputError, "no device 99"):
            self.executor.environment(99)
        with self.assertRaisesRegex(InputError, "distribution"):
            self.executor.compile(0, Problem(64, 64, 64), config()).measure(MeasureOptions(input="zeros"), 1)

    def test_too_large(self):
        with self.assertRaisesRegex(InputError, "does not fit"):
            self.executor.compile(0, Problem(1 << 20, 1 << 20, 16), config()).check()
        n = self.executor.compile(0, Problem(64, 64, 64), config()).check()
        self.assertEqual(n.wrong, 0)

    def test_large(self):
        memory = self.executor.devices()[0].attributes["memory_bytes"]
        p = Problem(8192, 53248, 16384)
        if memory < 40e9:
            self.skipTest("needs 40 GB")
        n = self.executor.compile(0, p, config(128, 256)).check()
        self.assertEqual((n.wrong, n.checked), (0, p.m * p.n))

    def test_times(self):
        """What the events say is what a clock on the wall says of many runs in a row."""
        import torch

        for p in (Problem(4096, 4096, 4096), Problem(1024, 1024, 8192)):
            k = self.executor.compile(0, p, config())
            samples = k.measure(MeasureOptions(warm_l2=True, warmup=3), 30)
            self.assertEqual(len(samples), 30)
            self.assertTrue(all(s.seconds > 0 for s in samples))
            median = statistics.median(s.seconds for s in samples)
            with self.executor._gpus[0].running("testing", p) as operands:
                run = k._bind(operands)
                run()
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(200):
                    run()
                torch.cuda.synchronize()
                mean = (time.perf_counter() - begin) / 200
            print(
                f"{p}: {median * 1e6:.1f} µs by events, {mean * 1e6:.1f} µs by the clock, "
                f"SM clock {samples[-1].clock_hz / 1e6:.0f} MHz"
            )
            self.assertLess(abs(median / mean - 1), 0.25)

    def test_the_flush_is_seen(self):
        p = Problem(16, 16384, 1024)  # B fits the L2 of most, and little is computed
        k = self.executor.compile(0, p, config(16, 128, 64, warps=4))
        cold, warm = (
            statistics.median(s.seconds for s in k.measure(MeasureOptions(warm_l2=w, warmup=2), 20))
            for w in (False, True)
        )
        print(f"{p}: cold {cold * 1e6:.1f} µs, warm {warm * 1e6:.1f} µs")
        self.assertGreater(cold, warm)

    def test_a_lost_context_is_told_apart(self):
        code = """
import torch
from origami_gemm_plugin import Config, PluginError, Problem
from origami_triton import Provider
x = Provider().open()
p = Problem(64, 64, 64)
k = x.compile(0, p, Config("triton", 64, 64, 64, 8, 4, 2, 1))
k._bind = lambda operands: lambda: operands.a[torch.tensor([1 << 20], device="cuda")]
try:
    k.check()
except PluginError as error:
    print("lost:", error)
try:
    x.compile(0, p, Config("triton", 32, 64, 64, 8, 4, 2, 1))
except PluginError as error:
    print("and stays so:", error)
import os; os._exit(0)
"""
        out = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
        )
        self.assertRegex(out.stdout, r"lost: .*\nand stays so: ", out.stdout + out.stderr)


if __name__ == "__main__":
    unittest.main()
