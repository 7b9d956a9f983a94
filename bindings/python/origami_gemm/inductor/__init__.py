"""PyTorch Inductor with the model's picks in place of its list of Triton configurations.

    import origami_gemm.inductor as oi
    oi.enable(top=1)
    model = torch.compile(model)
    ...
    print(oi.report())

The pick is made through Inductor's own extension points, register_inductor_choices where it is there, and otherwise
torch._inductor.config.inductor_choices_class. What is not understood (another interface, a layout, a type, a device) is
left to Inductor, with one line in the log of `origami_gemm.inductor`. ORIGAMI_INDUCTOR=1 in the environment (or top=4,aten=0) enables it without a line of code.
docs/inductor.md says more.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import logging
import os
import sys

from origami_gemm.errors import Error
from origami_gemm.inductor import _settings, _state, _versions
from origami_gemm.inductor._report import Report, Row
from origami_gemm.inductor._table import write as pin
from origami_gemm.lib import Model

__all__ = ["Enabled", "Report", "Row", "clear", "disable", "enable", "pin", "report"]

log = logging.getLogger("origami_gemm.inductor")

ARGUMENTS = ("template_choices", "kernel_inputs", "templates", "op_name", "kwarg_overrides")
NAME = "origami_gemm"  # among the handlers that Inductor composes


class Enabled:
    """What enable() returns. As a context manager it puts back, at the end, what was in force before."""

    def __init__(self, before: _settings.Settings | None):
        self._before = before

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _install(self._before)

    def __repr__(self):
        settings = _state.state.settings
        return f"<origami_gemm.inductor {settings}>" if settings else "<origami_gemm.inductor disabled>"


def enable(top: int | str = 1, *, aten: bool | str = "auto", model: Model | None = None,
           kernels: bool = False) -> Enabled:
    """From now on, graphs that torch.compile compiles get the model's picks for mm, addmm, bmm, baddbmm and _scaled_mm.

    top    how many of the best configurations Inductor gets. With 1 it compiles that one and times nothing; with more
           it compiles and times each. "auto" gives as many as are worth timing by the model's uncertainty
    aten   whether cuBLAS stays among the choices, where Inductor has it. True: it is timed beside the picks. False: the
           picks alone. "auto" is True, but with top=1 cuBLAS alone is taken, without timing, where the model says that
           it is clearly faster than the pick
    model  a Model instead of the current GPU's, for the picks
    kernels
           generated kernels (origami_gemm.torch) are among the choices, for mm, addmm and _scaled_mm. With top=1 nothing is
           timed: the generated kernel is taken, or cuBLAS where the models say that it is faster, and what no generated
           kernel computes is Inductor's own. With more, the generated kernel is timed beside the others. Without gradients,
           an activation behind linear() becomes part of a generated kernel where that is predicted to be faster

    Turns on Inductor's max_autotune_gemm if neither it nor max_autotune is on, and Triton kernels may be among the choices:
    Inductor uses none otherwise. Operations that are not understood then get cuBLAS untimed, as without max_autotune.
    Functions that were compiled before keep their kernels; torch._dynamo.reset() compiles them again."""
    before = _state.state.settings
    _install(_settings.Settings(top, aten, model, kernels))
    return Enabled(before)


def disable() -> None:
    """Graphs that are compiled from now on get Inductor's own list."""
    _install(None)


def report() -> Report:
    """What was picked in this process since the start or the last clear(), and why; print it for a table."""
    return _state.recorder.report()


def clear() -> None:
    """Forgets what report() and pin() give."""
    _state.recorder.clear()
    _state.pinned.clear()


# What Inductor's settings were before enable(), by name.
_before = {}


def _install(settings):
    """Puts settings in force, or Inductor's own with None."""
    if settings is None and _state.state.settings is None:
        return
    config = _inductor_config()
    if config is None:
        return
    _restore(config)
    triton = settings is not None and not (settings.kernels and settings.top == 1)
    forced = triton and not (config.max_autotune or config.max_autotune_gemm)
    _fuse_activations(settings is not None and settings.kernels)
    composed = _versions.registers()
    key = settings and settings.key()
    changes = {}
    if forced:
        others = [name for name in config.max_autotune_gemm_backends.split(",") if name.strip().upper() != "CPP"]
        changes |= {"max_autotune_gemm": True, "max_autotune_gemm_backends": ",".join(others)}
    if settings is not None and not composed:
        changes["inductor_choices_class"] = functools.partial(_handler, key, config.inductor_choices_class)
    for name, value in changes.items():
        _before[name] = getattr(config, name)
        setattr(config, name, value)
    _state.state = _state.State(settings, forced)
    if composed:
        _compose(key, *composed)
    elif settings is not None and "torch._inductor.choices" in sys.modules:  # threads may have handlers
        _renew(key)


def _restore(config):
    """Gives Inductor's settings the values that they had."""
    for name, value in _before.items():
        setattr(config, name, value)
    _before.clear()


def _fuse_activations(wanted):
    """Puts the pass that moves activations into generated kernels in force, or takes it away."""
    name = "origami_gemm.torch"
    if wanted or name in sys.modules:
        fuse = importlib.import_module(name + "._fuse")
        (fuse.passes.install if wanted else fuse.passes.remove)(fuse.ANY)


def _inductor_config():
    """Inductor's settings. None, and a line in the log, if this PyTorch has nothing to extend."""
    first, last = (".".join(map(str, _versions.CHECKED[i])) for i in (0, -1))
    try:
        import torch
    except ImportError as e:
        raise Error(f"PyTorch cannot be imported ({e}); install torch {first} to {last}, whose compiler "
                    "origami_gemm.inductor extends", "device") from e
    version = _versions.number(torch.__version__)
    if version < _versions.CHECKED[0]:
        log.warning("PyTorch %s is older than %s: Inductor uses its own list", torch.__version__, first)
        return None
    if version > _versions.CHECKED[-1]:
        log.info("PyTorch %s is newer than %s, the newest whose sources were compared: it is tried", torch.__version__,
                 last)
    if torch.version.hip:
        log.warning("the picks were checked on NVIDIA GPUs only: Inductor uses its own list on ROCm")
        return None
    try:
        from torch._inductor import config
    except ImportError as e:
        log.warning("this PyTorch cannot be extended (%s): Inductor uses its own list", e)
        return None
    return config


def _handler(key, base):
    """Inductor's handler of choices for a thread, as its factories make it. key is for Inductor's caches."""
    from torch._inductor.choices import InductorChoices

    return _extended(base() if base else InductorChoices(), key)


_renewed = itertools.count()


def _renew(key):
    """Makes all threads use extended handlers. A thread keeps the handler of its first graph, under a key. That of
    autograd, which compiles backward graphs, may be older than enable(). Under a new key, each makes another one."""
    from torch._inductor import virtualized

    mine = _extended(virtualized.V.choices, key)
    virtualized._choices._key = f"__torchinductor_choices_{next(_renewed)}"
    virtualized.V.set_choices_handler(mine)


def _compose(key, register, unregister):
    """Registers a handler, or takes it away without a key. A handler that this thread alone uses stays, extended."""
    from torch._inductor import config, virtualized
    from torch._inductor.choices import InductorChoices

    before = virtualized.V.choices
    if key is not None and _extended(InductorChoices(), key).__class__ is InductorChoices:
        return
    virtualized._choices._key = f"__torchinductor_choices_{next(_renewed)}"
    register(NAME, functools.partial(_handler, key, None)) if key is not None else unregister(NAME)
    known = ("torch._inductor.choices", "origami_gemm.inductor._choices", "builtins")
    if config.inductor_choices_class is None and any(c.__module__ not in known for c in type(before).__mro__):
        virtualized.V.set_choices_handler(_extended(before, key))


def _extended(handler, key):
    """A handler that asks the model, or the same where this PyTorch has no such handlers: then nothing is changed."""
    try:
        given = tuple(inspect.signature(handler._finalize_template_configs).parameters)
        if given != ARGUMENTS:
            raise Error(f"_finalize_template_configs takes {', '.join(given)}")
        from origami_gemm.inductor._choices import extended

        return extended(handler, key)
    except Exception as e:
        log.warning("this PyTorch cannot be extended (%s): Inductor uses its own list", e)
        if _state.state.forced:
            from torch._inductor import config

            _restore(config)
            _state.state = _state.State()
        return handler


_read = False


def _from_environment():
    """Enables what ORIGAMI_INDUCTOR says, once. `import torch` calls it in every program, so it raises nothing."""
    global _read
    text = os.environ.get(_settings.VARIABLE, "")
    if _read or not text:
        return
    _read = True
    try:
        settings = _settings.parse(text)
        if settings is not None:
            _install(settings)
    except Exception as e:
        log.warning("%s: Inductor uses its own list", e)


_from_environment()
