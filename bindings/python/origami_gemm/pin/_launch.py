"""Pinned launches: a decorator in place of @triton.autotune, and the same for all autotuned kernels of a process."""

from __future__ import annotations

import contextlib

from origami_gemm.pin._choose import choose, order, plain


@contextlib.contextmanager
def _of_tuner(tuner, args):
    """The autotuner's own field for the pruning that a package may do."""
    tuner.nargs = dict(zip(tuner.arg_names, args))
    try:
        yield
    finally:
        tuner.nargs = None


def pinned(tuner, args, kwargs, arch, trips):
    """The configuration for a launch of an autotuner, one of its own list, and the Choice (None if the list has one)."""
    named = {**dict(zip(tuner.arg_names, args)), **kwargs}
    at = tuple(_sized(named[k]) for k in tuner.keys if k in named)
    at += tuple(str(v.dtype) for v in named.values() if hasattr(v, "dtype"))
    found = tuner.__dict__.setdefault("pins", {})
    if at not in found:
        if len(tuner.configs) == 1:
            found[at] = tuner.configs[0], None
        else:
            with _of_tuner(tuner, args):
                own = tuner.prune_configs(dict(kwargs))
            listed = {order(plain(c)): c for c in reversed(list(own))}
            rest = {k: v for k, v in kwargs.items() if k not in ("grid", "warmup")}
            choice = choose(tuner.fn, args, kwargs.get("grid") or (1,), arch, kwargs=rest, configs=list(listed.values()),
                            trips=trips)
            found[at] = listed[order(choice.config)], choice
    return found[at]


def _sized(value):
    return tuple(value.shape) if hasattr(value, "data_ptr") else value


def launch(tuner, args, kwargs, arch, trips):
    config, _ = pinned(tuner, args, kwargs, arch, trips)
    tuner.best_config = config
    if config.pre_hook is not None:
        config.pre_hook({**dict(zip(tuner.arg_names, args)), **kwargs, **config.all_kwargs()})
    return tuner.fn.run(*args, **kwargs, **config.all_kwargs())


def pin(configs, key=(), prune_configs_by=None, reset_to_zero=None, restore_value=None, pre_hook=None, post_hook=None,
        warmup=None, rep=None, use_cuda_graph=False, do_bench=None, cache_results=False, *, arch=None, trips=None):
    """In place of @triton.autotune, with the same arguments. Nothing is timed, so that outputs are neither cleared nor
    restored, and of hooks only that of the configuration taken is called."""
    from triton.runtime.autotuner import Autotuner

    class Pinned(Autotuner):
        """Launches with the pinned configuration."""

        def run(self, *args, **kwargs):
            return launch(self, args, kwargs, arch, trips)

    def decorate(fn):
        return Pinned(fn, fn.arg_names, configs, list(key), reset_to_zero, restore_value, pre_hook=pre_hook,
                      post_hook=post_hook, prune_configs_by=prune_configs_by)

    return decorate


class Launches(list):
    """What was pinned in a block: (kernel, arguments by name, grid, Choice)."""


@contextlib.contextmanager
def replaced(run):
    """Has all autotuned kernels run so, in a block."""
    from triton.runtime.autotuner import Autotuner

    classes, all_of = [], [Autotuner]
    while all_of:
        one = all_of.pop()
        all_of += one.__subclasses__()
        if "run" in one.__dict__:
            classes.append((one, one.run))
            one.run = run
    try:
        yield
    finally:
        for one, own in classes:
            one.run = own


@contextlib.contextmanager
def everywhere(arch=None, trips=None, launched=True):
    """Pins all autotuned kernels that are launched in a block, those of other packages too. With launched false nothing
    is launched, so that the block needs no GPU, and outputs are not written. It gives a Launches."""
    out = Launches()

    def run(self, *args, **kwargs):
        _, choice = pinned(self, args, kwargs, arch, trips)
        if choice is not None:
            out.append((self, {**dict(zip(self.arg_names, args)), **kwargs}, kwargs.get("grid"), choice))
        return launch(self, args, kwargs, arch, trips) if launched else None

    with replaced(run):
        yield out
