"""Compiling ahead, and what runs where."""

from __future__ import annotations

import dataclasses

import torch

from origami_gemm import _layers
from origami_gemm._layers import registry
from origami_gemm.torch import _fuse, _ops, _scaled, _verify
from origami_gemm.torch._gated import Gated, apart, gate_up, shape_of, stack, ungate


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """Sizes of a layer and what computes them: kernel is the configuration of our kernel, or None for PyTorch's own
    operator, and why says why. calls counts the launches of our kernel for the sizes that were seen."""

    layer: str
    m_low: int
    m_high: int
    kernel: str | None
    why: str | None
    mean_regret: float
    calls: int


def prepare(module: torch.nn.Module | torch.Tensor, m: range | tuple[int, int], *, bias: bool | None = None,
            activation: str | None = None, residual: bool = False, verify: bool = False,
            invariant: bool = False) -> list[Row]:
    """Divides the sizes M of each layer into bands and compiles a kernel for each, so that linear() runs on them from its
    first call. It waits for the compiler, which takes some hundred milliseconds per kernel that the driver did not keep.

    module      a module, of which every torch.nn.Linear is prepared, or the weight of one layer
    m           the sizes: range(1, 4097) or (1, 4096)
    bias        for a weight: whether linear() will get a bias of the output's type
    activation  what linear() will get
    residual    whether linear() will get one
    verify      measure the layers: at each band's last M, our kernel and cuBLAS, in CUDA graphs with cold weights. Where
                cuBLAS is faster, it is taken. Results are kept with the device and the driver
    invariant   for linear(..., invariant=True), and for enable_batch_invariant()"""
    low, high = _range(m)
    activation = activation or ""
    _ops._check_activation(activation)
    if invariant and verify:
        raise ValueError("verify leaves sizes to cuBLAS, which has another order of sums; leave it or invariant out")
    if isinstance(module, torch.Tensor):
        weights = [(module, bool(bias))]
    else:
        weights = [(one.weight, one.bias is not None) for one in module.modules() if isinstance(one, torch.nn.Linear)]
    return _prepare([(w, b, activation, residual, invariant) for w, b in weights], low, high, verify)


def _range(m):
    low, high = (m.start, m.stop - 1) if isinstance(m, range) else m
    if low < 1 or high < low:
        raise ValueError(f"m is {m}; give sizes of at least 1, as in range(1, 4097)")
    return low, high


def _prepare(weights, low, high, verify):
    layers = {}
    for weight, *what in weights:
        key = key_of_weight(weight, *what)
        if isinstance(key, str):
            _ops._refuse(key)
            continue
        layers[key] = weight
    for key, weight in layers.items():
        _verify.prepare(registry.layer(key), weight, low, high, verify)
    return [row for key in layers for row in _rows(registry.layer(key))]


class Linear(torch.nn.Linear):
    """A torch.nn.Linear that calls linear(), and PyTorch's own operator where its weight gets a gradient: a step of
    training has no CUDA graph, and the host takes longer for our operators than the GPU gains. Without a kernel at any M
    it calls linear() only under torch.compile, where one may be faster together with what follows."""

    origami_alone = True

    def forward(self, input):
        if (torch.is_grad_enabled() and self.weight.requires_grad
                or not self.origami_alone and not torch.compiler.is_compiling()):
            return super().forward(input)
        return _ops.linear(input, self.weight, self.bias)

    def __setstate__(self, state):
        """A copy needs the pass, too."""
        super().__setstate__(state)
        _fuse.passes.install(self)


def use(module: torch.nn.Module, m: range | tuple[int, int] | None = None, *, verify: bool = True) -> list[Row]:
    """Makes each torch.nn.Linear of a module call linear() where no gradients are asked for, also under torch.compile.
    Weights, names and state_dict stay. With m, it prepares and measures the layers as prepare() does, and leaves those
    to PyTorch's own operator that it computes faster at every M. Modules of the form of Gated become one, at the sizes at
    which that is faster; their two weights then lie one behind the other in memory. Under torch.compile, an activation
    behind a layer goes into its kernel; with m, kernels for both are prepared and measured while a graph is compiled. There
    torch._scaled_mm (fp8) becomes scaled_mm() where our kernel is predicted to be faster: at the graph's M, or at some M of m
    if the graph is for any."""
    rows, gated = [], set()
    _scaled.passes.install(module, None if m is None else _range(m))
    if m is not None:
        low, high = _range(m)
        for one in list(module.modules()):
            rows += gate(one, low, high, verify)
        for one in module.modules():
            if isinstance(one, Gated) and one.origami_spans == ((low, high),):
                gated |= {id(one.gate_proj), id(one.up_proj)}
        rows += _prepare([(one.weight, one.bias is not None, "", False) for one in module.modules()
                          if _plain(one) and id(one) not in gated], low, high, verify)
    for one in module.modules():
        if type(one) not in (torch.nn.Linear, Linear) or not _plain(one) or id(one) in gated:
            continue
        if m is not None:
            key = key_of_weight(one.weight, one.bias is not None, "")
            if isinstance(key, str) or registry.layer(key).device.why:
                continue
            one.origami_alone = any(span.why is None for span in registry.layer(key).spans)
            _fuse.know(key, one.weight, low, high, verify)
        one.__class__ = Linear
        _fuse.passes.install(one)
    return rows


def _plain(one):
    """Whether a module is a layer whose weight is no quantized one."""
    return isinstance(one, torch.nn.Linear) and type(one.weight.data) is torch.Tensor


def gate(one, low, high, verify):
    """Makes a module Gated, at the sizes at which our kernel is predicted, and measured, to be faster."""
    activation = shape_of(one)
    if activation is None or not one.gate_proj.weight.is_cuda:
        return []
    weight, bias = stack(one)
    rows = _prepare([(weight, bias is not None, activation, False)], low, high, verify)
    key = key_of_weight(weight, bias is not None, activation)
    spans = [] if isinstance(key, str) else [
        (max(low, s.band.m_low), min(high, s.band.m_high)) for s in registry.layer(key).spans
        if s.why is None and s.band.m_low <= high and s.band.m_high >= low]
    if spans:
        gate_up(one, weight, bias, activation, _joined(spans))
    else:
        apart(one)
    return rows


def _joined(spans):
    """Ranges without those that touch."""
    out = []
    for low, high in sorted(spans):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], high)
        else:
            out.append((low, high))
    return tuple(out)


def restore(module: torch.nn.Module) -> None:
    """Undoes use()."""
    _scaled.passes.remove(module)
    for one in module.modules():
        if type(one) is Linear:
            one.__class__ = torch.nn.Linear
            vars(one).pop("origami_alone", None)
            _fuse.passes.remove(one)
        elif isinstance(one, Gated):
            ungate(one)


def key_of_weight(weight, bias, activation, residual=False, invariant=False):
    """The layer of a weight, as linear() finds it, or the reason why no kernel computes it."""
    if not weight.is_cuda:
        return "the weight is not on a GPU"
    x = weight.new_empty((1, weight.shape[1]))
    vector = weight.new_empty(weight.shape[0]) if bias else None
    found = _ops.key_of(x, weight.detach().t(), vector, activation, False, weight.dtype, residual, invariant)
    return found if isinstance(found, str) else found[0]


def explain() -> list[Row]:
    """What the layers of this process run on, by sizes. What was left to PyTorch before it became a layer has m_low and
    m_high of 0, and calls counts it."""
    rows = [row for layer in registry.layers() for row in _rows(layer)]
    return rows + [Row("", 0, 0, None, why, 0.0, count) for why, count in _ops.refusals.items()]


def _rows(layer):
    if layer.device.why:
        return [Row(str(layer.key), 1, _layers.MOST_M, None, layer.device.why, 0.0, 0)]
    calls = {m: plan.calls for m, plan in list(layer.plans.items()) if not isinstance(plan, str)}
    return [Row(str(layer.key), s.band.m_low, s.band.m_high, None if s.why else str(s.band.pick), s.why, s.band.mean_regret,
                sum(n for m, n in calls.items() if s.band.m_low <= m <= s.band.m_high)) for s in list(layer.spans)]


def wait(timeout: float | None = None) -> bool:
    """Waits until the kernels of all calls so far are compiled. False if the time was over first."""
    done = _layers.worker.wait(timeout)
    _ops._calls.clear()
    return done


def clear() -> None:
    """Forgets all layers, bands and reasons. Compiled kernels stay loaded."""
    registry.clear()
    _fuse.used.clear()
    _ops.clear_calls()
