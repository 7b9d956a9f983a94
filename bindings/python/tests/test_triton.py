"""origami_gemm.triton: what a decorated kernel is launched with. The logic is tested with a kernel that only remembers
its launch; with a GPU (and torch) it is tested with real ones too. Without triton or liborigami the tests skip; without a
GPU those that need one skip, or fail if ORIGAMI_REQUIRE_GPU=1."""

import unittest
from unittest import mock

from tests import needs

needs.all_of("triton")

import triton  # noqa: E402
from triton.runtime.errors import OutOfResources  # noqa: E402
from triton.runtime.jit import KernelInterface  # noqa: E402

import origami_gemm.triton as ot  # noqa: E402
from origami_gemm.lib import Error, Model  # noqa: E402

TUTORIAL = ("a_ptr b_ptr c_ptr M N K stride_am stride_ak stride_bk stride_bn stride_cm stride_cn "
            "BLOCK_SIZE_M BLOCK_SIZE_N BLOCK_SIZE_K GROUP_SIZE_M").split()


class Kernel(KernelInterface):
    """A kernel that remembers its launches. refuses says which of them do not fit."""

    __name__ = "kernel"

    def __init__(self, arg_names=TUTORIAL, refuses=lambda launch: False):
        self.arg_names = arg_names
        self.launches = []
        self.refuses = refuses

    def run(self, *args, grid, warmup, **kwargs):
        launch = {**dict(zip(self.arg_names, args)), **kwargs}
        if self.refuses(launch):
            raise OutOfResources(1 << 20, 1 << 16, "shared memory")
        self.launches.append({**launch, "grid": grid(launch) if callable(grid) else grid, "warmup": warmup})
        return "kernel"

    def meta(self, *names):
        """What the last launch was given of these, of all by default."""
        last = self.launches[-1]
        return {
            name: last[name]
            for name in names
            or [*(n for n in self.arg_names if n.startswith(("BLOCK", "GROUP"))), "num_warps", "num_stages"]
        }


class Tensor:
    def __init__(self, *shape, dtype="torch.float16", transposed=False, address=1 << 20):
        self.shape, self.dtype, self.address = shape, dtype, address
        rows, columns = shape[-2:]
        self.strides = (1, rows) if transposed else (columns, 1)

    def stride(self):
        return self.strides

    def data_ptr(self):
        return self.address


def expected(pick, names=ot.NAMES):
    return {
        **{name: getattr(pick, field) for field, name in names.items()},
        "num_warps": pick.num_warps,
        "num_stages": pick.num_stages,
    }


def of(config):
    """What a triton.Config launches with."""
    return {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}


def unsplit(model, *shape, **problem):
    """What kernels without SPLIT_K get: the best pick that does not split K."""
    return expected(next(p for p in model.rank(*shape, top=1 << 14, **problem) if p.split_k == 1))


class Picks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model("sm90", "h200")

    def launch(self, kernel, m, n, k, *, trans_a=False, trans_b=False, dtype="torch.float16", grid=(1,), **more):
        a, b = Tensor(m, k, dtype=dtype, transposed=trans_a), Tensor(k, n, dtype=dtype, transposed=trans_b)
        return kernel[grid](a, b, Tensor(m, n, dtype=dtype), m, n, k, *a.stride(), *b.stride(), n, 1, **more)

    def test_the_model_s_pick(self):
        fn = Kernel()
        kernel = ot.pick(model=self.model)(fn)
        for shape in ((4096, 4096, 4096), (112, 3008, 784), (16, 14336, 4096)):
            for trans_a in (False, True):
                for trans_b in (False, True):
                    for dtype, name in (("torch.float16", "fp16"), ("torch.bfloat16", "bf16")):
                        want = self.model.select(
                            *shape, dtype=name, trans_a=trans_a and shape[0] > 1, trans_b=trans_b and shape[1] > 1
                        )
                        for _ in range(2):  # picked, and remembered
                            self.assertEqual(
                                self.launch(kernel, *shape, trans_a=trans_a, trans_b=trans_b, dtype=dtype), "kernel"
                            )
                            self.assertEqual(fn.meta(), expected(want))
                            best = kernel.best_config
                            self.assertEqual(
                                {**best.kwargs, "num_warps": best.num_warps, "num_stages": best.num_stages},
                                expected(want),
                            )

    def test_odd_arguments(self):
        for odd in (-1, 0, 2.5, None, "all", [4]):
            with self.subTest(shortlist=odd), self.assertRaisesRegex(Error, "shortlist is .*; give a whole number"):
                ot.pick(model=self.model, shortlist=odd)(Kernel())
        for odd in (None, ["BLOCK_SIZE_M"], {"block_m": 1}):
            with self.subTest(names=odd), self.assertRaisesRegex(Error, "names is "):
                ot.pick(model=self.model, names=odd)(Kernel())
        for odd in (-1, 1.5, None):
            with self.subTest(top=odd), self.assertRaisesRegex(Error, "top is "):
                ot.configs(512, 512, 512, model=self.model, top=odd)

    def test_the_model_is_asked_once(self):
        kernel = ot.pick(model=self.model)(Kernel())
        with mock.patch.object(Model, "rank", autospec=True, side_effect=Model.rank) as rank:
            for _ in range(3):
                self.launch(kernel, 640, 640, 640)
                self.launch(kernel, 640, 640, 656)
        self.assertEqual(rank.call_count, 2)

    def test_grids_read_the_pick(self):
        fn = Kernel()
        kernel = ot.pick(model=self.model)(fn)
        tiles = lambda META: (triton.cdiv(1000, META["BLOCK_SIZE_M"]) * triton.cdiv(3008, META["BLOCK_SIZE_N"]),)
        self.launch(kernel, 1000, 3008, 512, grid=tiles)
        want = self.model.select(1000, 3008, 512)
        self.assertEqual(fn.launches[-1]["grid"], (-(-1000 // want.block_m) * -(-3008 // want.block_n),))

    def test_sizes_by_keyword(self):
        fn = Kernel()
        kernel = ot.pick(model=self.model)(fn)
        a, b = Tensor(512, 256), Tensor(256, 128)
        rest = dict(c_ptr=None, stride_am=256, stride_ak=1, stride_bk=128, stride_bn=1, stride_cm=128, stride_cn=1)
        kernel[(1,)](a, b, M=512, N=128, K=256, **rest)
        self.assertEqual(fn.meta(), expected(self.model.select(512, 128, 256)))
        with self.assertRaisesRegex(Error, "the launch of kernel lacks 'K'"):
            kernel[(1,)](a, b, M=512, N=128, **rest)

    def test_what_a_launch_gives_wins(self):
        fn = Kernel()
        kernel = ot.pick(model=self.model)(fn)
        self.launch(kernel, 4096, 4096, 4096, BLOCK_SIZE_M=64, num_warps=4)
        want = next(p for p in self.model.rank(4096, 4096, 4096, top=4096) if p.block_m == 64 and p.num_warps == 4)
        self.assertEqual(fn.meta(), expected(want))
        self.launch(kernel, 4096, 4096, 4096)  # and is forgotten
        self.assertEqual(fn.meta(), expected(self.model.select(4096, 4096, 4096)))
        self.launch(kernel, 4096, 4096, 4096, GROUP_SIZE_M=3)
        self.assertEqual(fn.meta(), {**expected(self.model.select(4096, 4096, 4096)), "GROUP_SIZE_M": 3})
        self.launch(kernel, 4096, 4096, 4096, num_stages=7)  # which no candidate has
        self.assertEqual(fn.meta(), {**expected(self.model.select(4096, 4096, 4096)), "num_stages": 7})

    def test_what_does_not_fit_is_passed_over(self):
        fn = Kernel(refuses=lambda launch: launch["BLOCK_SIZE_N"] > 128)
        kernel = ot.pick(model=self.model)(fn)
        want = next(p for p in self.model.rank(4096, 4096, 4096, top=ot.ATTEMPTS) if p.block_n <= 128)
        self.assertGreater(self.model.select(4096, 4096, 4096).block_n, 128)
        for _ in range(2):
            self.launch(kernel, 4096, 4096, 4096)
            self.assertEqual(fn.meta(), expected(want))
        nothing = ot.pick(model=self.model)(Kernel(refuses=lambda launch: True))
        with self.assertRaises(OutOfResources):
            self.launch(nothing, 512, 512, 512)

    def test_warmup(self):
        fn = Kernel(refuses=lambda launch: False)
        kernel = ot.pick(model=self.model)(fn)
        a, b = Tensor(512, 256), Tensor(256, 128)
        kernel.warmup(a, b, b, 512, 128, 256, 256, 1, 128, 1, 128, 1, grid=(1,))
        self.assertTrue(fn.launches[-1]["warmup"])
        self.assertEqual(fn.meta(), expected(self.model.select(512, 128, 256)))
        self.assertEqual(kernel.picked, {})

    def test_shortlist(self):
        ranking = self.model.rank(1024, 1024, 1024, top=4)
        fn = Kernel()
        slow = [expected(p) for p in ranking[:2]]

        def bench(call, quantiles):
            call()
            return 2.0 if fn.meta() in slow else 1.0

        with mock.patch.object(ot, "driver") as driver:
            driver.active.get_benchmarker.return_value = bench
            kernel = ot.pick(model=self.model, shortlist=4)(fn)
            self.launch(kernel, 1024, 1024, 1024)
            self.assertEqual(fn.meta(), expected(ranking[2]))
            launches = len(fn.launches)
            self.launch(kernel, 1024, 1024, 1024)
            self.assertEqual(fn.meta(), expected(ranking[2]))
            self.assertEqual(len(fn.launches), launches + 1)

            worth = self.model.expected_regret(4096, 4096, 4096).worth_measuring
            fn.launches.clear()
            self.launch(ot.pick(model=self.model, shortlist="auto")(fn), 4096, 4096, 4096)
            different = {
                tuple(sorted((k, v) for k, v in l.items() if k.startswith(("BLOCK", "num")))) for l in fn.launches
            }
            self.assertEqual(len(different), worth)

    def strided(self, a=0, b=0, c=0, strides=(4096, 1) * 3, shape=(4096, 4096, 4096), out="torch.float16"):
        """A launch with these addresses and strides of A, B and C."""
        fn = Kernel()
        tensors = Tensor(64, 64, address=a), Tensor(64, 64, address=b), Tensor(64, 64, address=c, dtype=out)
        ot.pick(model=self.model)(fn)[(1,)](*tensors, *shape, *strides)
        return fn.meta()

    def test_what_the_model_is_asked(self):
        shape = (4096, 4096, 4096)
        dense = (4096, 1) * 3
        differ = 0
        for launch, problem in (
            ({}, {}),
            ({"a": 2}, {"align": (2, 16, 16)}),
            ({"b": 8}, {"align": (16, 8, 16)}),
            ({"c": 36}, {"align": (16, 16, 4)}),
            ({"strides": (4104, *dense[1:])}, {"lda": 4104}),
            ({"strides": (4112, 1, 4097, 1, 4096, 1)}, {"lda": 4112, "ldb": 4097}),
            ({"strides": (1, 4097, 4096, 1, 4096, 1)}, {"trans_a": True, "lda": 4097}),
            ({"strides": (4096, 1, 1, 4097, 4096, 1)}, {"trans_b": True, "ldb": 4097}),
            ({"strides": (*dense[:4], 4097, 1)}, {"ldc": 4097}),
            ({"out": "torch.float32"}, {"out_dtype": "fp32"}),
        ):
            with self.subTest(launch=launch):
                got = self.strided(**launch)
                self.assertEqual(got, unsplit(self.model, *shape, **problem))
                differ += got != unsplit(self.model, *shape)
        self.assertGreater(differ, 4)  # narrow loads want other kernels
        for shape in ((1000, 3000, 777), (4095, 4097, 4100), (300, 50257, 1024)):
            fn = Kernel()
            self.launch(ot.pick(model=self.model)(fn), *shape)
            self.assertEqual(fn.meta(), unsplit(self.model, *shape))
        # The distance of a row to the next does not count if there is one row.
        m, n, k = 1, 4096, 512
        self.assertEqual(self.strided(strides=(1, 1, n, 1, 1, 1), shape=(m, n, k)), unsplit(self.model, m, n, k))
        far = unsplit(self.model, m, n, k, lda=4097)
        self.assertEqual(self.strided(strides=(4097, 1, n, 1, n, 1), shape=(m, n, k)), far)

    def test_layouts_without_an_answer(self):
        for strides, why in (
            ((8192, 2, 4096, 1, 4096, 1), "kernel: A has the strides 8192 and 2, .* contiguous copy$"),
            ((4096, 1, 0, 1, 4096, 1), "kernel: B has the strides 0 and 1, "),
            ((4096, 1, 4096, 1, 1, 4096), "kernel: C has the strides 1 and 4096, .* c=None$"),
            ((100, 1, 4096, 1, 4096, 1), "lda is 100, and a row of A has 4096 elements"),
        ):
            with self.subTest(strides=strides), self.assertRaisesRegex(Error, why):
                self.strided(strides=strides)
        with self.assertRaisesRegex(Error, "align_a is 1, and an element of A has 2 bytes"):
            self.strided(a=1)
        # Many kernels convert what they store.
        with self.assertRaisesRegex(Error, "kernel: no hardware multiplies fp16 .* into bf16 .* c=None leaves C out"):
            self.strided(out="torch.bfloat16")
        with self.assertRaisesRegex(Error, "rows of A are aligned to 2 bytes, and the amd-origami model of gfx942"):
            ot.config(1024, 1024, 1024, lda=1025, model=Model("mi300x", kernel="triton"))
        # The decoration has the last word.
        fn = Kernel()
        kernel = ot.pick(c=None, trans_a=False, model=self.model)(fn)
        kernel[(1,)](Tensor(64, 64), Tensor(64, 64), None, 4096, 4096, 4096, 8192, 2, 4096, 1, 1, 4096)
        self.assertEqual(fn.meta(), unsplit(self.model, 4096, 4096, 4096))

    def test_types(self):
        for tensors, decoration, dtype in (
            ("torch.float8_e4m3fn", None, "fp8"),
            ("torch.float8_e5m2", None, "fp8_e5m2"),
            ("torch.float32", None, "tf32"),  # as tl.dot multiplies them
            ("torch.float32", "fp32", "fp32"),
        ):
            with self.subTest(dtype=tensors):
                fn = Kernel()
                kernel = ot.pick(dtype=decoration, model=self.model)(fn)
                a, b = Tensor(512, 512, dtype=tensors), Tensor(512, 512, dtype=tensors, transposed=True)
                out = "torch.float32" if dtype.endswith("32") else "torch.float16"
                kernel[(1,)](a, b, Tensor(512, 512, dtype=out), 512, 512, 512, *a.stride(), *b.stride(), 512, 1)
                self.assertEqual(fn.meta(), unsplit(self.model, 512, 512, 512, dtype=dtype, trans_b=True))
        self.assertEqual(
            ot.config(512, 512, 512, "torch.int8", model=self.model).num_warps,
            unsplit(self.model, 512, 512, 512, dtype="int8")["num_warps"],
        )

    def test_names_and_layout(self):
        names = {"block_m": "BM", "block_n": "BN", "block_k": "BK"}
        fn = Kernel("A B C rows columns depth count BM BN BK".split())
        kernel = ot.pick("rows", "columns", "depth", a="A", b="B", batch="count", names=names, model=self.model)(fn)
        kernel[(1,)](Tensor(300, 512), Tensor(512, 700, transposed=True), None, 300, 700, 512, 3)
        want = self.model.select(300, 700, 512, batch=3, trans_b=True)
        self.assertEqual(fn.meta("BM", "BN", "BK", "num_warps", "num_stages"), expected(want, names))
        self.assertNotIn("GROUP_SIZE_M", fn.launches[-1])

        given = ot.pick(
            "rows", "columns", "depth", dtype="bf16", trans_a=True, trans_b=False, names=names, model=self.model
        )(fn)
        given[(1,)](None, None, None, 304, 704, 500, 1)
        self.assertEqual(
            fn.meta("BM", "BN", "BK", "num_warps", "num_stages"),
            expected(self.model.select(304, 704, 500, dtype="bf16", trans_a=True), names),
        )

    def test_split_k(self):
        """A kernel with SPLIT_K gets the split of the pick. One without gets the best pick without a split."""
        import dataclasses

        real = self.model.rank(64, 64, 4096, top=3)
        ranking = [dataclasses.replace(real[0], split_k=8), dataclasses.replace(real[1], split_k=1), real[2]]

        def rank(model, *args, top=8, **kwargs):
            return ranking[:top]

        with mock.patch.object(Model, "rank", rank):
            fn = Kernel([*TUTORIAL, "SPLIT_K"])
            kernel = ot.pick(model=self.model)(fn)
            tiles = lambda META: (1, META["SPLIT_K"])
            self.launch(kernel, 64, 64, 4096, grid=tiles)
            self.assertEqual(fn.meta(), expected(ranking[0]))
            self.assertEqual((fn.meta("SPLIT_K"), fn.launches[-1]["grid"]), ({"SPLIT_K": 8}, (1, 8)))
            self.assertEqual(kernel.best_config.kwargs["SPLIT_K"], 8)
            self.launch(kernel, 64, 64, 4096, SPLIT_K=1)
            self.assertEqual(fn.meta(), expected(ranking[1]))

            named = Kernel([*TUTORIAL, "PARTS"])
            self.launch(ot.pick(names={**ot.NAMES, "split_k": "PARTS"}, model=self.model)(named), 64, 64, 4096)
            self.assertEqual(named.meta("PARTS"), {"PARTS": 8})

            plain = Kernel()
            self.launch(ot.pick(model=self.model)(plain), 64, 64, 4096)
            self.assertEqual(plain.meta(), expected(ranking[1]))
            self.assertNotIn("SPLIT_K", plain.launches[-1])

            self.assertEqual(ot.config(64, 64, 4096, model=self.model).kwargs["BLOCK_SIZE_M"], ranking[1].block_m)
            split = ot.config(64, 64, 4096, names={**ot.NAMES, "split_k": "SPLIT_K"}, model=self.model)
            self.assertEqual(split.kwargs["SPLIT_K"], 8)

    def test_mistakes_in_the_decoration(self):
        with self.assertRaisesRegex(Error, "kernel has no argument 'L'"):
            ot.pick(k="L", model=self.model)(Kernel())
        with self.assertRaisesRegex(Error, "kernel has no meta-parameter BM"):
            ot.pick(names={"block_m": "BM", "block_n": "BLOCK_SIZE_N", "block_k": "BLOCK_SIZE_K"}, model=self.model)(
                Kernel()
            )
        with self.assertRaisesRegex(Error, "kernel: the pipelined model of sm80 does not predict .* for fp8; use"):
            ot.pick(c=None, model=Model("sm80"))(Kernel())[(1,)](
                Tensor(64, 64, dtype="torch.float8_e4m3fn"), Tensor(64, 64), None, 64, 64, 64, 64, 1, 64, 1, 64, 1
            )

    def test_heuristics_on_either_side(self):
        arg_names = TUTORIAL + ["EVEN_K"]
        even = {"EVEN_K": lambda args: args["K"] % args["BLOCK_SIZE_K"] == 0}
        fn = Kernel(arg_names)
        self.launch(ot.pick(model=self.model)(triton.heuristics(even)(fn)), 512, 512, 528)
        self.assertEqual(fn.meta("EVEN_K"), {"EVEN_K": 528 % self.model.select(512, 512, 528).block_k == 0})
        plain = Kernel(arg_names)
        self.launch(
            triton.heuristics({"EVEN_K": lambda args: args["K"] == 528})(ot.pick(model=self.model)(plain)),
            512,
            512,
            528,
        )
        self.assertEqual(
            plain.meta("EVEN_K", "BLOCK_SIZE_M"),
            {"EVEN_K": True, "BLOCK_SIZE_M": self.model.select(512, 512, 528).block_m},
        )

    def test_configs(self):
        ranking = self.model.rank(4096, 4096, 4096, dtype="bf16", trans_b=True, top=4)
        got = ot.configs(4096, 4096, 4096, "torch.bfloat16", trans_b=True, model=self.model)
        self.assertEqual(list(map(of, got)), [expected(p) for p in ranking])
        self.assertEqual(ot.config(4096, 4096, 4096, "bf16", trans_b=True, model=self.model), got[0])
        self.assertEqual(ot.config(64, 64, 64, names={"block_m": "BM"}, model=self.model).kwargs.keys(), {"BM"})


if __name__ == "__main__":
    unittest.main()
