"""The choice: candidates are compiled, read and predicted; the answer is kept by content."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pathlib
import re
import tempfile

from origami_gemm import _kept, lib
from origami_gemm._records import record
from origami_gemm.errors import Error
from origami_gemm.pin import ttgir, work
from origami_gemm.pin._compile import Tensor, compile_all, without_memory


@record
class Candidate:
    """A configuration with what it takes and its predicted seconds, or with why it is out."""

    config: dict
    seconds: float | None = None
    interval: tuple | None = None
    bound: str = ""
    registers: int = 0
    spills: int = 0
    shared: int = 0
    resident: int = 0
    error: str = ""


@record
class Choice:
    """The configuration to take: config has the values of triton.Config by name. why is a line about it. assumed are
    properties of data that the times rest on. evidence is "checked" on the device on which the model was compared with
    measured times, "unchecked" on others, and "withheld" where a kernel could not be read and the configuration with
    the fewest spills was taken. loss is what the pick may lose to another where one term is off by 10 %."""

    config: dict
    seconds: float | None
    interval: tuple | None
    bound: str
    evidence: str
    loss: float
    assumed: tuple
    why: str
    key: str
    candidates: tuple

    def triton(self):
        """As a triton.Config."""
        import triton

        return triton.Config(dict(self.config["kwargs"]), **{k: v for k, v in self.config.items() if k != "kwargs"})


def plain(config):
    """A configuration as a dict of JSON, of a triton.Config or of such a dict."""
    if isinstance(config, dict):
        rest = {k: v for k, v in config.items() if k != "kwargs"}
        return {"kwargs": dict(sorted(config.get("kwargs", {}).items())), "num_warps": 4, "num_stages": 3, **rest}
    out = {"kwargs": dict(sorted(config.kwargs.items())), "num_warps": config.num_warps, "num_stages": config.num_stages}
    if getattr(config, "num_ctas", 1) not in (None, 1):
        out["num_ctas"] = config.num_ctas
    if getattr(config, "maxnreg", None):
        out["maxnreg"] = config.maxnreg
    return out


def shown(value):
    """A value as it goes into the key."""
    if isinstance(value, Tensor):
        return value.record()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "block_shape") and hasattr(value, "base"):
        return ["descriptor", shown(without_memory(value.base)), list(map(int, value.block_shape))]
    if isinstance(value, (list, tuple)):
        return [shown(v) for v in value]
    if hasattr(value, "cache_key"):
        return value.cache_key
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def order(config):
    return json.dumps(config, sort_keys=True, default=shown)


@functools.cache
def edition():
    """The reader's own text: another reader may choose otherwise."""
    here = pathlib.Path(__file__).parent
    return hashlib.sha256(b"".join(p.read_bytes() for p in sorted(here.glob("*.py")))).hexdigest()[:16]


@functools.cache
def target(arch, library=None):
    """Architecture, device, compute capability, and shared memory of a program, of "sm90@h200" or "auto"."""
    arch = arch or os.environ.get("ORIGAMI_PIN_ARCH") or "auto"
    name, _, device = arch.partition("@")
    d = lib.Model(name, device or None, library=library).description
    found = re.fullmatch(r"sm(\d+)a?", d["arch"])
    if not found or int(found[1]) < 80:
        raise Error(f"arch: {arch} is no NVIDIA architecture from sm80 on, for which Triton kernels are pinned")
    shared = next(p["value"] for p in d["params"] if p["name"] == "shared_memory_bytes")
    return d["arch"], d["device"], int(found[1]), int(shared)


def unwrapped(kernel):
    """The function that Triton compiles, the heuristics around it, and the list of an autotuner around it."""
    heuristics, configs = {}, None
    while not hasattr(kernel, "cache_key") or getattr(kernel, "configs", None) is not None:  # tuners may have keys
        if getattr(kernel, "configs", None) is not None and configs is None:
            configs = kernel.configs
        if isinstance(getattr(kernel, "values", None), dict):
            heuristics = {**kernel.values, **heuristics}
        if not hasattr(kernel, "fn"):
            raise Error(f"kernel: {kernel!r:.80} is no Triton kernel; give what @triton.jit returns")
        kernel = kernel.fn
    return kernel, heuristics, configs


def whole(config):
    return {**config["kwargs"], **{k: v for k, v in config.items() if k != "kwargs"}}


def launches(kernel, args, kwargs, grid, configs):
    """Per configuration: keyword arguments and grid."""
    function, heuristics, own = unwrapped(kernel)
    configs = {order(c): c for c in map(plain, configs if configs is not None else own or ())}
    if not configs:
        raise Error("configs: the kernel has no list of configurations; give one")
    named = {**dict(zip(function.arg_names, args)), **kwargs}
    out = []
    for _, config in sorted(configs.items()):
        full = dict(kwargs)
        meta = {**named, **whole(config)}
        for name, value in heuristics.items():
            full[name] = meta[name] = value(meta)
        size = grid(meta) if callable(grid) else grid
        size = (size,) if isinstance(size, int) else tuple(int(g) for g in size)
        out.append((config, {**full, **whole(config)}, size, {**meta, **config["kwargs"]}))
    return function, out


def content_key(function, made, where, trips):
    import triton

    args = {k: shown(without_memory(v)) for k, v in made[0][3].items() if k in function.arg_names}
    for config, *_ in made:
        for name in config["kwargs"]:
            args.pop(name, None)
    record = {"edition": edition(), "kernel": function.cache_key, "triton": triton.__version__, "arch": where, "trips": trips,
              "args": args, "candidates": [[config, list(grid)] for config, _, grid, _ in made]}
    return hashlib.sha256(json.dumps(record, sort_keys=True, default=shown).encode()).hexdigest()


def folder():
    return pathlib.Path(os.environ.get("ORIGAMI_PIN_CACHE") or _kept.folder() / "pin")


def kept(key):
    try:
        return json.loads((folder() / f"{key}.json").read_text())
    except (OSError, ValueError):
        return None


def keep(key, answer):
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder(), delete=False) as file:
            file.write(json.dumps(answer, sort_keys=True))
        os.replace(file.name, folder() / f"{key}.json")
    except OSError:
        pass  # the next process finds the same


def choice(answer):
    candidates = tuple(Candidate(**{**c, "interval": tuple(c["interval"]) if c.get("interval") else None})
                       for c in answer["candidates"])
    interval = tuple(answer["interval"]) if answer["interval"] else None
    return Choice(**{**answer, "interval": interval, "assumed": tuple(answer["assumed"]), "candidates": candidates})


def numbers(made):
    """Arguments as the reader takes them."""
    out = {}
    for name, value in made.items():
        value = without_memory(value)
        if isinstance(value, Tensor):
            out[name] = value.record()
        elif hasattr(value, "base") and isinstance(value.base, Tensor):
            out[name] = value.base.record()
        elif isinstance(value, (bool, int, float)):
            out[name] = value
    return out


def choose(kernel, args=(), grid=(1,), arch=None, *, kwargs=None, configs=None, trips=None, jobs=None, cache=True,
           library=None):
    """The configuration for a launch of a kernel, without a launch.

    kernel is what @triton.jit or @triton.autotune returns. args are its arguments, in order or by name: numbers, tensors,
    or Tensor. grid is a tuple or a function of the arguments, as in a launch. arch is as on the command line
    ("sm90@h200"), and without one $ORIGAMI_PIN_ARCH, or the GPU of this machine. configs replaces the kernel's own list.
    trips is how often a loop runs whose bounds are data, or over how many elements it goes, where its step is a block. The
    answer does not depend on the order of the list."""
    if isinstance(args, dict):
        args, kwargs = (), {**args, **(kwargs or {})}
    name, device, capability, shared = target(arch, library)
    function, made = launches(kernel, args, kwargs or {}, grid, configs)
    key = content_key(function, made, f"{name}@{device}", trips)
    answer = kept(key) if cache else None
    if answer is None:
        answer = decided(function, args, made, (name, device, capability, shared), trips, jobs, library)
        answer["key"] = key
        if cache:
            keep(key, answer)
    return choice(answer)


# What the reader raises at what it does not know.
UNREAD = (ValueError, KeyError, IndexError, TypeError, AttributeError, ZeroDivisionError, OverflowError)


def compiled(function, args, made, where, trips, jobs):
    """Each configuration of a launch with what it takes, what the compiler made, and the numbers of the model's question
    with what was assumed for them, or why there are none."""
    _, _, capability, shared = where
    positional, parsed = function.arg_names[:len(args)], {}
    variants = [{k: v for k, v in full.items() if k not in positional} for _, full, _, _ in made]
    for (config, _, grid, meta), one in zip(made, compile_all(function, args, variants, capability, shared, jobs)):
        entry, described = {"config": config, "error": one.get("error", "")}, ""
        if not entry["error"]:
            entry.update({k: one[k] for k in ("registers", "spills", "shared")})
            try:
                if one["ttgir"] not in parsed:
                    parsed[one["ttgir"]] = ttgir.parse(one["ttgir"], one["names"])
                described = work.describe(parsed[one["ttgir"]], numbers(meta), grid, one["registers"], one["spills"],
                                          one["shared"], trips, one["told"])
                if not one["looped"]:
                    described[0]["trips"] = 1.0  # spilled once, not in each trip
            except UNREAD as e:
                described = f"{type(e).__name__}: {e}"
        yield entry, one, described


def decided(function, args, made, where, trips, jobs, library):
    name, device, *_ = where
    candidates, kernels, assumed, unread = [], [], set(), None
    for entry, _, described in compiled(function, args, made, where, trips, jobs):
        candidates.append(entry)
        if isinstance(described, str):
            unread = described or unread
            continue
        kernels.append((entry, described[0]))
        assumed |= set(described[1])
    runnable = [c for c in candidates if not c["error"]]
    if not runnable:
        raise Error(f"none of {len(candidates)} configurations compiles for {name}; the first: {candidates[0]['error']}")
    if unread:
        pick = min(runnable, key=lambda c: (c["spills"], -c["config"]["num_warps"], order(c["config"])))
        return {"config": pick["config"], "seconds": None, "interval": None, "bound": "", "evidence": "withheld", "loss": 0.0,
                "assumed": sorted(assumed), "candidates": candidates,
                "why": f"the compiled kernel could not be read ({unread[:80]}): the fewest spills, then the most warps"}
    found = lib.load(library).ask({"ask": "pin", "arch": name, "device": device, "kernels": [k for _, k in kernels]})
    for (entry, _), time in zip(kernels, found["times"]):
        if not time["fits"]:
            entry["error"] = "it needs more registers or shared memory than the device has"
        entry.update(seconds=rounded(time["seconds"]), interval=list(map(rounded, time["interval"])), bound=time["bound"],
                     resident=time["resident"])
    pick = kernels[found["pick"]][0]
    others = sorted(e["seconds"] for e, _ in kernels if not e["error"] and e is not pick)
    why = (f"{pick['seconds'] * 1e6:.4g} µs predicted, bound by {pick['bound']}, {pick['resident']} resident per SM, "
           f"{pick['registers']} registers, {pick['spills']} spilled, {pick['shared']} B shared; ")
    why += f"the next of {len(candidates)}: {others[0] * 1e6:.4g} µs" if others else "no other candidate"
    return {"config": pick["config"], "seconds": pick["seconds"], "interval": pick["interval"], "bound": pick["bound"],
            "evidence": found["evidence"], "loss": rounded(found["loss"]), "assumed": sorted(assumed),
            "candidates": candidates, "why": why}


def rounded(x):
    return float(f"{x:.6g}")


def choose_one(kernel, launches, arch=None, **more):
    """One configuration for several launches, pairs of args and grid: the one that loses least against each launch's
    own pick at worst, and that loss. Launches stand for a range of sizes that data decide."""
    choices = [choose(kernel, args, grid, arch, **more) for args, grid in launches]
    losses = {}
    for c in choices:
        best = min(x.seconds for x in c.candidates if x.seconds and not x.error)
        for x in c.candidates:
            at = order(x.config)
            loss = x.seconds / best - 1 if x.seconds and not x.error else float("inf")
            losses[at] = max(losses.get(at, (0.0,))[0], loss), x.config
    loss, config = min(losses.values(), key=lambda pair: (pair[0], order(pair[1])))
    return config, loss
