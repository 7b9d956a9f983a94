"""The GPU as triton_measure.py needs it: the executor's, with a check that is quick and exact."""

import torch
from origami.plugin import InputError
from origami_triton import executor, gpu
from origami_triton.driver import Driver

REFERENCE = "exact sums of -1, 0 and 1"


class OnGpu:
    def __init__(self):
        self.on = executor._Gpu(Driver(), 0)
        self.arch, self.name = f"sm{self.on.capability}", self.on.name
        self.software = f"{executor.RUNTIME}, driver {self.on.state.environment('').driver}"
        self.problem = self.operands = self.exact = self.want = None
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False

    def build(self, p, c):
        """Compiles in another process. Returns why not, if so."""
        return self.on.compilers.build(p, c)

    def prepare(self, p):
        """Makes the operands of a problem."""
        executor.check_problem(p)
        self.operands = self.exact = self.want = None
        torch.cuda.empty_cache()
        with self.on.guarded("operands", p):
            self.operands, self.exact = gpu.Operands(p, self.on.device), gpu.Operands(p, self.on.device)
            for matrix in (self.exact.a, self.exact.b):
                matrix.copy_(torch.randint(-1, 2, matrix.shape, dtype=torch.float32, device=self.on.device))
            torch.backends.cuda.matmul.allow_tf32 = True  # exact for these
            products = [self.exact.a[rows].float() @ b.float() for rows, b in self.exact.products()]
            self.want = torch.cat(products).to(self.exact.c.dtype)
        self.problem = p

    def check(self, p, c):
        """Checks a kernel. Returns a function that runs it on the operands to be timed, and what a line has of its
        resources and of the check."""
        executor.check_config(c, p)
        built = self.on.built(p, c)
        add = self.on.built_sum(p, c).compiled if c.split_k > 1 else None
        exact = self.exact
        with self.on.guarded(f"checking {c}", p):
            exact.matrix_c.memory.fill_(gpu.POISON)
            executor.launcher(p, c, exact, built.compiled, add)()
            found = torch.stack([(exact.c != self.want).sum(), exact.matrix_c.outside()]).tolist()
        r = built.resources
        resources = {"registers": r.registers, "spill_bytes": r.spill_bytes, "shared_bytes": r.shared_memory_bytes,
                     "ctas_per_sm": r.ctas_per_sm}
        numerics = {"max_error": None if found[0] else 0, "tolerance": 0, "checked_elements": p.m * p.n,
                    "wrong_elements": found[0], "out_of_bounds_bytes": found[1], "reference": REFERENCE}
        return executor.launcher(p, c, self.operands, built.compiled, add), resources, numerics

    def library(self, p, name):
        """A function that runs the executor's library, or PyTorch's kernel for groups."""
        with self.on.guarded(name, p):
            multiplication = executor.multiplication if name == executor.LIBRARY else of_groups
            run = multiplication(p, self.operands)
            for _ in range(3):
                run()
            torch.cuda.synchronize()
        return run

    def timed(self, run):
        with self.on.guarded("measuring", self.problem):
            sample = self.on.timed(run, warm=False)
        if not sample.seconds > 0:
            raise InputError("the events measured no time", where="triton")
        return sample.seconds, sample.clock_hz

    def close(self):
        self.on.compilers.close()


def of_groups(p, o):
    """A function that multiplies groups by torch._grouped_mm."""
    if not hasattr(torch, "_grouped_mm"):
        raise InputError(f"PyTorch {torch.__version__} has no torch._grouped_mm", where="triton")
    ends = torch.tensor(p.groups, device=o.device).cumsum(0).to(torch.int32)
    return lambda: torch._grouped_mm(o.a, o.b, offs=ends)
