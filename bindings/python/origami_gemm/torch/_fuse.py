"""A pass on the graphs of torch.compile: what a layer of use() runs on is known there, for M and what follows are."""

from __future__ import annotations

import dataclasses
import math
import operator
import weakref

import torch

from origami_gemm import _layers
from origami_gemm._layers import Key, registry
from origami_gemm.torch import _ops, _verify
from origami_gemm.torch._described import described, with_size

F = torch.nn.functional
# What applies an activation in a graph before gradients. A gelu has its approximation as an argument.
NAMES = {torch.relu: "relu", torch.relu_: "relu", F.relu: "relu", F.relu_: "relu", F.silu: "silu", F.gelu: "gelu",
         torch._C._nn.silu: "silu", "relu": "relu", "relu_": "relu"}


@dataclasses.dataclass(slots=True)
class Used:
    """A layer that use() prepared, and how it did. shape, dtype and device are those of the weight."""

    key: Key
    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    low: int
    high: int
    verify: bool
    asked: set[Key] = dataclasses.field(default_factory=set)

    def runs(self, activation, m):
        """Whether our kernel runs at M, or at some M where M is a symbol or was not prepared."""
        key = self.key
        if activation:
            key = dataclasses.replace(key, epilogue="+".join(filter(None, (key.epilogue, activation))))
            if key not in self.asked:
                self.asked.add(key)
                with torch.utils._python_dispatch._disable_current_modes():
                    like = torch.empty(self.shape, dtype=self.dtype, device=self.device)
                    _verify.prepare(registry.layer(key), like, self.low, self.high, self.verify)
        spans = registry.layer(key).spans
        if isinstance(m, int):
            spans = [s for s in spans if s.band.m_low <= m <= s.band.m_high] or spans
        return any(s.why is None for s in spans)


# By shape, type and device of the weight, and whether there is a bias.
used: dict[tuple, Used] = {}


def know(key: Key, weight: torch.Tensor, low: int, high: int, verify: bool) -> None:
    name = _name(weight, key.epilogue == "bias")
    used[name] = Used(key, *name[:3], low, high, verify)


def _name(weight, bias):
    return tuple(weight.shape), weight.dtype, weight.device, bias


def run(passes, graph):
    """Runs what Inductor has as a custom pass: None, one pass or several."""
    for one in passes if isinstance(passes, (list, tuple)) else filter(None, [passes]):
        one(graph)


def operands(node):
    """The input, weight and bias of a node that is PyTorch's linear(), by name."""
    return dict(zip(("input", "weight", "bias"), node.args)) | node.kwargs


class Pass:
    """Puts the activation behind a layer into its kernel where that is there and faster, and torch.nn.functional.linear in
    place of a layer without a kernel, so that torch.compile does with it what it does with all others. before is the pass
    that was there."""

    def __init__(self, before):
        from torch._inductor import config
        self.before, self.timing = before, getattr(config, "pre_grad_pass_timing", None)
        if self.timing is not None:  # before the cache is asked: what the pass does depends on what was measured
            config.pre_grad_pass_timing = "early"

    def end(self):
        from torch._inductor import config
        if self.timing is not None:
            config.pre_grad_pass_timing = self.timing

    def __call__(self, graph):
        run(self.before, graph)
        for node in list(graph.nodes):
            if node.op == "call_function" and node.target in (_ops._ops.linear.default, _ops._ops.linear):
                lower(graph, node)
            elif node.op == "call_function" and node.target is F.linear and ANY in passes.modules:
                try:
                    fuse(graph, node)
                except Exception as e:  # the graph is right as it is
                    _layers.log.warning("what follows %s stays outside of its kernel: %s: %s", node, type(e).__name__, e)


def lower(graph, node):
    """Decides what a layer becomes. It stays where it is in the graph, so that it reads what it did."""
    x, weight, bias, activation, residual = (*node.args, *(None, "", None)[len(node.args) - 2:])
    y, w = (one.meta.get("example_value") for one in (node, weight))
    if y is None or w is None or activation or residual is not None or node.kwargs:
        return
    layer, m = used.get(_name(w, bias is not None)), math.prod(y.shape[:-1])
    last, name = follower(node, y)
    if name and (layer is None or layer.runs(name, m)):
        _join(graph, node, last, (x, weight, bias, name, None))
    elif layer is not None and not layer.runs("", m):
        node.target, node.args = F.linear, (x, weight, bias)


def fuse(graph, node):
    """Puts the activation behind PyTorch's own linear() into a kernel of ours where that is predicted to be faster."""
    given = operands(node)
    x, weight, bias = parts = [given.get(name) for name in ("input", "weight", "bias")]
    values = [None if one is None else one.meta.get("example_value") for one in parts]
    y = node.meta.get("example_value")
    last, name = (None, None) if y is None else follower(node, y)
    if not name or None in values[:2] or (bias is not None and values[2] is None) or not values[0].is_cuda:
        return
    m = math.prod(values[0].shape[:-1])
    size = m if isinstance(m, int) else m.node.hint
    w, row = (one if one is None else with_size(one, m, size) for one in values[1:])
    k, dtype, device = w.shape[1], values[0].dtype, values[0].device.index
    a, b = described((size, k), (k, 1), dtype, device), described(w.shape[::-1], w.stride()[::-1], w.dtype, w.index)
    key = _ops.key_of(a, b, row, name, False, dtype)
    if not isinstance(key, str) and registry.layer(key[0]).why(size, size) is None:
        node.target, node.kwargs = _ops._ops.linear.default, {}
        _join(graph, node, last, (x, weight, bias, name, None))


def follower(node, y):
    """The node whose result is an activation of what a node returns, y, and of nothing else, and the activation's name: None
    where there is none, y needs a gradient, or no kernel goes with it."""
    last, name = (None, None) if y.requires_grad else _follower(node, y)
    return (last, name) if name and _saves(last) else (None, None)


def _follower(node, y):
    user = _only(node)
    if user is None:
        return _quick_gelu(node)
    name = activation_of(user, node)
    if name is None:
        return _gated(user, node, y)
    square = _only(user) if name == "relu" else None
    return (square, "relu2") if square is not None and _squares(square, user) else (user, name)


# What reads an activation, and cannot compute it: Inductor has a kernel for it there.
PRODUCTS = {F.linear, torch.matmul, torch.mm, torch.bmm, torch.addmm, operator.matmul, "matmul", "mm", "bmm", F.conv1d, F.conv2d,
            torch.conv1d, torch.conv2d, F.scaled_dot_product_attention}
VIEWS = {"view", "reshape", "flatten", "unflatten", "contiguous", "transpose", "permute", "squeeze", "unsqueeze", torch.reshape,
         torch.flatten, torch.transpose, torch.permute, torch.squeeze, torch.unsqueeze}


def _saves(last):
    """Whether a kernel goes with an activation: other operators behind it would have it in theirs."""
    return all(user.op == "output" or user.target in PRODUCTS or user.target in (_ops._ops.linear.default, _ops._ops.linear)
               or (user.target in VIEWS or user.target is F.dropout and user.args[2:3] == (False,)) and _saves(user)
               for user in last.users)


def _only(node):
    """The node that alone reads another, or None."""
    return next(iter(node.users)) if len(node.users) == 1 else None


def _is(node, *targets):
    return node is not None and node.op in ("call_function", "call_method") and node.target in targets


def _squares(node, x):
    if _is(node, torch.square, "square"):
        return True
    other = {torch.pow: 2, operator.pow: 2, "pow": 2, operator.mul: x, torch.mul: x, "mul": x}.get(node.target)
    return node.op in ("call_function", "call_method") and other is not None and node.args == (x, other)


def _quick_gelu(x):
    """x · sigmoid(1.702 x)."""
    for scaled in x.users:
        sigmoid = _only(scaled)
        product = _only(sigmoid) if _is(sigmoid, torch.sigmoid, torch.nn.functional.sigmoid, "sigmoid") else None
        if (set(x.users) == {scaled, product} and all(_is(one, operator.mul, torch.mul, "mul") for one in (scaled, product))
                and scaled.args in ((1.702, x), (x, 1.702)) and product.args in ((x, sigmoid), (sigmoid, x))):
            return product, "quick_gelu"
    return None, None


def _gated(parts, x, y):
    """The activation of the first half of the columns times the second half, as of a layer that holds both."""
    options = dict(zip(("input", "chunks", "dim"), parts.args)) | parts.kwargs
    n = y.shape[-1]
    count = {torch.chunk: 2, "chunk": 2, torch.split: n // 2, "split": n // 2}.get(parts.target)
    size = options.get("chunks", options.get("split_size_or_sections", options.get("split_size")))
    if (not _is(parts, parts.target) or count is None or size not in (count, [count] * 2) or n % 2
            or options.get("dim", 0) not in (-1, y.dim() - 1) or len(parts.users) != 2):
        return None, None
    halves = {one.args[1]: one for one in parts.users if _is(one, operator.getitem)}
    gate, up = halves.get(0), halves.get(1)
    active = None if gate is None or up is None else _only(gate)
    name = None if active is None else activation_of(active, gate)
    product = _only(active) if name in ("gelu", "gelu_tanh", "silu") else None
    if (_is(product, operator.mul, torch.mul, "mul") and product is _only(up)
            and product.args in ((active, up), (up, active))):
        return product, name + "_gated"
    return None, None


def _join(graph, node, last, args):
    """Gives a node what others, up to the last, did behind it."""
    node.args = args
    node.meta["example_value"] = last.meta.get("example_value")
    last.replace_all_uses_with(node)
    _erase(graph, last, node)


def _erase(graph, node, first):
    """Takes out a node, and those behind the first that nothing reads then."""
    if node is not first and not node.users and node.op in ("call_function", "call_method"):
        inputs = node.all_input_nodes
        graph.erase_node(node)
        for one in inputs:
            _erase(graph, one, first)


def activation_of(user, node):
    """The name of the activation of a node that another is, or None."""
    if user.op not in ("call_function", "call_method") or user.args[:1] != (node,) and user.kwargs.get("input") is not node:
        return None
    name = NAMES.get(user.target)
    options = {k: v for k, v in user.kwargs.items() if k not in ("input", "inplace")}
    if name == "gelu":
        return {"none": "gelu", "tanh": "gelu_tanh"}.get(options.get("approximate", "none"))
    return name


class Installed:
    """A pass that stands in a setting of Inductor's, behind the one that is there, as long as a module needs it.
    modules has what make() and the pass ask of each."""

    def __init__(self, setting, make):
        self.setting, self.make, self.ours, self.modules = setting, make, None, weakref.WeakKeyDictionary()

    def install(self, module, what=None):
        from torch._inductor import config
        if module not in self.modules:
            weakref.finalize(module, self.leave).atexit = False
        self.modules[module] = what
        before = getattr(config, self.setting)
        if before is not self.ours or before is None:
            self.ours = self.make(before)
            setattr(config, self.setting, self.ours)

    def remove(self, module):
        self.modules.pop(module, None)
        self.leave()

    def leave(self):
        """Takes the pass out if no module needs it."""
        from torch._inductor import config
        if self.ours is not None and not list(self.modules) and getattr(config, self.setting) is self.ours:
            self.ours.end()
            setattr(config, self.setting, self.ours.before)
            self.ours = None


# Stands among the modules for all of a program.
ANY = torch.nn.Module()
passes = Installed("pre_grad_custom_pass", Pass)
