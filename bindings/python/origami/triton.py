"""The launch configuration of a Triton GEMM from origami's model, instead of an autotuner's list.

    @origami.triton.pick(m="M", n="N", k="K", a="a_ptr")
    @triton.jit
    def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                      BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
                      GROUP_SIZE_M: tl.constexpr):
        ...

    grid = lambda META: (triton.cdiv(M, META["BLOCK_SIZE_M"]) * triton.cdiv(N, META["BLOCK_SIZE_N"]),)
    matmul_kernel[grid](a, b, c, M, N, K, ...)

It is meant for kernels built like the one of Triton's matrix multiplication tutorial: a tile of C per program, one loop
over K with tl.load and tl.dot, programs ordered in groups of GROUP_SIZE_M rows of tiles. Kernels that stay on their SM
over many tiles, load by TMA or specialise their warps are other families, which the model does not know. Programs may
divide K, if a meta-parameter SPLIT_K says by how much. docs/triton.md says more.
"""

import operator
import threading
import warnings

import triton
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import KernelInterface

from origami import _arguments, _cuda
from origami.lib import Error, Model

# The meta-parameters of Triton's tutorial by the field of a Pick.
NAMES = {"block_m": "BLOCK_SIZE_M", "block_n": "BLOCK_SIZE_N", "block_k": "BLOCK_SIZE_K", "group_m": "GROUP_SIZE_M"}

# The meta-parameter of kernels whose programs share a tile and divide K. A kernel without it gets no split.
SPLIT = "SPLIT_K"

# The strides of Triton's tutorial: of A along M and K, of B along K and N.
STRIDES = ("stride_am", "stride_ak", "stride_bk", "stride_bn")

# The most configurations of a ranking that are tried until one compiles and fits the GPU.
ATTEMPTS = 16

# A size or stride (in elements) or an address (in bytes) must be divisible by this, so that Triton loads more than one
# element at a time. It checks numbers for no other divisor (plugins/nvidia/kernel/triton/copies.go).
ALIGNMENT = 16

# The limits of a thread's 255 registers without spills, if an operand is loaded element by element: this many elements
# of a K step, each with a pointer of two registers, and this many fp32 sums. docs/triton.md has their derivation.
UNALIGNED_ELEMENTS = 48
UNALIGNED_SUMS = 64

# The number of configurations that shortlist="auto" times for unaligned operands, where the model has no uncertainty.
UNALIGNED_SHORTLIST = 8

# The names of 32-bit floats in torch and triton. tl.dot multiplies them as tf32 by default.
_FP32 = ("float32", "fp32")


def config(m, n, k, dtype="fp16", *, names=NAMES, model=None, **layout):
    """The triton.Config for a problem. dtype is torch's, triton's or origami's; layout is trans_a, trans_b and batch as
    in Model.select; names says what the kernel calls its meta-parameters; model is the current GPU's if not given."""
    return configs(m, n, k, dtype, names=names, model=model, top=1, **layout)[0]


def configs(m, n, k, dtype="fp16", *, names=NAMES, model=None, top=4, **layout):
    """The best `top` configurations as a list of triton.Config, best first: a short list for triton.autotune. A and B
    are assumed to be dense."""
    model = model or model_of_gpu()
    problem = dict(m=m, n=n, k=k, dtype=_dtype(dtype), **layout)
    top = _arguments.whole("top", top, 0, 0, _ALL)
    ranking = _ranking(model, problem, top, _unaligned(model, problem), splits="split_k" in names)
    return [triton.Config(_meta(p, names), num_warps=p.num_warps, num_stages=p.num_stages) for p in ranking]


def pick(
    m="M",
    n="N",
    k="K",
    *,
    a="a_ptr",
    b="b_ptr",
    batch=None,
    dtype=None,
    trans_a=None,
    trans_b=None,
    strides=STRIDES,
    names=NAMES,
    shortlist=1,
    model=None,
):
    """Decorates a kernel, instead of triton.autotune: each launch gets the meta-parameters, num_warps and num_stages
    that the model picks for its sizes. If a launch gives some of them itself, the pick is the best that agrees.

    m, n, k, batch   names of the kernel's arguments with the sizes; batch=None is one product
    a, b             names of the arguments with A and B
    dtype            element type; that of argument a if not given
    trans_a, trans_b whether A is contiguous along M, and B along K. If not given, they follow from the arguments named
                     in strides. If the kernel has no such arguments, they follow from the strides of the tensors a and
                     b, which must be M x K and K x N
    names            the kernel's names of the meta-parameters, by the field of lib.Pick. A meta-parameter SPLIT_K, or
                     that of the field split_k, is how many programs share a tile and divide K
    shortlist        how many configurations to time at the first launch of a problem, like triton.autotune with its
                     whole list. "auto" takes as many as are worth it by the model's uncertainty, and 8 for unaligned
                     operands, for which there is no uncertainty. The kernel then runs many times
    model            a lib.Model instead of the current GPU's
    """

    def decorate(fn):
        return Picked(fn, (m, n, k, batch), a, b, dtype, (trans_a, trans_b), strides, names, shortlist, model)

    return decorate


class Picked(KernelInterface):
    """A kernel that is launched with the model's pick; made by pick(). best_config is the triton.Config of the last
    launch."""

    def __init__(self, fn, sizes, a, b, dtype, trans, strides, names, shortlist, model):
        self.fn = fn
        self.arg_names = fn.arg_names
        self.dtype, self.trans = dtype, trans
        self.shortlist = _arguments.shortlist(shortlist)
        self.model = model
        given = _arguments.names(names).items()
        optional = ("group_m", "split_k")
        missing = [name for field, name in given if field not in optional and name not in self.arg_names]
        if missing:
            raise Error(f"{_name(fn)} has no meta-parameter {', '.join(missing)}; "
                        "say what it calls them with names={'block_m': …}")
        self.names = {field: name for field, name in given if name in self.arg_names}
        if SPLIT in self.arg_names:
            self.names.setdefault("split_k", SPLIT)
        self.meta_names = frozenset((*self.names.values(), "num_warps", "num_stages"))
        self.batched = sizes[3] is not None
        reads = [s for s in sizes if s is not None]
        # The layout is read from the strides that the kernel gets, otherwise from the tensors.
        self.by_strides = None in trans and all(name in self.arg_names for name in strides)
        self.by_tensors = None in trans and not self.by_strides
        if self.by_strides:
            reads += strides
        self.numbers = len(reads)
        self.operands = (a, b)
        # A tensor has the element type and the address. The tensors that are not needed may be missing.
        needed = (a, b) if self.by_tensors else (a,) if dtype is None else ()
        self.tensors = [name for name in (a, b) if name in needed or name in self.arg_names]
        self.read = _reader(fn, reads + self.tensors)
        self.picked = {}
        self.last = None
        self.warned = False

    def run(self, *args, grid, warmup, **kwargs):
        values = self.read(args, kwargs)
        tensors = values[self.numbers:]
        try:
            moved = tuple([t.data_ptr() % ALIGNMENT != 0 for t in tensors])
        except AttributeError:  # the operands of a warmup may have no address
            moved = ()
        key = (
            values[: self.numbers],
            _device(self.model),
            getattr(tensors[0], "dtype", tensors[0]) if self.dtype is None else None,
            moved,
        )
        if self.by_tensors:
            key += tuple(_contiguous(t) for t in tensors)
        if not self.meta_names.isdisjoint(kwargs):
            key += tuple((name, kwargs[name]) for name in sorted(self.meta_names.intersection(kwargs)))
        meta = self.picked.get(key)
        if meta is None:
            return self._first(key, tensors, args, dict(kwargs, grid=grid, warmup=warmup))
        self.last = meta
        return self.fn.run(*args, grid=grid, warmup=warmup, **meta, **kwargs)

    @property
    def best_config(self):
        if self.last is None:
            return None
        meta = dict(self.last)
        return triton.Config(meta, num_warps=meta.pop("num_warps", 4), num_stages=meta.pop("num_stages", 3))

    def ranking(self, problem, given=(), unaligned=()):
        """The Picks for a problem (a dict of Model.rank's arguments) that agree with the meta-parameters given, best
        first, for operands ("a", "b") that are unaligned."""
        given = dict(given)
        fields = {
            name: field for field, name in {**self.names, "num_warps": "num_warps", "num_stages": "num_stages"}.items()
        }
        # The launch order is chosen after the ranking and suits every configuration.
        fixed = {fields[name]: value for name, value in given.items() if fields[name] != "group_m"}
        return _ranking(self.model or model_of_gpu(), problem, ATTEMPTS, unaligned, fixed, "split_k" in self.names)

    def _first(self, key, tensors, args, kwargs):
        """The first launch of a problem."""
        given = {name: kwargs[name] for name in self.meta_names.intersection(kwargs)}
        problem, unaligned = self._problem(key, tensors)
        wanted = 1 if kwargs["warmup"] else self._worth(problem, unaligned)
        if unaligned and wanted == 1 and not kwargs["warmup"] and not self.warned:
            self.warned = True
            operands = " and ".join(map(str.upper, unaligned))
            warnings.warn(
                f"{_name(self.fn)}: Triton loads {operands} element by element, because a size, stride or address is "
                f"not a multiple of {ALIGNMENT}; the model was not measured on that; pad the matrices, or let "
                'shortlist="auto" time some configurations',
                stacklevel=4,  # the launch
            )
        timed, refusal = [], None
        for p in self.ranking(problem, given, unaligned):
            meta = {**_meta(p, self.names), "num_warps": p.num_warps, "num_stages": p.num_stages}
            meta = {name: value for name, value in meta.items() if name not in given}
            try:
                result = self.fn.run(*args, **meta, **kwargs)
                if wanted > 1:
                    bench = driver.active.get_benchmarker()
                    timed.append(
                        (bench(lambda: self.fn.run(*args, **meta, **kwargs), quantiles=(0.5,)), len(timed), meta)
                    )
            except (OutOfResources, PTXASError) as e:
                refusal = e  # the model expected it to fit, but this kernel needs more than its family
                continue
            if len(timed) >= wanted or wanted == 1:
                break
        else:
            if not timed:
                raise refusal
        if timed:
            meta = min(timed)[2]
            result = self.fn.run(*args, **meta, **kwargs)
        self.last = meta
        if not kwargs["warmup"]:  # a warmup does not show whether the kernel fits the GPU
            if len(self.picked) >= _MEMORY:
                self.picked.clear()
            self.picked[key] = meta
        return result

    def _worth(self, problem, unaligned):
        """How many candidates to time."""
        if self.shortlist != "auto":
            return self.shortlist
        if unaligned:
            return UNALIGNED_SHORTLIST
        regret = (self.model or model_of_gpu()).expected_regret(**problem)
        return min(regret.worth_measuring, ATTEMPTS) if regret else 1

    def _problem(self, key, tensors):
        """The problem of a launch, as Model.rank's arguments, and which of its operands are unaligned."""
        values, dtype = list(key[0]), self.dtype
        problem = dict(zip("mnk", values))
        rest = values[3:]
        if self.batched:
            problem["batch"] = rest.pop(0)
        trans_a, trans_b = self.trans
        if self.by_strides:
            along = [rest[1] != 1 and rest[0] == 1, rest[3] != 1 and rest[2] == 1]
        elif self.by_tensors:
            along = [_contiguous(t) == 0 for t in tensors]
        else:
            along = [None, None]
        problem["trans_a"] = along[0] if trans_a is None else trans_a
        problem["trans_b"] = along[1] if trans_b is None else trans_b
        problem["dtype"] = _dtype(key[2] if dtype is None else dtype)
        moved = dict(zip(self.tensors, key[3]))
        rows = (rest[problem["trans_a"]], rest[3 if problem["trans_b"] else 2]) if self.by_strides else (0, 0)
        return problem, _unaligned(
            self.model or model_of_gpu(), problem, rows, [moved.get(name) for name in self.operands]
        )


_models = {}
_opening = threading.Lock()


def model_of_gpu(ordinal=None):
    """The lib.Model of the current GPU, or of that with the driver's number ordinal. A product without a device file is
    opened with the attributes of its driver, like --device auto on the command line: its rung is "spec"."""
    if ordinal is None:
        ordinal = driver.active.get_current_device()
    model = _models.get(ordinal)
    if model is None:
        with _opening:
            if ordinal not in _models:
                _models[ordinal] = Model(**_gpu(ordinal))
            model = _models[ordinal]
    return model


def _gpu(ordinal):
    """The arguments of Model for a GPU."""
    target = driver.active.get_current_target()
    if target.backend != "cuda":
        return {"arch": str(target.arch).split(":")[0]}  # gfx942:sramecc+:xnack- is gfx942's default device
    cuda = _Driver()
    attributes = cuda.attributes(ordinal)
    arch = f"sm{attributes.pop('compute_capability_major')}{attributes.pop('compute_capability_minor')}"
    return {"arch": arch, "live": {"name": cuda.name(ordinal), "attributes": attributes}}


class _Driver(_cuda.Driver):
    def failure(self, function, status):
        return Error(
            f"the CUDA driver's {function} failed with {status}; name the device, as in model=Model('sm90', 'h200')",
            "device",
        )


def _ranking(model, problem, top, unaligned=(), fixed=None, splits=False):
    """The best `top` Picks for a problem that have the fixed fields, for kernels that load the unaligned operands
    element by element, and that split K or do not."""
    if not unaligned and not fixed:
        ranking = model.rank(**problem, top=top)
        if splits or all(p.split_k == 1 for p in ranking):
            return ranking
    ranking = model.rank(**problem, top=_ALL)
    if not splits:
        ranking = [p for p in ranking if p.split_k == 1]
    if fixed:
        # If no candidate agrees, the kernel's author still wants these values.
        ranking = [p for p in ranking if all(getattr(p, field) == value for field, value in fixed.items())] or ranking
    if unaligned:
        ranking = _without_spills(ranking, unaligned) or ranking
    return ranking[:top]


def _without_spills(ranking, unaligned):
    """The picks whose threads have enough registers to load element by element. These loads are not pipelined, so one
    number of stages is kept for each block and number of warps: most of the others are the same kernel."""
    kept = {}
    for p in ranking:
        threads = 32 * p.num_warps
        rows = ("a" in unaligned) * p.block_m + ("b" in unaligned) * p.block_n
        if rows * p.block_k <= UNALIGNED_ELEMENTS * threads and p.block_m * p.block_n <= UNALIGNED_SUMS * threads:
            kept.setdefault((p.block_m, p.block_n, p.block_k, p.num_warps, p.split_k), p)
    return list(kept.values())


def _unaligned(model, problem, rows=(0, 0), moved=(False, False)):
    """The operands "a", "b" that Triton loads element by element, too little for an asynchronous copy. That happens if
    the contiguous size (by which kernels mask, or wrap around), the stride of the rows or the address is not divisible.
    rows are the strides of A and B, 0 if dense. moved says whose address is not divisible. For AMD's GPUs the result is
    empty, because nothing is known."""
    if not model.description["arch"].startswith("sm"):
        return ()
    contiguous = (
        problem["m"] if problem.get("trans_a") else problem["k"],
        problem["k"] if problem.get("trans_b") else problem["n"],
    )
    return tuple(
        name
        for name, size, stride, off in zip("ab", contiguous, rows, moved)
        if size % ALIGNMENT or stride % ALIGNMENT or off
    )


# More configurations than any space has, and the most picks that a kernel keeps.
_ALL = 1 << 12
_MEMORY = 1 << 16


def _device(model):
    return None if model is not None else driver.active.get_current_device()


def _reader(fn, names):
    """A function that returns the arguments of these names from a launch's args and kwargs, as a tuple."""
    for name in names:
        if name not in fn.arg_names:
            raise Error(f"{_name(fn)} has no argument {name!r}; its arguments are {', '.join(fn.arg_names)}")
    positions = [fn.arg_names.index(name) for name in names]
    last = max(positions)
    get = operator.itemgetter(*positions)  # more than one, so that it is a tuple

    def read(args, kwargs):
        if last < len(args):
            return get(args)
        try:
            return tuple(args[i] if i < len(args) else kwargs[name] for i, name in zip(positions, names))
        except KeyError as e:
            raise Error(f"the launch of {_name(fn)} lacks {e}, which the pick depends on") from None

    return read


def _contiguous(tensor):
    """The dimension, 0 or 1, along which a matrix (or each of a batch) is contiguous. It is 1 if that is unknown."""
    strides = tensor.stride()[-2:] if hasattr(tensor, "stride") else ()
    return 0 if len(strides) == 2 and strides[0] == 1 and strides[1] != 1 else 1


def _meta(p, names):
    return {name: getattr(p, field) for field, name in names.items()}


def _dtype(dtype):
    name = str(dtype).rpartition(".")[2]
    return "tf32" if name in _FP32 else name


def _name(fn):
    while not hasattr(fn, "__name__") and hasattr(fn, "fn"):
        fn = fn.fn
    return getattr(fn, "__name__", "the kernel")
