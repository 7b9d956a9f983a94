"""Is the result right? Every element of C is compared with a float64 product."""

from __future__ import annotations

import math

import torch

from origami.plugin import Numerics

from .gpu import FENCE, POISON, Operands

# Elements at a time, of float64 operands and of compared results. It limits the memory besides the matrices.
CHUNK = 1 << 26


def tolerance(dtype: torch.dtype, k: int) -> float:
    """The error that a right result of standard normal operands may have, relative to |want| + √k: the rounding of the
    output, and what k products added up in fp32 lose. Tensor cores truncate: 16 products at a time are aligned to the
    largest and added to the sum, which loses up to 2^-23 of it each time. k/16 such steps on sums of the order of √k
    lose at most k·2^-27 of √k; allowed is twice that. One product left out would be 1/√k for a third of the
    elements."""
    return {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}[dtype] + k * 2.0**-26


def reference(o: Operands) -> torch.Tensor:
    """C in float64, rounded to fp32, computed once per problem."""
    if o.want is None:
        p = o.problem
        want = torch.empty(p.m, p.n, dtype=torch.float32, device=o.device)
        step = max(1, CHUNK // p.k)
        for column in range(0, p.n, step):
            b = o.b[:, column : column + step].double()
            for row in range(0, p.m, step):
                want[row : row + step, column : column + step] = o.a[row : row + step].double() @ b
        o.want = want
    return o.want


def check(o: Operands, run) -> Numerics:
    """Runs once, into a poisoned output, and compares."""
    want, p = reference(o), o.problem
    o.bytes_of_c.fill_(POISON)
    run()
    allowed = tolerance(o.c.dtype, p.k)
    worst, wrong = torch.zeros((), device=o.device), torch.zeros((), dtype=torch.int64, device=o.device)
    step = max(1, CHUNK // p.n)
    for row in range(0, p.m, step):
        expected = want[row : row + step]
        error = (o.c[row : row + step].float() - expected).abs_().div_(expected.abs().add_(math.sqrt(p.k)))
        error.nan_to_num_(nan=math.inf, posinf=math.inf)
        worst = torch.maximum(worst, error.max())
        wrong += (error > allowed).sum()
    outside = (o.bytes_of_c[:FENCE] != POISON).sum() + (o.bytes_of_c[-FENCE:] != POISON).sum()
    return Numerics(worst.item(), allowed, p.m * p.n, int(wrong.item()), int(outside.item()), "float64")
