"""A configuration for any Triton kernel without a clock: the same on every rank, in every process and on every machine.

    from origami_gemm import pin

    @pin.pin(configs=[...], key=["M", "N"])      # in place of @triton.autotune
    @triton.jit
    def kernel(...): ...

    with pin.everywhere("sm90@h200", launched=False) as launches:    # kernels of any package, without a GPU
        some_module(...)
    pin.save(pin.megatron(launches, "sm90"), "tables")

    choice = pin.choose(kernel, {"x": pin.Tensor("bf16", (4096, 4096)), "n": 4096}, grid, "sm90@h200")
    choice.config, choice.why

Each configuration is compiled, which needs no GPU, and read; the model of the NVIDIA plugin predicts its time. To compile
a kernel, its module is imported: use it on code that you would run. docs/pin.md has more.
"""

from origami_gemm.pin._choose import Candidate, Choice, choose, choose_one
from origami_gemm.pin._compile import Tensor
from origami_gemm.pin._launch import Launches, everywhere, pin
from origami_gemm.pin._write import fla, megatron, save, table

__all__ = ["Candidate", "Choice", "Launches", "Tensor", "choose", "choose_one", "everywhere", "fla", "megatron", "pin",
           "save", "table"]
