"""The interface of RL-Kernel's deterministic GEMM (github.com/RL-Align/RL-Kernel, rl_engine.backends.cuda.gemm) on origami's
kernels: the same names, arguments and layouts.

    from origami_gemm.torch.rl_kernel import DetGemmOp, deterministic_gemm

Sums are in fp32 and in the order of K, where RL-Kernel's kernels have a tree whose nodes are bf16. So the bits of the two
differ, and parts of K that were rounded to bf16 do not add up to the bits of the whole: parts of forward_fp32() in
tree_sum() do, for leaves of K."""

from __future__ import annotations

import torch
from torch import Tensor

from origami_gemm.torch import _ops

ALIGN = 8  # elements of bf16 that 16 bytes have


def _padded(x, *sizes):
    """A matrix with zeros behind its rows and columns, up to sizes that kernels read. Zeros do not change a sum."""
    rows, columns = (-size % ALIGN if at in sizes else 0 for at, size in enumerate(x.shape))
    return torch.nn.functional.pad(x, (0, columns, 0, rows)) if rows or columns else x


def _product(a, b, leaves=0, out=None):
    """a · b of any sizes."""
    y = _ops._ops.ordered_mm(_padded(a, 1), _padded(b, 0, 1), leaves, out)
    return y if y.shape[1] == b.shape[1] else y[:, :b.shape[1]].contiguous()


def _weight_gradient(a, dc):
    """dcᵀ · a."""
    y = _ops._ops.ordered_weight_grad(_padded(dc, 1), _padded(a, 1))
    return y[:dc.shape[1], :a.shape[1]].contiguous()


def det_gemm_fwd(a: Tensor, b: Tensor) -> Tensor:
    """a[M, K] · b[K, N]."""
    return _product(a, b)


def det_gemm_fwd_fp32(a: Tensor, b: Tensor) -> Tensor:
    return _product(a, b, out=torch.float32)


def det_gemm_fwd_rhs_transposed(a: Tensor, bt: Tensor) -> Tensor:
    """a[M, K] · bt[N, K]ᵀ."""
    return _product(a, bt.t())


def det_gemm_da(dc: Tensor, b: Tensor) -> Tensor:
    """dc[M, N] · b[K, N]ᵀ."""
    return _product(dc, b.t())


def det_gemm_db(a: Tensor, dc: Tensor) -> Tensor:
    """a[M, K]ᵀ · dc[M, N]."""
    return _weight_gradient(dc, a)


def det_gemm_db_transposed(a: Tensor, dc: Tensor) -> Tensor:
    """dc[M, N]ᵀ · a[M, K]."""
    return _weight_gradient(a, dc)


def det_gemm_sm90_compiled() -> bool:
    return True


def det_gemm_linear(a: Tensor, weight: Tensor, *, native_op=None, out: Tensor | None = None) -> Tensor:
    """a · weight[N, K]ᵀ."""
    y = det_gemm_fwd_rhs_transposed(a, weight)
    return y if out is None else out.copy_(y)


def det_gemm_linear_input_gradient(grad_output: Tensor, weight: Tensor, *, native_op=None) -> Tensor:
    return det_gemm_fwd(grad_output, weight)


def det_gemm_linear_weight_gradient(a: Tensor, grad_output: Tensor, *, native_op=None) -> Tensor:
    return det_gemm_db_transposed(a, grad_output)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, turned, out):
        ctx.save_for_backward(a, b)
        ctx.turned = turned
        return _product(a, b.t() if turned else b, out=out)

    @staticmethod
    def backward(ctx, grad):
        (a, b), grad = ctx.saved_tensors, grad.to(ctx.saved_tensors[0].dtype).contiguous()
        da = db = None
        if ctx.needs_input_grad[0]:
            da = _product(grad, b if ctx.turned else b.t())
        if ctx.needs_input_grad[1]:
            db = _weight_gradient(a, grad) if ctx.turned else _weight_gradient(grad, a)
        return da, db, None, None


def deterministic_gemm(a: Tensor, b: Tensor) -> Tensor:
    """a[M, K] · b[K, N], with gradients."""
    return _Product.apply(a, b, False, None)


class DetGemmOp:
    """RL-Kernel's operator."""

    has_hardware_op = True

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        return deterministic_gemm(a, b)

    def linear(self, a: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
        if out is not None and torch.is_grad_enabled() and (a.requires_grad or weight.requires_grad):
            raise RuntimeError("an output that is given has no gradients")
        y = _Product.apply(a, weight, True, None)
        return y if out is None else out.copy_(y)

    def forward_fp32(self, a: Tensor, b: Tensor) -> Tensor:
        return _Product.apply(a, b, False, torch.float32)
