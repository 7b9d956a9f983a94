"""The names of element types, as the command line reads them: in any case."""

from origami_gemm._arguments import shown
from origami_gemm.errors import ArgumentTypeError, Error

# The numbers of origami.h by name. fp8 is e4m3, fp4 is e2m1; int32 is for C only.
DTYPES = {"fp16": 1, "bf16": 2, "fp32": 3, "tf32": 4, "fp8": 5, "int8": 6, "fp8_e5m2": 7, "int32": 8, "fp4": 9}

# The names of PyTorch, Triton, CUDA and papers.
_ALIASES = {
    "float16": 1, "half": 1, "f16": 1,
    "bfloat16": 2,
    "float32": 3, "float": 3, "f32": 3,
    "tensorfloat32": 4,
    "fp8_e4m3": 5, "e4m3": 5, "fp8e4m3": 5, "f8e4m3": 5, "e4m3fn": 5, "f8e4m3fn": 5, "float8_e4m3": 5,
    "float8_e4m3fn": 5, "fp8e4nv": 5,
    "i8": 6, "s8": 6,
    "e5m2": 7, "fp8e5m2": 7, "f8e5m2": 7, "float8_e5m2": 7, "fp8e5": 7,
    "i32": 8, "s32": 8,
    "fp4_e2m1": 9, "e2m1": 9, "fp4e2m1": 9, "f4e2m1": 9, "float4_e2m1": 9, "float4_e2m1fn": 9, "float4_e2m1fn_x2": 9,
}


def code(argument, dtype):
    """The number of a type: of a name such as "bf16", or of a type of torch, whose text is "torch.bfloat16"."""
    listed = ", ".join(DTYPES)
    name = dtype if isinstance(dtype, str) else _text(dtype)
    if name is None:
        raise ArgumentTypeError(f"{argument} is {shown(dtype)}; use one of {listed}")
    name = name.lower().removeprefix("torch.")
    number = DTYPES.get(name, _ALIASES.get(name))
    if number is None:
        raise Error(f"unknown {argument} {shown(dtype)}; use one of {listed}")
    return number


def _text(dtype):
    """The text of a type of torch. It is recognised without torch."""
    return str(dtype) if type(dtype).__module__ == "torch" and type(dtype).__name__ == "dtype" else None
