"""A pass on the graphs of torch.compile: what a layer of use() runs on is known there, for M and what follows are."""

from __future__ import annotations

import dataclasses
import math
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


class Pass:
    """Puts the activation behind a layer into its kernel where that is there and faster, and torch.nn.functional.linear in
    place of a layer without a kernel, so that torch.compile does with it what it does with all others. before is the pass
    that was there."""

    def __init__(self, before, timing):
        self.before, self.timing = before, timing

    def __call__(self, graph):
        for one in self.before if isinstance(self.before, (list, tuple)) else filter(None, [self.before]):
            one(graph)
        for node in list(graph.nodes):
            if node.op == "call_function" and node.target in (_ops._ops.linear.default, _ops._ops.linear):
                lower(graph, node)
            elif node.op == "call_function" and node.target is F.linear and ANY in _modules:
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
    user, name = follower(node, y)
    if name and (layer is None or layer.runs(name, m)):
        _join(graph, node, user, (x, weight, bias, name, None))
    elif layer is not None and not layer.runs("", m):
        node.target, node.args = F.linear, (x, weight, bias)


def fuse(graph, node):
    """Puts the activation behind PyTorch's own linear() into a kernel of ours where that is predicted to be faster."""
    given = dict(zip(("input", "weight", "bias"), node.args)) | node.kwargs
    x, weight, bias = operands = [given.get(name) for name in ("input", "weight", "bias")]
    values = [None if one is None else one.meta.get("example_value") for one in operands]
    y = node.meta.get("example_value")
    user, name = (None, None) if y is None else follower(node, y)
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
        _join(graph, node, user, (x, weight, bias, name, None))


def follower(node, y):
    """The only node that reads what a node returns, y, and the name of its activation: None where y needs a gradient."""
    user = next(iter(node.users)) if len(node.users) == 1 else None
    return user, None if user is None or y.requires_grad else activation_of(user, node)


def _join(graph, node, user, args):
    """Gives a node what another one did behind it."""
    node.args = args
    user.replace_all_uses_with(node)
    graph.erase_node(user)


def activation_of(user, node):
    """The name of the activation of a node that another is, or None."""
    if user.op not in ("call_function", "call_method") or user.args[:1] != (node,) and user.kwargs.get("input") is not node:
        return None
    name = NAMES.get(user.target)
    options = {k: v for k, v in user.kwargs.items() if k not in ("input", "inplace")}
    if name == "gelu":
        return {"none": "gelu", "tanh": "gelu_tanh"}.get(options.get("approximate", "none"))
    return name


# Stands among the modules for all of a program.
ANY = torch.nn.Module()
_modules: weakref.WeakSet = weakref.WeakSet()


def install(module):
    """Puts the pass behind the one that is there. It stays as long as a module needs it."""
    from torch._inductor import config
    if module not in _modules:
        weakref.finalize(module, _leave).atexit = False
    _modules.add(module)
    if not isinstance(config.pre_grad_custom_pass, Pass):
        timing = getattr(config, "pre_grad_pass_timing", None)
        config.pre_grad_custom_pass = Pass(config.pre_grad_custom_pass, timing)
        if timing is not None:  # before the cache is asked: what the pass does depends on what was measured
            config.pre_grad_pass_timing = "early"


def remove(module):
    _modules.discard(module)
    _leave()


def _leave():
    """Takes the pass out if no module needs it."""
    from torch._inductor import config
    ours = config.pre_grad_custom_pass
    if not list(_modules) and isinstance(ours, Pass):
        config.pre_grad_custom_pass = ours.before
        if ours.timing is not None:
            config.pre_grad_pass_timing = ours.timing
