"""Pinned launches: a decorator in place of @triton.autotune, and the same for all autotuned kernels of a process."""

from __future__ import annotations

import contextlib

from origami_gemm.pin._choose import choose, order, plain, unwrapped
from origami_gemm.pin._compile import Tensor, without_memory


@contextlib.contextmanager
def _of_tuner(tuner, args):
    """The autotuner's own field for the pruning that a package may do."""
    tuner.nargs = dict(zip(tuner.arg_names, args))
    try:
        yield
    finally:
        tuner.nargs = None

MOST = 10000  # launches that a kernel's pins are kept for


def typical(n):
    """The size that stands for all sizes of its kind: a power of two for itself, and the middle of an octave for its
    multiples of 16 and, one more, for its other sizes. Sizes below 16 are few and stand for themselves."""
    if type(n) is not int or n < 16 or n & n - 1 == 0:
        return n
    middle = 3 << n.bit_length() - 2
    return middle if n % 16 == 0 else middle + 1


def standing(tuner, args, kwargs):
    """The launch that stands for a launch: what is not in the tuner's key and no constant of the compiler has its typical
    size. A pin depends on it alone, not on which launch came first."""
    fixed = set(tuner.keys).union(p.name for p in unwrapped(tuner.fn)[0].params if p.is_constexpr)

    def of(name, value):
        if name in fixed:
            return without_memory(value)
        if hasattr(value, "data_ptr"):
            t = Tensor.of(value)
            return Tensor(t.dtype, map(typical, t.shape), map(typical, t.strides), t.align)
        return typical(without_memory(value))

    return tuple(map(of, tuner.arg_names, args)), {k: of(k, v) for k, v in kwargs.items() if k not in ("grid", "warmup")}


PLAIN = int, float, str, type(None)


def same_launch(value):
    """What two arguments of one launch have in common."""
    if isinstance(value, PLAIN):
        return value
    if hasattr(value, "data_ptr"):
        return value.dtype, value.shape, value.stride(), value.data_ptr() % 16
    return repr(value)


def pinned(tuner, args, kwargs, arch, trips):
    """The configuration for a launch of an autotuner, one of its own list, the Choice for the launch that stands for it
    (None if the list has one), and what launches with that choice have in common."""
    if len(tuner.configs) == 1:
        return tuner.configs[0], None, None
    grid = kwargs.get("grid") or (1,)
    at = (*map(same_launch, args), *((k, same_launch(v)) for k, v in kwargs.items() if k not in ("grid", "warmup")),
          None if callable(grid) else grid)
    found = tuner.__dict__.setdefault("pins", {})
    if at not in found:
        if len(found) > MOST:
            found.clear()
        with _of_tuner(tuner, args):
            own = tuner.prune_configs(dict(kwargs))
        listed = {order(plain(c)): c for c in reversed(list(own))}
        args_of, kwargs_of = standing(tuner, args, kwargs)
        choice = choose(tuner.fn, args_of, lambda meta: programs(grid, meta), arch, kwargs=kwargs_of,
                        configs=list(listed.values()), trips=trips)
        found[at] = listed[order(choice.config)], choice
    return *found[at], at


def programs(grid, meta):
    size = grid(meta) if callable(grid) else grid
    return tuple(typical(int(n)) for n in ((size,) if isinstance(size, int) else size))


def launch(tuner, args, kwargs, config):
    tuner.best_config = config
    if config.pre_hook is not None:
        config.pre_hook({**dict(zip(tuner.arg_names, args)), **kwargs, **config.all_kwargs()})
    return tuner.fn.run(*args, **kwargs, **config.all_kwargs())


def pin(configs, key=(), prune_configs_by=None, reset_to_zero=None, restore_value=None, pre_hook=None, post_hook=None,
        warmup=None, rep=None, use_cuda_graph=False, do_bench=None, cache_results=False, *, arch=None, trips=None):
    """In place of @triton.autotune, with the same arguments. Nothing is timed, so that outputs are neither cleared nor
    restored, and the only hook called is the taken configuration's."""
    from triton.runtime.autotuner import Autotuner

    class Pinned(Autotuner):
        """Launches with the pinned configuration."""

        def run(self, *args, **kwargs):
            return launch(self, args, kwargs, pinned(self, args, kwargs, arch, trips)[0])

    def decorate(fn):
        return Pinned(fn, fn.arg_names, configs, list(key), reset_to_zero, restore_value, pre_hook=pre_hook,
                      post_hook=post_hook, prune_configs_by=prune_configs_by)

    return decorate


class Launches(list):
    """What was pinned in a block, each kind of launch once: (kernel, arguments by name without memory, grid, Choice)."""


@contextlib.contextmanager
def replaced(run):
    """Has all autotuned kernels run so, in a block."""
    from triton.runtime.autotuner import Autotuner

    classes, all_of = [], [Autotuner]

    def replace(one):
        if "run" in one.__dict__:
            classes.append((one, one.run))
            one.run = run

    while all_of:
        one = all_of.pop()
        all_of += one.__subclasses__()
        replace(one)
    Autotuner.__init_subclass__ = classmethod(lambda one, **_: replace(one))  # of modules that the block imports
    try:
        yield
    finally:
        del Autotuner.__init_subclass__
        for one, own in classes:
            one.run = own


@contextlib.contextmanager
def everywhere(arch=None, trips=None, launched=True):
    """Pins all autotuned kernels that are launched in a block, also of other packages. With launched false nothing
    is launched, so that the block needs no GPU, and outputs are not written. It gives a Launches."""
    out, seen = Launches(), set()

    def run(self, *args, **kwargs):
        config, choice, at = pinned(self, args, kwargs, arch, trips)
        if choice is not None and (self, at) not in seen:
            seen.add((self, at))
            named = {**dict(zip(self.arg_names, args)), **kwargs}
            out.append((self, {k: without_memory(v) for k, v in named.items()}, kwargs.get("grid"), choice))
        return launch(self, args, kwargs, config) if launched else None

    with replaced(run):
        yield out
