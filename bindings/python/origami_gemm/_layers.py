"""Layers and their kernels: which kernel answers for which M, and whether it is compiled. Imports no torch.

A layer is a product with everything but M fixed. Its sizes are divided into bands by the model (Model.bands), and the
kernels of the bands are compiled by a thread of this module, or by prepare(). Until a kernel is there, the answer for its
sizes is a reason, and PyTorch's own operator runs."""

from __future__ import annotations

import atexit
import bisect
import concurrent.futures
import ctypes
import dataclasses
import logging
import os
import queue
import struct
import threading

from origami_gemm import _cuda, lib
from origami_gemm.errors import Error

log = logging.getLogger("origami_gemm.torch")

# The kernel family of an architecture, on its devices of which times were compared. Others, and others than this one, run
# if the environment variable KERNEL names the family: "mma" is for Ampere, Ada and everything after, and was measured on
# Hopper only.
FAMILIES = {"sm90": "wgmma"}
KERNEL = "ORIGAMI_TORCH_KERNEL"
# A product and a kernel that every measured device has times for.
USUAL = {"m": 4096, "n": 4096, "k": 4096, "dtype": "bf16", "trans_b": True, "candidates": [
    {"block_m": 128, "block_n": 256, "block_k": 64, "num_warps": 12, "num_stages": 4, "axes": "cluster=2"}]}
MOST_M = 1 << 24
# The sizes M that the order of sums of an invariant layer is chosen for, all of the same weight.
ORDERED = [1 << i for i in range(14)]
# Leaves of K are multiples of this, and have this block_k; of fp8 it is twice as many. So many CTAs may share them. One leaf
# has the same block_k: on an H200 28 products of all sizes took 0.998 of the time of the model's choice, at most 1.006, and
# 2048x1536x8960 took 0.71 of it (experiments/exact-on-h200).
LEAF_BLOCK, SPLITS = 64, (1, 2, 4, 8)
# The alternatives of a kernel are looked for among so many.
ALTERNATIVES = 32
# The most launches that a layer keeps, of some kilobytes each.
PLANS = 4096

LIBRARY = "cuBLAS is predicted to be as fast"
SLOWER = "cuBLAS was measured to be faster"
PENDING = "the kernel is not compiled yet"


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """A product without its M, and the device. The names are those of lib.Model.select; leading dimensions are 0 for
    dense rows. An invariant product with leaves has the tree of so many over K, whatever N and K are."""

    device: int
    n: int
    k: int
    dtype: str
    out_dtype: str | None = None
    trans_a: bool = False
    trans_b: bool = False
    batch: int = 1
    lda: int = 0
    ldb: int = 0
    align: tuple[int, int, int] = (16, 16, 16)
    epilogue: str = ""
    adds: bool = False
    invariant: bool = False
    promote: bool = False
    leaves: int = 0

    def problem(self, m):
        return lib._problem(m, self.n, self.k, self.dtype, self.trans_a, self.trans_b, self.batch, self.out_dtype,
                            self.lda, self.ldb, 0, self.align, None, self.epilogue, self.adds)

    def __str__(self):
        parts = [f"{self.batch} x" if self.batch > 1 else "", f"n={self.n} k={self.k} {self.dtype}", self.epilogue,
                 "adding" if self.adds else "", "A by columns" if self.trans_a else "",
                 "" if self.trans_b else "B by rows", "one order" if self.invariant else "",
                 f"{self.leaves} leaves" if self.leaves else "",
                 "promoted sums" if self.promote else ""]
        return ", ".join(filter(None, parts))


# The bytes of an origami_call (origami.h): a, b, c, bias, counters, partials; alpha, beta; stream; r, scale_a, scale_b; step_a,
# step_b. A ctypes.Structure takes longer.
_call = struct.Struct("@6Q2fP3Q2I").pack


class Plan:
    """A launch that is ready. launch() may be called from several threads. in_place says that what is added to the product
    has to be in C before."""

    __slots__ = ("pick", "counters", "partials", "in_place", "calls", "_plan", "_launch", "_unload", "__weakref__")

    def __init__(self, library, plan, kernel, pick):
        self.pick, self.counters, self.partials, self.calls = pick, kernel["counters"], kernel["partials"], 0
        self.in_place = kernel["adds"] and all(p["role"] != "r" for p in kernel["parameters"])
        self._plan, self._launch, self._unload = plan, library._c.origami_launch, library._c.origami_unload

    def launch(self, a, b, c, stream, bias=0, counters=0, partials=0, alpha=1.0, beta=0.0, r=0, scales=(0, 0, 0, 0)):
        """Enqueues C = activation(alpha A B + beta R + bias), or + R behind it. All but the scalars are addresses; of the scales
        the first two are, and the others the steps from one to the next."""
        call = _call(a, b, c, bias, counters, partials, alpha, beta, stream, r, *scales)
        self.calls += 1
        if self._launch(self._plan, call, None, 0):
            text = ctypes.create_string_buffer(2048)  # again, for the reason
            status = self._launch(self._plan, call, text, len(text))
            if status:
                raise Error(text.value.decode(errors="replace"), lib.KINDS.get(status, "internal"))

    def __del__(self):
        if getattr(self, "_plan", None):
            self._unload(self._plan)


class Device:
    """The models of a GPU: of our kernels and of cuBLAS. why says why it cannot be used, and is None if it can."""

    def __init__(self, ordinal, models=None):
        self.ordinal, self.why, self.own, self.library = ordinal, None, None, None
        self._ordered, self._orders, self._promoting, self._lock = {}, {}, None, threading.Lock()
        try:
            if models is None:
                gpu = _cuda.Driver().gpu(ordinal)
                arch = gpu["arch"]
                family = os.environ.get(KERNEL) or FAMILIES.get(arch)
                if family is None:
                    self.why = (f"the GPU is an {arch}, and kernels were measured on {', '.join(FAMILIES)} only; "
                                f"{KERNEL}=mma runs unmeasured ones")
                    return
                models = tuple(lib.Model(**gpu, kernel=kernel) for kernel in (family, "library"))
                if not os.environ.get(KERNEL) and models[0].select(**USUAL).evidence not in ("checked", "related"):
                    self.why = (f"no times of {gpu['live']['name']} were compared, so that no kernel runs on it unasked; "
                                f"{KERNEL}={family} tries them, and prepare() and use(model, m=…) then time each beside cuBLAS")
                    return
            self.own, self.library = models
            self._family = self.own.description["kernel"]
        except (Error, OSError, RuntimeError) as e:
            self.why = str(e)

    def promoting(self):
        """The model of the kernels whose sums of fp8 are added in fp32, as cuBLAS's are by default."""
        with self._lock:
            if self._promoting is None:
                self._promoting = self.own.sibling(self._family, space={"promote": ["1"]})
            return self._promoting

    def ordered(self, key):
        """The model of the kernels that add up in one order for all M, and for every layer of the same N, K and type."""
        with self._lock:
            promoting = (("promote", "1"),) if key.promote else ()
            if self._family == "wgmma":
                leaves, block = max(key.leaves, 1), 2 * LEAF_BLOCK if key.dtype.startswith("fp8") else LEAF_BLOCK
                order = ("block_k", str(block)), ("split_k", SPLITS[:leaves.bit_length()]), ("tree", str(leaves)), *promoting
            elif key.leaves > 1:
                raise Error(f"kernels of {self._family} have no tree over K", "input")
            else:
                name = key.n, key.k, key.dtype, key.promote
                if name not in self._orders:
                    if promoting not in self._ordered:
                        self._ordered[promoting] = self._one_order(promoting)
                    model = self._ordered[promoting]
                    self._orders[name] = model.bands(ORDERED, key.n, key.k, dtype=key.dtype, trans_b=True).same.values
                order = tuple(sorted((self._orders[name] | dict(promoting)).items()))
            if order not in self._ordered:
                self._ordered[order] = self._one_order(order)
            return self._ordered[order]

    def _one_order(self, order):
        space = {axis: list(v) if isinstance(v, tuple) else [int(v)] if v.isdigit() and axis in NUMBERS else [v]
                 for axis, v in order}
        return self.own.sibling(self._family, invariant=True, **({"space": space} if space else {}))


# The axes whose values are numbers in a space.
NUMBERS = ("block_m", "block_n", "block_k", "num_warps", "num_stages", "split_k")


@dataclasses.dataclass(slots=True)
class Span:
    """A band of a layer. why says why our kernel does not run, and is None if it does. Until its kernel is compiled, compiled
    has what why will be."""

    band: lib.Band
    why: str | None
    compiled: concurrent.futures.Future | None = None

    def settle(self):
        """Waits for the compiler."""
        compiled = self.compiled
        if compiled is not None:
            self.why, self.compiled = compiled.result(), None
        return self


def octave(m, turned=False):
    """The sizes between the powers of two around M, for which a call compiles kernels. Of a turned A, M is the distance of its
    rows: only some M can be read, and this one alone is asked for, as a layer's gradient has one."""
    if turned:
        return m, m
    return 1 << (m.bit_length() - 1), (1 << m.bit_length()) - 1


class Layer:
    """A layer on a device. plan() is the hot path; everything else may take long, and runs under the lock."""

    def __init__(self, key, device):
        self.key, self.device = key, device
        self.spans, self.plans = [], {}
        self._asked, self._predicted = set(), {}
        self._lock, self._first = threading.Lock(), threading.Lock()

    def plan(self, m):
        """The launch for M, or the reason why there is none. It never compiles: it asks the thread to. Of an invariant
        layer it does: there is nothing that could run in the meantime."""
        found = self.plans.get(m)
        if found is not None:
            return found
        if self.key.invariant and not self.device.why:
            with self._first:
                if self._span(m) is None:
                    self.prepare(*octave(m, self.key.trans_a))
        return self._find(m)

    def _find(self, m):
        if self.device.why:
            return self.device.why
        with self._lock:
            span = self._span(m)
            if span is None:
                around = octave(m, self.key.trans_a)
                if around not in self._asked:
                    self._asked.add(around)
                    worker.ask(self, *around)
                return PENDING
            found = span.settle().why
            if found is not None and self.key.invariant:  # another kernel of the same order may do
                near = sorted(self.spans, key=lambda s: abs(s.band.m_high - span.band.m_high))
                span = next((s for s in near if s.settle().why is None), span)
            if span.why is None:
                try:
                    found = self._load(m, span.band.pick)
                except Error as e:
                    found = str(e)
            if found != PENDING:
                if len(self.plans) >= PLANS:
                    self.plans.clear()
                self.plans[m] = found
            return found

    def why(self, low, high):
        """Why no kernel of ours runs at any M from low to high, or None. It prepares sizes that were not, and does not wait for
        the compiler, as plan() does: so the kernels of a graph are compiled beside each other."""
        if self.device.why:
            return self.device.why
        if self._span(low) is None or self._span(high) is None:
            self.prepare(low, high, wait=False)
        whys = [s.why for s in self.spans if s.band.m_low <= high and s.band.m_high >= low]
        return None if None in whys else whys[0]

    def predicted(self, m):
        """Our best kernel for M, and the seconds of the vendor's library, as far as the models know. Asking takes tens of
        milliseconds, and a model has a layer many times."""
        if m in self._predicted:
            return self._predicted[m]
        problem, out = self.key.problem(m), []
        for model in (self._model(), self.device.library):
            try:
                out += model._ranked(problem, 1) if model else [None]
            except Error:
                out.append(None)
        self._predicted[m] = out[0], out[1].seconds if out[1] else None
        return self._predicted[m]

    def _span(self, m):
        i = bisect.bisect_right(self.spans, m, key=lambda s: s.band.m_low) - 1
        return self.spans[i] if i >= 0 and m <= self.spans[i].band.m_high else None

    def prepare(self, low, high, wait=True):
        """Divides the sizes and compiles the kernels. What cannot be compiled is left to PyTorch."""
        if self.device.why:
            return
        key = self.key
        try:
            bands = self._model().bands((low, min(high, MOST_M)), key.n, key.k, dtype=key.dtype, trans_a=key.trans_a,
                              trans_b=key.trans_b, batch=key.batch, out_dtype=key.out_dtype, lda=key.lda, ldb=key.ldb,
                              align=key.align, epilogue=key.epilogue, library=bool(self.device.library) and not key.invariant)
        except Error as e:
            bands = [lib.Band(low, high, None, 0.0, 0.0, low, 0.0, 0.0)]
            new = [Span(bands[0], str(e))]
        else:
            new = [Span(band, LIBRARY) if band.pick is None else Span(band, None, compiler().submit(self._compile, band))
                   for band in bands]
        for span in new if wait else ():
            span.settle()
        with self._lock:
            old = [s for s in self.spans if s.band.m_high < low or s.band.m_low > high]
            cut = [Span(dataclasses.replace(s.band, **ends), s.why, s.compiled) for s in self.spans
                   for ends in ({"m_high": low - 1}, {"m_low": high + 1})
                   if s.band.m_low <= high and s.band.m_high >= low
                   and ends.get("m_high", s.band.m_high) >= ends.get("m_low", s.band.m_low)]
            self.spans = sorted(old + cut + new, key=lambda s: s.band.m_low)
            self.plans.clear()

    def _model(self):
        """The model of the kernels that the layer may run on."""
        if self.key.invariant:
            return self.device.ordered(self.key)
        return self.device.promoting() if self.key.promote else self.device.own

    def _compile(self, band):
        try:
            self._load(band.m_high, band.pick)
        except Error as e:
            log.warning("%s, m=%d to %d: %s; PyTorch's own operator runs", self.key, band.m_low, band.m_high, e)
            return str(e)
        return None

    def alternative(self, m, pick):
        """The best kernel that has another cluster or split of K, or None. These are what the model errs most on."""
        def shared(p):
            return p.split_k, {axis for axis in p.axes.split(",") if axis.startswith("cluster")}
        ranked = self._model()._ranked(self.key.problem(m), ALTERNATIVES)
        return next((p for p in ranked if shared(p) != shared(pick)), None)

    def choose(self, band, pick):
        """Gives a band another kernel, and returns the band with it. Raises Error if the kernel cannot be compiled."""
        self._load(band.m_high, pick)
        new = dataclasses.replace(band, pick=pick)
        with self._lock:
            for span in self.spans:
                if span.band == band:
                    span.band = new
            self.plans.clear()
        return new

    def refuse(self, band, why):
        """Leaves a band to PyTorch."""
        with self._lock:
            for span in self.spans:
                if span.band == band:
                    span.why = why
            self.plans.clear()

    def _load(self, m, pick):
        own = self.device.own
        plan, kernel = own._library.load({**own._request, **self.key.problem(m), "config": config(pick)}, self.key.device)
        return Plan(own._library, plan, kernel, pick)


def config(pick):
    """A pick as the library takes it. Each M has its own launch order."""
    names = ("block_m", "block_n", "block_k", "num_warps", "num_stages", "split_k")
    axes = dict(pair.split("=") for pair in filter(None, pick.axes.split(",")))
    return {**{name: getattr(pick, name) for name in names}, **({"axes": axes} if axes else {})}


_compiler = None


def compiler():
    """Threads that compile kernels. The driver compiles outside of Python's lock."""
    global _compiler
    if _compiler is None:
        _compiler = concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1), "origami_gemm.compiler")
    return _compiler


class Worker:
    """A thread that prepares what is asked of it, one after the other."""

    def __init__(self):
        self._queue, self._thread, self._lock = queue.SimpleQueue(), None, threading.Lock()

    def ask(self, layer, low, high):
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="origami_gemm.torch", daemon=True)
                self._thread.start()
                atexit.register(self.stop)
        self._queue.put((layer, low, high))

    def _run(self):
        while (asked := self._queue.get()) is not None:
            if isinstance(asked, threading.Event):
                asked.set()
                continue
            layer, low, high = asked
            try:
                layer.prepare(low, high)
            except Exception:  # a bug: PyTorch's own operators go on
                log.exception("%s: its kernels could not be prepared", layer.key)

    def wait(self, timeout=None):
        """Waits for what was asked until now."""
        with self._lock:
            if self._thread is None:
                return True
        done = threading.Event()
        self._queue.put(done)
        return done.wait(timeout)

    def stop(self):
        """Ends the thread with what it is at: the interpreter must not go away under it."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            while not self._queue.empty():
                self._queue.get()
            self._queue.put(None)
            thread.join()


worker = Worker()


class Registry:
    """The layers of this process."""

    def __init__(self, open_device=Device):
        self._open, self._devices, self._layers, self._lock = open_device, {}, {}, threading.Lock()

    def layer(self, key):
        layer = self._layers.get(key)
        if layer is None:
            with self._lock:
                if key.device not in self._devices:
                    self._devices[key.device] = self._open(key.device)
                layer = self._layers.setdefault(key, Layer(key, self._devices[key.device]))
        return layer

    def layers(self):
        return list(self._layers.values())

    def clear(self):
        with self._lock:
            self._layers.clear()


registry = Registry()


def _in_child():
    """After a fork, in the child: CUDA cannot be used, and the thread is not there."""
    global worker, _compiler
    worker, _compiler = Worker(), None
    for layer in registry.layers():
        layer._lock, layer._first = threading.Lock(), threading.Lock()
        layer.plans.clear()
        layer.device.why = "CUDA was started before this process was forked"


os.register_at_fork(after_in_child=_in_child)
