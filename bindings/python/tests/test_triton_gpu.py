"""origami_gemm.triton on a GPU: which model is opened for it, and real launches. Without triton or liborigami the tests
skip. Without a GPU those that need one skip, or fail if ORIGAMI_REQUIRE_GPU=1."""

import dataclasses
import pathlib
import sys
import types
import unittest
from unittest import mock

from tests import needs

needs.all_of("triton")

import origami_gemm.triton as ot  # noqa: E402
from origami_gemm.lib import Error, Model  # noqa: E402
from tests.test_triton import expected, of, unsplit  # noqa: E402


def libcuda(name, attributes):
    """libcuda as far as the detection asks: some GPU."""
    known = {81: 0, **attributes}  # 81 is nothing that the models ask for

    def put(out, value):
        out._obj.value = value
        return 0

    return types.SimpleNamespace(
        cuInit=lambda _: 0, cuDeviceGet=put, cuDeviceTotalMem_v2=lambda size, _: put(size, 12 << 30),
        cuDeviceGetName=lambda text, size, _: setattr(text, "value", name) or 0,
        cuDeviceGetAttribute=lambda out, which, _: put(out, known[which]) if which in known else 1)


class Detection(unittest.TestCase):
    def open(self, cuda, backend="cuda", arch=90):
        with (
            mock.patch.object(ot, "driver") as driver,
            mock.patch.object(ot._cuda.ctypes, "CDLL", return_value=cuda),
            mock.patch.dict(ot._models, clear=True),
        ):
            driver.active.get_current_device.return_value = 0
            driver.active.get_current_target.return_value = mock.Mock(backend=backend, arch=arch)
            options = ot._gpu(0)
        return Model(**options)

    def test_a_known_product(self):
        # An H200's attributes as its driver tells them (configs/sm90-h200.yaml): the device of the catalogue, with all
        # that is known of it.
        cuda = libcuda(
            b"NVIDIA H200",
            {16: 132, 13: 1980000, 38: 50 << 20, 97: 232448, 82: 65536, 36: 3201000, 37: 6144, 75: 9, 76: 0},
        )
        d = self.open(cuda).description
        self.assertEqual(
            (d["arch"], d["device"], d["device_name"], d["rung"]),
            ("sm90", "h200", "NVIDIA H200", Model("h200").description["rung"]),
        )

    def test_an_unknown_product(self):
        # NVIDIA Ada GPU Architecture whitepaper v2.1 and product page: 46 SMs, 2.475 GHz boost, 36 MiB of L2, 10501 MHz
        # GDDR6X on 192 bits.
        cuda = libcuda(
            b"NVIDIA GeForce RTX 4070",
            {16: 46, 13: 2475000, 38: 36 << 20, 97: 101376, 82: 65536, 36: 10501000, 37: 192, 75: 8, 76: 9},
        )
        model = self.open(cuda, arch=89)
        d = model.description
        self.assertEqual(
            (d["arch"], d["device"], d["device_name"], d["units"], d["rung"]),
            ("sm89", "auto", "NVIDIA GeForce RTX 4070", 46, "spec"),
        )
        params = {p["name"]: p["value"] for p in d["params"]}
        self.assertEqual(params["dram_bandwidth"], 2 * 10501e6 * 192 / 8)
        self.assertEqual(params["clock"], 2.475e9)
        self.assertGreater(model.select(4096, 4096, 4096).seconds, Model("rtx4090").select(4096, 4096, 4096).seconds)

    def test_an_architecture_that_nobody_models(self):
        # The one before the oldest that a plugin models: Tesla P100 (Pascal architecture whitepaper), sm60.
        cuda = libcuda(
            b"Tesla P100-SXM2-16GB",
            {16: 56, 13: 1480500, 38: 4 << 20, 97: 49152, 82: 65536, 36: 715000, 37: 4096, 75: 6, 76: 0},
        )
        with self.assertRaisesRegex(Error, "Tesla P100-SXM2-16GB has the architecture sm60, which no plugin models"):
            self.open(cuda, arch=60)

    def test_a_driver_that_fails(self):
        with self.assertRaisesRegex(Error, "cuDeviceGetAttribute failed with 1; name the device"):
            self.open(libcuda(b"NVIDIA H200", {}))

    def test_amd(self):
        self.assertEqual(self.open(None, "hip", "gfx942:sramecc+:xnack-").description["device"], "mi300x")


class OnAGPU(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        needs.all_of("torch", gpu=True)
        global torch
        import torch

        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
        import matmul

        cls.example = matmul

    def operands(self, m, n, k, dtype, trans_a=False, trans_b=False):
        def matrix(rows, columns, turned):
            sizes = (columns, rows) if turned else (rows, columns)
            x = torch.randn(sizes, device="cuda", dtype=dtype)
            return x.t() if turned else x

        return matrix(m, k, trans_a), matrix(k, n, trans_b)

    def test_right_results_in_every_layout(self):
        model = ot.model_of_gpu()
        for shape in ((512, 512, 512), (112, 304, 784), (16, 2048, 512), (2048, 16, 64)):
            for trans_a in (False, True):
                for trans_b in (False, True):
                    a, b = self.operands(*shape, torch.float16, trans_a, trans_b)
                    with self.subTest(shape=shape, trans_a=trans_a, trans_b=trans_b):
                        self.assertFalse(self.example.wrong(self.example.matmul(a, b), a, b))
                        want = unsplit(model, *shape, trans_a=a.stride(0) == 1 and a.stride(1) != 1,
                                       trans_b=b.stride(0) == 1 and b.stride(1) != 1)
                        self.assertEqual(of(self.example.matmul_kernel.best_config), want)

    def test_unaligned_operands(self):
        for shape, trans_b in (
            ((1000, 3000, 777), False),
            ((300, 50257, 1024), False),
            ((515, 4096, 1023), True),
            ((1, 1, 1), False),
        ):
            a, b = self.operands(*shape, torch.float16, trans_b=trans_b)
            c = torch.empty(shape[:2], device="cuda", dtype=torch.float16)
            with self.subTest(shape=shape):
                self.example.launch(self.example.matmul_kernel, a, b, c)
                self.assertFalse(self.example.wrong(c, a, b))
                want = unsplit(ot.model_of_gpu(), *shape, trans_b=trans_b and shape[1] > 1)
                self.assertEqual(of(self.example.matmul_kernel.best_config), want)

    def test_the_driver_s_device(self):
        d = ot.model_of_gpu().description
        self.assertEqual(d["device_name"], torch.cuda.get_device_name())
        self.assertEqual(d["units"], torch.cuda.get_device_properties(0).multi_processor_count)

    def test_shortlist_and_warmup(self):
        kernel = ot.pick(shortlist=3)(self.example.matmul_kernel.fn)
        a, b = self.operands(512, 512, 512, torch.float16)
        c = torch.empty(512, 512, device="cuda", dtype=torch.float16)
        kernel.warmup(torch.float16, torch.float16, torch.float16, 512, 512, 512, 512, 1, 512, 1, 512, 1, grid=(1,))
        self.assertEqual(kernel.picked, {})
        self.example.launch(kernel, a, b, c)
        self.assertFalse(self.example.wrong(c, a, b))
        ranked = [expected(p) for p in ot.model_of_gpu().rank(512, 512, 512, top=1 << 14) if p.split_k == 1][:3]
        self.assertIn(of(kernel.best_config), ranked)

    def test_a_kernel_that_needs_more_than_its_family(self):
        # Blocks that no SM holds are passed over, and the first that fits is right.
        real = ot.model_of_gpu().rank(512, 512, 512)
        large = dataclasses.replace(real[0], block_m=256, block_n=256, block_k=128, num_stages=4, num_warps=8)
        with mock.patch.object(Model, "rank", return_value=[large, *real]):
            kernel = ot.pick()(self.example.matmul_kernel.fn)
            a, b = self.operands(512, 512, 512, torch.float16)
            c = torch.empty(512, 512, device="cuda", dtype=torch.float16)
            self.example.launch(kernel, a, b, c)
        self.assertFalse(self.example.wrong(c, a, b))
        self.assertEqual(kernel.best_config.kwargs["BLOCK_SIZE_M"], real[0].block_m)


if __name__ == "__main__":
    unittest.main()
