"""Pins: what is read from compiled kernels, and, where Triton is installed, whole choices. No GPU and no torch are needed.
The library is needed for answers of the model."""

import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from origami_gemm import Error, pin
from origami_gemm.pin import _check, _choose, _launch, _write, cubin, ttgir, work

HERE = pathlib.Path(__file__).resolve().parent / "pin"
N = 4096
MATRIX = ["bfloat16", [N, N], [N, 1], 16]
PRODUCT = {"a": MATRIX, "b": MATRIX, "c": MATRIX, "M": N, "N": N, "K": N, "sa": N, "sb": N, "sc": N}
ROWS = {"x": ["bfloat16", [N, 1000], [1000, 1], 16], "y": ["float32", [N, 1000], [1000, 1], 16], "offsets": ["int32", [N], [1], 16],
        "D": 1000}


def text(name):
    return (HERE / f"{name}.ttgir").read_text()


def read(name, arguments, grid, registers, shared, **more):
    return work.describe(ttgir.parse(text(name)), arguments, grid, registers, 0, shared, **more)


class Reading(unittest.TestCase):
    def test_products_of_a_matrix_kernel(self):
        for name, tile, kind, shared in (("product", 128, "products", 131072), ("product_mma", 32, "sync_products", 4096)):
            with self.subTest(name):
                k, assumed = read(name, PRODUCT, (N // tile, N // tile), 100, shared)
                self.assertEqual(assumed, [])
                self.assertEqual(k["programs"] * k[kind], N ** 3)
                self.assertEqual(k["copied_trips"], k["trips"])
                # the copies of each trip, and of the trips that are copied ahead
                once = N / tile * 2 * N * N * 2
                self.assertLess(once, k["programs"] * k["sector_bytes"])
                self.assertLess(k["programs"] * k["sector_bytes"], 1.2 * once + 3 * N * N)
                self.assertEqual(k["dram_bytes"], 3 * N * N * 2)

    def test_masked_rows_and_trips(self):
        k, assumed = read("causal", ROWS, (N,), 39, 16)
        # three rows are read on paper, whose mean is the middle; 1000 of 1024 elements are read
        self.assertAlmostEqual(k["trips"], N / 6 + 1, delta=1)
        self.assertAlmostEqual(k["sector_bytes"], (N / 2 + 1) * 2000, delta=60_000)
        self.assertIn("a loop that depends on data runs 8 times", assumed)
        more, assumed = read("causal", ROWS, (N,), 39, 16, trips=1000)
        self.assertGreater(more["instructions"], k["instructions"])
        self.assertIn("a loop that depends on data runs 1000 times", assumed)

    def test_layouts(self):
        types = ttgir.Types()
        types.aliases["#m"] = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 256, 16]}>"
        types.aliases["#b"] = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
        for kind, regs in (("tensor<64x256xf32, #m>", 128), ("tensor<128x64xbf16, #b>", 64), ("tensor<64x1xf32, #m>", 2),
                           ("tensor<128xi32, #ttg.slice<{dim = 1, parent = #b}>>", 8),
                           ("tensor<128x64x!tt.ptr<bf16>, #b>", 64)):
            self.assertEqual(types.type_of(kind).regs, regs, kind)
        self.assertEqual(types.type_of("tensor<4x!tt.ptr<bf16>, #b>").element, "ptr:bf16")

    def test_names_of_arguments(self):
        text = 'module attributes {"ttg.num-warps" = 4 : i32} {\n  tt.func public @f(%arg0: i32 loc("/a.py":1:0), %arg1: i32) {\n  }\n}'
        self.assertEqual([a[1] for a in ttgir.parse(text).args], ["arg0", "arg1"])
        self.assertEqual([a[1] for a in ttgir.parse(text, ["n", "m"]).args], ["n", "m"])

    def test_what_is_no_kernel(self):
        for wrong in ("", "module {}", "tt.func private @f() {\n}"):
            with self.assertRaises(ttgir.ParseError):
                ttgir.parse(wrong)

    def test_speed(self):
        import time

        begun = time.process_time()
        for _ in range(5):
            read("product", PRODUCT, (32, 32), 216, 131072)
        self.assertLess((time.process_time() - begun) / 5, 0.05)


def instruction(operation, waits=(), result=7, read=7, held=1):
    return operation | held << 105 | result << 110 | read << 113 | sum(1 << 116 + b for b in waits)


def back(instructions):
    """A branch so many instructions back, itself included."""
    way = -16 * instructions // 4
    return instruction(cubin.BRANCH) | (way & 0xFF) << 16 | ((way >> 8) + (1 << 48)) << 34


class Order(unittest.TestCase):
    together = [instruction(cubin.LOAD, result=0), instruction(cubin.LOAD, result=1), instruction(0x221, waits=(0, 1))]
    apart = [instruction(cubin.LOAD, result=0), instruction(0x221, waits=(0,)), instruction(cubin.LOAD, result=0),
             instruction(0x221, waits=(0,))]

    @staticmethod
    def told(*instructions):
        code = b"".join(x.to_bytes(16, "little") for x in (*instructions, instruction(cubin.EXIT), back(1)))
        return cubin.order(code, (400, 1000))

    def test_loads_that_wait_for_each_other(self):
        self.assertEqual([cubin.cycles(self.together, m) for m in (400, 1000)], [402, 1002])
        self.assertEqual([cubin.cycles(self.apart, m) for m in (400, 1000)], [802, 2002])
        self.assertEqual(self.told(*self.apart), ({"turns": [], "once": [802, 2002]}, False))

    def test_loops(self):
        told, looped = self.told(*self.together, *self.apart, back(5), instruction(cubin.LOAD_LOCAL))
        self.assertEqual((told, looped), ({"turns": [[2, 803, 2003]], "once": []}, False))
        self.assertTrue(self.told(instruction(cubin.STORE_LOCAL), *self.together, back(5))[1])

    def test_trips_of_a_loop(self):
        program = mock.Mock(turns=[[1, 700.0, 1300.0], [4, 1000.0, 1600.0]], memory=400.0)
        for loads, trips, of in ((1, 16, 250), (1, 3, 700), (2, 16, 500), (2, 1, 500), (8, 16, None), (0, 16, None)):
            self.assertEqual(work.Program.turn(program, loads, trips), of, (loads, trips))
        program.memory = 1000.0
        self.assertEqual(work.Program.turn(program, 1, 16), 400)


class Launches(unittest.TestCase):
    def test_typical_sizes(self):
        for n, of in ((1, 1), (15, 15), (16, 16), (48, 48), (80, 96), (100, 97), (3000, 3073), (3008, 3072), (4096, 4096),
                      (-20, -20), (True, True), (2.5, 2.5), (None, None)):
            self.assertEqual(_launch.typical(n), of)


class Facts(unittest.TestCase):
    def test_what_got_worse(self):
        row = {"name": "k", "config": {"num_warps": 4}, "error": "", "registers": 64, "spills": 0, "shared": 1024, "async": 2,
               "width": 16.0, "matrix": "wgmma", "seconds": 1e-5, "path": 1000}
        def compared(**change):
            return _check.compare({"rows": [row]}, {"rows": [{**row, **change}]})
        self.assertEqual(compared(), ([], 1))
        for change, said in (({"spills": 124}, "spills 124"), ({"async": 0}, "0 asynchronous"), ({"width": 4.0}, "4.0 B"),
                             ({"matrix": "mma"}, "mma, wgmma before"), ({"error": "x"}, "does not compile"),
                             ({"seconds": 2e-5}, "2.00 of the time")):
            lines, both = compared(**change)
            self.assertEqual(both, 1)
            self.assertIn(said, lines[0])

    def test_accesses(self):
        ptx = "ld.global.v4.b32 {%r1}, [%rd1];\nst.global.b16 [%rd2], %rs1;\ncp.async.cg.shared.global [ %r1 + 0 ], [ %rd3 + 0 ], 0x10, %r4;"
        self.assertEqual(_check.facts("ttg.async_copy_global_to_local", ptx + " wgmma.mma_async"),
                         {"async": 1, "width": round((16 + 2 + 16) / 3, 2), "matrix": "wgmma"})


class Tables(unittest.TestCase):
    def setUp(self):
        kernel = mock.Mock(spec=["cache_key", "__name__"])
        kernel.__name__ = "kernel"
        tuner = mock.Mock(spec=["fn", "keys", "arg_names"])
        tuner.fn, tuner.keys, tuner.arg_names = kernel, ["n"], ["x", "n"]
        choice = mock.Mock(config={"kwargs": {"B": 64}, "num_warps": 4, "num_stages": 2}, seconds=1e-5)
        self.launches = [(tuner, {"x": pin.Tensor("bf16", (8,)), "n": 8}, (1,), choice)]
        version = mock.patch.object(_write, "_triton", lambda: "3.6.0")
        version.start()
        self.addCleanup(version.stop)
        self.entry = {"kwargs": {"B": 64}, "num_warps": 4, "num_stages": 2, "num_ctas": 1, "maxnreg": None, "ir_override": None}

    def test_megatron(self):
        table = pin.megatron(self.launches, "sm90@h200")
        self.assertEqual((table["arch"], table["triton"]), ("sm90", "3.6.0"))
        self.assertEqual(table["kernels"], {"kernel": {"n=8|torch.bfloat16": self.entry}})

    def test_fla(self):
        file = pin.fla(self.launches)["kernel.json"]
        (name, entry), = file["autotune_entries"].items()
        self.assertEqual(entry, {"autotune_key": [8, "torch.bfloat16"], "config": self.entry})
        self.assertEqual(name, "1704085a3e1ee10d8d141adea0ae7413")
        with tempfile.TemporaryDirectory() as folder:
            pin.save({"kernel.json": file}, folder)
            self.assertEqual(json.loads((pathlib.Path(folder) / "kernel.json").read_text()), file)


    def test_rows(self):
        choice = self.launches[0][3]
        with tempfile.TemporaryDirectory() as folder:
            name = "E=8,N=64,device_name=NVIDIA_H200.json"
            pin.save({name: pin.table({16: choice, 4096: choice})}, folder)
            read = json.loads((pathlib.Path(folder) / name).read_text())
        # vLLM and SGLang take the entry whose number is nearest, and launch the kernel with what it has
        self.assertEqual({int(m): c for m, c in read.items()}, dict.fromkeys((16, 4096), {"B": 64, "num_warps": 4, "num_stages": 2}))
        self.assertEqual(pin.table({(1, 16): choice, (1, 32): choice}), {"1": pin.table({16: choice, 32: choice})})


@unittest.skipUnless(importlib.util.find_spec("triton"), "Triton is not installed")
class Choices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, str(HERE))
        import kernels

        cls.kernels = kernels
        cls.folder = tempfile.TemporaryDirectory()
        cls.environment = mock.patch.dict(os.environ, {"ORIGAMI_PIN_CACHE": cls.folder.name})
        cls.environment.start()

    @classmethod
    def tearDownClass(cls):
        cls.environment.stop()
        cls.folder.cleanup()

    def args(self, n=1024):
        t = pin.Tensor("bf16", (n, n))
        return {"a": t, "b": t, "c": t, "M": n, "N": n, "K": n, "sa": n, "sb": n, "sc": n}

    @staticmethod
    def grid(meta):
        return -(-meta["M"] // meta["BM"]), -(-meta["N"] // meta["BN"])

    def choose(self, configs=None, **more):
        return pin.choose(self.kernels.product, self.args(), self.grid, "sm90@h200",
                          configs=configs or self.kernels.CONFIGS, **more)

    def test_choice(self):
        found = self.choose()
        self.assertEqual((found.evidence, len(found.candidates)), ("checked", 5))
        self.assertIn(found.config, [c.config for c in found.candidates if not c.error])
        large, = (c for c in found.candidates if c.error)
        self.assertEqual(large.error, "DoesNotFit: 262144 B of shared memory of 232448 B")
        self.assertEqual(self.choose(), found)  # from the cache
        shuffled = list(self.kernels.CONFIGS)
        random.Random(1).shuffle(shuffled)
        self.assertEqual(self.choose(shuffled, cache=False), found)
        self.assertEqual(found.triton().num_warps, found.config["num_warps"])

    def test_other_processes_choose_the_same(self):
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import test_pin as t; t.Choices.setUpClass();"
                  "print(t.Choices().choose(cache=False).key, t.Choices().choose(cache=False))")
        env = {**os.environ, "PYTHONHASHSEED": "1"}
        def run(seed):
            done = subprocess.run([sys.executable, "-c", script, str(HERE.parent)], env={**env, "PYTHONHASHSEED": seed},
                                  capture_output=True, text=True, check=True)
            return done.stdout
        self.assertEqual(run("1"), run("2"))

    def test_what_is_wrong(self):
        with self.assertRaisesRegex(Error, "no Triton kernel"):
            pin.choose(print, (), (1,), "sm90@h200")
        with self.assertRaisesRegex(Error, "no list of configurations"):
            pin.choose(self.kernels.product, self.args(), self.grid, "sm90@h200")
        with self.assertRaisesRegex(Error, "no NVIDIA architecture from sm80 on"):
            pin.choose(self.kernels.product, self.args(), self.grid, "sm75", configs=self.kernels.CONFIGS)
        with self.assertRaisesRegex(Error, "none of 1 configurations compiles"):
            self.choose(self.kernels.CONFIGS[-1:])

    def test_one_for_a_range(self):
        launches = [(self.args(n), self.grid) for n in (256, 2048)]
        config, loss = pin.choose_one(self.kernels.product, launches, "sm90@h200", configs=self.kernels.CONFIGS)
        self.assertIn(config, [_choose.plain(c) for c in self.kernels.CONFIGS])
        self.assertGreaterEqual(loss, 0)

    def test_decorator(self):
        decorated = pin.pin(self.kernels.CONFIGS, key=["M"], arch="sm90@h200", reset_to_zero=["c"])(self.kernels.product)
        launched = []
        run = mock.patch.object(type(self.kernels.product), "run", lambda _, *a, **k: launched.append(k))
        args = tuple(self.args().values())
        expected = self.choose()
        with run:
            decorated[self.grid](*args)
            decorated[self.grid](*args)
        self.assertEqual([k["num_warps"] for k in launched], [expected.config["num_warps"]] * 2)
        with pin.everywhere("sm90@h200", launched=False) as caught:
            decorated[self.grid](*args)
            decorated[self.grid](*args)
        self.assertEqual([c.config for *_, c in caught], [expected.config])

    def test_tuners_of_packages_that_are_imported_in_the_block(self):
        from triton.runtime.autotuner import Autotuner

        with pin.everywhere("sm90@h200", launched=False) as caught:
            class Own(Autotuner):
                """As trifast has one, and with a key as flag-gems has it."""

                cache_key = "own"

                def run(self, *args, **kwargs):
                    raise AssertionError("it times")

            tuner = Own(self.kernels.product, self.kernels.product.arg_names, self.kernels.CONFIGS, ["M"], None, None)
            tuner[self.grid](*self.args().values())
        self.assertEqual(len(caught), 1)
        with self.assertRaises(AssertionError):
            tuner[self.grid](*self.args().values())

    def test_what_was_launched_before_does_not_matter(self):
        def pins(*sizes):
            decorated = pin.pin(self.kernels.CONFIGS, key=["N", "K"], arch="sm90@h200")(self.kernels.product)
            with pin.everywhere("sm90@h200", launched=False) as caught:
                for m in sizes:
                    decorated[self.grid](*{**self.args(), "M": m}.values())
            return {named["M"]: (c.key, c.config) for _, named, _, c in caught}

        one, other = pins(48, 3000, 2048, 2050), pins(2050, 2048, 3000, 48)
        self.assertEqual(one, other)
        self.assertEqual(one[3000], one[2050])
        self.assertEqual(len({key for key, _ in one.values()}), 3)


if __name__ == "__main__":
    unittest.main()
