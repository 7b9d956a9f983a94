"""Modules that are down(act(gate(x)) * up(x)), with gate, act and the product in one kernel."""

from __future__ import annotations

import torch

from origami_gemm.torch import _ops

PARTS = ("gate_proj", "up_proj", "down_proj", "act_fn")


class Gated:
    """A module of the form of Hugging Face's MLP of Llama, Qwen2, Mistral or Gemma: down_proj(act_fn(gate_proj(x)) *
    up_proj(x)). It has another class besides, whose forward() runs at other sizes than origami_spans, and where the weights
    get gradients. The weights of gate_proj and up_proj are the halves of one matrix, which linear() gets: there is no copy
    of them."""

    def forward(self, x):
        m = x.numel() // x.shape[-1]
        if (torch.is_grad_enabled() and self.gate_proj.weight.requires_grad
                or not any(low <= m <= high for low, high in self.origami_spans)):
            return super().forward(x)
        if not torch.compiler.is_compiling() and self.origami_weight.data_ptr() != self.gate_proj.weight.data_ptr():
            self.origami_weight, self.origami_bias = stack(self)
        return self.down_proj(_ops.linear(x, self.origami_weight, self.origami_bias, self.origami_activation))

    def _apply(self, *args, **options):
        """to(), half() and the like give the parameters other memory."""
        self.origami_weight = self.origami_bias = None
        super()._apply(*args, **options)
        self.origami_weight, self.origami_bias = stack(self)
        return self

    def __setstate__(self, state):
        """A copy has memory of its own."""
        super().__setstate__(state)
        self.origami_weight, self.origami_bias = stack(self)


def shape_of(one):
    """The name of the gated activation that a module applies, or None if it is not of the form of Gated: by its parts, and
    by what it computes of two random rows."""
    parts = [getattr(one, name, None) for name in PARTS]
    gate, up, down, act = parts
    if (isinstance(one, Gated) or not all(type(x) is torch.nn.Linear for x in parts[:3]) or not callable(act)
            or not set(one._modules) <= set(PARTS) or one._parameters or one._buffers
            or gate.weight.shape != up.weight.shape or (gate.bias is None) != (up.bias is None)
            or any(x._forward_hooks or x._forward_pre_hooks for x in (one, gate, up))):
        return None
    weight = gate.weight
    with torch.no_grad():
        probe = torch.linspace(-4, 4, 65)
        name = next((n for n in ("silu", "gelu", "gelu_tanh")
                     if torch.allclose(act(probe), _ops.ACTIVATIONS[n](probe), rtol=0, atol=1e-6)), None)
        x = torch.randn((2, weight.shape[1]), dtype=weight.dtype, device=weight.device)
        if name is None or not torch.equal(one(x), down(act(gate(x)) * up(x))):
            return None
    return name + "_gated"


def stack(one):
    """One matrix of the weights of a module, and one vector of its biases or None. The parameters become their halves, so
    that for a moment there is a copy of one module's weights, and no longer."""
    joined = []
    for name in ("weight", "bias"):
        gate, up = getattr(one.gate_proj, name), getattr(one.up_proj, name)
        if gate is None:
            joined.append(None)
            continue
        both = torch.cat([gate.detach(), up.detach()])
        gate.data, up.data = both[:len(gate)], both[len(gate):]
        joined.append(both)
    return joined


def gate_up(one, weight, bias, activation, spans):
    """Makes a module Gated at some sizes."""
    kind = type(one)
    one.origami_weight, one.origami_bias = weight, bias
    one.origami_activation, one.origami_spans = activation, spans
    one.__class__ = _classes.setdefault(kind, type("Gated" + kind.__name__, (Gated, kind), {}))


_classes: dict[type, type] = {}


def ungate(one):
    """Undoes gate_up(), and gives each parameter memory of its own."""
    one.__class__ = type(one).__mro__[2]
    for name in ("weight", "bias", "activation", "spans"):
        delattr(one, "origami_" + name)
    apart(one)


def apart(one):
    """Undoes stack()."""
    for line in (one.gate_proj, one.up_proj):
        for x in line.parameters():
            x.data = x.data.clone()
