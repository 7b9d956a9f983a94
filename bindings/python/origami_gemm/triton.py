"""The launch configuration of a Triton GEMM from origami's model, instead of an autotuner's list.

    @origami_gemm.triton.pick(m="M", n="N", k="K", a="a_ptr")
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

import triton
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import KernelInterface

from origami_gemm import _arguments, _cuda
from origami_gemm.lib import Error, Model

# The meta-parameters of Triton's tutorial by the field of a Pick.
NAMES = {"block_m": "BLOCK_SIZE_M", "block_n": "BLOCK_SIZE_N", "block_k": "BLOCK_SIZE_K", "group_m": "GROUP_SIZE_M"}

# The meta-parameter of kernels whose programs share a tile and divide K. A kernel without it gets no split.
SPLIT = "SPLIT_K"

# The strides of Triton's tutorial: of A along M and K, of B along K and N, of C along M and N.
STRIDES = ("stride_am", "stride_ak", "stride_bk", "stride_bn", "stride_cm", "stride_cn")

# The most configurations of a ranking that are tried until one compiles and fits the GPU.
ATTEMPTS = 16

# Larger alignments of an address, in bytes, change no kernel.
_WIDEST = 16

# The names of 32-bit floats in torch and triton. tl.dot multiplies them as tf32 by default.
_FP32 = ("float32", "fp32")


def config(m, n, k, dtype="fp16", *, names=NAMES, model=None, **layout):
    """The triton.Config for a problem. dtype is torch's, triton's or origami's; layout is trans_a, lda, align and what
    else Model.select takes; names says what the kernel calls its meta-parameters; model is the current GPU's if not
    given."""
    return configs(m, n, k, dtype, names=names, model=model, top=1, **layout)[0]


def configs(m, n, k, dtype="fp16", *, names=NAMES, model=None, top=4, **layout):
    """The best `top` configurations as a list of triton.Config, best first: a short list for triton.autotune."""
    model = model or model_of_gpu()
    problem = dict(m=m, n=n, k=k, dtype=_dtype(dtype), **layout)
    top = _arguments.whole("top", top, 0, 0, _ALL)
    picks = ranking(model, problem, top, splits="split_k" in names)
    return [triton.Config(_meta(p, names), num_warps=p.num_warps, num_stages=p.num_stages) for p in picks]


def pick(
    m="M",
    n="N",
    k="K",
    *,
    a="a_ptr",
    b="b_ptr",
    c="c_ptr",
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
    a, b, c          names of the arguments with A, B and C, whose addresses count, as does the type of C. c=None is
                     a dense C of the type that goes with dtype
    dtype            element type; that of argument a if not given, where 32-bit floats are tf32
    strides          names of the arguments with the strides of A along M and K, of B along K and N, and of C along M
                     and N. Without those of C, it is dense. If the kernel has no such arguments, the strides are those
                     of the tensors a and b, which must be M x K and K x N
    trans_a, trans_b whether A is contiguous along M, and B along K. If not given, they follow from the strides
    names            the kernel's names of the meta-parameters, by the field of lib.Pick. A meta-parameter SPLIT_K, or
                     that of the field split_k, is how many programs share a tile and divide K
    shortlist        how many configurations to time at the first launch of a problem, like triton.autotune with its
                     whole list. "auto" takes as many as are worth it by the model's uncertainty. The kernel then runs
                     many times
    model            a lib.Model instead of the current GPU's
    """

    def decorate(fn):
        return Picked(fn, (m, n, k, batch), (a, b, c), dtype, (trans_a, trans_b), strides, names, shortlist, model)

    return decorate


class Picked(KernelInterface):
    """A kernel that is launched with the model's pick; made by pick(). best_config is the triton.Config of the last
    launch."""

    def __init__(self, fn, sizes, operands, dtype, trans, strides, names, shortlist, model):
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
        # The strides are read from the arguments of the kernel, otherwise from the tensors.
        a, b, c = operands
        self.strides = _strides(strides[:4] if c is None else strides, self.arg_names)
        reads += self.strides
        self.numbers = len(reads)
        # A tensor has the element type, the address and the strides. The tensors that are not needed may be missing.
        needed = (a, b) if None in trans and not self.strides else (a,) if dtype is None else ()
        self.tensors = {
            operand: name
            for operand, name in zip("abc", operands)
            if name in needed or name in self.arg_names
        }
        self.read = _reader(fn, reads + list(self.tensors.values()))
        self.picked = {}
        self.last = None

    def run(self, *args, grid, warmup, **kwargs):
        values = self.read(args, kwargs)
        tensors = values[self.numbers :]
        try:
            key = (
                values[: self.numbers],
                _device(self.model),
                tuple([(t.dtype, t.data_ptr() % _WIDEST) for t in tensors]),
            )
        except AttributeError:  # the operands of a warmup may be types, and C may be missing
            key = values[: self.numbers], _device(self.model), tuple([_type_and_address(t) for t in tensors])
        if not self.strides:
            key += tuple([_tensor_strides(t) for t in tensors])
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

    def ranking(self, problem, given=()):
        """The Picks for a problem (a dict of Model.rank's arguments) that agree with the meta-parameters given, best
        first."""
        given = dict(given)
        fields = {
            name: field for field, name in {**self.names, "num_warps": "num_warps", "num_stages": "num_stages"}.items()
        }
        # The launch order is chosen after the ranking and suits every configuration.
        fixed = {fields[name]: value for name, value in given.items() if fields[name] != "group_m"}
        return ranking(self.model or model_of_gpu(), problem, ATTEMPTS, fixed, "split_k" in self.names)

    def _first(self, key, tensors, args, kwargs):
        """The first launch of a problem."""
        given = {name: kwargs[name] for name in self.meta_names.intersection(kwargs)}
        problem = self._problem(key, tensors)
        try:
            wanted = 1 if kwargs["warmup"] else self._worth(problem)
            ranking = self.ranking(problem, given)
        except Error as e:
            # A kernel may convert what it stores to any type.
            fix = "; c=None leaves C out of the pick" if " results;" in str(e) else ""
            raise Error(f"{_name(self.fn)}: {e}{fix}", e.kind) from None
        timed, refusal = [], None
        for p in ranking:
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

    def _worth(self, problem):
        """How many candidates to time."""
        if self.shortlist != "auto":
            return self.shortlist
        regret = (self.model or model_of_gpu()).expected_regret(**problem)
        return min(regret.worth_measuring, ATTEMPTS) if regret else 1

    def _problem(self, key, tensors):
        """The problem of a launch, as Model.rank's arguments."""
        values = list(key[0])
        problem = dict(zip("mnk", values))
        m, n, k = values[:3]
        values = values[3:]
        if self.batched:
            problem["batch"] = values.pop(0)
        if self.strides:
            strides = dict(zip("abc", zip(values[::2], values[1::2])))
        else:  # the kernel takes C as dense
            strides = {o: _tensor_strides(t) for o, t in zip(self.tensors, tensors) if o != "c"}
        trans_a, trans_b = self.trans
        problem["trans_a"], problem["lda"] = self._rows("a", (m, k), strides, trans_a)
        problem["trans_b"], problem["ldb"] = self._rows("b", (k, n), strides, trans_b)
        _, problem["ldc"] = self._rows("c", (m, n), strides)
        launched = dict(zip(self.tensors, key[2]))
        problem["dtype"] = _dtype(launched["a"][0] if self.dtype is None else self.dtype)
        out, _ = launched.get("c", (None, 0))
        if out is not None:
            problem["out_dtype"] = _short(out)
        addresses = [launched[o][1] | _WIDEST if o in launched else _WIDEST for o in "abc"]
        problem["align"] = tuple(address & -address for address in addresses)
        return problem

    def _rows(self, operand, sizes, strides, trans=None):
        """Whether a matrix of these sizes is contiguous along its first dimension, and its leading dimension: 0 if it
        is dense or unknown. trans is what the decoration says."""
        first, second = strides.get(operand, (0, 0))
        turned = second != 1 and first == 1 and operand != "c" if trans is None else bool(trans)
        if not first and not second:
            return turned, 0
        (rows, row), (ld, step) = (sizes[::-1], (second, first)) if turned else (sizes, (first, second))
        gaps = step != 1 and row > 1
        if trans is not None and gaps:
            return turned, 0  # the decoration knows better
        if gaps or ld == 0 and rows > 1:
            fix = " or leave it out with c=None" if operand == "c" else ""
            raise Error(
                f"{_name(self.fn)}: {operand.upper()} has the strides {first} and {second}, but models know only rows "
                f"(of A and B also columns) without gaps and overlaps; pass a contiguous copy{fix}"
            )
        return turned, 0 if rows == 1 and ld < row else ld


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
        # gfx942:sramecc+:xnack- is gfx942's default device. Its default model is of AMD's libraries' kernels.
        return {"arch": str(target.arch).split(":")[0], "kernel": "triton"}
    return _Driver().gpu(ordinal)


class _Driver(_cuda.Driver):
    def failure(self, function, status):
        return Error(
            f"the CUDA driver's {function} failed with {status}; name the device, as in model=Model('sm90', 'h200')",
            "device",
        )


def ranking(model, problem, top, fixed=None, splits=False):
    """The best `top` Picks for a problem that have the fixed fields, for kernels that split K or do not."""
    room = _ALL if fixed else top
    while True:
        ranking = model.rank(**problem, top=room)
        last = len(ranking) < room or room >= _ALL
        if not splits:
            ranking = [p for p in ranking if p.split_k == 1]
        if last or len(ranking) >= top:
            break
        room *= 8
    if fixed:
        # If no candidate agrees, the kernel's author still wants these values.
        ranking = [p for p in ranking if all(getattr(p, field) == value for field, value in fixed.items())] or ranking
    return ranking[:top]


# More configurations than any space has, and the most picks that a kernel keeps.
_ALL = 1 << 16
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


def _strides(names, arg_names):
    """Those of the names of strides that a kernel has: of A, B and C, of A and B, or none."""
    for some in (list(names), list(names[:4])):
        if all(name in arg_names for name in some):
            return some
    return []


def _type_and_address(tensor):
    """The element type and the address modulo the widest alignment, for what may be a type, or nothing."""
    dtype = getattr(tensor, "dtype", tensor)
    try:
        return dtype, tensor.data_ptr() % _WIDEST
    except AttributeError:
        return dtype, 0


def _tensor_strides(tensor):
    """The strides of a matrix (or of each of a batch), (0, 0) if they are unknown."""
    strides = tuple(tensor.stride()[-2:]) if hasattr(tensor, "stride") else ()
    return strides if len(strides) == 2 else (0, 0)


def _meta(p, names):
    return {name: getattr(p, field) for field, name in names.items()}


def _dtype(dtype):
    """The name of an operand's type. "fp32" is of kernels with input_precision="ieee"."""
    name = _short(dtype)
    return "tf32" if name in _FP32 and dtype != "fp32" else name


def _short(dtype):
    return str(dtype).rpartition(".")[2]


def _name(fn):
    while not hasattr(fn, "__name__") and hasattr(fn, "fn"):
        fn = fn.fn
    return getattr(fn, "__name__", "the kernel")
