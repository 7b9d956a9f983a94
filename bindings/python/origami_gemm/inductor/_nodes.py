"""The operands of an operation as Inductor has them in a graph."""

from __future__ import annotations

from torch._inductor import config
from torch._inductor.ir import FlexibleLayout
from torch._inductor.virtualized import V

from origami_gemm.inductor import _problem
from origami_gemm.inductor._problem import Matrix


def problem(kernel_inputs, tf32, hint=None):
    """The problem of an operation, with hints for the sizes that are dynamic."""
    a, b = (_matrix(node, hint) for node in kernel_inputs.mat1mat2())
    return _problem.problem(a, b, _name(kernel_inputs.out_dtype()), tf32)


def _matrix(node, hint):
    sizes, strides = hints(node.get_size(), hint), hints(node.get_stride(), hint)
    dtype = node.get_dtype()
    return Matrix(sizes, strides, _name(dtype), dtype.itemsize, _offset(node))


def _offset(node):
    """Where an operand begins. An address that is known to be unaligned has no more than the alignment of an element."""
    return 1 if node.get_name() in V.graph.unaligned_buffers else hints([node.get_layout().offset], None)[0]


def aligned(node):
    """Whether an operand begins at a multiple of 16 bytes."""
    return _offset(node) * node.get_dtype().itemsize % _problem.WIDEST == 0


def hints(expressions, hint):
    sizes = V.graph.sizevars
    if hasattr(sizes, "optimization_hints_with_override"):
        given = sizes.optimization_hints_with_override(expressions, hint)
    else:  # 2.10
        given = sizes.size_hints(expressions, fallback=config.unbacked_symint_fallback, hint_override=hint)
    return tuple(map(int, given))


def fix_strides(kernel_inputs):
    """Keeps Inductor from changing the strides of operands after the kernels were made for them. It may if it can fall
    back to cuBLAS; without, the compilation would fail."""
    for node in kernel_inputs.nodes():
        if isinstance(node.get_layout(), FlexibleLayout):
            node.freeze_layout()


def dynamic(kernel_inputs):
    return any(getattr(size, "free_symbols", None) for shape in kernel_inputs.shapes_symbolic() for size in shape)


def _name(dtype):
    return str(dtype).removeprefix("torch.")
