"""The operators origami_gemm::mm, linear, addmm, bmm and scaled_mm."""

from __future__ import annotations

import collections
import ctypes

import torch
from torch import Tensor

from origami_gemm import _layers
from origami_gemm._layers import Key, Plan, registry
from origami_gemm.errors import Error

ACTIVATIONS = {
    "": lambda x: x,
    "relu": torch.relu,
    "relu2": lambda x: torch.relu(x).square(),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
}


def _gated(activation):
    def gated(x):
        gate, up = x.chunk(2, -1)
        return activation(gate) * up
    return gated


# The first half of the columns are gates, and the second what they are multiplied with.
ACTIVATIONS |= {f"{name}_gated": _gated(ACTIVATIONS[name]) for name in ("gelu", "gelu_tanh", "silu")}
DTYPES = {
    torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.float8_e4m3fn: "fp8",
    torch.float8_e5m2: "fp8_e5m2",
}

def columns_of(n, activation):
    """The columns of the output of a product with n columns."""
    return n // 2 if activation.endswith("_gated") else n


_aten = torch.ops.aten
# What was left to PyTorch, by reason.
refusals: collections.Counter[str] = collections.Counter()
# The launches of calls, or why there is none, and the shape of the product, by what the caller's tensors look like, so
# that a call is looked up once.
_calls: dict[tuple, tuple[Plan | str, tuple[int, ...]]] = {}
_CALLS = 1 << 14


def clear_calls():
    _calls.clear()
    refusals.clear()


def _refuse(why):
    if why not in refusals and why not in (_layers.LIBRARY, _layers.PENDING):
        _layers.log.info("PyTorch's own operator runs: %s", why)
    refusals[why] += 1


def stream_of(device: int) -> int:
    return torch._C._cuda_getCurrentRawStream(device)


def _rows(x):
    """Whether the matrices of x lie by columns, and the distance of their rows (of their columns): 0 for dense ones, None
    for others that no kernel knows."""
    rows, columns = x.shape[-2:]
    down, along = x.stride()[-2:]
    if along == 1 or columns == 1:
        turned, ld, row = False, down, columns
        if rows == 1:
            ld = row
    elif down == 1 or rows == 1:
        turned, ld, row = True, along, rows
    else:
        return False, None
    if x.dim() == 3 and x.shape[0] > 1 and x.stride(0) != ld * (columns if turned else rows):
        return turned, None
    return turned, (0 if ld == row else ld) if ld >= row else None


class NotInvariant(RuntimeError):
    """No kernel computes a product in an order of sums that does not depend on M."""

    @classmethod
    def because(cls, a, b, why):
        return cls(f"origami_gemm: no kernel multiplies {tuple(a.shape)} and {tuple(b.shape)} in an order of sums that all M have: "
                   f"{why}")


def key_of(a, b, bias, activation, adds, out, last=False, invariant=False, scaled=False, promote=False, leaves=0):
    """The layer and the M of a product, or the reason why no kernel computes it."""
    name, wanted = DTYPES.get(a.dtype), DTYPES.get(out)
    if name is None or name == "fp32" or b.dtype != a.dtype or wanted is None or wanted.startswith("fp8"):
        return f"no kernel multiplies {_text(a.dtype)} and {_text(b.dtype)} to {_text(out)}"
    if a.get_device() != b.get_device():
        return "the matrices are on different devices"
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        return "the shapes do not fit"
    m, k, n = *a.shape[-2:], b.shape[-1]
    if a.numel() == 0 or b.numel() == 0:
        return "a matrix is empty"
    if leaves > 1 and k % (leaves * _layers.LEAF_BLOCK):
        return f"K = {k} has no {leaves} leaves of whole blocks of {_layers.LEAF_BLOCK}"
    (trans_a, lda), (trans_b, ldb) = _rows(a), _rows(b)
    if lda is None or ldb is None:
        return "the strides are not of rows or columns without overlaps"
    align = tuple(min(16, p & -p) for p in (a.data_ptr() | 16, b.data_ptr() | 16))
    wide = bias is not None and scaled and bias.dtype == torch.float32 != out
    if bias is not None and (not wide and bias.dtype != out or bias.shape != (n,) or bias.stride(0) != 1 or
                             bias.get_device() != a.get_device()):
        return "the bias is no dense vector of the output's type" + " or fp32" * scaled
    if activation.endswith("_gated") and n % 2:
        return "a gated activation needs an even number of columns"
    epilogue = "+".join(filter(None, ("scales" * scaled, "" if bias is None else "bias_fp32" if wide else "bias", activation,
                                      "residual" if last else "")))
    batch = a.shape[0] if a.dim() == 3 else 1
    device = max(0, a.get_device())
    return Key(device, n, k, name, wanted, trans_a, trans_b, batch, lda, ldb, (*align, 16), epilogue, adds,
               invariant, promote, leaves), m


def _text(dtype):
    return str(dtype).removeprefix("torch.")


NO_SCALES = 0, 0, 0, 0


def product(a, b, bias=None, activation="", add=None, alpha=1.0, beta=0.0, out=None, last=None, invariant=False,
            scales=None, promote=False, into=None, turned=False, leaves=0):
    """activation(alpha a b + beta add + bias) + last on our kernel, or None where PyTorch's own operator has to run. a and
    b, or bᵀ if that is turned, are matrices or batches of them; what is added has the shape of the result. invariant asks
    for the order of sums that all M have, leaves for a tree of so many, promote for sums of fp8 in fp32. scales are those of
    rows and columns, and their steps. The result is into, which is dense and begins at a multiple of 16 bytes, or new."""
    dtype, device, pa, pb = a.dtype, a.get_device(), a.data_ptr(), b.data_ptr()
    out = out or dtype
    call = (a.shape, b.shape, a.stride(), b.stride(), dtype, b.dtype, out, device, b.get_device(), (pa | pb) & 15,
            activation, add is not None, last is not None, invariant, promote, scales is None, turned, leaves,
            bias is None or (bias.dtype, bias.shape, bias.stride(), bias.get_device()))
    plan, shape = _calls.get(call) or _plan(call, a, b.t() if turned else b, bias, activation, add is not None, out,
                                            last is not None, invariant, scales is not None, promote, leaves)
    if type(plan) is str:
        _refuse(plan)
        if invariant:
            raise NotInvariant.because(a, b.t() if turned else b, plan)
        return None
    r = add if last is None else last
    if r is not None and (not r.is_contiguous() or r.data_ptr() & 15):
        r = r.clone(memory_format=torch.contiguous_format)
    c = into
    if c is None:
        c = a.new_empty(shape) if out is dtype else a.new_empty(shape, dtype=out)
    if plan.in_place:
        c.copy_(r)
    device = max(0, device)
    stream = stream_of(device)
    counters = partials = 0
    if plan.counters:
        zeros = _counters(a, device, stream, plan.counters)
        counters = zeros.data_ptr()
    if plan.partials:
        room = torch.empty(plan.partials, dtype=torch.uint8, device=a.device)
        partials = room.data_ptr()
    try:
        plan.launch(pa, pb, c.data_ptr(), stream, 0 if bias is None else bias.data_ptr(), counters, partials, alpha, beta,
                    0 if r is None else r.data_ptr(), scales or NO_SCALES)
    except Error as e:
        kind = torch.OutOfMemoryError if "OUT_OF_MEMORY" in str(e) else RuntimeError
        raise kind(f"origami_gemm: {e}") from None
    return c


def _plan(call, a, b, bias, activation, adds, out, last, *how):
    found = key_of(a, b, bias, activation, adds, out, last, *how)
    if type(found) is str:
        return found, ()
    key, m = found
    plan = registry.layer(key).plan(m), (*a.shape[:-1], columns_of(b.shape[-1], activation))
    if plan[0] is not _layers.PENDING:
        if len(_calls) >= _CALLS:
            _calls.clear()
        _calls[call] = plan
    return plan


_zeros: dict[tuple[int, int], Tensor] = {}


def _counters(a, device, stream, size):
    """The counters of a kernel whose CTAs share tiles: zero before it, and zero after. Launches on one stream do not
    overlap, so a stream has one set. A graph has its own, since its replays may run on any stream."""
    if a.is_cuda and torch.cuda.is_current_stream_capturing():
        return torch.zeros(size, dtype=torch.uint8, device=a.device)
    zeros = _zeros.get((device, stream))
    if zeros is None or zeros.numel() < size:
        zeros = torch.zeros(max(size, 1 << 16), dtype=torch.uint8, device=a.device)
        _zeros[device, stream] = zeros
    return zeros


# The operators. On a GPU each asks for our kernel; everywhere else, and without a kernel, PyTorch's own one runs.

_library = torch.library.Library("origami_gemm", "DEF")
_library.define("mm(Tensor self, Tensor mat2) -> Tensor")
_library.define("bmm(Tensor self, Tensor mat2) -> Tensor")
_library.define("linear(Tensor input, Tensor weight, Tensor? bias=None, str activation='', Tensor? residual=None) -> Tensor")
# The same in an order of sums that does not depend on M. leaves counts the leaves of the tree over K, leaves_back of the tree
# over N that the input's gradient has, and tokens the rows of a leaf of the weight's gradient. 0 is no tree.
# ordered_add_grad adds the weight's gradient to sums, which hold the whole step.
_library.define("ordered_mm(Tensor self, Tensor mat2, int leaves=0, ScalarType? out_dtype=None) -> Tensor")
_library.define("ordered_weight_grad(Tensor grad, Tensor input, int tokens=0, ScalarType? out_dtype=None) -> Tensor")
_library.define("ordered_add_grad(Tensor(a!) sums, Tensor(b!) rows, Tensor grad, Tensor input, int tokens) -> ()")
# ordered_rms_norm adds its weight's gradient so, and its backward has the gradient of the input, and each row's of the weight.
_library.define("ordered_rms_norm(Tensor input, Tensor weight, float? eps, int tokens, Tensor sums, Tensor rows) -> Tensor")
_library.define("ordered_rms_norm_backward(Tensor grad, Tensor input, Tensor weight, float? eps) -> (Tensor, Tensor)")
_library.define("ordered_bmm(Tensor self, Tensor mat2) -> Tensor")
_library.define("ordered_linear(Tensor input, Tensor weight, Tensor? bias=None, str activation='', Tensor? residual=None, "
                "int leaves=0, int leaves_back=0, int tokens=0, Tensor? sums=None, Tensor? rows=None) -> Tensor")
_library.define("ordered_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
_library.define(
    "ordered_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, ScalarType? out_dtype=None, "
    "bool use_fast_accum=False) -> Tensor")
_library.define("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
_library.define(
    "scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, ScalarType? out_dtype=None, "
    "bool use_fast_accum=False) -> Tensor")


def _mm_cuda(a, b):
    c = product(a, b) if a.dim() == 2 == b.dim() else None
    return torch.mm(a, b) if c is None else c


def _bmm_cuda(a, b):
    c = product(a, b) if a.dim() == 3 == b.dim() else None
    return torch.bmm(a, b) if c is None else c


def _linear(x, weight, bias=None, activation="", residual=None):
    y = ACTIVATIONS[activation](torch.nn.functional.linear(x, weight, bias))
    return y if residual is None else y + _as(residual, y)


def _no_view(function):
    """An operator that returns no view: autograd refuses to change in place what is one."""
    def operator(*args, **options):
        y = function(*args, **options)
        return _aten._unsafe_view(y, y.shape) if y._is_view() else y
    return operator


def _as(residual, y):
    """What is added, if it has the shape and the type of the result."""
    if residual.shape != y.shape or residual.dtype != y.dtype:
        raise RuntimeError(f"the residual is {_text(residual.dtype)} of shape {tuple(residual.shape)}; give one like the "
                           f"output, {_text(y.dtype)} of shape {tuple(y.shape)}")
    return residual


def _linear_cuda(x, weight, bias=None, activation="", residual=None):
    rank = x.dim()
    if rank < 1 or weight.dim() != 2 or rank > 2 and not x.is_contiguous() or x.numel() == 0 or residual is not None and (
            residual.shape != (*x.shape[:-1], columns_of(weight.shape[0], activation)) or residual.dtype is not x.dtype
            or residual.get_device() != x.get_device()):
        return _linear(x, weight, bias, activation, residual)
    c = product(x if rank == 2 else x.reshape(-1, x.shape[-1]), weight, bias, activation, last=residual, turned=True)
    if c is None:
        return _linear(x, weight, bias, activation, residual)
    return c if rank == 2 else c.view(*x.shape[:-1], c.shape[-1])


def _single(x):
    """A number as a kernel takes it: beyond single precision it is infinite."""
    return ctypes.c_float(x).value


def _addmm_cuda(add, a, b, *, beta=1, alpha=1):
    c = added(add, a, b, beta, alpha)
    return torch.addmm(add, a, b, beta=beta, alpha=alpha) if c is None else c


def added(add, a, b, beta, alpha, into=None):
    """product() as torch.addmm, or None."""
    if a.dim() == 2 == b.dim() and add.dtype == a.dtype and add.get_device() == a.get_device():
        if add.shape == b.shape[1:] and beta == 1:
            return product(a, b, add, alpha=_single(alpha), into=into)
        if beta == 0:
            return product(a, b, alpha=_single(alpha), into=into)
        if add.shape == (a.shape[0], b.shape[1]):
            return product(a, b, add=add, alpha=_single(alpha), beta=_single(beta), into=into)
        _refuse("what is added has another shape than the product")
    return None


SCALES = "give fp32 of one element each, or of shapes (rows, 1) and (1, columns)"


def _step(scale, size, like):
    """The step from one scale to the next: 0 for one of all, or 1. None for what no kernel reads."""
    if scale.dtype != torch.float32 or scale.get_device() != like.get_device():
        return None
    count = scale.numel()
    return 0 if count == 1 else 1 if count == size and scale.is_contiguous() else None


def _scaled_mm(a, b, scale_a, scale_b, bias=None, out_dtype=None, use_fast_accum=False):
    """In fp32: PyTorch has no operator on every CPU, nor for every size."""
    _check_scales(a, b, scale_a, scale_b)
    y = a.float() @ b.float() * scale_a.reshape(-1, 1) * scale_b.reshape(1, -1)
    return (y if bias is None else y + bias).to(out_dtype or torch.bfloat16)


def _check_scales(a, b, scale_a, scale_b):
    if any(scale.numel() not in (1, size) for scale, size in ((scale_a, a.shape[0]), (scale_b, b.shape[1]))):
        raise RuntimeError(f"scale_a has {scale_a.numel()} elements and scale_b {scale_b.numel()}; {SCALES}")


def _scaled_mm_cuda(a, b, scale_a, scale_b, bias=None, out_dtype=None, use_fast_accum=False):
    out = out_dtype or torch.bfloat16
    c = scaled(a, b, scale_a, scale_b, bias, out, use_fast_accum)
    return _scaled_mm_torch(a, b, scale_a, scale_b, bias, out, use_fast_accum) if c is None else c


STEPS = "the scales are others than fp32 of one element, or dense ones of each row and column"


def scaled(a, b, scale_a, scale_b, bias, out, use_fast_accum, **options):
    """product() as torch._scaled_mm, or None."""
    if a.dim() == 2 == b.dim():
        step_a, step_b = _step(scale_a, a.shape[0], a), _step(scale_b, b.shape[1], a)
        if step_a is not None and step_b is not None:
            return product(a, b, bias, out=out, promote=not use_fast_accum,
                           scales=(scale_a.data_ptr(), scale_b.data_ptr(), step_a, step_b), **options)
        _refuse(STEPS)
    return None


def _scaled_mm_torch(a, b, scale_a, scale_b, bias, out, use_fast_accum):
    """PyTorch's own operator. It has sizes N and K that 16 divides, both scales of one element or none, and a bias of the
    output's type unless that is fp32."""
    if b.shape[0] % 16 or b.shape[1] % 16:
        return _scaled_mm(a, b, scale_a, scale_b, bias, out)
    if (scale_a.numel() == 1) != (scale_b.numel() == 1):
        scale_a, scale_b = (scale.reshape(shape).expand(full).contiguous() for scale, shape, full in (
            (scale_a, (-1, 1), (a.shape[0], 1)), (scale_b, (1, -1), (1, b.shape[1]))))
    inside = bias if bias is not None and bias.dtype == out != torch.float32 else None
    y = torch._scaled_mm(a, b, scale_a, scale_b, bias=inside, out_dtype=out, use_fast_accum=use_fast_accum)
    return y if inside is bias else (y + bias).to(out)


def _fake_scaled_mm(a, b, scale_a, scale_b, bias=None, out_dtype=None, use_fast_accum=False):
    return a.new_empty((a.shape[0], b.shape[1]), dtype=out_dtype or torch.bfloat16)


def _fake_linear(x, weight, bias=None, activation="", residual=None, *order):
    _check_activation(activation, weight)
    y = torch.nn.functional.linear(x, weight, bias)
    y = y.new_empty((*y.shape[:-1], columns_of(weight.shape[0], activation)))
    if residual is not None:
        _as(residual, y)
    return y


# In one order: PyTorch's own operator runs only where it adds nothing up. The overloads that write to a given output are
# not among those that a mode replaces.

def _trivial(a, b):
    """Whether each element of the output is one product, or there is nothing to compute."""
    return a.numel() == 0 or b.numel() == 0 or a.shape[-1] == 1


def _readable(x):
    """A matrix, or batch of them, as kernels read it: a copy if its rows overlap, or are not at multiples of 16 bytes. The
    order of sums is the same for every layout."""
    turned, ld = _rows(x)
    row = ld or x.shape[-2 if turned else -1]
    if ld is None or (x.data_ptr() | row * x.element_size()) & 15:
        return x.clone(memory_format=torch.contiguous_format)
    return x


def _ordered(a, b, bias=None, activation="", **options):
    """product() in the order of sums that all M have."""
    bias = bias if bias is None else bias.contiguous()
    return product(_readable(a), _readable(b), bias, activation, invariant=True, **options)


def _ordered_mm(a, b, leaves=0, out_dtype=None):
    if a.dim() != 2 or b.dim() != 2 or _trivial(a, b):
        c = _aten.mm.out(a, b, out=a.new_empty((a.shape[0], b.shape[-1])))
        return c if out_dtype is None else c.to(out_dtype)
    return _ordered(a, b, leaves=leaves, out=out_dtype)


# The sum of rows is a product with so many columns of ones: a kernel reads no fewer.
COLUMNS = 8
# The most leaves that a kernel adds up. More are added in fp32 by PyTorch, in the same tree.
MOST_LEAVES = 8


def subtrees(first, leaves):
    """The largest subtrees that cover leaves from a number on, as pairs of their first leaf and their leaves."""
    end = first + leaves
    while first < end:
        size = min(first & -first or MOST_LEAVES, MOST_LEAVES, 1 << (end - first).bit_length() - 1)
        yield first, size
        first += size


def _trees(grad, x, tokens, first, out=None, into=None):
    """gradᵀ · x as subtrees of a binary tree over leaves of so many rows, of which the first has a number: triples of the first
    leaf, the leaves and their sum in fp32. Neighbours that are siblings are added. A last leaf of fewer rows is one, too. into
    has the place of a subtree's sum, by its size."""
    grad, x = _readable(grad), _readable(x)  # by rows, of which leaves have any number
    trees, (whole, rest) = [], divmod(grad.shape[0], tokens)
    for at, size in (*subtrees(first, whole), *(((first + whole, 1),) if rest else ())):
        low = (at - first) * tokens
        a, b, kind = grad[low:low + size * tokens].t(), x[low:low + size * tokens], out or torch.float32
        if len(b) == 1:
            total = (a.float() * b.float()).to(kind)
        else:
            place = into(at, size) if into and size == whole else None
            total = _ordered(a, b, leaves=size, out=kind, **({} if place is None else {"into": place}))
        trees.append((at, size, total))
        while len(trees) > 1 and trees[-1][1] == trees[-2][1] and trees[-2][0] % (2 * trees[-1][1]) == 0:
            (_, size, right), (at, _, left) = trees.pop(), trees.pop()
            trees.append((at, 2 * size, left.add_(right)))
    return trees


def _ordered_weight_grad(grad, x, tokens=0, out_dtype=None):
    """gradᵀ · x. Leaves of so many rows, the last may have fewer, are added in a binary tree in fp32, and what has no sibling
    in the end from the right. Without tokens there is one leaf."""
    out, rows = out_dtype or grad.dtype, grad.shape[0]
    if rows == 0:
        return grad.new_zeros((grad.shape[1], x.shape[1]), dtype=out)
    tokens = tokens or rows
    alone = rows <= tokens or rows <= MOST_LEAVES * tokens and rows % tokens == 0 and (rows // tokens).bit_count() == 1
    trees = _trees(grad, x, tokens, 0, out if alone else None)
    total = trees.pop()[2]
    while trees:
        total = trees.pop()[2].add_(total)
    return total.to(out)


def _ordered_add_grad(sums, rows, grad, x, tokens):
    """Adds the leaves of more rows of a step to its sums. sums[i] is what waits on level lowest + i for its sibling, if that digit
    of the number of leaves is set; rows has the rows so far, and lowest."""
    done, lowest = rows.tolist()
    if done % tokens or grad.shape[0] % (tokens << lowest):
        raise ValueError(f"{grad.shape[0]} rows behind {done} are no multiple of {tokens << lowest}, what divides each micro-batch")
    def into(at, size):
        level = size.bit_length() - 1 - lowest
        return sums[level] if level < len(sums) and not at // size & 1 else None

    for at, size, total in _trees(grad, x, tokens, done // tokens, into=into):
        level, number = size.bit_length() - 1, at // size
        while number & 1:
            total = sums[level - lowest] + total
            level, number = level + 1, number >> 1
        if level - lowest >= len(sums):
            raise ValueError(f"the step has more rows than {tokens << lowest + len(sums) - 1}; give batch more")
        if total.data_ptr() != sums[level - lowest].data_ptr():
            sums[level - lowest].copy_(total)
    rows[0] += grad.shape[0]


# What rounds or adds of a row alone: in a compiled graph, sums of rows would depend on how many there are.

def _ordered_rms_norm(x, weight, eps, *order):
    return _aten._fused_rms_norm(x, weight.shape, weight, eps)[0]


def _ordered_rms_norm_backward(grad, x, weight, eps):
    normed, scale = _aten._fused_rms_norm(x, weight.shape, None, eps)
    if x.is_cuda:
        of_x = _aten._fused_rms_norm_backward(grad, x, weight.shape, scale, weight, [True, False])[0]
    else:  # where PyTorch has no such operator
        plain, wide = x.float() * scale, grad.float() * weight.float()
        of_x = ((wide - plain * (wide * plain).mean(-1, keepdim=True)) * scale).to(x.dtype)
    return of_x, (grad * normed).reshape(-1, x.shape[-1])


def _ordered_bmm(a, b):
    if a.dim() != 3 or b.dim() != 3 or _trivial(a, b):
        return _aten.bmm.out(a, b, out=a.new_empty((*a.shape[:-1], b.shape[-1])))
    return _ordered(a, b)


def _ordered_addmm(add, a, b, *, beta=1, alpha=1):
    if a.dim() != 2 or b.dim() != 2 or _trivial(a, b) or add.dtype != a.dtype or add.get_device() != a.get_device():
        return _aten.addmm.out(add, a, b, beta=beta, alpha=alpha, out=a.new_empty((a.shape[0], b.shape[-1])))
    if beta == 0:
        return _ordered(a, b, alpha=_single(alpha))
    if add.shape == b.shape[1:] and beta == 1:
        return _ordered(a, b, add, alpha=_single(alpha))
    add = add.expand(a.shape[0], b.shape[1])
    return _ordered(a, b, add=add, alpha=_single(alpha), beta=_single(beta))


def _ordered_linear(x, weight, bias=None, activation="", residual=None, leaves=0, *order):
    lines, columns = x.reshape(-1, x.shape[-1]), columns_of(weight.shape[0], activation)
    if _trivial(lines, weight.t()):
        y = _ordered_mm(lines, weight.t()) if bias is None else _ordered_addmm(bias, lines, weight.t())
        y = ACTIVATIONS[activation](y).view(*x.shape[:-1], columns)
        return y if residual is None else y + _as(residual, y)
    if residual is not None:
        residual = _as(residual, x.new_empty((*x.shape[:-1], columns))).reshape(-1, columns)
    y = _ordered(lines, weight.t(), bias, activation, last=residual, leaves=leaves)
    return y.view(*x.shape[:-1], columns)


def _ordered_scaled_mm(a, b, scale_a, scale_b, bias=None, out_dtype=None, use_fast_accum=False):
    out = out_dtype or torch.bfloat16
    if a.dim() == 2 == b.dim() and _trivial(a, b):
        return _scaled_mm(a, b, scale_a, scale_b, bias, out)
    bias = bias if bias is None else bias.contiguous()
    c = scaled(_readable(a), _readable(b), scale_a, scale_b, bias, out, use_fast_accum, invariant=True)
    if c is None:
        raise NotInvariant.because(a, b, STEPS)
    return c


for _name, _one in (("mm", _ordered_mm), ("bmm", _ordered_bmm), ("linear", _no_view(_ordered_linear)), ("addmm", _ordered_addmm),
                    ("scaled_mm", _ordered_scaled_mm), ("weight_grad", _ordered_weight_grad), ("add_grad", _ordered_add_grad),
                    ("rms_norm", _ordered_rms_norm), ("rms_norm_backward", _ordered_rms_norm_backward)):
    for _key in ("CPU", "CUDA"):  # on the CPU it says that there is no kernel
        _library.impl("ordered_" + _name, _one, _key)
for _name, _own, _cuda_one in (
        ("mm", torch.mm, _mm_cuda), ("bmm", torch.bmm, _bmm_cuda), ("addmm", torch.addmm, _addmm_cuda),
        ("linear", _no_view(_linear), _no_view(_linear_cuda)), ("scaled_mm", _scaled_mm, _scaled_mm_cuda)):
    _library.impl(_name, _own, "CPU")
    _library.impl(_name, _cuda_one, "CUDA")
for _name, _fake in (
        ("mm", torch.mm), ("ordered_mm", lambda a, b, leaves=0, out_dtype=None: a.mm(b).to(out_dtype or a.dtype)),
        *((order + name, one) for order in ("", "ordered_") for name, one in (
            ("bmm", torch.bmm), ("linear", _fake_linear), ("addmm", torch.addmm), ("scaled_mm", _fake_scaled_mm))),
        ("ordered_add_grad", lambda *arguments: None), ("ordered_rms_norm", lambda x, *arguments: torch.empty_like(x)),
        ("ordered_rms_norm_backward",
         lambda grad, x, *arguments: (torch.empty_like(x), grad.new_empty((x.numel() // x.shape[-1], x.shape[-1])))),
        ("ordered_weight_grad", lambda grad, x, tokens=0, out_dtype=None: grad.new_empty(
            (grad.shape[1], x.shape[1]), dtype=out_dtype or grad.dtype))):
    torch.library.register_fake(f"origami_gemm::{_name}", _fake, lib=_library)
_ops = torch.ops.origami_gemm


# PyTorch's own operators compute the gradients, and products in one order have gradients in one order. scaled_mm has none, as
# in PyTorch.

def _save(ctx, inputs, output):
    ctx.save_for_backward(*(x for x in inputs if isinstance(x, Tensor)))


def _product_backward(multiply):
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        need_a, need_b = ctx.needs_input_grad[:2]
        return (multiply(grad, b.transpose(-1, -2)) if need_a else None,
                multiply(a.transpose(-1, -2), grad) if need_b else None)
    return backward


def _ordered_mm_backward(ctx, grad):
    grad, (a, b) = grad.to(ctx.saved_tensors[0].dtype), ctx.saved_tensors
    need_a, need_b = ctx.needs_input_grad[:2]
    return (_ops.ordered_mm(grad, b.t()) if need_a else None,
            _ops.ordered_weight_grad(a, grad) if need_b else None, None, None)


def _save_linear(ctx, inputs, output):
    x, weight, bias, ctx.activation, _, *ctx.order = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(x, weight, *((bias,) if ctx.has_bias else ()))


def _linear_backward(ordered):
    def backward(ctx, grad):
        x, weight, *rest = ctx.saved_tensors
        last = grad if any(ctx.needs_input_grad[4:5]) else None
        if ctx.activation:  # the function linear() keeps what this computes again
            again, order = (_ops.ordered_linear, (None, ctx.order[0])) if ordered else (_ops.linear, ())
            with torch.enable_grad():
                before = again(x.detach(), weight.detach(), rest[0].detach() if rest else None, "", *order).requires_grad_()
                after = ACTIVATIONS[ctx.activation](before)
            grad, = torch.autograd.grad(after, before, grad)
        flat, rows = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
        need = ctx.needs_input_grad
        if not ordered:
            return (_ops.mm(flat, weight).view(x.shape) if need[0] else None,
                    _ops.mm(flat.t(), rows) if need[1] else None,
                    flat.sum(0) if ctx.has_bias and need[2] else None, None, last)
        _, leaves_back, tokens, sums, seen = ctx.order
        of_weight = of_bias = None
        if need[1] and sums is not None:
            _ops.ordered_add_grad(sums, seen, flat, rows, tokens)
        elif need[1]:
            of_weight = _ops.ordered_weight_grad(flat, rows, tokens)
        if ctx.has_bias and need[2]:
            of_bias = _ops.ordered_weight_grad(flat, flat.new_ones((flat.shape[0], COLUMNS)), tokens)[:, 0]
        return (_ops.ordered_mm(flat, weight, leaves_back).view(x.shape) if need[0] else None, of_weight, of_bias, None, last,
                *[None] * len(ctx.order))
    return backward


def _save_rms_norm(ctx, inputs, output):
    x, weight, ctx.eps, *ctx.order = inputs
    ctx.save_for_backward(x, weight)


def _rms_norm_backward(ctx, grad):
    tokens, sums, seen = ctx.order
    of_x, of_rows = _ops.ordered_rms_norm_backward(grad, *ctx.saved_tensors, ctx.eps)
    _ops.ordered_add_grad(sums, seen, of_rows, of_rows.new_ones((of_rows.shape[0], COLUMNS)), tokens)
    return of_x, *[None] * 5


def _save_addmm(ctx, inputs, keyword_only_inputs, output):
    add, a, b = inputs
    ctx.shape, ctx.alpha, ctx.beta = add.shape, keyword_only_inputs["alpha"], keyword_only_inputs["beta"]
    ctx.save_for_backward(a, b)


def _addmm_backward(multiply):
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        need = ctx.needs_input_grad
        return ((grad * ctx.beta).sum_to_size(ctx.shape) if need[0] else None,
                multiply(grad, b.t()) * ctx.alpha if need[1] else None,
                multiply(a.t(), grad) * ctx.alpha if need[2] else None)
    return backward


for _name, _backward, _setup in (
        ("mm", _product_backward(_ops.mm), _save), ("bmm", _product_backward(_ops.bmm), _save),
        ("linear", _linear_backward(False), _save_linear), ("addmm", _addmm_backward(_ops.mm), _save_addmm),
        ("ordered_mm", _ordered_mm_backward, _save), ("ordered_bmm", _product_backward(_ops.ordered_bmm), _save),
        ("ordered_rms_norm", _rms_norm_backward, _save_rms_norm),
        ("ordered_linear", _linear_backward(True), _save_linear), ("ordered_addmm", _addmm_backward(_ops.ordered_mm), _save_addmm)):
    torch.library.register_autograd(f"origami_gemm::{_name}", _backward, setup_context=_setup, lib=_library)


# The functions. They do what autocast does for PyTorch's own operators. An operator that is Python costs some
# microseconds of the host, so that where nobody watches operators (gradients, torch.compile, modes, transforms,
# subclasses) its kernel is called as it is.

def _call(operator, kernel, *tensors, rest=(), last=(), **options):
    """Calls with the tensors, the rest, and the tensors that come last."""
    tensors, count = _cast(*tensors, *last), len(tensors)
    arguments = (*tensors[:count], *rest, *tensors[count:])
    return (kernel if _alone(tensors) else operator)(*arguments, **options)


_PLAIN = (Tensor, torch.nn.Parameter)


def _alone(tensors):
    """Whether an operator would only lead to its kernel for a GPU."""
    if torch.compiler.is_compiling() or not tensors[0].is_cuda:
        return False
    grad = torch.is_grad_enabled()
    for x in tensors:
        if x is not None and (type(x) not in _PLAIN or grad and x.requires_grad or not x.is_cuda):
            return False
    return not (torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack()
                or torch._C._functorch.peek_interpreter_stack() or torch._C._get_tracing_state())


def _cast(*tensors):
    if not torch.is_autocast_enabled("cuda") or not any(x is not None and x.is_cuda for x in tensors):
        return tensors
    dtype = torch.get_autocast_dtype("cuda")
    return tuple(x.to(dtype) if x is not None and x.is_floating_point() and x.dtype != torch.float64 else x
                 for x in tensors)


def _check_activation(activation, weight=None):
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is {activation!r}; give None or one of {', '.join(list(ACTIVATIONS)[1:])}")
    if weight is not None and activation.endswith("_gated") and weight.shape[0] % 2:
        raise ValueError(f"{activation} needs an even number of columns, and the weight has {weight.shape[0]} rows")


def pair(leaves):
    """The leaves of K, and of N for the gradient of the input."""
    both = leaves if isinstance(leaves, tuple) else (leaves, leaves)
    if len(both) != 2 or any(n not in (0, 1, 2, 4, 8) for n in both):
        raise ValueError(f"leaves is {leaves!r}; give 1, 2, 4 or 8, or two of them")
    return both


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """torch.mm."""
    return _call(_ops.mm.default, _mm_cuda, input, mat2)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """torch.bmm."""
    return _call(_ops.bmm.default, _bmm_cuda, input, mat2)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None,
           residual: Tensor | None = None, *, invariant: bool = False, leaves: int | tuple[int, int] = 0,
           tokens_per_block: int = 0, grad=None) -> Tensor:
    """torch.nn.functional.linear, and an activation of what it returns: "relu", "relu2" (its square), "gelu",
    "gelu_tanh" (the approximation), "quick_gelu" or "silu". With "gelu_gated", "gelu_tanh_gated" or "silu_gated" the
    weight is that of two layers, one above the other:
    the activation of what the first returns is multiplied with what the second returns. The residual is added last; it has
    the shape and the type of the output. The kernel rounds once, behind all of it.

    With invariant, a row of the output has the same bits whatever rows are beside it: all M have one order of sums. What no
    kernel of that order computes is an error then, as on another GPU, and the first call of a size compiles its kernel. So
    have the gradients, in orders of their own. leaves is a tree of 2, 4 or 8 equal parts of K, and of N for the gradient of the
    input, or a pair with one for each: the same bits as the sum in a tree of ranks that have a part each. The gradient of the
    weight adds blocks of tokens_per_block rows in a tree; with grad, a WeightGrad, it goes there."""
    activation = activation or ""
    _check_activation(activation, weight)
    if invariant:
        order = (*pair(leaves), tokens_per_block) if grad is None else (*pair(leaves), grad.tokens_per_block, grad.sums, grad.rows)
        return _ops.ordered_linear(*_cast(input, weight, bias), activation, *_cast(residual), *order)
    if leaves or tokens_per_block or grad is not None:
        raise ValueError("leaves, tokens_per_block and grad are orders of sums; give invariant=True too")
    if activation and torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (input, weight, bias)):
        y = ACTIVATIONS[activation](_call(_ops.linear.default, _linear_cuda, input, weight, bias))
        return y if residual is None else y + _as(residual, y)
    return _call(_ops.linear.default, _linear_cuda, input, weight, bias, rest=(activation,), last=(residual,))


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """torch.addmm."""
    return _call(_ops.addmm.default, _addmm_cuda, input, mat1, mat2, beta=beta, alpha=alpha)


def scaled_mm(input: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None,
              out_dtype: torch.dtype | None = None, use_fast_accum: bool = False, *, invariant: bool = False) -> Tensor:
    """torch._scaled_mm: input · mat2 · scale_a · scale_b + bias of fp8 matrices, input by rows and mat2 by columns. Each scale
    is fp32, of one element or of each row (scale_a) or column (scale_b). The bias is of the output's type or fp32. out_dtype is
    bfloat16 by default. Without use_fast_accum, sums are added in fp32 after each 128 products, as cuBLAS does. invariant is
    as in linear()."""
    if invariant:
        return _ops.ordered_scaled_mm(input, mat2, scale_a, scale_b, bias, out_dtype, use_fast_accum)
    tensors = input, mat2, scale_a, scale_b, bias  # autocast leaves fp8 alone
    return (_scaled_mm_cuda if _alone(tensors) else _ops.scaled_mm.default)(*tensors, out_dtype, use_fast_accum)
