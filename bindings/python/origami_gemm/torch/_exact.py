"""Training in one order of sums: gradients of weights over micro-batches, sums over ranks, and what a run computed."""

from __future__ import annotations

import json
import pathlib

import torch
import torch.distributed as dist
from torch import Tensor

from origami_gemm.torch import _ops


class WeightGrad:
    """The gradient of a weight over the rows of a step, in fp32 and in an order that does not depend on how micro-batches
    divide the step: leaves of tokens_per_block rows in a binary tree over all of them. linear(..., grad=) adds to it in the
    backward pass, in the order of the rows, and leaves weight.grad alone.

    micro_batch   rows that divide each micro-batch: tokens_per_block times a power of two
    batch         the most rows of a step

    It keeps an fp32 matrix for each level of the tree between the two: log2(batch / micro_batch) + 1 of them."""

    def __init__(self, weight: Tensor, tokens_per_block: int, micro_batch: int | None = None, batch: int | None = None):
        micro_batch = micro_batch or tokens_per_block
        leaves, rest = divmod(micro_batch, tokens_per_block)
        if tokens_per_block < 1 or rest or leaves.bit_count() != 1:
            raise ValueError(f"micro_batch is {micro_batch}; give {tokens_per_block}, tokens_per_block, times a power of two")
        levels = max(1, -(-(batch or micro_batch) // micro_batch)).bit_length()
        self.tokens_per_block, self.shape = tokens_per_block, weight.shape
        shape = weight.shape if weight.dim() > 1 else (len(weight), _ops.COLUMNS)
        self.sums = torch.zeros((levels, *shape), dtype=torch.float32, device=weight.device)
        self.rows = torch.tensor([0, leaves.bit_length() - 1])

    def finish(self, dtype: torch.dtype | None = None) -> Tensor:
        """The sum, rounded once, for the ranks of tree_all_reduce() in fp32. The next step begins. What has no sibling is added
        from the right."""
        rows, lowest = self.rows.tolist()
        count = rows // (self.tokens_per_block << lowest)
        waiting = [self.sums[level] for level in range(len(self.sums)) if count >> level & 1]
        total = waiting[0] if waiting else torch.zeros_like(self.sums[0])
        for left in waiting[1:]:
            total = left + total
        self.rows[0] = 0
        total = total if len(self.shape) > 1 else total[:, 0]
        return total.to(dtype or torch.float32, copy=True)


class Exact(torch.nn.Linear):
    """A torch.nn.Linear in one order of sums."""

    def forward(self, input):
        return _ops.linear(input, self.weight, self.bias, invariant=True, leaves=self.origami_leaves, grad=self.origami_grad)


class ExactNorm(torch.nn.RMSNorm):
    """A torch.nn.RMSNorm whose weight's gradient adds rows in one order. Each row's is rounded to the weight's type before."""

    def forward(self, input):
        grad = self.origami_grad
        return _ops._ops.ordered_rms_norm(input, self.weight, self.eps, grad.tokens_per_block, grad.sums, grad.rows)


EXACT = {torch.nn.Linear: Exact, torch.nn.RMSNorm: ExactNorm}


class Training:
    """What exact() returns."""

    def __init__(self, layers):
        self.layers = layers

    def finish(self, group: dist.ProcessGroup | None = None) -> None:
        """Sets the gradients of the weights, after the last micro-batch of a step. A group's ranks, a power of two, have equal
        parts of the step, and get the gradients of all of it, in a tree."""
        for one in self.layers:
            if group is None:
                one.weight.grad = one.origami_grad.finish(one.weight.dtype)
            else:
                one.weight.grad = tree_all_reduce(one.origami_grad.finish(), group, one.weight.dtype)

    def restore(self) -> None:
        """Undoes exact()."""
        for one in self.layers:
            one.__class__ = one.__class__.__base__
            del one.origami_grad, one.origami_leaves


def exact(module: torch.nn.Module, tokens_per_block: int, micro_batch: int | None = None, batch: int | None = None,
          leaves: int | tuple[int, int] = 0) -> Training:
    """Makes each torch.nn.Linear of a module call linear(..., invariant=True), with a WeightGrad for its weight and the
    leaves, and gives the weight of each torch.nn.RMSNorm of one dimension a WeightGrad too. A bias has no gradient over
    micro-batches: it must not ask for one."""
    layers = [one for one in module.modules() if type(one) in EXACT and one.weight is not None and one.weight.dim() == 2 - (type(one) is torch.nn.RMSNorm)]
    for one in layers:
        if getattr(one, "bias", None) is not None and one.bias.requires_grad and (batch or 0) > (micro_batch or tokens_per_block):
            raise ValueError("a bias asks for a gradient, which has no order over micro-batches; give one micro-batch, or no bias")
        _ops.pair(leaves)
        one.origami_leaves, one.origami_grad = leaves, WeightGrad(one.weight, tokens_per_block, micro_batch, batch)
        one.__class__ = EXACT[type(one)]
    return Training(layers)


def tree_sum(parts) -> Tensor:
    """The sum of tensors in a binary tree: neighbours first, the right to the left. Their number is a power of two."""
    parts = list(parts)
    if len(parts).bit_count() != 1:
        raise ValueError(f"{len(parts)} parts have no binary tree; give a power of two")
    while len(parts) > 1:
        parts = [left + right for left, right in zip(parts[::2], parts[1::2])]
    return parts[0]


# All ranks read all of the others if that is at most so many bytes more than a part of each and the parts' sums: then one
# collective is faster than two. A second one takes 12 µs between two H200s, in which 2 MB pass (experiments/collectives-on-h200).
WHOLE = 1 << 20


def tree_all_reduce(x: Tensor, group: dist.ProcessGroup | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """The sum of the ranks' x, in every rank, in a binary tree over the ranks: the same bits for any network and algorithm, and
    the bits of tree_sum() over the ranks in their order. x should be fp32. The result is rounded to dtype, if that is
    given, before it is sent."""
    ranks, dtype = dist.get_world_size(group), dtype or x.dtype
    if ranks == 1:
        return x.to(dtype)
    if ranks.bit_count() != 1:
        raise ValueError(f"the group has {ranks} ranks; a binary tree needs a power of two")
    flat = x.contiguous().view(-1)
    if flat.numel() * flat.element_size() * (ranks - 1) * (1 - 1.5 / ranks) <= WHOLE:
        all_parts = flat.new_empty((ranks, flat.numel()))
        dist.all_gather_into_tensor(all_parts.view(-1), flat, group=group)
        return tree_sum(all_parts.unbind()).to(dtype).view(x.shape)
    size = -(-flat.numel() // ranks)
    if size * ranks != flat.numel():
        flat = torch.nn.functional.pad(flat, (0, size * ranks - flat.numel()))
    if ranks == 2 and dist.get_backend(group) == "nccl":  # two numbers have one sum, whoever adds them
        mine = flat.new_empty(size)
        dist.reduce_scatter_tensor(mine, flat, group=group)
    else:
        parts = torch.empty_like(flat)
        dist.all_to_all_single(parts, flat, group=group)
        mine = tree_sum(parts.view(ranks, size).unbind())
    mine = mine.to(dtype)
    whole = mine.new_empty(size * ranks)
    dist.all_gather_into_tensor(whole, mine, group=group)
    return whole[:x.numel()].view(x.shape)


class _Parallel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, group, rows, leaves, tokens, grad):
        ranks = dist.get_world_size(group)
        if leaves[1 - rows] % ranks:
            raise ValueError(f"{ranks} ranks cannot share {leaves[1 - rows]} leaves; give leaves that they divide")
        ctx.save_for_backward(x, weight)
        ctx.how = group, rows, leaves, tokens, grad
        lines = x.reshape(-1, x.shape[-1])
        if rows:
            y = _ops._ops.ordered_mm(lines, weight.t(), leaves[0] // ranks, torch.float32)
            y = tree_all_reduce(y, group, x.dtype)
        else:
            y = _ops._ops.ordered_mm(lines, weight.t(), leaves[0])
        return y.view(*x.shape[:-1], weight.shape[0])

    @staticmethod
    def backward(ctx, dy):
        (x, weight), (group, rows, leaves, tokens, grad) = ctx.saved_tensors, ctx.how
        flat, lines = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
        dx = dw = None
        if ctx.needs_input_grad[0] and rows:
            dx = _ops._ops.ordered_mm(flat, weight, leaves[1])
        elif ctx.needs_input_grad[0]:
            dx = _ops._ops.ordered_mm(flat, weight, leaves[1] // dist.get_world_size(group), torch.float32)
            dx = tree_all_reduce(dx, group, x.dtype)
        if ctx.needs_input_grad[1] and grad is not None:
            _ops._ops.ordered_add_grad(grad.sums, grad.rows, flat, lines, tokens)
        elif ctx.needs_input_grad[1]:
            dw = _ops._ops.ordered_weight_grad(flat, lines, tokens)
        return None if dx is None else dx.view(x.shape), dw, None, None, None, None, None


def parallel_linear(input: Tensor, weight: Tensor, *, rows: bool, leaves: int | tuple[int, int] = 8,
                    group: dist.ProcessGroup | None = None, tokens_per_block: int = 0, grad: WeightGrad | None = None) -> Tensor:
    """linear() over the ranks of a group, to the bits that linear(..., invariant=True, leaves=leaves) has on one GPU.

    With rows, each rank has K / ranks columns of the input and of the weight, and the outputs are added over the ranks.
    Without, each has N / ranks rows of the weight and columns of the output, and the gradients of the input are added. Both
    sums are a tree: the leaves of a rank in its kernel, then tree_all_reduce(). Not for torch.compile."""
    tokens = tokens_per_block if grad is None else grad.tokens_per_block
    return _Parallel.apply(input, weight, group, rows, _ops.pair(leaves), tokens, grad)


# What a run computed.

def digest(x: Tensor) -> str:
    """64 bits that tensors with different elements hardly share: the sum of the elements' bits times an odd number for each
    place, modulo 2⁶⁴, which any order of additions gives."""
    x = x.detach().contiguous().view(-1)
    words = x.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]).long()
    keys = torch.arange(len(words), device=x.device) * -7046029254386353131 + 1442695040888963407
    return f"{((words + 1) * (keys ^ keys >> 29 | 1)).sum().item() & (1 << 64) - 1:016x}"


class Recorder:
    """Records digests of the outputs of a module's parts, and of the gradients of these outputs and of parameters, in the order
    of computation. `python -m origami_gemm.exact first.json second.json` names the first that differs.

        with og.Recorder(model) as recorder:
            loss(model(x)).backward()
        recorder.save("first.json")"""

    def __init__(self, module: torch.nn.Module):
        self.entries, self._handles = [], []
        for name, one in module.named_modules():
            self._handles.append(one.register_forward_hook(self._hook(name or "the whole module")))
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                self._handles.append(parameter.register_post_accumulate_grad_hook(
                    lambda p, name=name: self.record(name, "gradient", p.grad)))

    def _hook(self, name):
        def forward(module, inputs, output):
            for i, y in enumerate(output if isinstance(output, (tuple, list)) else (output,)):
                if isinstance(y, Tensor):
                    what = f"output {i}" if i else "output"
                    self.record(name, what, y)
                    if y.requires_grad:
                        y.register_hook(lambda g, what=what: self.record(name, f"gradient of {what}", g))
        return forward

    def record(self, name: str, what: str, x: Tensor) -> None:
        """Records a tensor, as of a loss or a gradient of WeightGrad."""
        self.entries.append({"name": name, "what": what, "dtype": str(x.dtype), "shape": list(x.shape), "digest": digest(x)})

    def save(self, path: str) -> None:
        pathlib.Path(path).write_text(json.dumps(self.entries, indent=0) + "\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for handle in self._handles:
            handle.remove()
