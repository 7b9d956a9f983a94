"""The names of element types, as the command line reads them: those of PyTorch, Triton, CUDA and papers too, in any
case."""

from origami_gemm._arguments import shown
from origami_gemm.errors import ArgumentTypeError


def named(argument, dtype):
    """The name of a type: a name such as "bf16", or a type of torch, whose text is "torch.bfloat16"."""
    name = dtype if isinstance(dtype, str) else _text(dtype)
    if name is None:
        raise ArgumentTypeError(f"{argument} is {shown(dtype)}; give a name such as \"bf16\"")
    return name.lower().removeprefix("torch.")


def _text(dtype):
    """The text of a type of torch. It is recognised without torch."""
    return str(dtype) if type(dtype).__module__ == "torch" and type(dtype).__name__ == "dtype" else None
