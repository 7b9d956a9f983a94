"""origami_gemm.lib against the command line: the same bits. Needs liborigami (`make lib`) and the command line (`make
build`), here or as $ORIGAMI_LIB and $ORIGAMI; without them the tests skip, or fail if ORIGAMI_REQUIRE_LIB=1."""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

from origami_gemm import lib
from origami_gemm.lib import ArgumentTypeError, Error, Model
from tests import fakecuda, needs

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
CLI = pathlib.Path(os.environ.get("ORIGAMI") or CHECKOUT / "bin" / "origami")


def setUpModule():
    needs.all_of(files=(CLI,), required=("ORIGAMI_REQUIRE_LIB",))


def cli(*arguments):
    out = subprocess.run(
        [CLI, "--in-process", *map(str, arguments), "--json"], capture_output=True, text=True, check=True
    ).stdout
    return [json.loads(line) for line in out.splitlines()]


def said(pick):
    """A Pick as the command line says it."""
    config = {
        name: getattr(pick, name)
        for name in ("block_m", "block_n", "block_k", "group_m", "num_warps", "num_stages", "split_k")
    }
    if pick.axes:
        config["axes"] = dict(value.split("=") for value in pick.axes.split(","))
    return {
        "config": config,
        "cycles": pick.cycles,
        "seconds": pick.seconds,
        "bound": pick.bound,
        "interval": list(pick.interval or ()),
        "mapping": {"xcds": pick.xcds, "chunk": pick.chunk},
    }


def expected(answer):
    mapping = answer.get("mapping", {"xcds": 0, "chunk": 0})
    p = answer["predicted"]
    return {"config": answer["config"], "cycles": p["cycles"], "seconds": p["seconds"], "bound": p["bound"],
            "interval": p.get("interval_seconds", []), "mapping": {"xcds": mapping["xcds"], "chunk": mapping["chunk"]}}


def vars_of(advice):
    return {field: getattr(advice, field) for field in advice.__slots__}


class OfThisMachine(unittest.TestCase):
    def test_without_a_gpu(self):
        with unittest.mock.patch("origami_gemm._cuda.ctypes.CDLL", side_effect=OSError("no libcuda")):
            with self.assertRaisesRegex(Error, "auto: no NVIDIA GPU answers here .no libcuda.; name one") as raised:
                Model("auto")
        self.assertEqual(raised.exception.kind, "device")
        with self.assertRaisesRegex(Error, "auto:x.*give auto"):
            Model("auto:x")

    def test_the_gpu_of_the_driver(self):
        out, _ = fakecuda.run(self, "from origami_gemm import Model\n"
                              "model = Model('auto')\n"
                              "print(model.description['device'], model.sibling('library').description['kernel'])")
        self.assertEqual(out, "h200 library\n")


class SameAsCommandLine(unittest.TestCase):
    problems = [
        {"m": 4096, "n": 4096, "k": 4096},
        {"m": 100, "n": 3000, "k": 777, "trans_b": True},
        {"m": 1, "n": 1, "k": 1, "dtype": "bf16"},
        {"m": 16, "n": 14336, "k": 4096, "batch": 3, "trans_a": True},
    ]

    def flags(self, p):
        flags = []
        for name, value in p.items():
            if value is True:
                flags.append("--" + name.replace("_", "-"))
            else:
                flags += ["-" + name if len(name) == 1 else "--" + name, value]
        return flags

    def test_select_and_rank(self):
        for arch, device, options in (
            ("sm90", "h200", {}),
            ("sm90", "h200", {"kernel": "mma"}),
            ("sm80", None, {"model": "reference"}),
            ("gfx942", None, {}),
        ):
            model = Model(arch, device, **options)
            where = [
                "--arch",
                arch + (f"@{device}" if device else ""),
                *(word for key, value in options.items() for word in (f"--{key}", value)),
            ]
            for p in self.problems:
                with self.subTest(arch=arch, problem=p):
                    [want] = cli(*where, "select", *self.flags(p))
                    self.assertEqual(said(model.select(**p)), expected(want))
                    self.assertEqual(
                        [said(pick) for pick in model.rank(**p, top=5)],
                        [expected(a) for a in cli(*where, "rank", "--top", 5, *self.flags(p))],
                    )
                    [want] = cli(*where, "select", "--regret", *self.flags(p))
                    regret = model.expected_regret(**p)
                    self.assertEqual(
                        regret and (regret.expected, regret.worth_measuring),
                        (want["expected_regret"], want["worth_measuring"]) if "expected_regret" in want else None,
                    )
            self.assertEqual(model.select_many(self.problems * 2), [model.select(**p) for p in self.problems] * 2)
            fresh = Model(arch, device, **options)
            self.assertEqual(fresh.select_many(self.problems * 2), model.select_many(self.problems * 2))

    def test_overrides_and_space(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"clock": {"value": 1, "unit": "GHz"}}')
            file.flush()
            [want] = cli("--arch", "sm89", "--hw-params", file.name, "select", "-m", 512, "-n", 512, "-k", 512)
        self.assertEqual(
            said(Model("sm89", overrides={"clock": {"value": 1, "unit": "GHz"}}).select(512, 512, 512)), expected(want)
        )
        for pick in Model("sm89", space={"block_m": [32], "num_stages": [2, 3]}).rank(512, 512, 512, top=50):
            self.assertEqual(pick.block_m, 32)
            self.assertIn(pick.num_stages, (2, 3))

    def test_files_about_kernels(self):
        import gzip

        text = ("bm,bn,bk,stages,warps,trans_b,ctas,one_2048,one_6144,chip_2048,chip_6144,full_2048,full_6144\n"
                "128,256,64,3,8,0,1,20,60,22,66,22,66\n")
        with tempfile.TemporaryDirectory() as folder:
            plain, packed = pathlib.Path(folder, "timed.csv"), pathlib.Path(folder, "timed.csv.gz")
            plain.write_text(text)
            packed.write_bytes(gzip.compress(text.encode()))
            [want] = cli("--arch", "sm90", "--characterization", plain, "select", "-m", 512, "-n", 512, "-k", 512)
            for given in (text, plain, packed):
                model = Model("sm90", characterization=given)
                self.assertEqual(model.description["rung"], want["rung"])
                self.assertEqual(said(model.select(512, 512, 512)), expected(want))
        with self.assertRaises(Error):
            Model("sm90", compiled="colour\n")

    def test_names_of_element_types(self):
        model = Model("sm90")
        for name in ("bfloat16", "BF16", "torch.bfloat16"):
            self.assertEqual(model.select(512, 512, 512, dtype=name), model.select(512, 512, 512, dtype="bf16"))
        amd, sizes = Model("gfx942"), ("-m", 512, "-n", 512, "-k", 512)
        for dtype in ("float8_e4m3fn", "e5m2", "s8", "Float32", "tf32"):
            [want] = cli("--arch", "gfx942", "select", *sizes, "--dtype", dtype)
            self.assertEqual(said(amd.select(512, 512, 512, dtype=dtype)), expected(want))
        [want] = cli("--arch", "gfx942", "select", *sizes, "--dtype", "fp8", "--out-dtype", "fp32")
        self.assertEqual(said(amd.select(512, 512, 512, dtype="e4m3", out_dtype="torch.float32")), expected(want))
        self.assertNotEqual(said(amd.select(512, 512, 512, dtype="fp8")), expected(want))

    def test_storage(self):
        model = Model("sm90")
        dense = model.select(512, 512, 512)
        self.assertEqual(model.select(512, 512, 512, lda=512, align=256), dense)
        self.assertEqual(model.rank(512, 512, 512, ldb=512, align=(16, 16, 64), top=1), [dense])
        # Each of them reaches the library, and narrow accesses are never faster.
        narrow = [{"lda": 514}, {"ldb": 513}, {"ldc": 520}, {"align": 4}, {"align": (2, 16, 16)},
                  {"align": (16, 8, 16)}, {"align": (16, 16, 2)}]
        for storage in narrow:
            with self.subTest(storage=storage):
                pick = model.select(512, 512, 512, **storage)
                self.assertGreaterEqual(pick.seconds, dense.seconds)
                self.assertEqual(model.rank(512, 512, 512, **storage, top=1), [pick])
        for storage in ({"lda": 514}, {"align": (16, 8, 16)}):
            self.assertGreater(model.select(512, 512, 512, **storage).seconds, 1.2 * dense.seconds)
        many = [{"m": 512, "n": 512, "k": 512, **storage} for storage in narrow]
        self.assertEqual(model.select_many(many), [model.select(512, 512, 512, **storage) for storage in narrow])
        for storage, want in (
            ({"ldc": 511}, "ldc is 511, and a row of C has 512 elements"),
            ({"align": 1}, "align_a is 1, and an element of A has 2 bytes"),
        ):
            for ask in (model.select, model.rank, model.expected_regret):
                with self.assertRaisesRegex(Error, want):
                    ask(512, 512, 512, **storage)
        # The reference model has no cost for them.
        with self.assertRaisesRegex(Error, "rows of A are aligned to 4 bytes, and the tritonblas model of sm90 has no"):
            Model("sm90", model="reference").select(512, 512, 512, lda=514)
        self.assertIn("sm90@h100", repr(model))

    def test_groups(self):
        model, groups = Model("sm90"), [120, 33, 0, 512]
        [want] = cli("--arch", "sm90", "select", "--groups", "120,33,0,512", "-n", 4096, "-k", 2048)
        pick = model.select(665, 4096, 2048, groups=groups)
        self.assertEqual(said(pick), expected(want))
        self.assertIsNotNone(pick.interval)  # of other generations: no data set has groups
        self.assertIsNone(model.expected_regret(665, 4096, 2048, groups=tuple(groups)))
        self.assertEqual(model.rank(665, 4096, 2048, groups=iter(groups), top=1), [pick])
        one = {"m": 665, "n": 4096, "k": 2048}
        plain = model.select(**one)
        self.assertEqual(model.select(**one, groups=[665]), plain)
        self.assertEqual(model.select(**one, groups=[]), plain)
        self.assertNotEqual(plain, pick)
        many = [one | {"groups": groups}, one, one | {"groups": groups[::-1]}]
        self.assertEqual([p.seconds for p in model.select_many(many)], [pick.seconds, plain.seconds, pick.seconds])
        for wrong, why in (([600], "m is 665, and the groups have 600 rows"), ([665] + [0] * 1024, "there are 1025 groups"),
                           ([666, -1], "groups is -1"), (7, "give the rows of each group"), ([1.5], r"groups is \[1.5\]"),
                           ("665", "groups is '665'")):
            for ask in (model.select, model.rank, lambda **problem: model.select_many([problem])):
                with self.assertRaisesRegex(Error, why):
                    ask(**one, groups=wrong)

    def test_candidates(self):
        model = Model("sm90", "h200")
        problem = {"m": 4096, "n": 4096, "k": 4096, "trans_b": True}
        ranked = model.rank(**problem, top=40)
        self.assertEqual(model.rank(**problem, candidates=ranked[::-1], top=40), ranked)
        self.assertEqual(model.rank(**problem, candidates=ranked[7:9], top=40), ranked[7:9])
        few = [{"block_m": 64, "block_n": 64, "block_k": 32, "num_warps": 4, "num_stages": 3},
               {"block_m": 128, "block_n": 128, "block_k": 64, "num_warps": 8, "num_stages": 3},
               {"block_m": 256, "block_n": 256, "block_k": 256, "num_warps": 8, "num_stages": 5}]  # it does not fit
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(few, file)
            file.flush()
            said_by_cli = cli("rank", "--arch", "h200", "--candidates", file.name, *self.flags(problem))
        ranked = model.rank(**problem, candidates=few)
        self.assertEqual([said(p) for p in ranked], [expected(a) for a in said_by_cli])
        self.assertEqual(model.select(**problem, candidates=few), ranked[0])
        nested = Model("sm90", "h200", kernel="wgmma")
        best = nested.select(**problem)
        self.assertTrue(best.axes)
        axes = dict(pair.split("=") for pair in best.axes.split(","))
        self.assertEqual(nested.rank(**problem, candidates=[dict(best) | {"axes": axes}]), [best])
        for candidates, text in [
            ([], "is empty"), ([7], "candidate 0 is 7"), ([{"block_m": 64}], "candidate 0 has no block_n"),
            ([few[0], few[0] | {"block_m": "a"}], "candidate 1: block_m is 'a'"), ([few[0] | {"blok": 7}], "'blok'"),
            ([few[0] | {"axes": "cluster=2"}], "cluster"), ([few[2]], "shared_memory"), (7, "candidates is 7"),
        ]:
            with self.subTest(text), self.assertRaisesRegex(Error, text):
                model.rank(**problem, candidates=candidates)

    def test_advice(self):
        model = Model("sm90", "h200")
        for problem in ({"m": 1024, "n": 1000, "k": 1001}, {"m": 4096, "n": 4096, "k": 4096, "trans_b": True}):
            answer = cli("select", "--arch", "h200", "--advice", "--regret", *self.flags(problem))[0]
            pick = model.select(**problem, advice=True)
            self.assertEqual([vars_of(a) for a in pick.advice], answer.get("advice", []))
            self.assertEqual(pick.tflops, answer["predicted"]["tflops"])
            ours = model.answer(**problem)
            for key in ("config", "evidence", "ways", "expected_regret", "worth_measuring"):
                self.assertEqual(ours.get(key), answer.get(key), key)
        self.assertIn("pad", str(model.select(1024, 1000, 1001, advice=True).advice[0]))
        self.assertEqual(model.select(1024, 1000, 1001).advice, ())

    def test_a_pick_is_a_mapping(self):
        pick = Model("sm90", "h200").select(4096, 4096, 4096)
        fields = dict(pick)
        self.assertEqual((fields["block_m"], fields["seconds"]), (pick.block_m, pick.seconds))
        self.assertEqual({**pick}, fields)
        self.assertEqual(json.loads(json.dumps(fields))["tflops"], pick.tflops)
        self.assertAlmostEqual(pick.tflops, 2e-12 * 4096**3 / pick.seconds)
        with self.assertRaises(KeyError):
            pick["select"]
        self.assertEqual(Model("mi300x", model="amd-origami").select(4096, 4096, 4096).tflops, 0)  # it only ranks

    def test_compare(self):
        problems = [{"m": 4096, "n": 4096, "k": 4096, "dtype": "bf16"}, {"m": 1, "n": 8192, "k": 8192, "dtype": "bf16"}]
        names = ["h200", "mi300x", "v100"]
        with Model("mi300x") as open_model:
            rows = lib.compare(["h200", open_model, "v100"], problems)
        self.assertEqual(rows, lib.compare(names, problems))
        self.assertEqual(len(rows), 6)
        for i, problem in enumerate(problems):
            out = subprocess.run([CLI, "--in-process", "compare", "--arch", ",".join(names), "--json",
                                  *map(str, self.flags(problem))], capture_output=True, text=True)
            said_by_cli = json.loads(out.stdout.splitlines()[0])
            for j, entry in enumerate(said_by_cli["entries"]):
                row = rows[3 * i + j]
                self.assertEqual(row["ratio"], said_by_cli["ratio_to_first"][j])
                self.assertEqual(row["fastest"], said_by_cli["fastest"]["entry"] == j)
                if "error" in entry:
                    self.assertIn("bf16", row["error"])
                    continue
                self.assertEqual((row["device"], row["seconds"], row["tflops"], row["error"]),
                                 (entry["device"], entry["predicted"]["seconds"], entry["predicted"]["tflops"], None))
        for sides, problem, text in (("h200", {}, "sides is 'h200'"), (["h200"], problems[0], "1 sides"),
                                     ([], problems[0], "no sides"), (["h200", "nix"], problems[0], "nix"),
                                     (["h200", "b200"], {"m": 0, "n": 1, "k": 1}, "problem 0")):
            with self.subTest(text), self.assertRaisesRegex(Error, text):
                lib.compare(sides, problem)

    def test_description(self):
        d = Model("h200").description
        [want] = cli("--arch", "h200", "select", "-m", 64, "-n", 64, "-k", 64)
        for key in ("arch", "device", "model", "kernel", "rung"):
            self.assertEqual(d[key], want[key])
        self.assertEqual(d["clock_hz"], want["predicted"]["clock_hz"])
        self.assertEqual(d["interval_level"], want["predicted"]["interval_level"])
        self.assertIn({"id": "h200", "name": "NVIDIA H200", "aliases": ["h200-sxm", "h200-sxm-141gb"]},
                      next(a for a in lib.architectures() if a["id"] == "sm90")["devices"])

    def test_sibling(self):
        """Another kernel family on the same device, which has the same overrides."""
        fast, slow = (Model("sm90", "h200", overrides=o).sibling("library", options={"timing": "events"})
                      for o in (None, {"clock": 1e9}))
        problem = dict(m=4096, n=4096, k=4096, dtype="bf16")
        self.assertEqual((fast.description["kernel"], fast.description["device"]), ("library", "h200"))
        self.assertGreater(slow.select(**problem).seconds, 1.3 * fast.select(**problem).seconds)
        direct = Model("sm90", "h200", kernel="library", options={"timing": "events"})
        self.assertEqual(fast.select(**problem), direct.select(**problem))
        with self.assertRaisesRegex(Error, "kernel"):
            fast.sibling("no such family")


class Errors(unittest.TestCase):
    def test_questions_without_an_answer(self):
        model = Model("sm90")
        for ask, want in (
            (lambda: Model("sm91"), "did you mean sm90"),
            (lambda: Model("sm90", "h300"), "its devices"),
            (lambda: Model("sm90", kernel="cutlass"), "use one of triton, triton_persistent, mma"),
            (lambda: Model("sm90", overrides={"x": 1}), "no parameter"),
            (lambda: model.select(0, 1, 1), "m is 0"),
            (lambda: model.select(1, -1, 1), "n is -1"),
            (lambda: model.select(1 << 64, 1, 1), "m is 18446744073709551616"),
            (lambda: model.select(2.5, 1, 1), "m is 2.5"),
            (lambda: model.select("2", 1, 1), "m is '2'"),
            (lambda: model.select(1, 1, 1, dtype="fp64"), "no model predicts fp64"),
            (lambda: Model("sm80").select(1, 1, 1, dtype="fp8"), "does not predict triton kernels for fp8"),
            (lambda: model.select(1, 1, 1, dtype="int32"), "int32 is a type of results only"),
            (lambda: model.select(1, 1, 1, out_dtype="int32"), "no hardware multiplies fp16 operands into int32"),
            (lambda: model.select(1, 1, 1, out_dtype="fp64"), 'unknown output type "fp64"'),
            (lambda: model.select(1, 1, 1, align=3), "align is 3; give powers of two"),
            (lambda: model.select(1, 1, 1, align=0), "align is 0"),
            (lambda: model.select(1, 1, 1, align=(2, 2)), "align is (2, 2)"),
            (lambda: model.select(1, 1, 1, lda=-1), "lda is -1"),
            (lambda: model.select(1, 1, 1, lda=1 << 64), "lda is 18446744073709551616"),
            (
                lambda: model.select_many([{"m": 1, "n": 1, "k": 1}, {"m": 1, "n": 1, "k": 0}]),
                "problem 1: k is 0",
            ),
            (lambda: lib.load("/nowhere/liborigami.so"), "/nowhere/liborigami.so"),
        ):
            with self.assertRaises(Error) as caught:
                ask()
            self.assertIn(want, str(caught.exception))
            self.assertEqual(str(caught.exception).count("\n"), 0)
            self.assertIn(caught.exception.kind, ("input", "device"))
        self.assertEqual(model.rank(1, 1, 1, top=0), [])

    def test_odd_arguments(self):
        # Whatever is passed, the exception is an Error of one printable line. The wrong type is a TypeError as well.
        class Odd:
            def __index__(self):
                raise ValueError("odd")

            def __repr__(self):
                raise ValueError("odd")

        endless = {}
        endless["again"] = endless
        deep = []
        for _ in range(100000):
            deep = [deep]
        model = Model("sm90")
        one = {"m": 64, "n": 64, "k": 64}
        values = (lambda: model.rank(1, 1, 1, top=-1), lambda: model.rank(1, 1, 1, top=1 << 70),
                  lambda: Model("sm90", overrides={"clock": float("nan")}), lambda: Model("sm90", options=endless),
                  lambda: Model("sm90", space={"block_m": deep}),
                  lambda: Model("sm90", compiled=pathlib.Path("/nowhere")),
                  lambda: Model("sm90", compiled=pathlib.Path("/")), lambda: Model("sm90\x1b[2J\u202e\n"),
                  lambda: Model("sm90", characterization=pathlib.Path(__file__)), lambda: lib.load("a\0b"),
                  lambda: model.select(1, 1, 1, dtype="\x1b[2J\u202e"), lambda: Model("sm90", kernel="\ud800"))
        types = (lambda: Model(90), lambda: Model(b"sm90"), lambda: Model("sm90", 200),
                 lambda: Model("sm90", options=[1]),
                 lambda: Model("sm90", space="block_m"), lambda: Model("sm90", space={"block_m": {64}}),
                 lambda: Model("sm90", overrides={("clock",): 1}), lambda: Model("sm90", compiled=7),
                 lambda: Model("sm90", library=7), lambda: model.select(None, 1, 1), lambda: model.select([1], 1, 1),
                 lambda: model.select(True, 77, 77), lambda: model.select(Odd(), 1, 1),
                 lambda: model.select(1, 1, 1, dtype=None),
                 lambda: model.select(1, 1, 1, align=None), lambda: model.select(1, 1, 1, align=(16, 16, "2")),
                 lambda: model.select(1, 1, 1, out_dtype=7), lambda: model.select(1, 1, 1, ldb=1.5),
                 lambda: model.select(1, 1, 1, dtype=["fp16"]), lambda: model.select(1, 1, 1, trans_a="no"),
                 lambda: model.select(1, 1, 1, trans_b=[1]), lambda: model.select(1, 1, 1, batch=None),
                 lambda: model.rank(1, 1, 1, top=None), lambda: model.rank(1, 1, 1, top=2.5),
                 lambda: model.rank(1, 1, 1, trans_a=[True]), lambda: model.select_many(None),
                 lambda: model.select_many([one, 7]), lambda: model.select_many([one, {"m": 1}]),
                 lambda: model.select_many([one, one | {"tile": 1}]),
                 lambda: model.select_many([one, one | {"m": [1]}]),
                 lambda: model.select_many([one, {7: 1}]), lambda: model.expected_regret(1, 1, {}))
        for wanted, calls in ((Error, values), (ArgumentTypeError, types)):
            for call in calls:
                with self.subTest(line=call.__code__.co_firstlineno, names=call.__code__.co_consts):
                    with self.assertRaises(wanted) as caught:
                        call()
                    self.assertTrue(str(caught.exception).isprintable() and str(caught.exception), caught.exception)
                    self.assertLess(len(str(caught.exception)), 5000)
                    self.assertEqual(isinstance(caught.exception, TypeError), wanted is ArgumentTypeError)
        for call in (lambda: model.select_many([one, one, one | {"k": 0}]),
                     lambda: model.select_many([one, one, {"m": 1}]),
                     lambda: model.select_many([one, one, one | {"dtype": "x"}])):
            model.select(**one)  # known, so the library is asked about one problem only
            with self.assertRaisesRegex(Error, "^problem 2"):
                call()

    def test_numbers_of_other_types(self):
        class Whole:
            def __index__(self):
                return 512

        model = Model("sm90")
        self.assertEqual(model.select(Whole(), 512, 512), model.select(512, 512, 512))
        self.assertEqual(model.rank(Whole(), 512, 512, top=Whole()), model.rank(512, 512, 512, top=512))
        self.assertEqual(model.select(512, 512, 513, trans_a=1), model.select(512, 512, 513, trans_a=True))
        whole = model.rank(512, 512, 512, top=1 << 40)
        self.assertEqual(whole[:8], model.rank(512, 512, 512))
        self.assertEqual(whole, model.rank(512, 512, 512, top=len(whole)))
        small = Model("sm90", space={"block_m": [64], "num_stages": [2, 3, 4]})
        self.assertEqual(len(small.rank(512, 512, 512, top=5)), 5)

    def test_endless_times(self):
        # No answer has a number that is not finite: the clock is refused, or the prediction is.
        for clock in (1e-308, 5e-324, 1e300):
            with self.subTest(clock=clock):
                try:
                    pick = Model("sm89", overrides={"clock": clock}).select(512, 512, 512)
                except Error:
                    continue
                self.assertTrue(0 <= pick.seconds < float("inf") and 0 < pick.cycles < float("inf"), pick)

    def test_closed(self):
        with Model("sm90") as model:
            known = model.select(64, 64, 64)
        self.assertEqual(model.select(64, 64, 64), known)
        with self.assertRaisesRegex(Error, "the model is closed"):
            model.select(65, 64, 64)
        model.close()


class InAProcess(unittest.TestCase):
    """The library brings a runtime with separate threads and signal handlers into Python's process."""

    def test_threads(self):
        model, want = Model("sm90"), Model("sm90")
        wrong = []

        def ask(offset):
            for i in range(200):
                m = 64 + (i * 37 + offset) % 100
                if model.select(m, 512, 512).cycles != want.select(m, 512, 512).cycles:
                    wrong.append(m)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_the_memory_is_emptied_by_another_thread(self):
        model, wrong, end = Model("sm90"), [], time.monotonic() + 1
        sizes = [{"m": 64 + i, "n": 64, "k": 64} for i in range(8)]
        want = model.select_many(sizes)

        def many():
            while time.monotonic() < end and not wrong:
                try:
                    if model.select_many(sizes) != want:
                        wrong.append("other answers")
                except Exception as e:
                    wrong.append(repr(e))

        def single(first):
            m = first
            while time.monotonic() < end and not wrong:
                model.select(m, 32, 32)
                m += 4

        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with unittest.mock.patch.object(lib, "_MEMORY", 4):
                threads = [threading.Thread(target=many) for _ in range(3)]
                threads += [threading.Thread(target=single, args=(1 + i,)) for i in range(3)]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
        finally:
            sys.setswitchinterval(before)
        self.assertEqual(wrong, [])

    def child(self, text, **options):
        return subprocess.run(
            [
                sys.executable,
                "-c",
                "from origami_gemm.lib import *\nmodel = Model('sm90')\nknown = model.select(64, 64, 64)\n" + text,
            ],
            capture_output=True,
            text=True,
            timeout=60,
            **options,
        )

    def test_fork(self):
        # Of a forked process: what is known is answered, the rest is an error and not a hang, and it ends as it should.
        out = self.child("""
import multiprocessing, os
def work(_):
    assert model.select(64, 64, 64) == known
    try:
        model.select(65, 64, 64)
    except Error as e:
        try:
            Model("sm89")
        except Error as again:
            model.close()
            return f"{os.getpid() != parent} {e.kind} {e == again} {str(e)[:40]}"
parent = os.getpid()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(set(pool.map(work, range(4))))
assert model.select(66, 64, 64)
""")
        self.assertEqual((out.returncode, out.stderr), (0, ""), out)
        self.assertEqual(out.stdout.strip(), "{'True internal False liborigami was loaded before this proces'}")

    def test_fork_past_python(self):
        # A fork that Python does not see is noticed by the C library: an Error and not a hang.
        out = self.child("""
import ctypes, os
pid = ctypes.CDLL(None).fork()
if pid == 0:
    try:
        model.select(65, 64, 64)
    except Error as e:
        print(e.kind, str(e)[:52], flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert model.select(66, 64, 64)
""")
        self.assertEqual((out.returncode, out.stderr), (0, ""), out)
        self.assertEqual(out.stdout.strip(), "internal liborigami was loaded before this process was forked")

    def test_spawn_and_late_loading(self):
        out = subprocess.run([sys.executable, "-c", """
import os
from origami_gemm.lib import Model
pid = os.fork()
if pid == 0:
    print(Model("sm90").select(64, 64, 64), flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(Model("sm90").select(64, 64, 64))
"""], capture_output=True, text=True, timeout=60)
        self.assertEqual((out.returncode, out.stderr), (0, ""), out)
        first, second = out.stdout.splitlines()
        self.assertEqual(first, second)

    def test_signals(self):
        # Python keeps its signal handlers, and a broken pipe is an exception.
        out = self.child("""
import faulthandler, os, signal, time
faulthandler.enable()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    print("interrupt")
signal.signal(signal.SIGUSR1, lambda *_: print("usr1"))
os.kill(os.getpid(), signal.SIGUSR1)
r, w = os.pipe()
os.close(r)
try:
    os.write(w, b"x")
except BrokenPipeError:
    print("pipe")
model.select(65, 64, 64)
""", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # nohup and a script's & leave it ignored
        self.assertEqual((out.returncode, out.stdout.split()), (0, ["interrupt", "usr1", "pipe"]), out)

    def test_interrupted_by_a_timer(self):
        # Signals that arrive within a call do not disturb it.
        seen = []
        model, want = Model("sm90"), Model("sm90")
        before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        try:
            end = time.monotonic() + 0.3
            picks = []
            while time.monotonic() < end:
                picks.append((64 + len(picks), model.select(64 + len(picks), 512, 512)))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertGreater(len(seen), 10)
        for m, pick in picks[::50]:
            self.assertEqual(pick, want.select(m, 512, 512))

    def test_bands(self):
        model = Model("sm90", "h200", kernel="wgmma")
        for arguments, options in (({"dtype": "bf16", "trans_b": True}, ("--dtype", "bf16", "--trans-b")),
                                   ({"epilogue": "bias+gelu"}, ("--epilogue", "bias+gelu")),
                                   ({"dtype": "fp8", "trans_b": True, "out_dtype": "bf16", "epilogue": "scales+bias_fp32+silu"},
                                    ("--dtype", "fp8", "--trans-b", "--out-dtype", "bf16", "--epilogue", "scales+bias_fp32+silu"))):
            want, = cli("select", "--arch", "sm90@h200", "--kernel", "wgmma", "-m", "3:200", "-n", 4096, "-k", 1024, *options)
            got = model.bands((3, 200), 4096, 1024, library=True, **arguments)
            self.assertEqual(
                [(b.m_low, b.m_high, b.pick is None, b.mean_regret, b.worst_regret, b.worst_m, b.seconds_low, b.seconds_high)
                 for b in got],
                [(b["m_low"], b["m_high"], b["kernel"] == "library", b["mean_regret"], b["worst_regret"], b["worst_m"],
                  b["seconds_low"], b["seconds_high"]) for b in want["bands"]])
            for band, said_band in zip(got, want["bands"]):
                if band.pick:
                    self.assertEqual(said(band.pick)["config"] | {"group_m": 0}, said_band["config"])
        self.assertEqual(len(model.bands((7, 7), 512, 512)), 1)
        for wrong, kind in (((0, 7), Error), ((8, 7), Error), (7, ArgumentTypeError), ((1, "x"), ArgumentTypeError)):
            with self.assertRaises(kind):
                model.bands(wrong, 512, 512)
        with self.assertRaises(ArgumentTypeError):
            model.bands((1, 7), 512, 512, same="block_k")
        with self.assertRaises(ArgumentTypeError):
            model.bands([], 512, 512)
        with self.assertRaisesRegex(Error, 'unknown axis "blockk"'):
            model.bands((1, 7), 512, 512, same=["blockk"])
        with self.assertRaisesRegex(Error, "is no epilogue"):
            model.bands((1, 7), 512, 512, epilogue="bias+tanh")

    def test_bands_with_something_the_same(self):
        """A table of configurations is that of the command line, and so are its prices."""
        model = Model("sm90", "h200", kernel="triton", space={"split_k": [1]})
        for sizes, said_sizes in ((list(range(16, 400, 16)), "16:16:384"), ((1, 700), "1:700")):
            want, = cli("select", "--arch", "sm90@h200", "-m", said_sizes, "-n", 4096, "-k", 1024, "--space", "split_k=1",
                        "--same", "block_k,stages")
            got = model.bands(sizes, 4096, 1024, same=["block_k", "stages"])
            cost = want["same"]
            self.assertEqual(
                (got.same.values, got.same.mean_price, got.same.worst_price, got.same.worst_m, got.same.one_mean_price,
                 got.same.one_worst_price, got.same.one_worst_m),
                (cost["values"], cost["mean_price"], cost["worst_price"], cost["worst_m"], *(
                    cost["one"][key] for key in ("mean_price", "worst_price", "worst_m"))))
            self.assertEqual(said(got.same.one)["config"] | {"group_m": 0}, cost["one"]["config"])
            self.assertEqual([(b.m_low, b.m_high, b.same_price, b.one_price) for b in got],
                             [(b["m_low"], b["m_high"], b["price"]["same"], b["price"]["one"]) for b in want["bands"]])
            for band, said_band in zip(got, want["bands"]):
                group = {} if isinstance(sizes, list) else {"group_m": 0}
                self.assertEqual(said(band.pick)["config"] | group, said_band["config"])
        self.assertIsNone(model.bands([1, 2], 512, 512).same)

    def test_invariant(self):
        """Kernels of one order of sums are those of the command line, with their price."""
        model = Model("sm90", "h200", kernel="wgmma", invariant=True)
        want, = cli("select", "--arch", "sm90@h200", "--kernel", "wgmma", "-m", "1,64,4096", "-n", 4096, "-k", 1024,
                    "--invariant")
        got = model.bands([1, 64, 4096], 4096, 1024)
        self.assertEqual((got.same.values, got.same.mean_price), (want["same"]["values"], want["same"]["mean_price"]))
        self.assertEqual([said(b.pick)["config"] for b in got], [b["config"] for b in want["bands"]])
        self.assertTrue(all("skew=0" in b.pick.axes for b in got))
        self.assertIn("skew=0", model.select(1, 4096, 1024).axes)
        self.assertNotIn("skew=0", Model("sm90", "h200", kernel="wgmma").select(1, 4096, 1024).axes)
        with self.assertRaisesRegex(Error, "nobody knows in which order"):
            Model("sm90", "h200", kernel="library", invariant=True)
        with self.assertRaises(ArgumentTypeError):
            Model("sm90", "h200", invariant="yes")

    def test_generated_kernels_are_those_of_export(self):
        """The record of a kernel has the numbers of the launcher that the command line writes."""
        model = Model("sm90", "h200", kernel="wgmma")
        for sizes, epilogue, options in (((200, 264, 320), "", ()), ((48, 4096, 4096), "bias+gelu", ("--epilogue", "bias+gelu"))):
            m, n, k = sizes
            kernel = model._ask("kernel", lib._problem(*lib._key(m, n, k), epilogue))
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run([CLI, "--in-process", "export", "--arch", "sm90@h200", "--kernel", "wgmma", "-m", str(m), "-n",
                                str(n), "-k", str(k), *options, "--output", folder], check=True, capture_output=True)
                path = pathlib.Path(folder, kernel["entry"])
                self.assertEqual(kernel["ptx"], path.with_suffix(".ptx").read_text())
                launcher = {"__file__": str(path)}
                exec(path.with_suffix(".py").read_text(), launcher)
            self.assertEqual(launcher["WORKSPACE"], kernel["counters"] + kernel["partials"])
            self.assertEqual(len(kernel["parameters"]), len(launcher["_PARAMS"]))
            for (parameter, role, kind, value), got in zip(launcher["_PARAMS"], kernel["parameters"]):
                self.assertEqual(got["role"], role, parameter)
                self.assertEqual(got["bytes"], 128 if role == "map" else ctypes.sizeof(kind), parameter)
                if role == "constant":
                    self.assertEqual(got["value"], value, parameter)
                elif role == "map":
                    matrix, _, *numbers = launcher["_MAPS"][parameter]
                    said_map = kernel["maps"][got["value"]]
                    self.assertEqual((said_map["matrix"], [said_map[name] for name in ("sizes", "strides", "box")]),
                                     (matrix, [list(part) for part in numbers]))

    def test_no_grpc_and_no_torch(self):
        out = self.child(
            "import sys\nprint([m for m in ('grpc', 'google.protobuf', 'torch', 'triton') if m in sys.modules])"
        )
        self.assertEqual(out.stdout.strip(), "[]", out)


if __name__ == "__main__":
    unittest.main()
