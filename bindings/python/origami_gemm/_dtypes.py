"""The names of element types, as the command line reads them: in any case."""

from origami_gemm._arguments import shown
from origami_gemm.errors import ArgumentTypeError, Error

# The numbers of origami.h by name. Both lists are generated from core/gemm.
DTYPES = {
    "fp16": 1,
    "bf16": 2,
    "fp32": 3,
    "tf32": 4,
    "fp8": 5,  # e4m3
    "int8": 6,
    "fp8_e5m2": 7,
    "int32": 8,  # of C only
    "fp4": 9,  # e2m1
    "fp6": 10,  # e2m3
    "fp6_e3m2": 11,
}

# The names of PyTorch, Triton, CUDA and papers.
_ALIASES = {
    1: "float16 half f16",
    2: "bfloat16",
    3: "float32 float f32",
    4: "tensorfloat32",
    5: "fp8_e4m3 e4m3 fp8e4m3 f8e4m3 e4m3fn f8e4m3fn float8_e4m3 float8_e4m3fn fp8e4nv",
    6: "i8 s8",
    7: "e5m2 fp8e5m2 f8e5m2 float8_e5m2 fp8e5",
    8: "i32 s32",
    9: "fp4_e2m1 e2m1 fp4e2m1 f4e2m1 float4_e2m1 float4_e2m1fn float4_e2m1fn_x2",
    10: "fp6_e2m3 e2m3 fp6e2m3 f6e2m3 e2m3fn f6e2m3fn float6_e2m3 float6_e2m3fn",
    11: "e3m2 fp6e3m2 f6e3m2 e3m2fn f6e3m2fn float6_e3m2 float6_e3m2fn",
}
_NUMBERS = DTYPES | {alias: number for number, aliases in _ALIASES.items() for alias in aliases.split()}


def code(argument, dtype):
    """The number of a type: of a name such as "bf16", or of a type of torch, whose text is "torch.bfloat16"."""
    listed = ", ".join(DTYPES)
    name = dtype if isinstance(dtype, str) else _text(dtype)
    if name is None:
        raise ArgumentTypeError(f"{argument} is {shown(dtype)}; use one of {listed}")
    name = name.lower().removeprefix("torch.")
    number = _NUMBERS.get(name)
    if number is None:
        raise Error(f"unknown {argument} {shown(dtype)}; use one of {listed}")
    return number


def _text(dtype):
    """The text of a type of torch. It is recognised without torch."""
    return str(dtype) if type(dtype).__module__ == "torch" and type(dtype).__name__ == "dtype" else None
