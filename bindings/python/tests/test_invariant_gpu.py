"""The bits of products on a Hopper GPU, which may not depend on M. Without torch, liborigami or such a GPU the tests skip, or
fail if ORIGAMI_REQUIRE_GPU=1."""

import unittest

from tests import needs

needs.all_of("torch", gpu=needs.HOPPER)

import torch  # noqa: E402

import origami_gemm.torch as og  # noqa: E402
from origami_gemm._layers import registry  # noqa: E402
from origami_gemm.torch import _ops  # noqa: E402

F = torch.nn.functional
# N and K of layers of language models, one with a K that no block divides.
LAYERS = ((4096, 4096), (6144, 4096), (4096, 14336), (28672, 4096), (1024, 8192), (512, 3080))
SIZES = (1, 2, 7, 8, 9, 16, 33, 64, 100, 128, 255, 256, 1000, 1024, 2049, 4096)


class Bits(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.addCleanup(og.disable_batch_invariant)

    def rows(self, n, k, dtype, run):
        """Checks that each row has the bits that it has among all others, and that they are about right."""
        x = torch.randn(max(SIZES), k, device="cuda", dtype=dtype)
        w = torch.randn(n, k, device="cuda", dtype=dtype) / k ** 0.5
        bias = torch.randn(n, device="cuda", dtype=dtype)
        whole = run(x, w, bias)
        want = torch.empty(whole.shape, device="cuda")
        torch.addmm(bias.float(), x.float(), w.float().t(), out=want)  # a given output is not what the mode replaces
        torch.testing.assert_close(whole.float(), want, rtol=2e-2, atol=2e-2)
        for m in SIZES:
            for first in {0, max(SIZES) - m}:
                self.assertTrue(torch.equal(run(x[first:first + m], w, bias), whole[first:first + m]), (n, k, dtype, m, first))

    def test_linear(self):
        for dtype in (torch.bfloat16, torch.float16):
            for n, k in LAYERS:
                self.rows(n, k, dtype, lambda x, w, bias: og.linear(x, w, bias, invariant=True))

    def test_scaled(self):
        """fp8, sums promoted and fast, with scales of rows and columns, eager and compiled."""
        for n, k in ((4096, 4096), (1024, 8192), (512, 3088)):
            og.disable_batch_invariant()
            x, w = (torch.randn(s, k, device="cuda").to(torch.float8_e4m3fn) for s in (max(SIZES), n))
            rows, columns = torch.rand(max(SIZES), 1, device="cuda") + 0.5, torch.rand(1, n, device="cuda") + 0.5
            want = (x.double() @ w.double().t()) * rows.double() * columns.double()
            og.enable_batch_invariant()
            for fast in (False, True):
                def run(x, rows, fast=fast):
                    return torch._scaled_mm(x, w.t(), rows, columns, out_dtype=torch.bfloat16, use_fast_accum=fast)
                key, _ = _ops.key_of(x, w.t(), None, "", False, torch.bfloat16, invariant=True, scaled=True, promote=not fast)
                registry.layer(key).prepare(1, max(SIZES))  # one after the other would take a minute
                whole, compiled = run(x, rows), torch.compile(run, dynamic=True)
                self.assertLess(((whole.double() - want).norm() / want.norm()).item(), 1e-2)
                for m in SIZES:
                    for first in {0, max(SIZES) - m}:
                        for one in (run, compiled) if m > 1 else (run,):
                            y = one(x[first:first + m], rows[first:first + m])
                            self.assertTrue(torch.equal(y, whole[first:first + m]), (n, k, fast, m, first))
                torch._dynamo.reset()

    def test_eager(self):
        og.enable_batch_invariant()
        for n, k in LAYERS[:3]:
            self.rows(n, k, torch.bfloat16, F.linear)
            self.rows(n, k, torch.bfloat16, lambda x, w, bias: torch.addmm(bias, x, w.t()))
            self.rows(n, k, torch.bfloat16, lambda x, w, bias: (x[None] @ w.t())[0] + bias)
        before = [row.layer for row in og.explain() if row.calls]
        self.assertTrue(any("one order" in layer for layer in before), before)

    def test_compiled(self):
        """A graph for each M, and one for all."""
        og.enable_batch_invariant()
        for dynamic in (False, True):
            run = torch.compile(lambda x, w, bias: F.linear(x, w, bias), dynamic=dynamic)
            n, k = LAYERS[0]
            self.rows(n, k, torch.bfloat16, run)
            x, w = (torch.randn(s, k, device="cuda", dtype=torch.bfloat16) for s in (64, n))
            bias = torch.zeros(n, device="cuda", dtype=torch.bfloat16)
            self.assertTrue(torch.equal(run(x, w, bias), F.linear(x, w, bias)))  # eager has the same order
            torch._dynamo.reset()

    def test_batches(self):
        og.enable_batch_invariant()
        a, b = (torch.randn(s, device="cuda", dtype=torch.bfloat16) for s in ((8, 256, 512), (8, 512, 128)))
        whole = torch.bmm(a, b)
        for m in (1, 8, 100, 255):
            self.assertTrue(torch.equal(torch.bmm(a[:, :m].contiguous(), b), whole[:, :m]))

    def test_cudagraphs(self):
        og.enable_batch_invariant()
        n, k = LAYERS[0]
        w = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        og.prepare(w, m=(1, 64), invariant=True)
        x = torch.randn(64, k, device="cuda", dtype=torch.bfloat16)
        whole, one = F.linear(x, w), x[:1].clone()
        F.linear(one, w)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = F.linear(one, w)
        graph.replay()
        self.assertTrue(torch.equal(y, whole[:1]))


if __name__ == "__main__":
    unittest.main()
