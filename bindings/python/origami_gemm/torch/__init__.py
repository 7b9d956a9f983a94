"""Origami's kernels as operators of PyTorch.

    import origami_gemm.torch as og
    y = og.linear(x, weight, bias, activation="gelu")     # in place of torch.nn.functional.linear and gelu
    og.use(module, m=range(1, 4097))                      # every nn.Linear of a module, compiled ahead

On a Hopper GPU (H100, H200), a product runs on the kernel that the model picks for it, or on cuBLAS where the model
predicts that to be faster. Everything else, and everything whose kernel is not compiled yet, runs on PyTorch's own
operators: explain() says what and why. docs/torch.md says more.
"""

from origami_gemm.torch._exact import Recorder, Training, WeightGrad, exact, parallel_linear, tree_all_reduce, tree_sum
from origami_gemm.torch._invariant import disable_batch_invariant, enable_batch_invariant
from origami_gemm.torch._ops import NotInvariant, addmm, bmm, linear, mm, scaled_mm
from origami_gemm.torch._prepare import Gated, Linear, Row, clear, explain, prepare, restore, use, wait

__all__ = ["Gated", "Linear", "NotInvariant", "Recorder", "Row", "Training", "WeightGrad", "addmm", "bmm", "clear",
           "disable_batch_invariant", "enable_batch_invariant", "exact", "explain", "linear", "mm", "parallel_linear", "prepare",
           "restore", "scaled_mm", "tree_all_reduce", "tree_sum", "use", "wait"]
