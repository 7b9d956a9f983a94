"""origami_gemm.inductor in PyTorch: what Inductor is given to choose from. Graphs are lowered for a GPU that is not
there: tensors are fake, and the device's properties are an H200's. Without torch or liborigami the tests skip."""

import concurrent.futures
import contextlib
import contextvars
import functools
import importlib
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from tests import needs

needs.all_of("torch", required=("ORIGAMI_REQUIRE_GPU", "ORIGAMI_REQUIRE_TORCH"))

import torch  # noqa: E402
import torch._inductor.codegen.common  # noqa: E402
import torch._inductor.debug  # noqa: E402
import torch._inductor.graph  # noqa: E402
import torch._inductor.scheduler  # noqa: E402
import torch._inductor.select_algorithm as select_algorithm  # noqa: E402
from torch._dynamo.source import ConstantSource  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402
from torch._inductor import config  # noqa: E402
from torch._inductor.runtime.hints import DeviceProperties  # noqa: E402
from torch._inductor.utils import fresh_cache  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402
from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.fx.experimental.symbolic_shapes import ShapeEnv  # noqa: E402
import origami_gemm.inductor as oi  # noqa: E402
from origami_gemm import Model, _layers  # noqa: E402
from origami_gemm.inductor import _cublas, _versions  # noqa: E402
from origami_gemm.torch import _fuse, _scaled  # noqa: E402

H200 = DeviceProperties(type="cuda", index=0, multi_processor_count=132, cc=90, major=9, regs_per_multiprocessor=65536,
                        max_threads_per_multi_processor=2048, warp_size=32)
FP8 = torch.float8_e4m3fn
SINCE_2_11 = _versions.number(torch.__version__) >= (2, 11)
SINCE_2_12 = _versions.number(torch.__version__) >= (2, 12)
CLIENT = pathlib.Path(__file__).resolve().parents[1]


def scaled(a, b, scale_a, scale_b):
    return torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=True)


def slow(a, b, scale_a, scale_b):
    return torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)


class Lowered(unittest.TestCase):
    """Lowers functions and remembers the choices that Inductor's autotuner is called with."""

    @classmethod
    def setUpClass(cls):
        cls.model = Model("sm90", "h200")

    def setUp(self):
        self.addCleanup(oi.disable)
        self.addCleanup(oi.clear)
        if self.quiet:
            self.enterContext(self.assertNoLogs("origami_gemm.inductor", "WARNING"))

    quiet = True

    def lower(self, function, *shapes, hints=(), written=False):
        """The choices for each operation of a function of CUDA tensors. A shape is a tuple of sizes (a string is a
        dynamic size with that hint), a type, and whether it is transposed. Or the number of kernels, if the
        program is to be written."""
        env = ShapeEnv()
        symbols = {}

        def size(given):
            if isinstance(given, int):
                return given
            if given not in symbols:
                source = ConstantSource(f"s{given}")
                symbols[given] = env.create_symintnode(env.create_symbol(int(given), source), hint=int(given))
            return symbols[given]

        def tensor(sizes, dtype=torch.bfloat16, transposed=False):
            sizes = [size(s) for s in sizes]
            if not transposed:
                return torch.empty(sizes, dtype=dtype, device="cuda")
            return torch.empty([*sizes[:-2], sizes[-1], sizes[-2]], dtype=dtype, device="cuda").transpose(-1, -2)

        seen = []

        def call(_, name, choices, input_nodes, layout, **__):
            seen.append((name, choices))
            node = choices[0].output_node()
            return (node, choices[0]) if SINCE_2_12 else node

        mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
        with contextlib.ExitStack() as stack:
            for patch in (
                mock.patch.object(DeviceProperties, "create", staticmethod(lambda _: H200)),
                mock.patch.object(select_algorithm.AlgorithmSelectorCache, "__call__", call),
                mock.patch.object(torch._inductor.utils, "is_big_gpu", lambda *_: True),
                mock.patch.object(torch.cuda, "get_device_capability", lambda *_: (9, 0)),
                mock.patch.object(torch.utils._triton, "triton_hash_with_backend", lambda: "none"),
                config.patch(multi_kernel_hints=list(hints)),
            ):
                stack.enter_context(patch)
            with mode:
                fakes = [tensor(*s) for s in shapes]
                graph = make_fx(function)(*fakes)
            lowering = torch._inductor.graph.GraphLowering(graph, shape_env=env)
            debug = torch._inductor.debug.DebugContext()
            with V.set_graph_handler(lowering), V.set_fake_mode(mode), V.set_debug_handler(debug):
                lowering.run(*fakes)
                if written:
                    return lowering.codegen()[0].value.count("async_compile.triton(")
        return seen

    def kernels(self, function, *shapes):
        """How many kernels the program of a function has."""
        properties = types.SimpleNamespace(name="NVIDIA H200", major=9, minor=0, multi_processor_count=132)
        with (
            mock.patch.object(torch._inductor.scheduler, "has_triton", lambda: True),
            mock.patch.object(torch.cuda, "get_device_properties", lambda *_: properties),
            mock.patch.object(torch.cuda, "current_device", lambda: 0),
        ):
            return self.lower(function, *shapes, written=True)

    def only(self, function, *shapes, **more):
        (name, choices), = self.lower(function, *shapes, **more)
        return name, [given(c) for c in choices if not extern(c)], [c for c in choices if extern(c)]

    def wanted(self, top, *, names=("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages", "GROUP_M"), **problem):
        picks = [p for p in self.model.rank(**problem, top=1 << 14) if p.split_k == 1]
        values = [(p.block_m, p.block_n, p.block_k, p.num_warps, p.num_stages, p.group_m) for p in picks[:top]]
        return [dict(zip(names, v)) for v in values]


def extern(choice):
    return isinstance(choice, select_algorithm.ExternKernelCaller)


def given(choice):
    """What a Triton choice is built with."""
    info = choice.annotations["ktc"].params.to_kwargs()
    return {name: info[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages", "GROUP_M")}


class Choices(Lowered):
    def test_mm(self):
        for top in (1, 4):
            oi.enable(top, aten=False, model=self.model)
            name, triton, aten = self.only(torch.mm, ((512, 1024),), ((1024, 768), torch.bfloat16, True))
            self.assertEqual((name, aten), ("mm", []))
            self.assertEqual(triton, self.wanted(top, m=512, n=768, k=1024, dtype="bf16", trans_b=True))

    def test_cublas_beside(self):
        oi.enable(2, aten=True, model=self.model)
        _, triton, aten = self.only(torch.mm, ((512, 1024), torch.float16), ((1024, 768), torch.float16))
        self.assertEqual(triton, self.wanted(2, m=512, n=768, k=1024))
        self.assertEqual(len(aten), 1)

    def test_addmm(self):
        oi.enable(aten=False, model=self.model)
        name, triton, aten = self.only(torch.addmm, ((768,),), ((512, 1024),), ((1024, 768),))
        self.assertEqual((name, aten), ("addmm", []))
        self.assertEqual(triton, self.wanted(1, m=512, n=768, k=1024, dtype="bf16"))

    def test_batches(self):
        oi.enable(aten=False, model=self.model)
        operands = ((4, 512, 256),), ((4, 256, 384),)
        wanted = self.wanted(1, m=512, n=384, k=256, batch=4, dtype="bf16")
        self.assertEqual(self.only(torch.bmm, *operands)[:2], ("bmm", wanted))
        self.assertEqual(self.only(torch.baddbmm, ((4, 512, 384),), *operands)[:2], ("baddbmm", wanted))

    def test_fp8(self):
        oi.enable(2, aten=False, model=self.model)
        for scales in (((), ()), ((512, 1), (1, 768))):
            name, triton, _ = self.only(scaled, ((512, 1024), FP8), ((1024, 768), FP8, True),
                                        *((s, torch.float32) for s in scales))
            self.assertEqual(name, "scaled_mm")
            self.assertEqual(triton, self.wanted(2, m=512, n=768, k=1024, dtype="fp8", out_dtype="bf16", trans_b=True))

    def test_fp8_keeps_what_is_not_the_model_s(self):
        oi.enable(aten=False, model=self.model)
        (_, choices), = self.lower(scaled, ((512, 1024), FP8), ((1024, 768), FP8, True), ((), torch.float32),
                                   ((), torch.float32))
        parameters = choices[0].annotations["ktc"].params.to_kwargs()
        self.assertTrue(parameters["USE_FAST_ACCUM"])
        self.assertEqual(parameters["ACC_TYPE"], "tl.float32")

    def test_unaligned(self):
        oi.enable(aten=False, model=self.model)
        (_, choices), = self.lower(torch.mm, ((512, 1001),), ((1001, 768),))
        self.assertEqual([given(c) for c in choices], self.wanted(1, m=512, n=768, k=1001, dtype="bf16"))
        self.assertFalse(choices[0].annotations["ktc"].params.to_kwargs()["EVEN_K"])

    def test_constants_of_whole_copies_count_as_aligned(self):
        """Triton knows of an argument only whether 16 divides it, but all divisors of a constant."""
        oi.enable(aten=False, model=self.model)
        _, triton, _ = self.only(torch.mm, ((512, 4104), torch.float16), ((4104, 776), torch.float16))
        self.assertEqual(triton, self.wanted(1, m=512, n=784, k=4112))
        self.assertNotEqual(triton, self.wanted(1, m=512, n=776, k=4104))
        self.assertEqual((oi.report()[-1].problem["n"], oi.report()[-1].problem["k"]), (776, 4104))
        _, triton, _ = self.only(torch.mm, ((512, "4104"), torch.float16), (("4104", 776), torch.float16))
        self.assertEqual(triton, self.wanted(1, m=512, n=784, k=4104))

    def test_a_view_has_its_leading_dimension_and_address(self):
        oi.enable(aten=False, model=self.model)
        _, triton, _ = self.only(lambda a, b: a[:, 8:1032] @ b, ((512, 2048),), ((1024, 768),))
        self.assertEqual(oi.report()[-1].problem["lda"], 2048)
        self.assertEqual(oi.report()[-1].problem["align"], (16, 16, 16))
        self.assertEqual(triton, self.wanted(1, m=512, n=768, k=1024, dtype="bf16", lda=2048))
        self.lower(lambda a, b: a[:, 1:1025] @ b, ((512, 2048),), ((1024, 768),))
        self.assertEqual(oi.report()[-1].problem["align"], (2, 16, 16))

    @unittest.skipUnless(SINCE_2_11, "2.10 keeps no strides in its graph")
    def test_strides_of_operands_are_fixed_where_inductor_has_no_other_kernel(self):
        from origami_gemm.inductor import _choices

        real, expected = _choices._built, []

        def built(*args):
            result = real(*args)
            expected.append(dict(getattr(V.graph, "buffer_layout_constraints", {})))
            return result

        with mock.patch.object(_choices, "_built", built):
            for aten in (False, True):
                oi.enable(2, aten=aten, model=self.model)
                self.lower(lambda a, b: torch.relu(a) @ b, ((512, 1024),), ((1024, 768),))
        self.assertEqual([len(found) for found in expected], [0, 1])

    def test_dynamic_sizes_have_one_pick_per_hint(self):
        oi.enable(aten=False, model=self.model)
        (_, choices), = self.lower(torch.mm, (("300", 1024),), ((1024, 768),), hints=(16, 4096))
        wanted = [self.wanted(1, m=m, n=768, k=1024, dtype="bf16")[0] for m in (300, 16, 4096)]
        self.assertEqual([given(c) for c in choices], wanted)
        self.assertEqual([c.annotations["ktc"].params.to_kwargs()["hint_override"] for c in choices], [None, 16, 4096])
        self.assertEqual([(r.dynamic, r.hint) for r in oi.report()], [(True, None), (True, 16), (True, 4096)])

    def test_as_many_as_the_uncertainty_says(self):
        oi.enable("auto", aten=False, model=self.model)
        regret = mock.Mock(worth_measuring=3)
        for answer, count in ((regret, 3), (None, 4)):
            with mock.patch.object(Model, "expected_regret", return_value=answer):
                self.assertEqual(len(self.only(torch.mm, ((512, 1024),), ((1024, 768),))[1]), count)

    def test_what_the_template_refuses_is_replaced(self):
        oi.enable(2, aten=False, model=self.model)
        problem = dict(m=512, n=768, k=1024, dtype="bf16")
        first, *others = self.wanted(3, **problem)
        real = select_algorithm.TritonTemplate.generate

        def generate(self, *args, **kwargs):
            if all(kwargs[name] == value for name, value in first.items()):
                raise NotImplementedError("not this one")
            return real(self, *args, **kwargs)

        with mock.patch.object(select_algorithm.TritonTemplate, "generate", generate):
            self.assertEqual(self.only(torch.mm, ((512, 1024),), ((1024, 768),))[1], others)

    def test_disabled(self):
        own = self.lower(torch.mm, ((512, 1024),), ((1024, 768),))
        self.assertTrue(extern(own[0][1][0]))
        with oi.enable(aten=False, model=self.model):
            self.assertFalse(extern(self.lower(torch.mm, ((512, 1024),), ((1024, 768),))[0][1][0]))
            with oi.enable(3, aten=False, model=self.model):
                self.assertEqual(len(self.lower(torch.mm, ((512, 1024),), ((1024, 768),))[0][1]), 3)
            self.assertEqual(len(self.lower(torch.mm, ((512, 1024),), ((1024, 768),))[0][1]), 1)
        again = self.lower(torch.mm, ((512, 1024),), ((1024, 768),))
        self.assertEqual([str(c) for c in again[0][1]], [str(c) for c in own[0][1]])
        self.assertFalse(config.max_autotune_gemm)
        self.assertIsNone(config.inductor_choices_class)

    def test_threads_that_compiled_before(self):
        """A thread keeps its handler; autograd's compiles backward graphs, with the settings of the thread that asks."""
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            def picked():
                run = contextvars.copy_context().run
                seen = thread.submit(run, self.lower, torch.mm, ((512, 1024),), ((1024, 768),)).result()
                return not extern(seen[0][1][0])

            self.assertFalse(picked())
            for _ in range(2):
                with oi.enable(aten=False, model=self.model):
                    self.assertTrue(picked())
                self.assertFalse(picked())

    def test_caches_tell_settings_apart(self):
        def key():
            return pickle.dumps(config.save_config_portable(ignore_private_configs=False))

        keys = {key()}
        for top, aten in ((1, False), (4, False), (1, True), (1, "auto")):
            with oi.enable(top, aten=aten):
                keys.add(key())
        self.assertEqual(len(keys), 5)
        self.assertIn(key(), keys)

    def test_another_handler_is_extended(self):
        from torch._inductor.choices import InductorChoices

        class Mine(InductorChoices):
            asked = 0

            def _finalize_template_configs(self, template_choices, kernel_inputs, templates, op_name,
                                           kwarg_overrides=None):
                Mine.asked += 1
                return super()._finalize_template_configs(
                    template_choices, kernel_inputs, templates, op_name, kwarg_overrides)

        with V.set_choices_handler(Mine()):
            oi.enable(aten=False, model=self.model)
            self.lower(torch.mm, ((512, 1024),), ((1024, 768),))
            self.assertEqual(Mine.asked, 0)
            oi.disable()
            self.lower(torch.mm, ((512, 1024),), ((1024, 768),))
            self.assertEqual(Mine.asked, 1)


@unittest.skipUnless(SINCE_2_11, "2.10 asks the driver for its number of SMs")
class Persistent(Lowered):
    """Inductor's persistent templates with TMA are ranked together with the others."""

    PROBLEM = dict(m=512, n=768, k=1024, dtype="bf16", trans_b=True)
    SHAPES = ((512, 1024),), ((1024, 768), torch.bfloat16, True)

    def setUp(self):
        super().setUp()
        self.enterContext(config.patch({"triton.enable_persistent_tma_matmul": True}))
        heuristics = _versions.template_parameters().__module__.removesuffix("params") + "triton."
        for name, answer in (("torch.utils._triton.has_triton_tma_device", True), (heuristics + "get_num_sms", 132),
                             ("torch._inductor.utils.get_num_sms", 132), (heuristics + "has_triton_stable_tma_api", True)):
            self.enterContext(mock.patch(name, lambda answer=answer: answer))

    def built(self, function, *shapes):
        """The templates of the choices, and what they are built with."""
        (_, choices), = self.lower(function, *shapes)
        return [(c.annotations["ktc"].template.name, given(c)) for c in choices if not extern(c)]

    def test_the_best_of_both(self):
        tiled, persistent = self.model, self.model.sibling("triton_persistent")
        best = [("mm", p) for p in tiled.rank(**self.PROBLEM, top=64) if p.split_k == 1]
        best += [("mm_persistent_tma", p) for p in persistent.rank(**self.PROBLEM, top=64)]
        best.sort(key=lambda b: b[1].seconds)
        names = "BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages", "GROUP_M"
        wanted = [(name, dict(zip(names, (p.block_m, p.block_n, p.block_k, p.num_warps, p.num_stages, p.group_m))))
                  for name, p in best[:6]]
        oi.enable(6, aten=False, model=self.model)
        self.assertEqual(self.built(torch.mm, *self.SHAPES), wanted)
        self.assertEqual({name for name, _ in wanted}, {"mm", "mm_persistent_tma"})
        row = oi.report()[-1]
        self.assertEqual(row.tma, tuple(name != "mm" for name, _ in wanted))
        self.assertEqual(row.runner_up, best[6][1])
        self.assertEqual("TMA" in row.chosen(), row.tma[0])

    def test_what_the_template_needs(self):
        oi.enable(16, aten=False, model=self.model)
        (_, choices), = self.lower(torch.mm, *self.SHAPES)
        for choice in choices:
            values = choice.annotations["ktc"].params.to_kwargs()
            if "NUM_SMS" in values:
                self.assertEqual((values["NUM_SMS"], values["A_ROW_MAJOR"], values["B_ROW_MAJOR"]), (132, True, False))
                self.assertGreaterEqual(values["num_warps"], 4)

    def test_operations(self):
        oi.enable(16, aten=False, model=self.model)
        names = {name for name, _ in self.built(torch.addmm, ((768,),), *self.SHAPES)}
        self.assertEqual(names, {"mm", "mm_persistent_tma"})
        built = self.built(slow, ((512, 1024), FP8), ((1024, 768), FP8, True), ((), torch.float32), ((), torch.float32))
        self.assertEqual({name for name, _ in built}, {"mm", "scaled_mm_device_tma_epilogue_scaling"})

    def test_off(self):
        oi.enable(16, aten=False, model=self.model)
        with config.patch({"triton.enable_persistent_tma_matmul": False}):
            self.assertEqual({name for name, _ in self.built(torch.mm, *self.SHAPES)}, {"mm"})
        self.assertFalse(any(oi.report()[-1].tma))


@unittest.skipUnless(SINCE_2_11, "2.10 does not say which choice a buffer was made of")
class Epilogues(Lowered):
    """Which epilogues become part of the only kernel. Graphs are scheduled and written, not compiled."""

    def test_large_ones_stay_outside(self):
        shapes = ((512, 1024),), ((1024, 768),), ((512, 768),), ((512, 768),), ((512, 768),)
        small = lambda a, b, x, y, z: (a @ b) * x + y  # noqa: E731
        large = lambda a, b, x, y, z: (a @ b) * x + y * z  # noqa: E731
        for settings, counts in (({"aten": False, "model": self.model}, (1, 2)), (None, (1, 1))):
            with contextlib.ExitStack() as stack:
                if settings:
                    stack.enter_context(oi.enable(**settings))
                else:
                    stack.enter_context(config.patch(max_autotune=True, max_autotune_gemm_backends="TRITON"))
                self.assertEqual(tuple(self.kernels(f, *shapes) for f in (small, large)), counts)


    def test_long_ones_stay_outside_of_large_blocks(self):
        """An epilogue of many instructions keeps an SM from its next block. Blocks of the first shape have 128
        accumulators per thread."""
        oi.enable(aten=False, model=self.model)
        gelu = lambda x: 0.5 * x * (1 + torch.erf(x * 0.7071))  # noqa: E731
        for rows, function, count in ((4096, gelu, 2), (4096, torch.tanh, 1), (16, gelu, 1)):
            with self.subTest(rows=rows, kernels=count):
                shapes = ((rows, 1024),), ((1024, 4096),)
                self.assertEqual(self.kernels(lambda a, b: function(a @ b), *shapes), count)


PROGRAM = shutil.which("origami", path=os.pathsep.join((str(CLIENT.parents[1] / "bin"), os.environ.get("PATH", ""))))


@unittest.skipUnless(PROGRAM, "needs origami: make build")
class Pasted(Lowered):
    """What `origami select --format inductor` prints, in Inductor's own list (docs/inductor.md)."""

    def paste(self, heuristic, *arguments):
        heuristics = importlib.import_module(_versions.template_parameters().__module__.removesuffix("params") + "triton")
        command = [PROGRAM, "--in-process", "--arch", "sm90@h200", "select", "--format", "inductor", *arguments]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        configurations = eval(f"[\n{lines}]", {"GemmConfig": heuristics.GemmConfig})
        patch = mock.patch.object(getattr(heuristics, heuristic)(), "mm_configs", configurations)
        self.enterContext(patch)
        self.enterContext(config.patch(max_autotune=True, max_autotune_gemm_backends="TRITON"))
        return configurations

    def test_what_is_pasted_is_chosen(self):
        names = ("block_m", "block_n", "block_k", "num_warps", "num_stages", "group_m")
        half, one = torch.float16, ((), torch.float32)
        for heuristic, flags, function, operands in (
            ("MM", "--top 3", torch.mm, (((512, 1024), half), ((1024, 768), half))),
            ("AddMM", "--dtype bf16", torch.addmm, (((768,),), ((512, 1024),), ((1024, 768),))),
            ("ScaledMM", "--dtype fp8 --out-dtype bf16 --trans-b", scaled,
             (((512, 1024), FP8), ((1024, 768), FP8, True), one, one)),
        ):
            flags = f"-m 512 -n 768 -k 1024 {flags}".split()
            configurations = self.paste(f"CUDA{heuristic}TemplateConfigHeuristic", *flags)
            self.assertEqual(len(configurations), 3 if heuristic == "MM" else 1)
            self.assertEqual([tuple(getattr(c, name) for name in names) for c in configurations],
                             [tuple(c.values()) for c in self.only(function, *operands)[1]])


class Cublas(Lowered):
    """What aten="auto", the default, makes of the two models' times. The sizes are of products that were measured."""

    def chosen(self, function, *shapes, top=1, **more):
        """How many Triton kernels and functions of cuBLAS there are to choose from."""
        oi.clear()
        oi.enable(top, model=self.model)
        _, triton, aten = self.only(function, *shapes, **more)
        return len(triton), len(aten)

    FAST = ((2048, 1024),), ((1024, 12288), torch.bfloat16, True)  # cuBLAS is predicted to take 0.76 of the pick's time
    SLOW = ((16, 4096),), ((4096, 4096), torch.bfloat16, True)  # and 1.13 here

    def test_taken_alone_where_it_is_clearly_faster(self):
        self.assertEqual(self.chosen(torch.mm, *self.FAST), (0, 1))
        row, = oi.report()
        self.assertTrue(row.cublas_alone)
        self.assertLess(row.cublas_seconds, 0.85 * row.runner_up.seconds)
        self.assertRegex(str(row), r"^mm 2048x12288x1024 bf16 NT: cuBLAS; predicted [\d.]+ µs; the best Triton kernel, "
                                   r"128x128x64 w4 s3 g8, [\d.]+ µs$")
        self.assertIn("1 of 1 operations picked by the model", str(oi.report()))

    def test_timed_beside_otherwise(self):
        self.assertEqual(self.chosen(torch.mm, *self.SLOW), (1, 1))
        row, = oi.report()
        self.assertFalse(row.cublas_alone)
        self.assertRegex(str(row), r" and 1 more, timed; predicted [\d.]+ µs .*, dram bound; cuBLAS [\d.]+ µs; the next")

    def test_timed_beside_several(self):
        for top in (4, "auto"):
            triton, aten = self.chosen(torch.mm, *self.FAST, top=top)
            self.assertEqual((triton > 0, aten), (True, 1))

    def test_a_row_is_added_by_cublas_itself(self):
        self.assertEqual(self.chosen(torch.addmm, ((12288,),), *self.FAST), (0, 1))
        self.assertEqual(self.chosen(torch.addmm, ((2048, 12288),), *self.FAST), (1, 1))  # copies the matrix first

    def test_scales(self):
        operands = ((256, 4096), FP8), ((4096, 512), FP8, True)
        for sizes, known in (((), True), (None, False)):
            scales = ((sizes, torch.float32),) * 2 if known else (((256, 1), torch.float32), ((1, 512), torch.float32))
            self.chosen(scaled, *operands, *scales)
            self.assertEqual(oi.report()[0].cublas_seconds is not None, known)

    def cublas(self, model, problem):
        return _cublas.seconds(model, problem, model.rank(**problem, top=1)[0])

    def test_timed_where_its_model_was_not_checked(self):
        known = dict(m=2048, n=6144, k=4096, dtype="bf16", out_dtype="bf16", trans_a=False, trans_b=True, lda=0, ldb=0,
                     align=(16, 16, 16))
        self.assertAlmostEqual(self.cublas(self.model, known), 133e-6, delta=10e-6)
        along_m = known | {"trans_a": True}
        self.assertEqual(self.cublas(self.model, along_m), self.cublas(self.model, known))
        for other in (known | {"k": 4097}, known | {"n": 6145}, along_m | {"m": 2047}, known | {"align": (2, 16, 16)},
                      known | {"dtype": "fp32", "out_dtype": "fp32"}, known | {"dtype": "fp8_e5m2"}, known | {"batch": 4}):
            self.assertIsNone(self.cublas(self.model, other), other)
        self.assertLess(self.cublas(Model("sm90", "h100"), known), 150e-6)
        self.assertIsNone(self.cublas(Model("sm100", "b200"), known))  # it has no times of Triton
        self.assertIsNone(self.cublas(Model("sm90", "h200", overrides={"clock": 1e9}), known))
        self.assertEqual(self.chosen(torch.mm, ((2048, 4097),), ((4097, 6144), torch.bfloat16)), (1, 1))

    def test_no_model_of_it_is_no_failure(self):
        with mock.patch.object(Model, "sibling", side_effect=oi.Error("no such family")):
            oi.enable(model=Model("sm90", "h200"))
            _, triton, aten = self.only(torch.mm, *self.FAST)
        self.assertEqual((len(triton), len(aten)), (1, 1))

    def test_inductor_without_it(self):
        oi.enable(model=self.model)
        with config.patch(max_autotune_gemm_backends="TRITON"):
            _, triton, aten = self.only(torch.mm, *self.FAST)
        self.assertEqual((len(triton), len(aten)), (1, 0))

    def test_all_hints_must_agree(self):
        def shapes(hint):
            return ((hint, 1024),), ((1024, 12288), torch.bfloat16, True)

        self.assertEqual(self.chosen(torch.mm, *shapes("2048"), hints=(4096,)), (0, 1))
        self.assertEqual([r.hint for r in oi.report()], [None, 4096])
        self.assertEqual(self.chosen(torch.mm, *shapes("2048"), hints=(16,)), (2, 1))

    def test_an_epilogue_follows_it(self):
        oi.enable(model=self.model)
        self.assertEqual(self.kernels(lambda a, b: torch.tanh(a @ b), *self.FAST), 1)


class Generated(Lowered):
    """Generated kernels among the choices."""

    def setUp(self):
        super().setUp()
        models = Model("sm90", "h200", kernel="wgmma"), Model("sm90", "h200", kernel="library")
        registry = _layers.Registry(lambda ordinal: _layers.Device(ordinal, models))
        self.loaded = []
        for patch in (mock.patch.object(_layers, "registry", registry), mock.patch.object(_fuse, "registry", registry),
                      mock.patch.object(_scaled, "registry", registry),
                      mock.patch.object(_layers.Layer, "_load", lambda layer, m, pick: self.loaded.append((layer.key, m)))):
            self.enterContext(patch)

    def names(self, function, *shapes, **more):
        return [[c.choice.name if extern(c) else "triton" for c in choices] for _, choices in self.lower(function, *shapes, **more)]

    OURS = ((16, 4096),), ((4096, 6144), torch.bfloat16, True)

    def test_untimed(self):
        oi.enable(kernels=True)
        self.assertFalse(config.max_autotune_gemm)
        self.assertEqual(self.names(torch.mm, *self.OURS), [["origami_gemm_mm"]])
        (key, m), = self.loaded
        self.assertEqual((key.n, key.k, key.dtype, key.trans_b, m), (6144, 4096, "bf16", True, 16))
        row, = oi.report()
        self.assertRegex(str(row), r"^mm 16x6144x4096 bf16 NT: .*, generated; predicted .*; cuBLAS ")

    def test_cublas_where_it_is_predicted_to_be_faster(self):
        oi.enable(kernels=True)
        with mock.patch.object(_layers.Layer, "why", lambda layer, low, high: _layers.LIBRARY):
            self.assertEqual(self.names(torch.mm, *self.OURS), [["mm"]])
        row, = oi.report()
        self.assertTrue(row.cublas_alone)
        self.assertRegex(str(row), "cuBLAS; predicted .*; the best generated kernel, ")

    def test_timed_beside_others(self):
        oi.enable(2, kernels=True, aten=True, model=self.model)
        self.assertEqual(self.names(torch.mm, *self.OURS), [["origami_gemm_mm", "mm", "triton", "triton"]])

    def test_what_is_added(self):
        oi.enable(kernels=True)
        n, (a, b) = 6144, self.OURS
        self.assertEqual(self.names(torch.addmm, ((n,),), a, b), [["origami_gemm_addmm"]])
        self.assertEqual(self.names(torch.addmm, ((16, n),), a, b), [["origami_gemm_addmm"]])
        self.assertEqual([(key.epilogue, key.adds) for key, _ in self.loaded], [("bias", False), ("", True)])

    def test_fp8(self):
        oi.enable(kernels=True)
        names = self.names(slow, ((16, 4096), FP8), ((4096, 6144), FP8, True), ((16, 1), torch.float32),
                           ((1, 6144), torch.float32))
        self.assertEqual(names, [["origami_gemm_scaled_mm"]])
        (key, _), = self.loaded
        self.assertEqual((key.dtype, key.out_dtype, key.epilogue, key.promote), ("fp8", "bf16", "scales", True))

    def test_a_dynamic_size_has_the_kernels_around_its_hint(self):
        oi.enable(kernels=True)
        self.assertEqual(self.names(torch.mm, (("16", 4096),), self.OURS[1]), [["origami_gemm_mm"]])
        self.assertTrue(oi.report()[0].dynamic)
        self.assertTrue(all(16 <= m <= 31 for _, m in self.loaded), self.loaded)

    def test_what_no_kernel_computes(self):
        oi.enable(kernels=True)
        with self.assertLogs("origami_gemm.inductor", "WARNING") as logs:
            self.assertEqual(self.names(torch.mm, ((16, 4096), torch.float32), ((4096, 512), torch.float32)), [["mm"]])
            self.assertEqual(self.names(lambda a, b: a[:, 1:] @ b, ((16, 4097),), self.OURS[1]), [["mm"]])
            self.assertEqual(self.names(torch.bmm, ((4, 16, 512),), ((4, 512, 256),)), [["bmm"]])
        for line, why in zip(logs.output, ("no kernel multiplies float32", "multiple of 16 bytes", "no generated kernel for bmm")):
            self.assertIn(why, line)
        with self.assertRaisesRegex(oi.Error, "needs cuBLAS"):
            oi.enable(kernels=True, aten=False)

    def test_activations(self):
        """Behind linear(), without gradients, where one kernel for both is predicted to be faster, and what reads the
        activation does not compute it for nothing."""
        def graph(requires_grad, dtype=torch.bfloat16, summed=False):
            def model(x, w, bias):
                y = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, bias))
                z = torch.nn.functional.silu(torch.nn.functional.linear(y, w.t()))
                return z + y.sum() if summed else z

            with FakeTensorMode():
                x, w, bias = (torch.empty(s, dtype=dtype, device="cuda") for s in ((2, 8, 4096), (6144, 4096), (6144,)))
                w.requires_grad_(requires_grad)
                made = torch.fx.symbolic_trace(model)
                shapes = dict(x=x, w=w, bias=bias)
                for node in made.graph.nodes:
                    if node.op == "placeholder":
                        node.meta["example_value"] = shapes[node.name]
                    elif node.op != "output":
                        value = lambda n: n.meta["example_value"] if isinstance(n, torch.fx.Node) else n
                        args, kwargs = torch.fx.map_arg(node.args, value), torch.fx.map_arg(node.kwargs, value)
                        node.meta["example_value"] = (getattr(args[0], node.target)(*args[1:], **kwargs)
                                                      if node.op == "call_method" else node.target(*args, **kwargs))
            config.pre_grad_custom_pass(made.graph)
            made.graph.lint()
            return [n.args[3] for n in made.graph.nodes if n.target is torch.ops.origami_gemm.linear.default]

        with oi.enable(kernels=True):
            self.assertEqual(graph(False), ["gelu", "silu"])
            self.assertEqual(graph(True), [])
            self.assertEqual(graph(False, torch.float32), [])
            self.assertEqual(graph(False, summed=True), [])
        self.assertIsNone(config.pre_grad_custom_pass)


class Pinned(Lowered):
    """A file with Inductor's lookup table, which a program without origami imports."""

    PRODUCTS = (
        (torch.mm, dict(m=16, n=4096, k=4096, dtype="bf16", trans_b=True), Cublas.SLOW),
        (torch.mm, dict(m=2048, n=12288, k=1024, dtype="bf16", trans_b=True), Cublas.FAST),
        (torch.addmm, dict(m=16, n=4096, k=4096, dtype="bf16", trans_b=True, bias=True), (((4096,),), *Cublas.SLOW)),
        (torch.addmm, dict(m=2048, n=12288, k=1024, dtype="bf16", trans_b=True, bias=True), (((12288,),), *Cublas.FAST)),
    )

    def setUp(self):
        super().setUp()
        from torch._inductor.choices import InductorChoices

        self.enterContext(V.set_choices_handler(InductorChoices()))
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(sys, "path", [str(self.folder), *sys.path]))
        self.enterContext(mock.patch.multiple(  # which ask the driver
            "torch._inductor.lookup_table.choices.LookupTableChoices",
            _get_lookup_table=lambda _: config.lookup_table.table or {}, _get_device_key=lambda *_: "NVIDIA H200"))
        names = "max_autotune_gemm", "max_autotune_gemm_backends", "inductor_choices_class", "lookup_table.table"
        for name in names:
            self.enterContext(config.patch({name: functools.reduce(getattr, name.split("."), config)}))

    def pinned(self, name, wanted, check):
        """Calls a function with the file in force."""
        file = self.folder / f"{name}.py"
        self.assertEqual(oi.pin(file, *wanted[:1], **(wanted[1] if wanted else {})), 4)
        self.assertNotIn("import origami", file.read_text())
        module = importlib.import_module(name)
        oi.disable()
        module.enable()
        with V.set_choices_handler(config.inductor_choices_class()):
            check(module)

    def chosen(self):
        """The only kernel of each product."""
        return [[c.name if extern(c) else given(c) for c in choices]
                for function, _, shapes in self.PRODUCTS for _, choices in self.lower(function, *shapes)]

    def wanted_kernels(self, bias):
        blocks, = self.wanted(1, m=16, n=4096, k=4096, dtype="bf16", trans_b=True)
        return [[blocks], ["mm"], [blocks], [bias]]

    BIAS = "addmm" if SINCE_2_12 else "bias_addmm"

    def test_problems(self):
        def check(module):
            self.assertEqual(self.chosen(), self.wanted_kernels(self.BIAS))
            self.assertRegex(next(iter(module.TABLE)), r"^NVIDIA H200\+\(\(torch.bfloat16, \[16, 4096\], \[4096, 1\]\), .*\+mm$")
            (_, (other,)), = self.lower(torch.mm, ((17, 4096),), ((4096, 4096),))
            self.assertTrue(extern(other))

        self.pinned("of_problems", ([one for _, one, _ in self.PRODUCTS], {"model": self.model}), check)

    def test_what_was_compiled(self):
        oi.enable(model=self.model)
        self.chosen()
        self.pinned("of_compiled", (), lambda module: self.assertEqual(self.chosen(), self.wanted_kernels(self.BIAS)))

    def test_keys_of_caches(self):
        keys = set()
        for name, problems in (("one", self.PRODUCTS[:1]), ("two", self.PRODUCTS[:2])):
            oi.pin(self.folder / f"{name}.py", [one for _, one, _ in problems], model=self.model)
            importlib.import_module(name).enable()
            keys.add(pickle.dumps(config.save_config_portable(ignore_private_configs=False)))
        self.assertEqual(len(keys), 2)

    def test_what_has_no_table(self):
        for problems, why in ((None, "no product was compiled"), ([dict(m=512, n=4096, k=4097)], "aten=False"),
                              ([dict(m=16, n=4096, k=4096, dtype="fp8")], "has scales"), ([dict(m=1, n=1, k=1, lda=2)], "has 'lda'")):
            with self.assertRaisesRegex(oi.Error, why):
                oi.pin(self.folder / "none.py", problems, model=self.model)
        self.assertEqual(oi.pin(self.folder / "some.py", [dict(m=512, n=4096, k=4097)], model=self.model, aten=False), 1)


class FailsOpen(Lowered):
    """To what Inductor would have without us: cuBLAS alone, or its list where the user wants to autotune."""

    quiet = False

    def left(self, reason, function, *shapes):
        """That an operation is left to Inductor, for a reason, with one line in the log."""
        oi.clear()
        oi.enable(model=self.model)
        with self.assertLogs("origami_gemm.inductor", "WARNING") as logs:
            forced = self.lower(function, *shapes)
            self.lower(function, *shapes)
        self.assertEqual(len(logs.output), 1, logs.output)
        self.assertRegex(logs.output[0], reason)
        self.assertRegex(str(oi.report()), reason)
        self.assertEqual([extern(c) for c in forced[0][1]], [True])
        with config.patch(max_autotune=True):
            tuned = [str(c) for c in self.lower(function, *shapes)[0][1]]
            oi.disable()
            self.assertEqual(tuned, [str(c) for c in self.lower(function, *shapes)[0][1]])
        return tuned

    def test_one_matrix_for_a_whole_batch(self):
        tuned = self.left("same matrix", lambda a, b: torch.bmm(a.expand(4, 512, 1024), b), ((1, 512, 1024),),
                          ((4, 1024, 768),))
        self.assertGreater(len(tuned), 10)

    def test_two_types(self):
        self.left("A is float8_e4m3fn and B is float8_e5m2", slow, ((512, 1024), FP8),
                  ((1024, 768), torch.float8_e5m2, True), ((), torch.float32), ((), torch.float32))

    def test_what_the_model_does_not_know(self):
        with mock.patch.object(Model, "rank", side_effect=oi.Error("no such kernel")):
            self.left("no such kernel", torch.mm, ((512, 1024),), ((1024, 768),))

    def test_our_own_mistakes(self):
        with mock.patch.object(Model, "rank", side_effect=ZeroDivisionError("oh")):
            self.left("ZeroDivisionError: oh", torch.mm, ((512, 1024),), ((1024, 768),))

    def test_a_template_with_other_parameters(self):
        heuristics = importlib.import_module(_versions.template_parameters().__module__.removesuffix("params") + "triton")
        real = heuristics.MMTemplateConfigMixin._convert_config_to_template_kwargs

        def convert(self, *args):
            return {name: value for name, value in real(self, *args).items() if name != "EVEN_K"}

        with mock.patch.object(heuristics.MMTemplateConfigMixin, "_convert_config_to_template_kwargs", convert):
            oi.enable(model=self.model)
            with self.assertLogs("origami_gemm.inductor", "WARNING") as logs, contextlib.suppress(Exception):
                self.lower(torch.mm, ((512, 1024),), ((1024, 768),))  # Inductor's own list does not compile either
            self.assertRegex(logs.output[0], "takes no EVEN_K")

    def test_versions(self):
        shapes = ((512, 1024),), ((1024, 768),)
        with mock.patch.object(torch, "__version__", "2.8.1"), self.assertLogs("origami_gemm.inductor", "WARNING"):
            oi.enable(model=self.model)
        self.assertTrue(extern(self.lower(torch.mm, *shapes)[0][1][0]))
        with mock.patch.object(torch, "__version__", "3.0.0+cu140"), self.assertNoLogs("origami_gemm.inductor", "WARNING"):
            oi.enable(aten=False, model=self.model)
            self.assertFalse(extern(self.lower(torch.mm, *shapes)[0][1][0]))  # it is tried
            oi.disable()

    def test_another_interface(self):
        from torch._inductor.choices import InductorChoices

        class Other(InductorChoices):
            def _finalize_template_configs(self, template_choices, kernel_inputs, layout):
                raise AssertionError

        with V.set_choices_handler(Other()), self.assertLogs("origami_gemm.inductor", "WARNING") as logs:
            oi.enable(model=self.model)
            self.assertRegex(logs.output[0], "cannot be extended")
            self.assertFalse(config.max_autotune_gemm)

    def test_matrices_of_the_host(self):
        oi.enable(model=self.model)
        with self.assertNoLogs("origami_gemm.inductor", "WARNING"):
            a, b = torch.randn(64, 64), torch.randn(64, 64)
            counters["inductor"].clear()
            with fresh_cache():
                torch.testing.assert_close(torch.compile(torch.mm)(a, b), a @ b)
        self.assertEqual(len(oi.report()), 0)
        self.assertEqual(counters["inductor"]["fxgraph_cache_bypass"], 0)  # Inductor can make a key of the settings
        self.assertEqual(counters["inductor"]["fxgraph_cache_miss"], 1)


class Environment(unittest.TestCase):
    def test_a_program_that_does_not_name_us(self):
        """An installed package is found by `import torch` through its entry point."""
        project = (CLIENT / "pyproject.toml").read_text()
        entry = re.search(r'\[project.entry-points."torch.backends"\]\n(.*) = "(.*)"', project)
        with tempfile.TemporaryDirectory() as folder:
            installed = pathlib.Path(folder) / "origami_gemm-0.1.0.dist-info"
            installed.mkdir()
            (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: origami-gemm\nVersion: 0.1.0\n")
            (installed / "entry_points.txt").write_text(f"[torch.backends]\n{entry[1]} = {entry[2]}\n")
            code = ("import torch, torch._inductor.config as c, sys\n"
                    "print(c.max_autotune_gemm, 'origami_gemm.triton' in sys.modules)\n"
                    "import origami_gemm.inductor as oi\n"
                    "print(oi.enable, oi._state.state.settings)")
            out = {}
            for text in ("", "top=3", "no idea"):
                environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(CLIENT), folder, *sys.path]), "ORIGAMI_INDUCTOR": text}
                out[text] = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True,
                                           env=environment)
        self.assertRegex(out[""].stdout, r"^False False\n.*None\n", out[""].stderr)
        self.assertRegex(out["top=3"].stdout, r"^True (True|False)\n.*Settings\(top=3,", out["top=3"].stderr)
        self.assertRegex(out["no idea"].stdout, r"^False False\n.*None\n", out["no idea"].stderr)
        self.assertIn("ORIGAMI_INDUCTOR is 'no idea'; give 1, or top=4,aten=auto,kernels=1, or 0", out["no idea"].stderr)


if __name__ == "__main__":
    unittest.main()
