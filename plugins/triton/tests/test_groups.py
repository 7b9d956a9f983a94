"""Tests of problems in groups, which need no GPU. Those that run the kernel are in test_triton.py."""

import importlib.util
import unittest

from origami_gemm_plugin import Config, Problem

HAS_TRITON = importlib.util.find_spec("triton") is not None
HAS_TORCH = HAS_TRITON and importlib.util.find_spec("torch") is not None
GROUPED = (
    Problem(97, 50, 64, groups=(33, 0, 64)),
    Problem(97, 50, 63, groups=(0, 0, 1, 31, 32, 33, 0), b_major="k", lda=72, ldb=70, ldc=56),
    Problem(80, 40, 96, groups=(16,) * 5, out_dtype="fp32"),
    Problem(40, 24, 64, groups=(40, 0), dtype="int8"),
)


def operands(p):
    import torch
    from origami_triton import gpu

    return gpu.Operands(p, torch.device("cpu"))


@unittest.skipUnless(HAS_TRITON, "needs triton")
class Kernel(unittest.TestCase):
    def test_one_kernel_serves_many_lists(self):
        """One kernel serves as many groups as its table has room for. The programs are those of the tiles."""
        from origami_triton import kernel

        config = Config("triton", 32, 16, 64, 8, 4, 3, 1)
        p = Problem(97, 50, 64, groups=(33, 0, 64))
        self.assertEqual(kernel.table(p, config), [0, 2, 2, 4, 4, 0, 33, 33, 97, 97])
        self.assertEqual(kernel.tiles(p, config), 4 * 4)
        self.assertEqual(kernel.tiles(Problem(97, 50, 64), config), 4 * 4)
        key = kernel.key(p, config)
        self.assertEqual(key, kernel.key(Problem(129, 50, 64, groups=(0, 40, 80, 9)), config))
        for other in (Problem(97, 50, 64), Problem(97, 50, 64, groups=(20, 20, 20, 20, 17))):
            self.assertNotEqual(key, kernel.key(other, config))

    def test_it_compiles(self):
        from origami_triton import kernel

        for p in GROUPED[:2]:
            self.assertIn("cubin", kernel.build(p, Config("triton", 16, 16, 16, 8, 4, 2, 1), 80).asm)


@unittest.skipUnless(HAS_TORCH, "needs torch and triton")
class OnTheCPU(unittest.TestCase):
    def test_the_b_of_another_group(self):
        """The check finds rows that were multiplied by the B of a neighbour."""
        from origami_triton import checks, executor

        for p in GROUPED[:2]:
            o = operands(p)
            multiply, products = executor.multiplication(p, o), list(o.products())

            def run():
                multiply()
                (rows, _), (_, other) = products[:2]
                o.c[rows] = (o.a[rows].double() @ other.double()).to(o.c.dtype)

            self.assertGreater(checks.check(o, run).wrong, p.n / 2, p)

    def test_groups_have_operands(self):
        for p in GROUPED:
            o = operands(p)
            self.assertEqual(tuple(o.b.shape), (len(p.groups), p.k, p.n))
            self.assertEqual([(rows.start, rows.stop) for rows, _ in o.products()],
                             [(sum(p.groups[:i]), sum(p.groups[: i + 1])) for i, g in enumerate(p.groups) if g])
            self.assertEqual(o.b.stride(0), p.stride("b"))

    def test_the_library_multiplies_groups(self):
        from origami_triton import checks, executor

        for p in GROUPED[:2]:
            o = operands(p)
            n = checks.check(o, executor.multiplication(p, o))
            self.assertEqual((n.wrong, n.out_of_bounds), (0, 0))


if __name__ == "__main__":
    unittest.main()
