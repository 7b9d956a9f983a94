"""The problem that a kernel is built for, as core/gemm has it."""

from __future__ import annotations

import dataclasses

# The size of an element in bits, and the types that C can have for operands of a type, the default first. Both lists
# are generated from core/gemm.
BITS = {
    "fp16": 16,
    "bf16": 16,
    "fp32": 32,
    "tf32": 32,
    "fp8": 8,
    "fp8_e5m2": 8,
    "int8": 8,
    "int32": 32,
    "fp4": 4,
    "fp6": 6,
    "fp6_e3m2": 6,
}
OUTPUTS = {
    "fp16": ("fp16", "fp32"),
    "bf16": ("bf16", "fp32"),
    "fp32": ("fp32",),
    "tf32": ("fp32",),
    "fp8": ("fp16", "bf16", "fp32"),
    "fp8_e5m2": ("fp16", "bf16", "fp32"),
    "int8": ("int32", "fp16", "bf16"),
    "fp4": ("fp16", "bf16", "fp32"),
    "fp6": ("fp16", "bf16", "fp32"),
    "fp6_e3m2": ("fp16", "bf16", "fp32"),
}

# The widest access of a thread to memory, in bytes.
MAX_VECTOR = 16

# A problem has at most MAX_GROUPS groups. Its text lists MOST_LISTED, and counts more.
MAX_GROUPS = 1024
MOST_LISTED = 16


@dataclasses.dataclass(frozen=True)
class Problem:
    """One GEMM, or a batch of them at a fixed stride: C[m×n] = A[m×k] · B[k×n]. C is contiguous along n.

    With groups, the rows of A and C come in groups of that many rows, one after another. Each group has a B of its own,
    at a fixed stride. m is the sum of the rows. A group may be empty.

    An empty out_dtype, and a leading dimension of 0, mean the default: output and ld() say what that is. An executor
    gets others, and groups, only if its provider has whole_problems = True."""

    m: int
    n: int
    k: int
    batch: int = 1
    a_major: str = "k"  # the dimension along which A is contiguous: "k" or "m"
    b_major: str = "n"  # "n" or "k"
    dtype: str = "fp16"  # of A and B: a key of OUTPUTS
    out_dtype: str = ""  # of C
    lda: int = 0  # elements from the start of one contiguous row to the start of the next
    ldb: int = 0
    ldc: int = 0
    align_a: int = MAX_VECTOR  # bytes that divide the address of the first element, at most 16
    align_b: int = MAX_VECTOR
    align_c: int = MAX_VECTOR
    groups: tuple[int, ...] = ()

    @property
    def output(self) -> str:
        """The type of C."""
        return self.out_dtype or OUTPUTS[self.dtype][0]

    def rows(self, matrix: str) -> tuple[int, int]:
        """How many contiguous rows the matrix "a", "b" or "c" has, and how many elements each."""
        return {
            "a": (self.k, self.m) if self.a_major == "m" else (self.m, self.k),
            "b": (self.n, self.k) if self.b_major == "k" else (self.k, self.n),
            "c": (self.m, self.n),
        }[matrix]

    def ld(self, matrix: str) -> int:
        """The leading dimension of a matrix in elements."""
        return {"a": self.lda, "b": self.ldb, "c": self.ldc}[matrix] or self.rows(matrix)[1]

    def stride(self, matrix: str) -> int:
        """The elements from one matrix of the batch to the next, or from the B of a group to the next group's."""
        return self.rows(matrix)[0] * self.ld(matrix)

    def align(self, matrix: str) -> int:
        """The bytes that divide the address of a matrix, at most 16."""
        return {"a": self.align_a, "b": self.align_b, "c": self.align_c}[matrix]

    def vector_bytes(self, matrix: str) -> int:
        """The width of the widest access that is aligned at the start of every row of a matrix."""
        bits = BITS[self.output if matrix == "c" else self.dtype]
        offsets = self.align(matrix) | self.ld(matrix) * bits // 8 | MAX_VECTOR
        return offsets & -offsets

    def __str__(self) -> str:
        text = f"{self.m}x{self.n}x{self.k} {self.dtype}"
        if self.out_dtype and self.out_dtype != OUTPUTS.get(self.dtype, ("",))[0]:
            text += f" out {self.out_dtype}"
        if self.groups:
            few = len(self.groups) <= MOST_LISTED
            text += f" groups {','.join(map(str, self.groups))}" if few else f" in {len(self.groups)} groups"
        if self.batch != 1:
            text += f" batch {self.batch}"
        text += " trans-a" * (self.a_major == "m") + " trans-b" * (self.b_major == "k")
        for matrix in "abc":
            if self.ld(matrix) != self.rows(matrix)[1]:
                text += f" ld{matrix} {self.ld(matrix)}"
        align = [self.align(matrix) for matrix in "abc"]
        if align != [MAX_VECTOR] * 3:
            text += " align " + (str(align[0]) if len(set(align)) == 1 else ",".join(map(str, align)))
        return text
