"""scaled_mm on a Hopper GPU against float64. Without torch, liborigami or such a GPU the tests skip, or fail if
ORIGAMI_REQUIRE_GPU=1."""

import copy
import unittest

from tests import needs

needs.all_of("torch", gpu=needs.HOPPER)

import torch  # noqa: E402

import origami_gemm.torch as og  # noqa: E402
from origami_gemm._layers import registry  # noqa: E402
from origami_gemm.torch import _ops  # noqa: E402

FP8 = torch.float8_e4m3fn
# M, N and K: decoding, prefill, edges within tiles, a K that no block divides.
SIZES = ((1, 4096, 4096), (16, 6144, 4096), (17, 4096, 14336), (64, 4096, 4096), (100, 1032, 528), (300, 4096, 4096),
         (3000, 6144, 4096), (5, 48, 16))


def operands(m, n, k, scale_a="rows", scale_b="columns"):
    """Random matrices. Scales of rows and columns span a factor of 1000."""
    spread = lambda *shape: 10 ** (3 * torch.rand(shape, device="cuda") - 2)
    a, b = (torch.randn(s, k, device="cuda").to(FP8) for s in (m, n))
    return (a, b.t(), spread(m, 1) if scale_a == "rows" else spread(1)[0], spread(1, n) if scale_b == "columns" else spread(1)[0])


def right(a, b, scale_a, scale_b, bias=None):
    y = (a.double() @ b.double()) * scale_a.double() * scale_b.double()
    return y if bias is None else y + bias.double()


def off(got, want, scale_a, scale_b):
    """The error in the norm, all rows and columns alike: each is divided by its scale."""
    scales = scale_a.double() * scale_b.double()
    return float(((got.double() - want) / scales).norm() / (want / scales).norm())


def near(out, fast):
    """Rounding of the output, and the tensor cores' sums: 13 bits below the largest of 128 products, or of all."""
    return {torch.bfloat16: 2.5e-3, torch.float16: 4e-4, torch.float32: 2e-4}[out] + (1e-2 if fast else 1e-3)


class Scaled(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.addCleanup(setattr, registry, "_devices", registry._devices)
        og.clear()
        registry._devices = {}
        registry.layer(_ops.Key(0, 64, 64, "fp8"))  # opens the device
        alone = copy.copy(registry._devices[0])
        alone.library = None  # our kernels at every size
        registry._devices = {0: alone}
        og.clear()

    def check(self, a, b, scale_a, scale_b, bias=None, out=torch.bfloat16, fast=False):
        """The error of our kernel. That of PyTorch's operator, which runs before the kernel is there, has the same bound."""
        case = a.shape, b.shape, out, fast, None if bias is None else bias.dtype
        want = right(a, b, scale_a, scale_b, bias)
        first = og.scaled_mm(a, b, scale_a, scale_b, bias, out, fast)
        self.assertLess(off(first, want, scale_a, scale_b), near(out, fast), case)
        og.wait()
        launched = sum(row.calls for row in og.explain() if row.kernel)
        got = og.scaled_mm(a, b, scale_a, scale_b, bias, out, fast)
        self.assertEqual(sum(row.calls for row in og.explain() if row.kernel), launched + 1, og.explain())
        error = off(got, want, scale_a, scale_b)
        self.assertLess(error, near(out, fast), case)
        return error

    def test_sizes(self):
        for size in SIZES:
            for fast in (False, True):
                self.check(*operands(*size), fast=fast)

    def test_kinds(self):
        m, n, k = 48, 4096, 4096
        for scale_a, scale_b in (("one", "one"), ("rows", "one"), ("one", "columns"), ("rows", "columns")):
            for out in (torch.bfloat16, torch.float16, torch.float32):
                for bias in (None, torch.float32, out):
                    if out is torch.float16 and (scale_a, scale_b) != ("one", "one"):
                        continue  # beyond its range
                    vector = None if bias is None else torch.randn(n, device="cuda", dtype=bias)
                    x = operands(m, n, k, scale_a, scale_b)
                    if out is torch.float16:
                        x = *x[:2], *(scale.clamp(0.1, 1) for scale in x[2:])
                    self.check(*x, vector, out)

    def test_sums(self):
        """Without fast accumulation, an error no larger than that of PyTorch's own operator, and less than with it."""
        for m, n, k in ((64, 4096, 14336), (512, 4096, 4096)):
            a, b, *scales = operands(m, n, k)
            exact, fast = (self.check(a, b, *scales, out=torch.float32, fast=fast) for fast in (False, True))
            theirs = off(torch._scaled_mm(a, b, *scales, out_dtype=torch.bfloat16), right(a, b, *scales), *scales)
            ours = self.check(a, b, *scales)
            print(f"{m}x{n}x{k}: promoted {exact:.2e}, fast {fast:.2e} to fp32; to bf16 {ours:.2e} beside PyTorch's {theirs:.2e}")
            self.assertLess(exact, fast)
            self.assertLess(ours, 1.05 * theirs)

    def test_compiled(self):
        a, b, *scales = operands(48, 4096, 4096)
        module = torch.nn.Module()
        og.use(module, m=(1, 64))
        self.addCleanup(og.restore, module)
        want = right(a, b, *scales).relu()
        for dynamic, fast in ((False, False), (False, True), (True, False)):
            with self.subTest(dynamic=dynamic, fast=fast):
                torch._dynamo.reset()
                compiled = torch.compile(lambda a, b, x, y: torch.relu(
                    torch._scaled_mm(a, b, x, y, out_dtype=torch.bfloat16, use_fast_accum=fast)), dynamic=dynamic)
                if dynamic:
                    for x in (a, scales[0]):
                        torch._dynamo.mark_dynamic(x, 0)
                compiled(a, b, *scales)
                before = sum(row.calls for row in og.explain() if row.kernel)
                got = compiled(a, b, *scales)
                self.assertEqual(sum(row.calls for row in og.explain() if row.kernel), before + 1, og.explain())
                self.assertLess(off(got, want, *scales), near(torch.bfloat16, fast))

    def test_graph(self):
        """A CUDA graph reads the scales of its replay."""
        a, b, each, columns = operands(16, 4096, 4096)
        self.check(a, b, each, columns)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = og.scaled_mm(a, b, each, columns)
        each.mul_(2)
        graph.replay()
        self.assertLess(off(y, right(a, b, each, columns), each, columns), 3e-3)


if __name__ == "__main__":
    unittest.main()
