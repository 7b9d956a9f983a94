"""origami_gemm.torch in PyTorch, without a GPU: what the operators compute and promise, and, on a driver without a GPU,
what they launch. Without torch or liborigami the tests skip."""

import copy
import dataclasses
import gc
import unittest
from unittest import mock

from tests import fakecuda, needs

needs.all_of("torch", required=("ORIGAMI_REQUIRE_TORCH",))

import torch  # noqa: E402

import origami_gemm.torch as og  # noqa: E402
from origami_gemm.errors import Error  # noqa: E402
from origami_gemm.torch import _ops  # noqa: E402

OPS = torch.ops.origami_gemm
F = torch.nn.functional


def row_scales():
    """Whether torch._scaled_mm takes a scale for each row on the CPU."""
    a, one = torch.ones(16, 16).to(torch.float8_e4m3fn), torch.ones(16, 1)
    try:
        torch._scaled_mm(a, a.t(), one, one.t(), out_dtype=torch.bfloat16)
    except RuntimeError:
        return False
    return True


def doubles(*shape):
    return torch.randn(shape, dtype=torch.double, requires_grad=True)


class Operators(unittest.TestCase):
    """On the CPU, where PyTorch's own operators run."""

    def setUp(self):
        torch.manual_seed(1)
        self.a, self.b, self.w, self.bias = doubles(6, 8), doubles(8, 4), doubles(4, 8), doubles(4)

    def test_answers_are_those_of_pytorch(self):
        a, b, w, bias = self.a, self.b, self.w, self.bias
        gated = lambda gate, up: F.silu(gate) * up
        x, r = doubles(2, 3, 8), doubles(2, 3, 4)
        for got, want in (
            (og.mm(a, b), a @ b), (og.bmm(x, x.transpose(1, 2)), x @ x.transpose(1, 2)),
            (og.addmm(bias, a, b, alpha=2, beta=3), torch.addmm(bias, a, b, alpha=2, beta=3)),
            (og.linear(x, w, bias), F.linear(x, w, bias)), (og.linear(x, w), F.linear(x, w)),
            (og.linear(x, w, bias, "relu"), F.relu(F.linear(x, w, bias))),
            (og.linear(x, w, bias, "gelu"), F.gelu(F.linear(x, w, bias))),
            (og.linear(x, w, bias, "gelu_tanh"), F.gelu(F.linear(x, w, bias), approximate="tanh")),
            (og.linear(x, w, bias, "silu"), F.silu(F.linear(x, w, bias))),
            (og.linear(x, w, bias, "silu_gated"), gated(*F.linear(x, w, bias).chunk(2, -1))),
            (og.linear(x, w, bias, "gelu", residual=r), F.gelu(F.linear(x, w, bias)) + r),
            (og.linear(x, w, residual=r), F.linear(x, w) + r),
            (og.mm(a[:0], b), a[:0] @ b), (og.linear(x[:0], w), F.linear(x[:0], w)),
        ):
            torch.testing.assert_close(got, want, rtol=0, atol=0)

    def test_scaled(self):
        fp8 = lambda *shape: torch.randn(shape).to(torch.float8_e4m3fn)
        a, b, bias = fp8(6, 16), fp8(8, 16).t(), torch.randn(8)
        each, column, one = 10 ** torch.rand(6, 1).mul(3), torch.rand(1, 8), torch.tensor(0.25)
        for scale_a, scale_b, add in ((each, column, bias), (one, one, None), (each, one, bias), (one, column, None)):
            want = (a.double() @ b.double()) * scale_a.double() * scale_b.double()
            want = want if add is None else want + add
            for out, near in ((torch.float32, 1e-6), (torch.bfloat16, 4e-3)):
                got = og.scaled_mm(a, b, scale_a, scale_b, add, out)
                self.assertEqual(got.dtype, out)
                self.assertLess(float((got - want).norm() / want.norm()), near)
        self.assertEqual(og.scaled_mm(a, b, one, one).dtype, torch.bfloat16)
        with self.assertRaisesRegex(RuntimeError, "scale_a has 5 elements and scale_b 1; give fp32"):
            og.scaled_mm(a, b, each[:5], one)
        def cuda(a, b, *scales, bias=None, out_dtype=None, use_fast_accum=False):  # what PyTorch refuses on a GPU
            self.assertFalse(b.shape[0] % 16 or b.shape[1] % 16 or bias is not None and out_dtype is torch.float32)
            return og.scaled_mm(a, b, *scales, bias, out_dtype)
        with mock.patch.object(torch, "_scaled_mm", cuda):
            for n, k in ((24, 32), (32, 24), (32, 32)):
                x, y, add = fp8(6, k), fp8(n, k).t(), torch.randn(n)
                got = _ops._scaled_mm_torch(x, y, one, one, add, torch.float32, True)
                torch.testing.assert_close(got, x.float() @ y.float() * one * one + add)
        arguments = each, column, bias, torch.float32, True
        torch.library.opcheck(OPS.scaled_mm.default, (a.float(), b.float(), *arguments))
        torch.library.opcheck(OPS.scaled_mm.default, (a, b, *arguments),  # the schema's test has no fp8
                              test_utils=("test_faketensor", "test_autograd_registration"))

    def test_gradients(self):
        a, b, w, bias = self.a, self.b, self.w, self.bias
        check = torch.autograd.gradcheck
        self.assertTrue(check(og.mm, (a, b)) and torch.autograd.gradgradcheck(og.mm, (a, b)))
        self.assertTrue(check(og.bmm, (doubles(2, 3, 8), doubles(2, 8, 5))))
        self.assertTrue(check(lambda *x: og.addmm(*x, alpha=2, beta=3), (bias, a, b)))
        for activation in (None, "relu", "relu2", "gelu", "gelu_tanh", "quick_gelu", "silu", "silu_gated", "gelu_gated"):
            self.assertTrue(check(lambda *x: og.linear(*x, activation), (a, w, bias)), activation)
            self.assertTrue(check(lambda *x: OPS.linear(*x, activation or ""), (a, w, bias)), activation)
        r = doubles(6, 4)
        for op in (lambda a, w, r: OPS.linear(a, w, None, "relu", r), lambda a, w, r: og.linear(a, w, residual=r)):
            self.assertTrue(check(op, (a, w, r)))

    def test_registration(self):
        """Schema, fake kernels, autograd and dynamic shapes, as PyTorch checks them."""
        a, b, w, bias = self.a, self.b, self.w, self.bias
        for operator, arguments in ((OPS.mm, (a, b)), (OPS.bmm, (doubles(2, 3, 8), doubles(2, 8, 5))),
                                    (OPS.linear, (a, w, bias, "gelu")), (OPS.linear, (a, w)), (OPS.linear, (a, w, None, "", doubles(6, 4))),
                                    (OPS.linear, (a, w, bias, "silu_gated")), (OPS.addmm, (bias, a, b))):
            results = torch.library.opcheck(operator, arguments)
            self.assertEqual(set(results.values()), {"SUCCESS"}, (operator, results))

    def test_errors_are_those_of_pytorch(self):
        a, b, w = self.a, self.b, self.w
        for call in (lambda: og.mm(a, a), lambda: og.bmm(a, b), lambda: og.linear(a, b), lambda: og.mm(a, b.float())):
            with self.assertRaises(RuntimeError):
                call()
        with self.assertRaisesRegex(ValueError, "activation is 'tanh'; give None or one of relu, relu2, quick_gelu, gelu"):
            og.linear(a, w, None, "tanh")
        with self.assertRaisesRegex(ValueError, "silu_gated needs an even number of columns, and the weight has 3 rows"):
            og.linear(a, w[:3], None, "silu_gated")
        with self.assertRaisesRegex(RuntimeError, r"the residual is float64 of shape \(4,\); give one like the output, float64"):
            og.linear(a, w, residual=self.bias)
        with self.assertRaisesRegex(ValueError, "give sizes of at least 1"):
            og.prepare(torch.nn.Linear(4, 4), m=range(0, 4))

    def test_a_module_uses_linear(self):
        class Other(torch.nn.Linear):
            pass

        model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), Other(4, 4), torch.nn.Linear(4, 2, bias=False))
        x, names = torch.randn(3, 8), list(model.state_dict())
        want = model(x)
        self.assertEqual(og.use(model), [])
        self.assertEqual([type(one) for one in model], [og.Linear, torch.nn.ReLU, Other, og.Linear])
        torch.testing.assert_close(model(x), want, rtol=0, atol=0)
        calls = []
        with mock.patch.object(_ops, "linear", lambda *x: (calls.append(x), F.linear(*x))[1]):
            model(x)
            self.assertEqual(len(calls), 0)  # its weights get gradients
            with torch.no_grad():
                model(x)
            self.assertEqual(len(calls), 2)
        for grad in (True, False):
            with torch.set_grad_enabled(grad):
                torch.testing.assert_close(torch.compile(model, backend="eager")(x), want, rtol=0, atol=0)
        self.assertEqual(list(model.state_dict()), names)
        og.restore(model)
        self.assertEqual([type(one) for one in model], [torch.nn.Linear, torch.nn.ReLU, Other, torch.nn.Linear])
        self.assertEqual(og.use(model, m=range(1, 9)), [])  # on no GPU, cuBLAS's or not
        self.assertNotIn(og.Linear, map(type, model))

    def test_a_gated_module(self):
        """The parameters stay, as halves of one matrix, and come apart again; what is not of the form stays alone."""
        from origami_gemm.torch import _gated

        class MLP(torch.nn.Module):
            def __init__(self, act_fn, bias=False):
                super().__init__()
                self.gate_proj, self.up_proj = (torch.nn.Linear(8, 6, bias=bias) for _ in range(2))
                self.down_proj, self.act_fn = torch.nn.Linear(6, 8, bias=bias), act_fn

            def forward(self, x):
                return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))

        class Other(MLP):
            def forward(self, x):
                return self.down_proj(self.act_fn(self.up_proj(x)) * self.gate_proj(x))

        for act, name in ((torch.nn.SiLU(), "silu_gated"), (torch.nn.GELU("tanh"), "gelu_tanh_gated"), (F.gelu, "gelu_gated")):
            self.assertEqual(_gated.shape_of(MLP(act)), name)
        hooked = MLP(F.silu)
        hooked.gate_proj.register_forward_hook(lambda *x: None)
        for one in (MLP(torch.relu), Other(F.silu), hooked, torch.nn.Linear(8, 8)):
            self.assertIsNone(_gated.shape_of(one))
        one = MLP(torch.nn.SiLU(), bias=True)
        x, names, parameters = torch.randn(3, 8), list(one.state_dict()), list(one.parameters())
        want, more = one(x), one(torch.cat([x, x]))
        _gated.gate_up(one, *_gated.stack(one), "silu_gated", ((1, 4), (9, 12)))
        self.assertIsInstance(one, MLP)
        self.assertEqual(list(one.state_dict()), names)
        self.assertTrue(all(p is q for p, q in zip(one.parameters(), parameters)))
        storage = lambda x: x.untyped_storage().data_ptr()
        shared = lambda one: {storage(p.weight) for p in (one.gate_proj, one.up_proj)} == {storage(one.origami_weight)}
        calls = []
        linear = lambda *x: (calls.append(x), _ops._linear(*x))[1]
        with mock.patch.object(_ops, "linear", linear), torch.no_grad():
            for model in (one, torch.compile(one, backend="eager", fullgraph=True)):
                torch.testing.assert_close(model(x), want)
                torch.testing.assert_close(model(torch.cat([x, x])), more)
            self.assertEqual(len(calls), 2)
            other = copy.deepcopy(one)
            self.assertTrue(shared(one) and shared(other) and storage(other.origami_weight) != storage(one.origami_weight))
            other.double()
            self.assertTrue(shared(other))
            torch.testing.assert_close(other(x.double()), want.double(), rtol=1e-5, atol=1e-6)
            one.up_proj.weight.mul_(2)
            one.up_proj.bias.mul_(2)
            torch.testing.assert_close(one(x) - one.down_proj.bias, 2 * (want - one.down_proj.bias))
        one(x).sum().backward()
        self.assertEqual(one.gate_proj.weight.grad.shape, (6, 8))
        self.assertEqual(len(calls), 4)
        og.restore(one)
        self.assertIs(type(one), MLP)
        self.assertEqual([name for name in vars(one) if "origami" in name], [])
        self.assertNotEqual(storage(one.gate_proj.weight), storage(one.up_proj.weight))
        self.assertEqual(og.use(one, m=range(1, 9)), [])  # on no GPU
        self.assertIs(type(one), MLP)

    def test_prepare_without_a_gpu(self):
        og.clear()
        self.assertEqual(og.prepare(torch.nn.Linear(64, 64), m=range(1, 9)), [])
        self.assertEqual([row.why for row in og.explain()], ["the weight is not on a GPU"])
        og.clear()
        self.assertEqual(og.explain(), [])


class Graphs(unittest.TestCase):
    """What becomes of a layer in a graph of torch.compile: in that of Inductor's own passes, without its compiler."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lines = torch.nn.ModuleList(torch.nn.Linear(8, 8, bias=i != 1) for i in range(8))
            self.act = torch.nn.ModuleList([torch.nn.GELU("tanh"), torch.nn.SiLU(), torch.nn.ReLU(inplace=True)])

        def forward(self, x):
            x = F.gelu(self.lines[0](x))
            for line, act in zip(self.lines[1:], self.act):
                x = act(line(x))
            y = self.lines[6](torch.relu(self.lines[4](x)) + self.lines[5](x).relu())
            return F.gelu(y) + self.lines[7](y).tanh()

    def compiled(self, model, x, **options):
        """What the model returns, and its layers: the activation in each, or linear where it is PyTorch's."""
        found = []

        def backend(module, inputs):
            from torch._inductor.fx_passes.pre_grad import pre_grad_passes
            module = pre_grad_passes(module, inputs)
            found.extend(node.args[3] if node.target is OPS.linear.default else "linear" for node in module.graph.nodes
                         if node.target in (OPS.linear.default, F.linear))
            return module
        torch._dynamo.reset()
        return torch.compile(model, backend=backend, fullgraph=True, **options)(x), found

    def test_activations(self):
        from torch._inductor import config
        calls, model, x = [], self.Model(), torch.randn(2, 3, 8)
        want = model(x)
        with config.patch(pre_grad_custom_pass=calls.append):
            og.use(model)
            og.use(model)
            with torch.no_grad():
                got, layers = self.compiled(model, x)
            self.assertEqual(layers, ["gelu", "gelu_tanh", "silu", "relu", "", "", "", ""])  # a sum has its relu for nothing
            torch.testing.assert_close(got, want, rtol=0, atol=0)
            self.assertEqual(len(calls), 1)
            other = copy.deepcopy(model)
            og.restore(model)
            self.assertNotEqual(config.pre_grad_custom_pass, calls.append)
            og.restore(other)
            self.assertEqual(config.pre_grad_custom_pass, calls.append)
        model.requires_grad_(False)
        og.use(model)
        got, layers = self.compiled(model, x.requires_grad_())  # the activation needs what is before it
        self.assertEqual(layers, [""] * 8)
        torch.testing.assert_close(got, want, rtol=0, atol=0)
        og.restore(model)
        self.assertIsNone(config.pre_grad_custom_pass)

    def test_activations_of_several_operators(self):
        """The squared ReLU and the quick GELU of transformers, and a gate whose two layers are one, as in Phi-3."""
        class Several(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lines = torch.nn.ModuleList(torch.nn.Linear(16, 16, bias=i != 1) for i in range(9))
                self.down = torch.nn.ModuleList(torch.nn.Linear(8, 16) for _ in range(4))

            def forward(self, x):
                for i, square in enumerate((torch.square, lambda r: r.pow(2), lambda r: r ** 2, lambda r: r * r)):
                    x = square(F.relu(self.lines[i](x)))
                y = self.lines[4](x)
                y = y * torch.sigmoid(1.702 * y)
                for i, down in enumerate(self.down[:2]):
                    gate, up = self.lines[5 + i](y).chunk(2, dim=-1)
                    y = down(up * F.silu(gate)) if i else down(F.gelu(gate) * up)
                gate, up = torch.split(self.lines[7](y), 8, dim=-1)
                y = self.down[2](F.silu(gate) * up)
                gate, up = self.lines[8](y).chunk(2, dim=-1)
                return self.down[3](F.silu(gate) * up + gate)  # the gate is read twice

        model, x = Several(), torch.randn(2, 3, 16)
        with torch.no_grad():
            want = model(x)
            og.use(model)
            got, layers = self.compiled(model, x)
        self.assertEqual(layers, ["relu2"] * 4 + ["quick_gelu", "gelu_gated", "", "silu_gated", "", "silu_gated", "", "", ""])
        torch.testing.assert_close(got, want)
        og.restore(model)

    def test_passes_leave_with_the_last_module(self):
        from torch._inductor import config
        before = config.pre_grad_custom_pass, config.post_grad_custom_pre_pass
        model = self.Model()
        og.use(model)
        self.assertNotIn(None, (config.pre_grad_custom_pass, config.post_grad_custom_pre_pass))
        del model
        gc.collect()
        self.assertEqual((config.pre_grad_custom_pass, config.post_grad_custom_pre_pass), before)

    def test_verify_takes_the_fastest(self):
        """Of the pick, the alternative and PyTorch's own operator, at each band; the kernel that stays is the last chosen."""
        from origami_gemm import lib
        from origami_gemm._layers import Span
        from origami_gemm.torch import _verify

        class Layer:
            key = "key"

            def __init__(self):
                self.spans = [Span(lib.Band(m, m, f"pick {m}", 0.0, 0.0, m, 0.0, 0.0), None) for m in (1, 2, 3, 4)]
                self.refused = {}

            def alternative(self, m, pick):
                return None if m == 4 else f"other {m}"

            def choose(self, band, pick):
                if pick == "other 3":
                    raise Error("does not compile")
                span = next(s for s in self.spans if s.band == band)
                span.band = dataclasses.replace(band, pick=pick)
                return span.band

            def refuse(self, band, why):
                self.refused[band.m_low] = band.pick
        ratios = {"pick 1": 0.9, "other 1": 0.8, "pick 2": 1.1, "other 2": 1.2, "pick 3": 0.9, "pick 4": 1.01}
        layer = Layer()
        with mock.patch.object(_verify, "_ratio", lambda kept, device, layer, weight, m, pick: ratios[pick]), \
                mock.patch.object(_verify, "_device", lambda weight: "GPU"):
            _verify.verify(layer, torch.empty(8, 8), 1, 4)
        self.assertEqual([s.band.pick for s in layer.spans], ["other 1", "pick 2", "pick 3", "pick 4"])
        self.assertEqual(layer.refused, {2: "pick 2", 4: "pick 4"})

    def test_prepared_layers(self):
        """A layer whose kernels are known is decided at its M: with the activation, alone, or by PyTorch."""
        from origami_gemm import _layers, lib
        from origami_gemm.torch import _fuse, _verify
        span = lambda low, high, why: _layers.Span(lib.Band(low, high, None, 0.0, 0.0, low, 0.0, 0.0), why)
        layer = lambda epilogue: _layers.registry.layer(_ops.Key(0, 8, 8, "fp32", "fp32", trans_b=True, epilogue=epilogue))
        prepared = []

        def prepare(layer, weight, low, high, measure):
            prepared.append((layer.key.epilogue, tuple(weight.shape), low, high, measure))
            layer.spans = [span(1, 16, None), span(17, 32, "slower")]
        model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()), torch.randn(40, 8)
        want = model(x)
        og.use(model)
        model[0].origami_alone = False
        with mock.patch.object(_verify, "prepare", prepare):
            for why, at in ((None, {6: "gelu", 24: "", 40: "gelu"}), ("slower", {6: "gelu", 24: "linear", 40: "gelu"})):
                og.clear()
                layer("bias").spans = [span(1, 32, why)]
                _fuse.know(layer("bias").key, model[0].weight, 1, 32, True)
                for m, becomes in at.items():
                    with torch.no_grad():
                        got, layers = self.compiled(model, x[:m])
                    self.assertEqual(layers, [becomes], (why, m))
                    torch.testing.assert_close(got, want[:m])
            with torch.no_grad():
                self.assertEqual(self.compiled(model, x, dynamic=True)[1], ["gelu"])
                self.assertEqual(self.compiled(model[0], x[:6])[1], ["linear"])
            model.requires_grad_(False)
            self.assertEqual(self.compiled(model, x[:6].requires_grad_())[1], ["linear"])
        self.assertEqual(prepared, [("bias+gelu", (8, 8), 1, 32, True)] * 2)
        og.restore(model)
        self.assertNotIn("origami_alone", vars(model[0]))
        og.clear()


class Keys(unittest.TestCase):
    """Which tensors have a layer, and which."""

    def key(self, a, b, bias=None, activation="", adds=False, out=None):
        return _ops.key_of(a, b, bias, activation, adds, out or a.dtype)

    def test_layouts(self):
        half = lambda *shape: torch.empty(shape, dtype=torch.bfloat16)
        wide = half(64, 256)
        for a, b, want in (
            (half(64, 128), half(128, 96), dict()),
            (half(64, 128), half(96, 128).t(), dict(trans_b=True)),
            (half(128, 64).t(), half(128, 96), dict(trans_a=True)),
            (wide[:, :128], half(96, 128).t(), dict(lda=256, trans_b=True)),
            (half(64, 128), half(96, 256)[:, :128].t(), dict(ldb=256, trans_b=True)),
            (wide[:1, :128], half(128, 96), dict()),
            (half(64, 129)[:, 1:], half(128, 96), dict(lda=129, align=(2, 16, 16))),
            (half(5, 64, 128), half(5, 128, 96), dict(batch=5)),
        ):
            key, m = self.key(a, b)
            self.assertEqual(m, a.shape[-2])
            self.assertEqual(key, _ops.Key(0, 96, 128, "bf16", "bf16", **want))

    def test_what_no_kernel_computes(self):
        half = lambda *shape: torch.empty(shape, dtype=torch.float16)
        a, b = half(64, 128), half(128, 96)
        for arguments, want in (
            ((a.float(), b.float()), "no kernel multiplies float32"), ((a, b.bfloat16()), "no kernel multiplies"),
            ((a, half(64, 96)), "the shapes do not fit"), ((a[:0], b), "a matrix is empty"),
            ((half(64, 256)[:, ::2], b), "the strides"), ((half(1, 128).expand(64, 128), b), "the strides"),
            ((half(9, 64, 128)[::3], half(3, 128, 96)), "the strides"), ((a, b, half(95)), "the bias"),
            ((a, b, torch.empty(96)), "the bias"), ((a, b, half(192)[::2]), "the bias"),
        ):
            self.assertIn(want, self.key(*arguments), want)

    def test_epilogues(self):
        a, b, bias = (torch.empty(s, dtype=torch.float16) for s in ((64, 128), (128, 96), (96,)))
        self.assertEqual(self.key(a, b, bias, "gelu")[0].epilogue, "bias+gelu")
        self.assertEqual(self.key(a, b, None, "silu")[0].epilogue, "silu")
        self.assertEqual(self.key(a, b, bias)[0].epilogue, "bias")
        self.assertEqual(_ops.key_of(a, b, bias, "silu_gated", False, a.dtype, True)[0].epilogue, "bias+silu_gated+residual")
        self.assertIn("an even number of columns", self.key(a, b[:, :95], None, "silu_gated"))

    def test_scales(self):
        fp8 = lambda *shape: torch.empty(shape, dtype=torch.float8_e4m3fn)
        a, b, half = fp8(64, 128), fp8(96, 128).t(), torch.bfloat16
        for bias, out, want in ((None, half, "scales"), (torch.empty(96, dtype=half), half, "scales+bias"),
                                (torch.empty(96), half, "scales+bias_fp32"), (torch.empty(96), torch.float32, "scales+bias")):
            key, m = _ops.key_of(a, b, bias, "", False, out, scaled=True, promote=True)
            self.assertEqual((key.epilogue, key.promote, key.trans_b, m), (want, True, True, 64))
        self.assertIn("output's type or fp32", _ops.key_of(a, b, torch.empty(96, dtype=half), "", False, torch.float32, scaled=True))
        one = torch.ones(())
        for scale, size, want in ((one, 64, 0), (torch.ones(64, 1), 64, 1), (torch.ones(1, 1), 1, 0), (torch.ones(1, 96), 96, 1),
                                  (torch.ones(64, 2)[:, :1], 64, None), (torch.ones(63), 64, None), (one.double(), 64, None)):
            self.assertEqual(_ops._step(scale, size, a), want)


class Launches(unittest.TestCase):
    """The road of tensors on a GPU, with tensors of the CPU in their place: the driver computes nothing."""

    HEAD = """
import os, torch, origami_gemm.torch as og
from torch.nn.functional import linear
from origami_gemm.torch import _invariant, _ops, _scaled
_invariant.DEVICE, _scaled.DEVICE = "CPU", "cpu"
_ops.stream_of = lambda device: 77
half = lambda *shape: torch.ones(shape, dtype=torch.bfloat16)
"""

    def launched(self, program):
        """What a program prints, and the launches."""
        out, calls = fakecuda.run(self, self.HEAD + program)
        return out, [c for c in calls if c.startswith("launch ")]

    @unittest.skipUnless(row_scales(), "this build of PyTorch has no scales per row on the CPU")
    def test_scaled_in_a_compiled_graph(self):
        out, _ = self.launched("""
from torch._inductor import config
from torch._inductor.utils import run_and_get_code
def f(x, w, columns, fast=False):
    rows = x.abs().amax(1, keepdim=True).float() / 448
    q = (x.float() / rows).clamp(-448, 448).to(torch.float8_e4m3fn)
    return torch.relu(torch._scaled_mm(q, w.t(), rows, columns, out_dtype=torch.bfloat16, use_fast_accum=fast))
def check(dynamic, fast=False):
    torch._dynamo.reset()
    got, code = run_and_get_code(torch.compile(f, dynamic=dynamic), x, w, columns, fast)
    print("torch.ops.origami_gemm.scaled_mm" in code[0], torch.allclose(got, want, rtol=2e-2, atol=1e-3))
module = torch.nn.Module()
og.use(module, m=(1, 64))
x, w, columns = torch.randn(16, 512).bfloat16(), torch.randn(512, 512).to(torch.float8_e4m3fn), torch.rand(1, 512)
want = f(x, w, columns)
check(False), check(True), check(False, True), check(True, True)
og.restore(module)
check(False)
print(config.post_grad_custom_pre_pass)
""")
        self.assertEqual(out.split(), ["True", "True"] * 4 + ["False", "True", "None"], out)

    def test_scaled(self):
        out, launches = self.launched("""
fp8 = lambda *shape: torch.zeros(shape, dtype=torch.float8_e4m3fn)
real = torch._scaled_mm
torch._scaled_mm = lambda a, b, *scales, out_dtype=None, **other: torch.empty(a.shape[0], b.shape[1], dtype=out_dtype)
w, bias = fp8(4096, 4096), torch.zeros(4096)
for fast in (False, True):
    for m in (16, 48):
        x, each, one = fp8(m, 4096), torch.ones(m, 1), torch.ones(())
        for _ in range(2):
            for scales in ((each, one), (one, one), (one, torch.ones(1, 4096))):
                y = _ops._scaled_mm_cuda(x, w.t(), *scales, bias, torch.bfloat16, fast)
            og.wait()
        print(tuple(y.shape), y.dtype)
_ops._scaled_mm_cuda(x, w.t(), one.double(), one)
torch._scaled_mm = real
for row in og.explain():
    print(row.layer, "|", row.why, "|", row.calls)


class Model(torch.nn.Module):
    def forward(self, a, b, scale_a, scale_b):
        return torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)

def graph(m, spans=(), dynamic=False, one=False):
    sizes = {0: torch.export.Dim("m", min=2, max=4096)} if dynamic else {}
    scales = (torch.ones(()), torch.ones(())) if one else (torch.ones(m, 1), torch.ones(1, 4096))
    program = torch.export.export(Model(), (fp8(m, 4096), fp8(4096, 4096).t(), *scales),
                                  dynamic_shapes=dict(a=sizes, b={}, scale_a={} if one else sizes, scale_b={}))
    node, = (node for node in program.graph.nodes if node.op == "call_function" and "scaled" in str(node.target))
    _scaled.replace(node, spans)
    program.graph.lint()
    print(node.target, len(node.args))
graph(16), graph(1), graph(16, (), True), graph(16, [(1, 64)], True)
graph(64, one=True), graph(65, one=True), graph(16, [(1, 512)], True, True), graph(16, [(65, 512)], True, True)
""")
        lines = out.splitlines()
        one, ours = "(%d, 4096) torch.bfloat16", "origami_gemm.scaled_mm.default 7"
        self.assertEqual(lines[:4], [one % 16, one % 48] * 2, out)
        layer = "n=4096 k=4096 fp8, scales+bias_fp32"
        for name in (layer + ", promoted sums", layer):
            self.assertTrue(any(line.startswith(name + " | None | 3") for line in lines), out)
        self.assertTrue(any(line.startswith(" | the scales are others than fp32") for line in lines), out)
        self.assertEqual(len(launches), 12, out)
        theirs = "aten._scaled_mm.default 7"
        self.assertEqual(lines[-8:], [ours, ours, theirs, ours] + [ours, theirs, ours, theirs], out)

    def test_calls(self):
        out, launches = self.launched("""
half = lambda *shape: torch.zeros(shape, dtype=torch.bfloat16)
x, w, bias = half(48, 4096), half(4096, 4096), half(4096)
print(_ops.product(x, w.t()) is None, og.explain()[-1].why)
og.wait()
y = _ops._linear_cuda(x, w, bias, "gelu")  # another layer: PyTorch's own operator runs
og.wait()
for y in (_ops.product(x, w.t()), _ops._linear_cuda(x.view(2, 24, 4096), w, bias, "gelu"), _ops._mm_cuda(x, w.t())):
    print(tuple(y.shape), y.dtype)
r, wide = half(48, 4096), half(2 * 4096, 4096)
_ops._linear_cuda(x, w, None, "", r); _ops._linear_cuda(x, wide, None, "silu_gated"); og.wait()
for y in (_ops._linear_cuda(x, w, None, "", r), _ops._linear_cuda(x, wide, None, "silu_gated"),
          _ops._linear_cuda(x, w, None, "", half(4096, 48).t())):
    print(tuple(y.shape), y.dtype)
add = half(48, 4096)
_ops._addmm_cuda(add, x, w.t(), beta=2, alpha=3); og.wait()
print(_ops._addmm_cuda(add, x, w.t(), beta=2, alpha=1e39).data_ptr() != add.data_ptr())  # infinite
print(_ops._addmm_cuda(add[0], x, w.t(), beta=2) is not None, _ops._mm_cuda(x.float(), w.float().t()).dtype)
for row in og.explain():
    if row.calls: print(row.layer, "|", row.why, "|", row.calls)
""")
        lines = out.splitlines()
        self.assertEqual(lines[0], "True the kernel is not compiled yet")
        one = "(48, 4096) torch.bfloat16"
        self.assertEqual(lines[1:9], [one, "(2, 24, 4096) torch.bfloat16", one, one, one, one, "True", "True torch.float32"])
        self.assertEqual(len(launches), 7, out)
        self.assertIn("n=4096 k=4096 bf16, residual | None | 2", lines)
        self.assertIn("n=8192 k=4096 bf16, silu_gated | None | 1", lines)
        self.assertTrue(all(" 0x4d " in c for c in launches), launches)
        self.assertIn("n=4096 k=4096 bf16 | None | 2", lines)
        self.assertIn("n=4096 k=4096 bf16, bias+gelu | None | 1", lines)
        self.assertIn("n=4096 k=4096 bf16, adding | None | 1", lines)
        self.assertTrue(any("no kernel multiplies float32" in line for line in lines))
        self.assertTrue(any("another shape than the product" in line for line in lines))

    def test_one_order(self):
        """PyTorch's own products, and linear(invariant=True), run on kernels of one order, or say why not."""
        out, launches = self.launched("""
x, w, bias = half(48, 512), half(256, 512), half(256)
print(tuple(og.linear(x.view(2, 24, 512), w, bias, "gelu", invariant=True).shape))
before = torch.mm
og.enable_batch_invariant()
for y in (x @ w.t(), linear(x.view(2, 24, 512), w, bias), linear(x[0], w), torch.addmm(bias, x, w.t()),
          torch.addmm(half(48, 256), x, w.t(), beta=2), torch.addmm(half(48, 1), x, w.t()),
          torch.bmm(x.view(2, 24, 512), half(2, 512, 64)), x.view(2, 24, 512) @ w.t()):
    print(tuple(y.shape), y.dtype)
print([tuple(y.shape) for y in (half(1, 512).expand(48, 512) @ w.t(), half(512, 7).t() @ w.t(), half(48, 513)[:, 1:] @ w.t())])
for call in (lambda: x.float() @ w.t().float(), lambda: linear(half(4, 511), half(8, 511)),
             lambda: og.linear(x.double(), w.double(), invariant=True)):
    try:
        call()
    except og.NotInvariant as e:
        print(e)
print((torch.full((3, 1), 2.0) @ torch.full((1, 4), 3.0)).sum().item(), (x[:0] @ w.t()).shape[0])
x.requires_grad_()
linear(x, w, bias).sum().backward()
print(tuple(x.grad.shape))
og.enable_batch_invariant(strict=False)
print((torch.ones(3, 7) @ torch.ones(7, 2)).sum().item(), linear(torch.ones(3, 7), torch.ones(2, 7)).sum().item())
q = torch.ones(48, 512).to(torch.float8_e4m3fn)
rows, columns = torch.ones(48, 1), torch.ones(1, 256)
og.enable_batch_invariant()
for fast in (False, True):
    print(tuple(torch._scaled_mm(q, q[:16].t(), rows, columns[:, :16], out_dtype=torch.bfloat16, use_fast_accum=fast).shape),
          tuple(og.scaled_mm(q, q[:16].t(), rows[:1], columns[:, :1], invariant=True, use_fast_accum=fast).shape))
og.enable_batch_invariant(strict=False)
og.disable_batch_invariant()
print((x @ w.t())[0, 0].item())
for row in og.explain():
    if row.calls: print(row.layer, "|", row.why, "|", row.kernel)
""")
        lines = out.splitlines()
        one = "(48, 256) torch.bfloat16"
        two = "(2, 24, 256) torch.bfloat16"
        self.assertEqual(lines[:9], ["(2, 24, 256)", one, two, "(256,) torch.bfloat16", one, one, one,
                                     "(2, 24, 64) torch.bfloat16", two], out)
        self.assertEqual(lines.pop(9), "[(48, 256), (7, 256), (48, 256)]")
        for line, why in zip(lines[9:12], ("no kernel multiplies float32", "tensor_map", "no kernel multiplies float64")):
            self.assertIn("in an order of sums that all M have: ", line)
            self.assertIn(why, line)
        self.assertEqual(lines[12:18], ["72.0 0", "(48, 512)", "42.0 42.0", "(48, 16) (48, 16)", "(48, 16) (48, 16)", "512.0"])
        kernels = [line for line in lines[18:] if "one order" in line and "skew=0" in line]
        self.assertGreater(len(kernels), 3, out)
        self.assertTrue(any("promoted sums" in line and "promote=1" in line for line in kernels), out)
        self.assertEqual(len(launches), 18)

    def test_compiled_in_one_order(self):
        """Inductor's graphs call our kernels: each product once for each call."""
        out, launches = self.launched("""
x, w, bias = half(48, 512), half(256, 512), half(256)
og.enable_batch_invariant()
run = torch.compile(lambda x: (torch.relu(linear(x, w, bias)), x @ w.t() + 1, torch.bmm(x[None], w.t()[None]),
                               og.linear(x, w, invariant=True)), dynamic=True)
with torch.no_grad():
    for m in (48, 2):
        print([tuple(y.shape) for y in run(x[:m])])
""")
        self.assertEqual(out.splitlines(), [f"[({m}, 256), ({m}, 256), (1, {m}, 256), ({m}, 256)]" for m in (48, 2)])
        self.assertEqual(len(launches), 8)

    def test_graphs_of_one_order(self):
        """The pass replaces the products of a graph, behind the pass that is there. Otherwise those of half precision."""
        from torch.fx.experimental.proxy_tensor import make_fx

        from origami_gemm.torch import _invariant

        def products(x, w, bias, y):
            return torch.addmm(bias, x, w), torch.mm(x, w), torch.bmm(x[None], w[None]), torch.mm(y, y)

        half = lambda *shape: torch.ones(shape, dtype=torch.bfloat16)
        seen = []
        for strict, last in ((True, OPS.ordered_mm.default), (False, torch.ops.aten.mm.default)):
            graph = make_fx(products, tracing_mode="fake")(half(4, 8), half(8, 6), half(6), torch.ones(3, 3)).graph
            with mock.patch.object(_invariant, "DEVICE", "CPU"):
                _invariant.pass_of(seen.append, strict)(graph)
            targets = [node.target for node in graph.nodes if "mm" in str(node.target)]
            self.assertEqual(targets, [OPS.ordered_addmm.default, OPS.ordered_mm.default, OPS.ordered_bmm.default, last])
            graph.lint()
        self.assertEqual(len(seen), 2)
        self.assertIsNone(_invariant.pass_of(seen.append, True).uuid())  # nobody knows what the other pass does
        first = _invariant.pass_of(None, True)
        self.assertNotIn(first.uuid(), (None, _invariant.pass_of(None, False).uuid(), _invariant.pass_of(first, True).uuid()))

    def test_the_settings_of_graphs_come_back(self):
        from torch._inductor import config
        names = ("shape_padding", "coordinate_descent_tuning", "post_grad_custom_pre_pass")
        before = [getattr(config, name) for name in names]
        og.enable_batch_invariant()
        og.enable_batch_invariant(strict=False)
        self.assertEqual([config.shape_padding, config.coordinate_descent_tuning], [False, False])
        self.assertIsNotNone(config.post_grad_custom_pre_pass)
        og.disable_batch_invariant()
        og.disable_batch_invariant()
        self.assertEqual([getattr(config, name) for name in names], before)
        with self.assertRaisesRegex(ValueError, "another order of sums"):
            og.prepare(torch.nn.Linear(4, 4), m=range(1, 4), verify=True, invariant=True)

    def test_a_launch_that_fails(self):
        out, _ = self.launched("""
x, w = (torch.zeros(s, dtype=torch.bfloat16) for s in ((48, 4096), (4096, 4096)))
_ops.product(x, w.t()); og.wait()
for fail, kind in (("cuLaunchKernel 2", torch.OutOfMemoryError), ("cuLaunchKernel 700", RuntimeError)):
    os.environ["FAKE_FAIL"] = fail
    try:
        _ops.product(x, w.t())
    except kind as e:
        print(e)
os.environ["FAKE_FAIL"] = ""
print(_ops.product(x, w.t()) is not None)
""")
        self.assertEqual(out.splitlines(), [
            "origami_gemm: CUDA device 0: launching a kernel: CUDA_ERROR_OUT_OF_MEMORY (2)",
            "origami_gemm: CUDA device 0: launching a kernel: CUDA_ERROR (700)", "True"])


    def test_a_kernel_that_spills(self):
        """PyTorch's own operator runs, and explain() says why."""
        out, launches = self.launched("""
os.environ["FAKE_LOCAL"] = "1600"
x, w = torch.ones(48, 4096, dtype=torch.bfloat16), torch.ones(4096, 4096, dtype=torch.bfloat16)
_ops._mm_cuda(x, w.t()); og.wait()
print(_ops._mm_cuda(x, w.t())[0, 0].item())
print(og.explain()[-1].why)
""")
        lines = out.splitlines()
        self.assertEqual(lines[0], "4096.0")
        self.assertRegex(lines[1], "^CUDA device 0: its driver compiles wgmma_.* with 1600 bytes of local memory per thread")
        self.assertEqual(len(launches), 0)


class Shortcut(unittest.TestCase):
    """The functions call the kernel for a GPU themselves where an operator would only lead to it. A tensor that says it
    is on a GPU stands for one."""

    def test_where_nobody_watches(self):
        class OnGPU:
            is_cuda = property(lambda self: True)

        class Watch(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, arguments=(), options=None):
                return function(*arguments, **(options or {}))

        class Function(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, arguments=(), options=None):
                return function(*arguments, **(options or {}))

        plain, wanting = OnGPU(), OnGPU()
        plain.requires_grad, wanting.requires_grad = False, True
        with mock.patch.object(_ops, "_PLAIN", (OnGPU,)):
            alone = lambda *x: _ops._alone(x)
            self.assertTrue(alone(plain, None, plain))
            self.assertFalse(alone(plain, wanting) or alone(plain, torch.zeros(1)) or alone(torch.zeros(1), plain))
            with torch.no_grad():
                self.assertTrue(alone(plain, wanting))
            with Watch():
                self.assertFalse(alone(plain))
            with Function():
                self.assertFalse(alone(plain))
            seen = []
            torch.func.vmap(lambda x: (seen.append(alone(plain)), x)[1])(torch.zeros(2))
            torch.compile(lambda x: (seen.append(_ops._alone((x,))), x)[1], backend="eager")(torch.zeros(2))
            self.assertEqual(seen, [False, False])


if __name__ == "__main__":
    unittest.main()
