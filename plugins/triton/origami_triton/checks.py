"""Is the result right? Every element of C is compared with a float64 product."""

from __future__ import annotations

import math

import torch

from origami_gemm_plugin import Numerics, Problem

from .gpu import POISON, Operands

# Elements at a time, of float64 operands and of compared results. It limits the memory besides the matrices.
CHUNK = 1 << 26

ROUNDING = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-23}


def tolerance(p: Problem) -> float:
    """The error that a right result of standard normal operands may have, relative to |want| + √k: the rounding of the
    output, and what k products added up in fp32 lose. Sums of int8 are exact.

    Tensor cores truncate: 16 products at a time (8 of tf32) are aligned to the largest and added to the sum, which
    loses up to 2^-23 of it each time. k/16 such steps on sums of the order of √k lose at most k·2^-27 of √k; allowed is
    twice that. One product left out would be 1/√k for a third of the elements.

    For 8-bit floats, the sums of sm90 have 13 bits below the largest of 32 products and the sum. Up to 2^-12 of a sum
    of √k is lost of each product, of either sign. Over k products that adds up to 0.3·√k·2^-12·√k; the largest of 10^8
    elements has six times that. A step of 32 products left out is √(32/k), more than allowed up to k = 2^14."""
    if p.dtype == "int8":
        return 0
    if p.dtype in ("fp8", "fp8_e5m2"):
        return ROUNDING[p.output] + math.sqrt(p.k) * 2.0**-10
    return ROUNDING[p.output] + p.k * (2.0**-25 if p.dtype == "tf32" else 2.0**-26)


def reference(o: Operands) -> torch.Tensor:
    """C in float64, rounded to fp32 or, for integers, in int32, computed once per problem."""
    if o.want is None:
        p = o.problem
        dtype = torch.int32 if p.dtype == "int8" else torch.float32
        want = torch.empty(p.m, p.n, dtype=dtype, device=o.device)
        step = max(1, CHUNK // p.k)
        for rows, of_group in o.products():
            for column in range(0, p.n, step):
                b = of_group[:, column : column + step].float().double()  # PyTorch converts 8-bit floats to fp32 first
                for row in range(rows.start or 0, rows.stop, step):
                    part = slice(row, min(row + step, rows.stop))
                    want[part, column : column + step] = o.a[part].float().double() @ b
        o.want = want
    return o.want


def check(o: Operands, run) -> Numerics:
    """Runs once, into a poisoned output, and compares."""
    want, p = reference(o), o.problem
    o.matrix_c.memory.fill_(POISON)
    run()
    allowed = tolerance(p)
    worst, wrong = torch.zeros((), device=o.device), torch.zeros((), dtype=torch.int64, device=o.device)
    wide = torch.float32 if want.is_floating_point() else torch.float64
    step = max(1, CHUNK // p.n)
    for row in range(0, p.m, step):
        expected = want[row : row + step].to(wide)
        error = (o.c[row : row + step].to(wide) - expected).abs_().div_(expected.abs().add_(math.sqrt(p.k)))
        error.nan_to_num_(nan=math.inf, posinf=math.inf)
        worst = torch.maximum(worst, error.max())
        wrong += (error > allowed).sum()
    outside = int(o.matrix_c.outside().item())
    return Numerics(worst.item(), allowed, p.m * p.n, int(wrong.item()), outside, "float64")
