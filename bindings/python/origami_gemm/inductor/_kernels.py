"""Generated kernels among Inductor's choices, as external kernels of origami_gemm.torch.

What Inductor calls is a function here. It launches the kernel, or runs PyTorch's own operator where none is there: at another
M of a graph for any, or for an address that no kernel reads."""

from __future__ import annotations

import torch
from torch._inductor.kernel_template_choice import KernelTemplateChoice
from torch._inductor.select_algorithm import ExternKernelChoice
from torch._inductor.virtualized import V

from origami_gemm import _layers
from origami_gemm.inductor import _nodes
from origami_gemm.inductor._problem import NotUnderstood
from origami_gemm.inductor._report import GENERATED, Row
from origami_gemm.torch import _ops, _scaled
from origami_gemm.torch._described import described


def _fits(out):
    return out.is_contiguous() and not out.data_ptr() & 15


def _mm(a, b, *, out_dtype=None, out):
    if not _fits(out) or _ops.product(a, b, out=out.dtype, into=out) is None:
        torch.mm(a, b, out=out) if out_dtype is None else torch.mm(a, b, out_dtype=out_dtype, out=out)
    return out


def _addmm(add, a, b, *, beta=1, alpha=1, out):
    row = add[0] if add.dim() == 2 and add.stride(0) == 0 else add
    if not _fits(out) or _ops.added(row, a, b, beta, alpha, into=out) is None:
        torch.addmm(add, a, b, beta=beta, alpha=alpha, out=out)
    return out


def _scaled_mm(a, b, scale_a, scale_b, bias=None, *, out_dtype=None, use_fast_accum=False, out):
    if not _fits(out) or _ops.scaled(a, b, scale_a, scale_b, bias, out.dtype, use_fast_accum, into=out) is None:
        torch._scaled_mm(a, b, scale_a, scale_b, bias=bias, out_dtype=out.dtype, use_fast_accum=use_fast_accum, out=out)
    return out


CHOICES = {name: ExternKernelChoice(function, name="origami_gemm_" + name)
           for name, function in (("mm", _mm), ("addmm", _addmm), ("scaled_mm", _scaled_mm))}


def offered(base, op_name):
    """Our kernel as a choice beside base, which is cuBLAS, or None where that is predicted to be faster, and the row of the
    report. Raises NotUnderstood."""
    inputs = base.inputs
    if op_name not in CHOICES:
        raise NotUnderstood(f"no generated kernel for {op_name}")
    if V.graph.cpp_wrapper:
        raise NotUnderstood("programs in C++ call no generated kernel")
    m = _nodes.hints([inputs.mnk_symbolic()[0]], None)[0]
    dynamic = _nodes.dynamic(inputs)
    low, high = _layers.octave(m) if dynamic else (m, m)
    key, high = _asked(base, op_name, low, high)
    layer = _layers.registry.layer(key)
    why = layer.why(low, high)
    if why not in (None, _layers.LIBRARY) and not why.startswith(_layers.SLOWER):
        raise NotUnderstood(why)
    pick, library = layer.predicted(m)
    problem = _nodes.problem(inputs, False)
    if why is not None:
        return None, Row(op_name, problem, (), pick, 1, dynamic, cublas_seconds=library, family=GENERATED, reason=why)
    _nodes.fix_strides(inputs)
    choice = KernelTemplateChoice(template=CHOICES[op_name], params=base.params, extra_kwargs=base.extra_kwargs,
                                  layout=inputs.output_layout(flexible=False), inputs=inputs)
    return choice, Row(op_name, problem, (pick,), None, 0, dynamic, cublas_seconds=library, family=GENERATED)


def _asked(base, op_name, low, high):
    """The layer of an operation, and the largest M at which ours may be faster."""
    nodes, out = base.inputs.nodes(), base.inputs.out_dtype()
    if any(not _nodes.aligned(node) for node in nodes):
        raise NotUnderstood("an operand does not begin at a multiple of 16 bytes")
    if op_name == "scaled_mm":
        bias = _described(nodes[4]) if len(nodes) > 4 else None
        fast = base.params.to_kwargs().get("use_fast_accum", False)
        found = _scaled.asked(*map(_described, nodes[:4]), bias, out, fast, low, high)
    else:
        a, b = map(_described, base.inputs.mat1mat2())
        bias, adds = (None, False) if op_name == "mm" else _added(base, b)
        found = _ops.key_of(a, b, bias, "", adds, out)
        found = found if isinstance(found, str) else (found[0], high)
    if isinstance(found, str):
        raise NotUnderstood(found)
    return found


def _added(base, b):
    """The bias that addmm adds, or None, and whether it adds a matrix."""
    add, beta = _described(base.inputs.nodes()[0]), base.extra_kwargs["beta"]
    if beta == 0:
        return None, False
    if add.dim() == 2 and add.stride(0) != 0:
        return None, True
    if beta != 1:
        raise NotUnderstood(f"beta is {beta} beside a row")
    return described((b.shape[1],), (add.stride(-1),), add.dtype, add.get_device()), False


def _described(node):
    sizes, strides = _nodes.hints(node.get_size(), None), _nodes.hints(node.get_stride(), None)
    return described(sizes, strides, node.get_dtype(), node.get_device().index)
