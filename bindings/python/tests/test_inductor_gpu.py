"""origami_gemm.inductor on a GPU: compiled functions give PyTorch's results, and their kernels are the picks. Without
torch, liborigami or a GPU the tests skip, or fail if ORIGAMI_REQUIRE_GPU=1."""

import os
import subprocess
import sys
import tempfile
import unittest

from tests import needs

needs.all_of("torch", gpu=True)

import torch  # noqa: E402
from torch._inductor.utils import fresh_cache, run_and_get_code  # noqa: E402

import origami_gemm.inductor as oi  # noqa: E402
from origami_gemm import _layers  # noqa: E402


def normal(*sizes, dtype=torch.bfloat16):
    return torch.randn(*sizes, device="cuda").to(dtype)


class Compiled(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        self.enterContext(fresh_cache())
        self.addCleanup(oi.disable)
        self.addCleanup(oi.clear)

    def check(self, function, *arguments, picked=1, dynamic=False):
        """A compiled function's result against PyTorch's, and the pick in the code."""
        compiled = torch.compile(function, dynamic=dynamic)
        got, code = run_and_get_code(compiled, *arguments)
        want = function(*arguments)
        self.assertLess(((got.float() - want.float()).norm() / want.float().norm()).item(), 1e-2)
        rows = [row for row in oi.report() if row.picks]
        self.assertEqual(len(rows), picked, oi.report())
        if rows and not rows[0].others and len(rows[0].picks) == 1:
            self.assertIn(f"BLOCK_M : tl.constexpr = {rows[0].picks[0].block_m}", "\n".join(code))
        return compiled

    def test_products(self):
        oi.enable(aten=False)
        for function, arguments in (
            (torch.mm, (normal(512, 1024), normal(768, 1024).t())),
            (torch.mm, (normal(33, 1001), normal(1001, 70))),
            (torch.addmm, (normal(768), normal(16, 1024), normal(1024, 768))),
            (torch.bmm, (normal(4, 128, 256), normal(4, 256, 128))),
            (torch.baddbmm, (normal(4, 128, 128), normal(4, 128, 256), normal(4, 256, 128))),
        ):
            with self.subTest(function.__name__):
                oi.clear()
                torch._dynamo.reset()
                self.check(lambda *a, function=function: function(*a), *arguments)

    def test_fp8(self):
        if torch.cuda.get_device_capability() < (8, 9):
            self.skipTest("needs fp8")
        scale = torch.tensor(0.5, device="cuda")
        a, b = normal(512, 1024, dtype=torch.float8_e4m3fn), normal(768, 1024, dtype=torch.float8_e4m3fn)

        def scaled(a, b):
            return torch._scaled_mm(a, b.t(), scale, scale, out_dtype=torch.bfloat16, use_fast_accum=True)

        oi.enable(aten=False)
        self.check(scaled, a, b)

    def test_cublas_beside_and_several(self):
        oi.enable(3, aten=True)
        self.check(lambda a, b: torch.nn.functional.gelu(a @ b), normal(512, 1024), normal(1024, 768))
        self.assertEqual((len(oi.report()[0].picks), oi.report()[0].others), (3, 1))

    def test_cublas_alone(self):
        oi.enable()
        a, b = normal(2048, 1024), normal(12288, 1024).t()
        self.check(torch.mm, a, b, picked=0 if torch.cuda.get_device_name() == "NVIDIA H200" else 1)

    def test_generated(self):
        if torch.cuda.get_device_capability() != (9, 0):
            self.skipTest("needs a Hopper GPU")
        oi.enable(kernels=True)
        layer = _layers.Device(0)
        alone = _layers.Device(0, (layer.own, None))  # ours at every size
        linear, gelu = torch.nn.functional.linear, torch.nn.functional.gelu
        fp8 = [normal(s, 1024, dtype=torch.float8_e4m3fn) for s in (512, 768)]
        scales = torch.rand(512, 1, device="cuda"), torch.rand(1, 768, device="cuda")

        def scaled(a, b):
            return torch._scaled_mm(a, b.t(), *scales, out_dtype=torch.bfloat16)

        for name, function, arguments in (
            ("extern_kernels.origami_gemm_mm(", torch.mm, (normal(64, 4096), normal(4096, 4096).t())),
            ("extern_kernels.origami_gemm_mm(", torch.mm, (normal(4096, 64).t(), normal(4096, 4096))),
            ("extern_kernels.origami_gemm_addmm(", torch.addmm, (normal(768), normal(16, 1024), normal(1024, 768))),
            ("extern_kernels.origami_gemm_addmm(", lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=3),
             (normal(64, 768), normal(64, 1024), normal(1024, 768))),
            ("extern_kernels.origami_gemm_scaled_mm(", scaled, fp8),
            ("torch.ops.origami_gemm.linear", lambda x, w, b: gelu(linear(x, w, b)), (normal(2, 40, 1024), normal(768, 1024), normal(768))),
        ):
            with self.subTest(name), torch.no_grad():
                _layers.registry.clear()
                _layers.registry._devices[0] = alone
                torch._dynamo.reset()
                compiled = torch.compile(function)
                got, code = run_and_get_code(compiled, *arguments)
                self.assertIn(name, "\n".join(code))
                want = function(*arguments)
                self.assertLess(((got.float() - want.float()).norm() / want.float().norm()).item(), 1e-2)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    again = compiled(*arguments)
                graph.replay()
                self.assertTrue(torch.equal(again, got))
                self.assertTrue(any(plan.calls for one in _layers.registry.layers() for plan in one.plans.values()
                                    if not isinstance(plan, str)), oi.report())
        _layers.registry.clear()
        _layers.registry._devices[0] = layer

    def test_pinned(self):
        """A process without origami has the kernels of the table, and times none."""
        function = "lambda a, b, c: torch.addmm(c, a, b)"
        arguments = normal(16, 4096), normal(4096, 4096).t(), normal(4096)
        oi.enable(aten=False)
        self.check(eval(function), *arguments)
        pick = oi.report()[0].picks[0]
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(oi.pin(f"{folder}/pinned.py"), 1)
            torch.save(arguments, f"{folder}/arguments")
            program = f"""
import pinned, sys, torch
from torch._dynamo.utils import counters
from torch._inductor.utils import run_and_get_code
pinned.enable()
a, b, c = torch.load("{folder}/arguments")
function = {function}
got, code = run_and_get_code(torch.compile(function), a, b, c)
want = function(a, b, c)
assert (got - want).float().norm() / want.float().norm() < 1e-2
assert "BLOCK_M : tl.constexpr = {pick.block_m}" in "".join(code), code
print(counters["inductor"]["select_algorithm_autotune"], any(name.startswith("origami") for name in sys.modules))
"""
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": folder, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache"})
        self.assertEqual(done.stdout, "0 False\n", done.stderr)

    def test_dynamic_sizes(self):
        oi.enable(aten=False)
        a, b = normal(300, 1024), normal(1024, 768)
        torch._dynamo.mark_dynamic(a, 0)
        compiled = self.check(lambda a, b: a @ b, a, b, dynamic=None)
        self.assertTrue(oi.report()[0].dynamic)
        other = normal(77, 1024)
        torch.testing.assert_close(compiled(other, b), other @ b, rtol=2e-2, atol=0.5)
        self.assertEqual(len(oi.report()), 1)

    def test_backward(self):
        """Backward graphs are compiled in another thread, which may have compiled one before."""
        net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 128))
        net = net.to("cuda", torch.bfloat16)
        x = normal(64, 256)
        net(x).sum().backward()
        want = [p.grad.clone() for p in net.parameters()]
        torch.compile(net)(x).sum().backward()
        torch._dynamo.reset()
        net.zero_grad()
        oi.enable(aten=False)
        torch.compile(net)(x).sum().backward()
        for p, w in zip(net.parameters(), want):
            self.assertLess(((p.grad - w).float().norm() / (w.float().norm() + 1e-6)).item(), 3e-2)
        self.assertGreaterEqual(sum(bool(row.picks) for row in oi.report()), 4)


if __name__ == "__main__":
    unittest.main()
