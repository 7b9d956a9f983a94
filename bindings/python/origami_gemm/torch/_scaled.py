"""A pass on the graphs of torch.compile: torch._scaled_mm becomes scaled_mm() where our kernel is predicted to be faster."""

from __future__ import annotations

import torch

from origami_gemm._layers import registry
from origami_gemm.torch import _ops
from origami_gemm.torch._described import with_size
from origami_gemm.torch._fuse import Installed

aten = torch.ops.aten
# Where the operator is replaced.
DEVICE = "cuda"
# cuBLAS in fp8 is faster than its model says (experiments/fp8-on-h100). The largest M at which ours was measured to
# gain: with one scale for each matrix cuBLAS is 3 % faster at larger ones, and with fast sums a decoder at 3,000 tokens.
ONE_SCALE, FAST = 64, 128
NAMES = ("self", "mat2", "scale_a", "scale_b", "bias", "scale_result", "out_dtype", "use_fast_accum")


def replace(node, spans):
    """Makes a node ours. spans are the sizes M that a graph may have that is compiled for any."""
    operands, values, out, fast = parts(node)
    if values[0].device.type != DEVICE or not fits(node):
        return
    m = values[0].shape[0]
    spans = [(m, m)] if isinstance(m, int) else spans
    if any(runs(*values, out, fast, *span) for span in spans):
        put(node, _ops._ops.scaled_mm.default, operands, out, fast)


def named(args, kwargs):
    """The arguments of torch._scaled_mm by name."""
    return dict(zip(NAMES, args)) | kwargs


def parts(node):
    """The operands of torch._scaled_mm in a graph and what they are, the type of the output and whether sums are fast."""
    given = named(node.args, node.kwargs)
    operands = [given.get(name) for name in NAMES[:5]]
    values = [None if x is None else x.meta.get("val") for x in operands]
    return operands, values, given.get("out_dtype") or values[0].dtype, bool(given.get("use_fast_accum"))


def fits(node):
    """Whether the scales are of whole matrices, or of rows and columns, and the result has none."""
    a, b, scale_a, scale_b, _ = parts(node)[1]
    return named(node.args, node.kwargs).get("scale_result") is None and scale_a.numel() in (1, a.shape[0]) and scale_b.numel() in (1, b.shape[1])


def put(node, target, operands, out, fast):
    """Makes a node of torch._scaled_mm one of our operators."""
    node.target, node.args, node.kwargs = target, (*operands, out, fast), {}
    if "eager_input_vals" in node.meta:  # Inductor reads the strides of operands there, by the operator's arguments
        given = named(*node.meta["eager_input_vals"])
        node.meta["eager_input_vals"] = (*(given.get(name) for name in NAMES[:5]), out, fast), {}


def runs(a, b, scale_a, scale_b, bias, out, fast, low, high):
    """Whether our kernel runs at some M."""
    found = asked(*(x if x is None else with_size(x, a.shape[0], high) for x in (a, b, scale_a, scale_b, bias)), out, fast,
                  low, high)
    if isinstance(found, str):
        _ops._refuse(found)
        return False
    key, high = found
    return registry.layer(key).why(low, high) is None


def asked(a, b, scale_a, scale_b, bias, out, fast, low, high):
    """The layer of a product, and the largest M at which cuBLAS was not measured to be faster, or why there is none."""
    steps = _ops._step(scale_a, high, a), _ops._step(scale_b, b.shape[1], a)
    if None in steps:
        return _ops.STEPS
    for applies, most, what in ((not any(steps), ONE_SCALE, "one scale for each matrix"), (fast, FAST, "fast sums")):
        if applies and (high := min(high, most)) < low:
            return f"{what}: cuBLAS is faster from M = {most + 1} on"
    key = _ops.key_of(a, b, bias, "", False, out, scaled=True, promote=not fast)
    return key if isinstance(key, str) else (key[0], high)


def _pass(before):
    """The pass, whose class needs a part of PyTorch that takes long to import."""
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Pass(CustomGraphPass):
        def __init__(self):
            self.before = before

        def __call__(self, graph):
            if before is not None:
                before(graph)
            spans = sorted({span for span in passes.modules.values() if span is not None})
            for node in graph.nodes:
                if node.op == "call_function" and node.target is aten._scaled_mm.default:
                    replace(node, spans)

        def uuid(self):
            return None  # graphs are not kept: the kernels that the pass compiles would not be there with them

        def end(self):
            pass

    return Pass()


# The modules that need the pass, and the sizes M of each, or None.
passes = Installed("post_grad_custom_pre_pass", _pass)
