"""Checks of what a caller passes. What is wrong with it is an Error."""

import json
import operator
import os

from origami_gemm.errors import ArgumentTypeError, Error


def content(file):
    """The text of a file, given as a path or as the text."""
    if not isinstance(file, os.PathLike):
        return file
    import gzip  # it takes longer than all else that a pick needs
    import zlib

    path = os.fspath(file)
    try:
        with gzip.open(path, "rt") if str(path).endswith(".gz") else open(path) as text:
            return text.read()
    except (OSError, EOFError, UnicodeError, zlib.error, ValueError) as e:
        raise Error(f"{path}: it cannot be read ({e})") from e


def shown(value):
    """A value in an error text: on one line, and not too long."""
    try:
        text = ascii(value)
    except Exception:  # of the value's own __repr__
        text = f"a {type(value).__name__}"
    return text if len(text) <= 100 else text[:100] + "…"


def as_json(request):
    """A request as the library takes it."""
    try:
        return json.dumps(request, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        pass
    for key, value in request.items():
        fix = "give finite numbers, strings, lists and dicts"
        try:
            json.dumps(value, allow_nan=False)
        except TypeError as e:
            raise ArgumentTypeError(f"{key} is {shown(value)}: {e}; {fix}") from e
        except (ValueError, RecursionError) as e:
            raise Error(f"{key} is {shown(value)}: {e}; {fix}") from e
    raise Error(f"the request cannot be written as JSON: {shown(request)}")


def whole(name, value, least, low, high):
    """A whole number from low to high: an int, or what Python takes for one, such as NumPy's."""
    try:
        if isinstance(value, bool):  # a slip: select(True, …) would be about one row
            raise TypeError
        number = operator.index(value)
    except Exception:  # a TypeError, or what the value's own __index__ raises
        raise ArgumentTypeError(f"{name} is {shown(value)}; give a whole number of at least {least}") from None
    if not low <= number <= high:
        raise Error(f"{name} is {shown(value)}; give a whole number of at least {least}")
    return number


def flag(name, value):
    """True or False, or another type's word for it. The string "no" would be true."""
    try:
        if value == 0 or value == 1:
            return bool(value)
    except Exception:  # an array, for example
        pass
    raise ArgumentTypeError(f"{name} is {shown(value)}; give True or False")


def alignments(align):
    """The alignments of A, B and C in bytes, of which more than 16 change nothing."""
    parts = align if isinstance(align, tuple) else (align,) * 3
    if len(parts) != 3:
        raise Error(f"align is {shown(align)}; give the bytes for all, or for each of A, B and C")
    sizes = tuple(whole("align", part, 1, 1, (1 << 63) - 1) for part in parts)
    if any(size & (size - 1) for size in sizes):
        raise Error(f"align is {shown(align)}; give powers of two, such as 2 or 16")
    return tuple(min(size, 16) for size in sizes)


def group_rows(groups):
    """The rows of each group."""
    try:
        return tuple(whole("groups", rows, 0, 0, (1 << 63) - 1) for rows in groups)
    except TypeError:
        raise ArgumentTypeError(f"groups is {shown(groups)}; give the rows of each group") from None


def shortlist(value):
    """How many configurations to time: a number, or "auto"."""
    return value if isinstance(value, str) and value == "auto" else whole("shortlist", value, 1, 1, 1 << 30)


def names(value):
    """The kernel's names of the meta-parameters by the field of a Pick."""
    if not isinstance(value, dict) or not all(isinstance(word, str) for pair in value.items() for word in pair):
        raise ArgumentTypeError(f"names is {shown(value)}; give a dict such as {{'block_m': 'BLOCK_SIZE_M'}}")
    return value


def named(argument, dtype):
    """The name of an element type, as the command line reads it in any case: a name such as "bf16", of PyTorch, Triton, CUDA
    and papers too, or a type of torch, whose text is "torch.bfloat16"."""
    name = dtype if isinstance(dtype, str) else _text(dtype)
    if name is None:
        raise ArgumentTypeError(f"{argument} is {shown(dtype)}; give a name such as \"bf16\"")
    return name.lower().removeprefix("torch.")


def _text(dtype):
    """The text of a type of torch. It is recognised without torch."""
    return str(dtype) if type(dtype).__module__ == "torch" and type(dtype).__name__ == "dtype" else None
