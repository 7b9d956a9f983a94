"""A mode in which PyTorch's own products run on kernels that add up in an order that does not depend on M."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import warnings

import torch

from origami_gemm import _layers
from origami_gemm.torch import _fuse, _ops, _scaled

aten = torch.ops.aten
# Where the operators are replaced.
DEVICE = "CUDA"
ORDERED = {aten.mm.default: "ordered_mm", aten.bmm.default: "ordered_bmm", aten.addmm.default: "ordered_addmm"}


class Mode:
    """The operators that are replaced, and the settings of torch.compile that were there before."""

    def __init__(self, strict, leaves, tokens):
        self.strict, self.inductor = strict, {}
        both = _ops.pair(leaves)
        trees = Trees(strict, both, tokens) if tokens or both != (0, 0) else None
        self.library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel is replaced, which is what is wanted
            for name, one in (("mm", _ops._ordered_mm), ("bmm", _ops._ordered_bmm), ("addmm", _ops._ordered_addmm)):
                self.library.impl(name, one if strict else lenient(name, one), DEVICE)
            self.library.impl("_scaled_mm", scaled_mm(strict), DEVICE)
            # PyTorch may compute linear without mm and addmm. Ours calls them, and has their gradients.
            for key in (DEVICE, "Autograd" + DEVICE):
                self.library.impl("linear", trees.linear if trees else linear, key)
        self.compile(trees)

    def compile(self, trees):
        """Puts the same into the graphs of torch.compile, and takes out what depends on M there: padding, and sums in
        place of products of one row."""
        from torch._inductor import config
        wanted = {"shape_padding": False, "coordinate_descent_tuning": False,
                  "post_grad_custom_pre_pass": pass_of(config.post_grad_custom_pre_pass, self.strict)}
        if trees is not None:
            wanted["pre_grad_custom_pass"] = Linears(config.pre_grad_custom_pass, trees)
            if hasattr(config, "pre_grad_pass_timing"):  # before the cache is asked
                wanted["pre_grad_pass_timing"] = "early"
        for name, value in wanted.items():
            self.inductor[name] = getattr(config, name)
            setattr(config, name, value)
        torch._dynamo.reset()

    def end(self):
        from torch._inductor import config
        for name, value in self.inductor.items():
            setattr(config, name, value)
        self.library._destroy()
        torch._dynamo.reset()


def linear(x, weight, bias=None):
    rows = x.reshape(-1, x.shape[-1])
    y = aten.mm.default(rows, weight.t()) if bias is None else aten.addmm.default(bias, rows, weight.t())
    return y.view(*x.shape[:-1], weight.shape[0])


@dataclasses.dataclass
class Trees:
    """The order that a caller chose for linear() and its gradients."""

    strict: bool
    leaves: tuple[int, int]
    tokens: int

    def of(self, dtype, weight):
        """The arguments of ordered_linear behind the bias, None where no kernel has that order."""
        if not self.strict and dtype not in (torch.float16, torch.bfloat16):
            return None
        fits = [of if size % (of * _layers.LEAF_BLOCK) == 0 else 1 for of, size in zip(self.leaves, reversed(weight.shape))]
        return ("", None, *fits, self.tokens)

    def linear(self, x, weight, bias=None):
        more = self.of(x.dtype, weight)
        return linear(x, weight, bias) if more is None else _ops._ops.ordered_linear(x, weight, bias, *more)


@dataclasses.dataclass
class Linears:
    """A pass on graphs before gradients, behind the one that is there: some versions of PyTorch take linear() apart there
    before a device's operators are asked. What it has is part of the key of Inductor's cache."""

    before: object
    trees: Trees

    def __call__(self, graph):
        _fuse.run(self.before, graph)
        for node in graph.nodes:
            if node.op != "call_function" or node.target is not torch.nn.functional.linear:
                continue
            given = _fuse.operands(node)
            x, weight = (given[name].meta.get("example_value") for name in ("input", "weight"))
            more = None if x is None or weight is None else self.trees.of(x.dtype, weight)
            if more is not None:
                node.target, node.kwargs = _ops._ops.ordered_linear.default, {}
                node.args = (given["input"], given["weight"], given.get("bias"), *more)


def lenient(name, one):
    """An operator that runs PyTorch's own kernel for what no kernel of one order computes."""
    own = getattr(aten, name).out

    def run(*arguments, **options):
        try:
            return one(*arguments, **options)
        except _ops.NotInvariant:
            a, b = arguments[-2:]
            return own(*arguments, **options, out=a.new_empty((*a.shape[:-1], b.shape[-1])))
    return run


def scaled_mm(strict):
    """aten._scaled_mm in one order."""
    def run(a, b, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
        out = out_dtype or a.dtype
        try:
            if scale_result is not None:
                raise _ops.NotInvariant("origami_gemm: no kernel scales the result")
            return _ops._ordered_scaled_mm(a, b, scale_a, scale_b, bias, out, use_fast_accum)
        except _ops.NotInvariant:
            if strict:
                raise
            return aten._scaled_mm.out(a, b, scale_a, scale_b, bias, scale_result, out, use_fast_accum,
                                       out=a.new_empty((a.shape[0], b.shape[1]), dtype=out))
    return run


def pass_of(before, strict):
    """The pass on graphs, behind the one that is there."""
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Pass(CustomGraphPass):
        def __call__(self, graph):
            if before is not None:
                before(graph)
            for node in graph.nodes:
                if node.op != "call_function":
                    continue
                if node.target in ORDERED and ordered(node, strict):
                    node.target = getattr(torch.ops.origami_gemm, ORDERED[node.target]).default
                elif node.target is _ops._ops.scaled_mm.default:  # of use()
                    node.target = _ops._ops.ordered_scaled_mm.default
                elif node.target is aten._scaled_mm.default and ordered(node, True) and (strict or _scaled.fits(node)):
                    operands, _, out, fast = _scaled.parts(node)
                    _scaled.put(node, _ops._ops.ordered_scaled_mm.default, operands, out, fast)

        def uuid(self):
            earlier = b"" if before is None else getattr(before, "uuid", lambda: None)()
            if earlier is None:
                return None
            text = pathlib.Path(__file__).read_bytes() + repr((strict, earlier)).encode()
            return hashlib.sha256(text).hexdigest()

    return Pass()


def ordered(node, strict):
    """Whether a node of a graph is a product on the GPU that our kernels compute. Strictly, every product is."""
    value = node.meta.get("val")
    return value is not None and value.device.type == DEVICE.lower() and (
        strict or value.dtype in (torch.float16, torch.bfloat16))


_mode: Mode | None = None


def enable_batch_invariant(*, strict: bool = True, leaves: int | tuple[int, int] = 0, tokens_per_block: int = 0) -> None:
    """Makes mm, addmm, bmm, linear and _scaled_mm on a Hopper GPU, eager and under torch.compile, compute each row to the same bits
    whatever rows are beside it. What no kernel computes so, as fp32, is a NotInvariant error; without strict, PyTorch's own
    operator runs and explain() says why. leaves and tokens_per_block are for linear, as in og.linear(); a layer whose sizes do not
    have so many leaves has one. Graphs of torch.compile and of CUDA from before keep what they have."""
    global _mode
    disable_batch_invariant()
    _mode = Mode(strict, leaves, tokens_per_block)


def disable_batch_invariant() -> None:
    """Undoes enable_batch_invariant()."""
    global _mode
    if _mode is not None:
        _mode.end()
        _mode = None
