"""Our kernel against PyTorch's own operator, measured once. Results are kept with the device and the driver."""

from __future__ import annotations

import statistics

import torch

from origami_gemm import _cuda, lib
from origami_gemm._kept import Kept, folder
from origami_gemm._layers import SLOWER
from origami_gemm.errors import Error
from origami_gemm.torch import _ops

# A graph has so many launches, over weights that no cache holds, and is timed so many times in turn with the other's.
LAUNCHES, ROUNDS = 24, 7
MOST_BYTES = 1 << 30


def prepare(layer, weight, low, high, measure):
    """Compiles the kernels of a layer, and measures them if asked to."""
    layer.prepare(low, high)
    if measure:
        verify(layer, weight, low, high)
    _ops._calls.clear()


def verify(layer, weight, low, high):
    """Measures the bands of a layer that begin in a range of M: the model's pick, the best kernel with another cluster or
    split of K, and PyTorch's own operator. The fastest is taken."""
    device, kept = _device(weight), Kept(folder())
    for span in list(layer.spans):
        m = min(span.band.m_high, high)
        if span.why is not None or m < low or span.band.m_low > high:
            continue
        band = span.band
        ratio, pick = _ratio(kept, device, layer, weight, m, band.pick), band.pick
        other = layer.alternative(m, pick)
        if other is not None:
            try:
                band = layer.choose(band, other)
            except Error:  # it stays with the pick
                pass
            else:
                with_other = _ratio(kept, device, layer, weight, m, other)
                if with_other < ratio:
                    ratio = with_other
                else:
                    band = layer.choose(band, pick)
        if ratio > 1:
            layer.refuse(band, f"{SLOWER}: our kernel takes {ratio:.3f} of its time at m={m}")


def _device(weight):
    """What a measurement holds for."""
    return f"{torch.cuda.get_device_name(weight.device)}, driver {_cuda.Driver().version()}, torch {torch.__version__}"


def _ratio(kept, device, layer, weight, m, pick):
    """The time of a band's kernel ÷ that of PyTorch's own operator: kept, or measured."""
    name = f"{device}: {layer.key}, m={m}, {pick}, beside {len(_others(layer.key))}"
    ratio = kept.get(name)
    if ratio is None:
        _ops._calls.clear()
        ratio = _measure(layer, weight, m)
        kept.put(name, ratio)
    return ratio


def _measure(layer, weight, m):
    """The time of our kernel ÷ the time of PyTorch's own operator."""
    _, bias, activation, last = lib.parts_of(layer.key.epilogue)
    cache = torch.cuda.get_device_properties(weight.device).L2_cache_size
    copies = max(2, min(-(-2 * cache // weight.nbytes), MOST_BYTES // weight.nbytes))
    with torch.no_grad(), torch.cuda.device(weight.device):
        weights = [torch.randn_like(weight) for _ in range(copies)]
        x = torch.randn((m, weight.shape[1]), dtype=weight.dtype, device=weight.device)
        vector = torch.randn(weight.shape[0], dtype=weight.dtype, device=weight.device) if bias else None
        columns = _ops.columns_of(weight.shape[0], activation)
        r = torch.randn((m, columns), dtype=weight.dtype, device=weight.device) if last else None
        ours = _graph(lambda w: _ops._linear_cuda(x, w, vector, activation, r), weights)
        theirs = [_graph(lambda w, other=other: other(x, w, vector, r), weights) for other in _others(layer.key)]
        return statistics.median(_time(ours) / min(map(_time, theirs)) for _ in range(ROUNDS))


def _others(key):
    """What PyTorch has for a layer. torch.compile adds a bias in the kernel of what follows, if that goes element by
    element, so that its product has none. Behind a gate it has one kernel, which takes as long as mul, and for an activation
    of several operators a kernel that takes as long as relu or silu."""
    activation = lib.parts_of(key.epilogue).activation
    if activation.endswith("_gated"):
        return [lambda x, w, bias, r: torch.mul(*_ops._linear(x, w, bias).chunk(2, -1))]
    activation = {"relu2": "relu", "quick_gelu": "silu"}.get(activation, activation)
    whole = lambda x, w, bias, r: _ops._linear(x, w, bias, activation, r)
    return [whole, lambda x, w, bias, r: whole(x, w, None, r)][:1 + key.epilogue.startswith("bias")]


def _graph(run, weights):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for w in weights[:2]:
            run(w)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(LAUNCHES):
            run(weights[i % len(weights)])
    graph.replay()
    return graph


def _time(graph):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)
