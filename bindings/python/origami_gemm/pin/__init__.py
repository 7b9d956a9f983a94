"""A configuration for any Triton kernel without a clock: the same on every rank, in every process and on every machine.

    from origami_gemm import pin

    @pin.pin(configs=[...], key=["M", "N"])      # in place of @triton.autotune
    @triton.jit
    def kernel(...): ...

    choice = pin.choose(kernel, {"x": pin.Tensor("bf16", (4096, 4096)), "n": 4096}, grid, "sm90@h200")
    choice.config, choice.why

Each configuration is compiled, which needs no GPU, and read; the model of the NVIDIA plugin predicts its time. To compile
a kernel, its module is imported: use it on code that you would run. docs/pin.md has more.
"""

from origami_gemm.pin._choose import Candidate, Choice, choose, pin
from origami_gemm.pin._compile import Tensor

__all__ = ["Candidate", "Choice", "Tensor", "choose", "pin"]
