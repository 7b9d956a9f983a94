"""The GPU as triton_measure.py needs it: the executor's, with a check that is quick and exact."""

import dataclasses

import torch
from origami_gemm_plugin import InputError
from origami_triton import executor, gpu, kernel
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


# Cycles of pause before a batch: what the host is ahead.
AHEAD = 2_000_000


class Batches(OnGpu):
    """The GPU as triton_grid.py needs it: many runs are put on the stream before the first one ends."""

    def __init__(self):
        super().__init__()
        self.events, self.late = [], 0  # of runs, and how many of these were late

    def state(self):
        """Clock, power, temperature and the like."""
        return dataclasses.asdict(self.on.state.environment(executor.RUNTIME))

    def code(self, p, c):
        """The kernels of a configuration, None if there are none."""
        try:
            return self.on.built(p, c), self.on.built_sum(p, c) if c.split_k > 1 else None
        except InputError:
            return None

    def check_all(self, p, codes):
        """Checks all kernels, and runs each once. Returns what is wrong with those that are, and the times of all."""
        with self.on.guarded("checking", p):
            found = torch.zeros((len(codes), 2), dtype=torch.int64, device=self.on.device)
            exact, split = self.exact, max(c.split_k for c in codes)
            for operands in (exact, self.operands):  # at once, since to allocate takes long
                operands.parts(split, gpu.DTYPES[kernel.sums(p)])
            torch.cuda._sleep(AHEAD)
            runs = []
            for i, (c, code) in enumerate(codes.items()):
                exact.matrix_c.memory.fill_(gpu.POISON)
                launcher(p, c, exact, code)()
                found[i, 0] = (exact.c != self.want).sum()
                found[i, 1] = exact.matrix_c.outside()
                runs.append((c, *self.queued(launcher(p, c, self.operands, code), len(runs))))
            wrong = {c: both for c, both in zip(codes, found.tolist(), strict=True) if any(both)}
            return wrong, self.collected(p, codes, runs)

    def batch(self, p, codes, times):
        """Runs each kernel several times after a run that does not count. Returns the times of each."""
        with self.on.guarded("measuring", p):
            torch.cuda._sleep(AHEAD)
            runs = []
            for c, code in codes.items():
                run = launcher(p, c, self.operands, code)
                run()
                for _ in range(times):
                    runs.append((c, *self.queued(run, len(runs))))
            torch.cuda.synchronize()
            return self.collected(p, codes, runs)

    def queued(self, run, index):
        """Puts a run on the stream. Returns its events, and whether the device was there before all of it was."""
        while len(self.events) <= index:
            self.events.append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
        begin, end = self.events[index]
        self.on._flush.zero_()
        torch.cuda._sleep(gpu.PAUSE)  # as the executor does: shorter pauses change short times
        begin.record()
        run()
        end.record()
        return begin, end, begin.query()

    def collected(self, p, codes, runs):
        """The times of runs. One that the host was late for is repeated alone."""
        times = {c: [] for c in codes}
        for c, begin, end, late in runs:
            if late:
                self.late += 1
            else:
                times[c].append(begin.elapsed_time(end) / 1e3)
        for c, code in codes.items():
            if not times[c]:
                times[c].append(self.timed(launcher(p, c, self.operands, code))[0])
        return times


def launcher(p, c, operands, code):
    multiply, add = code
    return executor.launcher(p, c, operands, multiply.compiled, add and add.compiled)


def of_groups(p, o):
    """A function that multiplies groups by torch._grouped_mm."""
    if not hasattr(torch, "_grouped_mm"):
        raise InputError(f"PyTorch {torch.__version__} has no torch._grouped_mm", where="triton")
    ends = torch.tensor(p.groups, device=o.device).cumsum(0).to(torch.int32)
    return lambda: torch._grouped_mm(o.a, o.b, offs=ends)
