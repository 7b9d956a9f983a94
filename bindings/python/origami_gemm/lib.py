"""The models in this process, through the C library liborigami (`make lib`).

    from origami_gemm.lib import Model
    model = Model("sm90", "h200")
    pick = model.select(4096, 4096, 4096)
    pick.block_m, pick.num_warps, pick.seconds

The library is $ORIGAMI_LIB if that is set. Otherwise it is next to this file, as in the wheel, or in bin/ of the
checkout around this file.

A process made by fork() has no copy of the library's threads, so the library answers nothing there. A Model that was
opened before the fork still gives the answers that it has given before, and raises Error for all others. Open it only
in the child, or start children by "spawn" or "forkserver".

Whatever is wrong with a request, the exception is an Error. Only a call that does not fit a function's signature raises
Python's own TypeError.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import pathlib
import threading
import typing
from collections.abc import Mapping, Sequence

from origami_gemm._arguments import alignments, as_json, content, flag, group_rows, shown, whole
from origami_gemm._dtypes import code
from origami_gemm.errors import ArgumentTypeError, Error

API_VERSION = 4

KINDS = {1: "internal", 2: "input", 3: "plugin", 4: "device"}


@dataclasses.dataclass(frozen=True, slots=True)
class Advice:
    """A change that is predicted to save time. gain is the time of the same work now ÷ after the change, seconds the
    predicted time after it. problem, kernel and config are the product, the kernel family and the configuration then.
    rule is strides, pad, layout, family, config, rows or fuse."""

    rule: str
    do: str
    gain: float
    seconds: float
    problem: dict
    kernel: str
    config: dict

    def __str__(self):
        return f"{self.do}: {self.gain:.3g} times as fast"


@dataclasses.dataclass(frozen=True, slots=True)
class Pick(Mapping):
    """A kernel configuration, and what the model predicts for it. It is a mapping too: dict(pick) has its fields.

    What is null in JSON is 0. xcds and chunk are 0 if the GPU has one die. bound is one of BOUNDS. cycles and seconds are
    no times if Model.description has "ranks_only": such a model puts configurations in order. interval_seconds has the
    level Model.description["interval_level"]; it is None if the model was not checked on such problems. axes has the
    values on the kernel family's named axes, "name=value,name=value"; it is often empty."""

    # origami_pick: go generate ./ask
    # block_m, block_n, block_k, group_m, num_warps, num_stages, split_k. Of the kernel family library nobody
    # knows the launch order, warps and stages: they are null. If the kernel family declares axes, axes: the
    # values, as text by name, that are not the default
    block_m: int
    block_n: int
    block_k: int
    group_m: int
    num_warps: int
    num_stages: int
    split_k: int
    # the dies over which consecutive workgroups are distributed
    xcds: int
    # the workgroups per die at a time, 0 for the default
    chunk: int
    # what limits the kernel: compute, l2, mall, dram, latency, l1, shared_memory, issue or unknown
    bound: str
    # the predicted total in cycles
    cycles: float
    # cycles ÷ clock_hz
    seconds: float
    # the low and the high end of the time, unless the model states none
    interval_seconds: tuple | None
    axes: str
    # end

    # 2·m·n·k·batch ÷ seconds ÷ 10¹². 0 if the model only ranks
    tflops: float = 0.0
    # what is predicted to be faster, the largest gain first: with select(advice=True)
    advice: tuple[Advice, ...] = ()

    def __getitem__(self, name):
        if name not in _FIELDS:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self):
        return iter(_FIELDS)

    def __len__(self):
        return len(_FIELDS)

    def __str__(self):
        return _notation(self, filter(None, self.axes.split(",")))


def _notation(config, axes):
    """A configuration on one line, as in 128x256x64 w8 s3 g8. A number that is not known is None or 0."""
    split = config["split_k"] if config["split_k"] != 1 else 0
    numbers = (("w", config["num_warps"]), ("s", config["num_stages"]), ("g", config["group_m"]), ("k", split))
    parts = [f"{config['block_m']}x{config['block_n']}x{config['block_k']}",
             *(f"{letter}{n}" for letter, n in numbers if n)]
    return " ".join([*parts, *axes])


_FIELDS = tuple(field.name for field in dataclasses.fields(Pick))


@dataclasses.dataclass(frozen=True, slots=True)
class Regret:
    """What a model's uncertainty means for a pick."""

    # origami_regret: go generate ./ask
    # the expected regret of the pick: how much slower it is than the fastest other candidate, as a fraction of
    # that candidate's time. With --regret or --measure auto, if the model has an interval
    expected: float
    # with expected_regret: the number of leading candidates that are worth measuring before the fastest is
    # taken; 1 means that the pick can be taken unmeasured
    worth_measuring: int
    # end


@dataclasses.dataclass(frozen=True, slots=True)
class Band:
    """The sizes M from m_low to m_high, and the kernel for them: the pick for m_high, or None where the vendor's library
    is taken. The regret is how much slower that kernel is than the pick for each M, as a fraction."""

    m_low: int
    m_high: int
    pick: Pick | None
    mean_regret: float
    worst_regret: float
    worst_m: int
    # predicted for m_low and m_high
    seconds_low: float
    seconds_high: float
    # the mean prices of Same in this band, where that was asked for
    same_price: float | None = None
    one_price: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Same:
    """What the kernels for all M have in common, and what that costs: how much slower kernels are than the fastest of the
    family for each M, as a fraction, predicted. one is the single kernel that costs least for all M, or None; its times
    are those of the largest M."""

    # the axes and their values, as text
    values: dict[str, str]
    mean_price: float
    worst_price: float
    worst_m: int
    one: Pick | None
    one_mean_price: float | None
    one_worst_price: float | None
    one_worst_m: int | None


class Bands(list):
    """A list of Band, in the order of M. same is a Same if one was asked for, and otherwise None."""

    same: Same | None = None


class Model:
    """An architecture's model on a device. It may be used from several threads.

    arch and device are as on the command line ("sm90", "h200"), and so is timing, what predicted times are of.
    options, overrides, space and live are dicts, as in origami.h. invariant leaves out the configurations whose order of
    sums depends on M, so that bands() has one order for all M. compiled is the compiler's report on the kernels, and
    characterization has the times of a pass over them. Both are a path (the file may be gzipped) or the text of such a
    file.

    Opening takes milliseconds. select() takes some tens of microseconds for a new problem, and a dict lookup for a
    known one.
    """

    def __init__(self, arch: str, device: str | None = None, *, model: str | None = None, kernel: str | None = None,
                 rung: str | None = None, timing: str | None = None, options: dict | None = None,
                 overrides: dict | None = None, space: dict | None = None, invariant: bool = False, live: dict | None = None,
                 compiled: os.PathLike | str | None = None,
                 characterization: os.PathLike | str | None = None, library: os.PathLike | str | None = None):
        request = {"arch": arch, "device": device, "model": model, "kernel": kernel, "rung": rung, "timing": timing,
                   "options": options, "overrides": overrides, "space": space, "live": live, "compiled": content(compiled),
                   "characterization": content(characterization)}
        request = {key: value for key, value in request.items() if value is not None}
        if flag("invariant", invariant):
            request["invariant"] = True
        for key, value in request.items():
            if key == "invariant":
                continue
            wanted = dict if key in ("options", "overrides", "space", "live") else str
            if not isinstance(value, wanted):
                raise ArgumentTypeError(f"{key} is {shown(value)}; give a {wanted.__name__}")
        self._library = load(library)
        self._device = {key: request[key] for key in ("arch", "device", "timing", "overrides", "live") if key in request}
        self._handle = ctypes.c_uint64()
        self._picks = {}
        text = as_json(request)
        self._library.call("origami_open", text, ctypes.byref(self._handle))
        self.description = json.loads(self._library.text("origami_describe", self._handle))

    def __repr__(self):
        d = self.description
        return (f"<origami_gemm.Model {d['model']} of {d['arch']}@{d['device']}, kernel family {d['kernel']}, "
                f"rung {d['rung']}>")

    def sibling(self, kernel: str, *, options: dict | None = None, space: dict | None = None,
                invariant: bool = False) -> Model:
        """The model of another kernel family on the same device, with the same timing and overrides. "library" is cuBLAS, or what
        else the vendor's library is."""
        return Model(**self._device, kernel=kernel, options=options, space=space, invariant=invariant,
                     library=self._library.path)

    def select(self, m: int, n: int, k: int, *, dtype: str = "fp16", trans_a: bool = False, trans_b: bool = False,
               batch: int = 1, out_dtype: str | None = None, lda: int = 0, ldb: int = 0, ldc: int = 0,
               align: int | tuple[int, int, int] = 16, groups: Sequence[int] | None = None,
               candidates: Sequence[Pick | dict] | None = None, advice: bool = False) -> Pick:
        """The best configuration. trans_a: A is contiguous along M (K otherwise); trans_b: B is contiguous along K (N
        otherwise). out_dtype is the type of C; None is what goes with dtype. lda, ldb and ldc are leading dimensions in
        elements; 0 is dense rows. align is the bytes that divide the addresses of A, B and C, or of each. groups are
        the rows of A and C that go with each of several Bs, as with the experts of a mixture; m is their sum.

        candidates are the configurations to choose from, as for rank(). With advice the pick has what is predicted to
        be faster, which takes some milliseconds."""
        if candidates is not None:
            return self.rank(m, n, k, dtype=dtype, trans_a=trans_a, trans_b=trans_b, batch=batch, out_dtype=out_dtype,
                             lda=lda, ldb=ldb, ldc=ldc, align=align, groups=groups, candidates=candidates, top=1)[0]
        key = _key(m, n, k, dtype, trans_a, trans_b, batch, out_dtype, lda, ldb, ldc, align, groups)
        try:
            pick = self._picks.get(key)
        except TypeError:
            raise _unhashable(key) from None
        if pick is None:
            out, problem = _Pick(), _problem(*key)
            self._library.call("origami_select", self._handle, ctypes.byref(problem), ctypes.byref(out))
            pick = self._remember(key, problem, out)
        if flag("advice", advice):
            found = self._answer(key)["advice"]
            pick = dataclasses.replace(pick, advice=tuple(Advice(**one) for one in found))
        return pick

    def answer(self, m: int, n: int, k: int, **problem) -> dict:
        """All that the command says with `select --advice --regret --json`: a dict with the pick, its evidence, the
        other kernel families of the device (ways), and what is predicted to be faster (advice). It takes select()'s
        arguments."""
        return self._answer(_keys([{"m": m, "n": n, "k": k, **problem}])[0])

    def _answer(self, key):
        answer = json.loads(self._library.text("origami_answer", self._handle, ctypes.byref(_problem(*key))))
        return {"ways": [], "advice": [], **answer}

    def select_many(self, problems: list[dict]) -> list[Pick]:
        """The best configuration for each of many problems, dicts of select()'s arguments, in one call. If one problem
        has no answer, the call raises an Error that names it, without answers for the others."""
        keys = _keys(problems)
        # Another thread may empty the memory at any time, so each answer is looked up once.
        answers = {key: self._picks.get(key) for key in keys}
        new = [key for key, pick in answers.items() if pick is None]
        if new:
            picks, status = (_Pick * len(new))(), (ctypes.c_int32 * len(new))()
            asked = (_Problem * len(new))(*_problems(new, keys))
            try:
                self._library.call("origami_select_many", self._handle, asked, ctypes.c_size_t(len(new)), picks, status)
            except Error as e:
                bad = next((i for i, one in enumerate(status) if one), None)
                if bad is None:
                    raise
                # The library counts the problems that it was asked about.
                why = str(e).removeprefix(f"problem {bad}: ")
                raise Error(f"problem {keys.index(new[bad])}: {why}", e.kind) from None
            answers.update((key, self._remember(key, *one)) for key, *one in zip(new, asked, picks))
        return [answers[key] for key in keys]

    def rank(self, m: int, n: int, k: int, *, dtype: str = "fp16", trans_a: bool = False, trans_b: bool = False,
             batch: int = 1, out_dtype: str | None = None, lda: int = 0, ldb: int = 0, ldc: int = 0,
             align: int | tuple[int, int, int] = 16, groups: Sequence[int] | None = None,
             candidates: Sequence[Pick | dict] | None = None, top: int = 8) -> list[Pick]:
        """The best `top` configurations, best first; there can be fewer. candidates are the configurations to choose
        from: picks, or dicts such as {"block_m": 128, "block_n": 128, "block_k": 64, "num_warps": 8, "num_stages": 3}.
        Those that cannot be used are left out."""
        problem = _problem(*_key(m, n, k, dtype, trans_a, trans_b, batch, out_dtype, lda, ldb, ldc, align, groups))
        top = whole("top", top, 0, 0, (1 << 63) - 1)
        if candidates is not None:
            return [self._value(problem, p) for p in self._among(problem, _candidates(candidates), top)]
        return self._ranked(problem, top)

    def _ranked(self, problem, top):
        """The best configurations for a problem, a struct."""
        room = min(top, 1 << 10)
        while True:
            picks, count = (_Pick * room)(), ctypes.c_size_t(room)
            self._library.call("origami_rank", self._handle, ctypes.byref(problem), picks, ctypes.byref(count))
            if count.value < room or room == top:
                return [self._value(problem, p) for p in picks[:count.value]]
            room = min(top, room * 8)

    def _among(self, problem, configs, top=1 << 63):
        """The best of configurations, as structs."""
        room = min(top, len(configs))
        picks, count = (_Pick * room)(), ctypes.c_size_t(room)
        self._library.call("origami_rank_among", self._handle, ctypes.byref(problem), configs,
                           ctypes.c_size_t(len(configs)), picks, ctypes.byref(count))
        return picks[:count.value]

    def expected_regret(self, m: int, n: int, k: int, *, dtype: str = "fp16", trans_a: bool = False,
                        trans_b: bool = False, batch: int = 1, out_dtype: str | None = None, lda: int = 0,
                        ldb: int = 0, ldc: int = 0, align: int | tuple[int, int, int] = 16,
                        groups: Sequence[int] | None = None) -> Regret | None:
        """The expected regret of the pick. None if the model has no uncertainty."""
        problem = _problem(*_key(m, n, k, dtype, trans_a, trans_b, batch, out_dtype, lda, ldb, ldc, align, groups))
        out = _Regret()
        self._library.call("origami_expected_regret", self._handle, ctypes.byref(problem), ctypes.byref(out))
        return out.value()

    def bands(self, m: tuple[int, int] | list[int], n: int, k: int, *, dtype: str = "fp16", trans_a: bool = False,
              trans_b: bool = False, batch: int = 1, out_dtype: str | None = None, lda: int = 0, ldb: int = 0,
              ldc: int = 0, align: int | tuple[int, int, int] = 16, epilogue: str = "",
              library: Model | None = None, same: Sequence[str] = ()) -> Bands:
        """Divides the sizes M from m[0] to m[1] into bands with one kernel each. A list of sizes has a band for each, and
        all count the same. library is a model of the vendor's library, which is taken where no kernel is predicted
        clearly faster. same names axes, as "block_k", that have one value for all M: the one that costs least. The library is left
        out then."""
        low, high, sizes = _sizes(m)
        problem = _problem(*_key(high, n, k, dtype, trans_a, trans_b, batch, out_dtype, lda, ldb, ldc, align), epilogue)
        if isinstance(same, str) or not all(isinstance(axis, str) for axis in same):
            raise ArgumentTypeError(f"same is {shown(same)}; give a list of axes, as in [\"block_k\"]")
        axes = ctypes.create_string_buffer(",".join(same).encode())
        asked = _Range(low, (ctypes.c_int64 * len(sizes))(*sizes) if sizes else None, len(sizes),
                       ctypes.cast(axes, ctypes.POINTER(ctypes.c_char)))
        room = 64
        while True:
            bands, count, cost = (_Band * room)(), ctypes.c_size_t(room), _Same()
            self._library.call("origami_bands", self._handle, library._handle if library else ctypes.c_uint64(),
                               ctypes.byref(problem), ctypes.byref(asked), bands, ctypes.byref(count), ctypes.byref(cost))
            if count.value <= room:
                break
            room = count.value
        answer = Bands()
        if cost.values:
            answer.same = _same(cost)
        for b in bands[:count.value]:
            prices = (b.same_price if answer.same else None, b.one_price if answer.same and answer.same.one else None)
            answer.append(Band(b.m_low, b.m_high, None if b.library else self._value(problem, b.pick, b.m_high),
                               b.mean_regret, b.worst_regret,
                               b.worst_m, b.seconds_low, b.seconds_high, *prices))
        return answer

    def close(self) -> None:
        """Closes the model. Previous answers remain."""
        if self._handle.value and self._library.usable():
            handle, self._handle = self._handle, ctypes.c_uint64()
            self._library.call("origami_close", handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if hasattr(self, "_handle"):
            self.close()

    def _remember(self, key, problem, out):
        if len(self._picks) >= _MEMORY:
            self._picks.clear()
        pick = self._picks[key] = self._value(problem, out)
        return pick

    def _value(self, problem, out, m=None):
        """A Pick of a struct. A model that only ranks predicts no rate."""
        pick = out.value()
        if pick.seconds > 0 and not self.description.get("ranks_only"):
            rate = 2.0 * (m or problem.m) * problem.n * problem.k * problem.batch / pick.seconds / 1e12
            object.__setattr__(pick, "tflops", rate)  # it is new: nobody has it yet
        return pick


def architectures(library: os.PathLike | str | None = None) -> list[dict]:
    """The architectures that can be opened, as dicts of id, vendor, models, kernels, devices and options."""
    return json.loads(load(library).text("origami_list"))


def compare(sides: Sequence[Model | str], problems: dict | Sequence[dict]) -> list[dict]:
    """Predicted times of devices beside each other, as the command `compare` has them. sides are open models, or names
    such as "h200" and "mi300x". problems are dicts of select()'s arguments.

    The answer has a row for each problem and side, a flat dict that data frames take. ratio is the time ÷ the first
    side's, odds the probability that this side is faster than the first. fastest is True for the fastest side. A side
    without an answer has the reason in error."""
    if isinstance(sides, (str, Model)) or not isinstance(sides, Sequence):
        raise ArgumentTypeError(f"sides is {shown(sides)}; give a list of models or names of devices")
    asked = [problems] if isinstance(problems, Mapping) else problems
    keys = _keys(asked)
    models = [side if isinstance(side, Model) else Model(side) for side in sides]
    try:
        text = _compared(models, (_Problem * len(keys))(*_problems(keys, keys)))
    finally:
        for side, model in zip(sides, models):
            if side is not model:
                model.close()
    rows = []
    for place, contest in enumerate(json.loads(text)):
        fastest = (contest.get("fastest") or {}).get("entry")
        for i, entry in enumerate(contest["entries"]):
            odds = contest["odds"][i][0] if i else None
            rows.append(_row(keys[place], entry, contest["ratio_to_first"][i], odds, i == fastest))
    return rows


def _compared(models, problems):
    """The JSON of a comparison."""
    if not models:
        raise Error("there are no sides; give at least two models or names of devices")
    handles = (ctypes.c_uint64 * len(models))(*(m._handle.value for m in models))
    room = 4096 * len(models) * len(problems)
    return models[0]._library.text("origami_compare", handles, ctypes.c_size_t(len(models)), problems,
                                   ctypes.c_size_t(len(problems)), room=room)


def _row(key, entry, ratio, odds, fastest):
    """A side's answer to a problem, as a flat dict."""
    config, predicted, error = entry.get("config"), entry.get("predicted") or {}, entry.get("error")
    interval = predicted.get("interval_seconds") or (None, None)
    axes = (f"{name}={value}" for name, value in (config or {}).get("axes", {}).items())
    return {
        **dict(zip(("m", "n", "k", "dtype", "trans_a", "trans_b", "batch"), key)),
        **{name: entry.get(name) for name in ("arch", "device", "what_if", "model", "kernel", "evidence")},
        "config": _notation(config, axes) if config else None, "seconds": predicted.get("seconds"),
        "low": interval[0], "high": interval[1],
        **{name: predicted.get(name) for name in ("tflops", "bound")},
        "ratio": ratio, "odds": odds, "fastest": fastest,
        "error": "; ".join(filter(None, (error["what"], error.get("fix")))) if error else None,
    }


# The most answers that a Model keeps, of some hundred bytes each.
_MEMORY = 1 << 16


# origami.h: go generate ./ask
BOUNDS = ("unknown", "compute", "l2", "mall", "dram", "latency", "l1", "shared_memory", "issue")


class _Problem(ctypes.Structure):
    _fields_ = [
        ("m", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("batch", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
        ("trans_a", ctypes.c_uint8),
        ("trans_b", ctypes.c_uint8),
        ("bias", ctypes.c_uint8),
        ("activation", ctypes.c_uint8),
        ("lda", ctypes.c_int64),
        ("ldb", ctypes.c_int64),
        ("ldc", ctypes.c_int64),
        ("out_dtype", ctypes.c_int32),
        ("align_a", ctypes.c_uint8),
        ("align_b", ctypes.c_uint8),
        ("align_c", ctypes.c_uint8),
        ("adds", ctypes.c_uint8),
        ("groups", ctypes.POINTER(ctypes.c_int64)),
        ("group_count", ctypes.c_uint64),
        ("scales", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 7),
    ]


class _Pick(ctypes.Structure):
    _fields_ = [
        ("block_m", ctypes.c_int32),
        ("block_n", ctypes.c_int32),
        ("block_k", ctypes.c_int32),
        ("group_m", ctypes.c_int32),
        ("num_warps", ctypes.c_int32),
        ("num_stages", ctypes.c_int32),
        ("split_k", ctypes.c_int32),
        ("xcds", ctypes.c_int32),
        ("chunk", ctypes.c_int32),
        ("bound", ctypes.c_int32),
        ("cycles", ctypes.c_double),
        ("seconds", ctypes.c_double),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
        ("axes", ctypes.c_char * 128),
    ]

    def value(self):
        return Pick(
            self.block_m, self.block_n, self.block_k, self.group_m, self.num_warps, self.num_stages, self.split_k,
            self.xcds,
            self.chunk,
            BOUNDS[self.bound if self.bound < len(BOUNDS) else 0],
            self.cycles,
            self.seconds,
            (self.low, self.high) if self.high else None,
            self.axes.decode(errors="replace"))


class _Regret(ctypes.Structure):
    _fields_ = [
        ("expected", ctypes.c_double),
        ("worth_measuring", ctypes.c_int32),
        ("known", ctypes.c_int32),
    ]

    def value(self):
        return Regret(
            self.expected,
            self.worth_measuring) if self.known else None


class _Parameter(ctypes.Structure):
    _fields_ = [
        ("role", ctypes.c_int32),
        ("bytes", ctypes.c_int32),
        ("value", ctypes.c_uint64),
    ]


class _Map(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int32),
        ("matrix", ctypes.c_int32),
        ("sizes", ctypes.c_uint64 * 3),
        ("strides", ctypes.c_uint64 * 2),
        ("box", ctypes.c_uint32 * 3),
        ("reserved", ctypes.c_uint32),
    ]


class _Kernel(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_char * 192),
        ("shared_memory", ctypes.c_uint64),
        ("counters", ctypes.c_uint64),
        ("partials", ctypes.c_uint64),
        ("grid", ctypes.c_uint32 * 3),
        ("threads", ctypes.c_uint32),
        ("parameter_count", ctypes.c_uint32),
        ("map_count", ctypes.c_uint32),
        ("adds", ctypes.c_uint8),
        ("integer", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 6),
        ("maps", _Map * 3),
        ("parameters", _Parameter * 48),
    ]


class _Range(ctypes.Structure):
    _fields_ = [
        ("low", ctypes.c_int64),
        ("list", ctypes.POINTER(ctypes.c_int64)),
        ("count", ctypes.c_uint64),
        ("same", ctypes.POINTER(ctypes.c_char)),
    ]


class _Same(ctypes.Structure):
    _fields_ = [
        ("values", ctypes.c_char * 256),
        ("mean_price", ctypes.c_double),
        ("worst_price", ctypes.c_double),
        ("worst_m", ctypes.c_int64),
        ("one_mean_price", ctypes.c_double),
        ("one_worst_price", ctypes.c_double),
        ("one_worst_m", ctypes.c_int64),
        ("one", _Pick),
    ]


class _Band(ctypes.Structure):
    _fields_ = [
        ("m_low", ctypes.c_int64),
        ("m_high", ctypes.c_int64),
        ("mean_regret", ctypes.c_double),
        ("worst_regret", ctypes.c_double),
        ("worst_m", ctypes.c_int64),
        ("library", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("seconds_low", ctypes.c_double),
        ("seconds_high", ctypes.c_double),
        ("pick", _Pick),
        ("same_price", ctypes.c_double),
        ("one_price", ctypes.c_double),
    ]


class _Call(ctypes.Structure):
    _fields_ = [
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
        ("c", ctypes.c_uint64),
        ("bias", ctypes.c_uint64),
        ("counters", ctypes.c_uint64),
        ("partials", ctypes.c_uint64),
        ("alpha", ctypes.c_float),
        ("beta", ctypes.c_float),
        ("stream", ctypes.c_void_p),
        ("r", ctypes.c_uint64),
        ("scale_a", ctypes.c_uint64),
        ("scale_b", ctypes.c_uint64),
        ("step_a", ctypes.c_uint32),
        ("step_b", ctypes.c_uint32),
    ]


# end of origami.h


def _candidates(given):
    """The structs of a caller's configurations."""
    try:
        given = list(given)
    except TypeError:
        raise ArgumentTypeError(f"candidates is {shown(given)}; give a list of picks or dicts") from None
    if not given:
        raise Error("candidates is empty; give at least one configuration")
    configs = (_Pick * len(given))()
    for i, (one, config) in enumerate(zip(given, configs)):
        if not isinstance(one, Mapping):
            raise ArgumentTypeError(f"candidate {i} is {shown(one)}; give a Pick, or a dict with {', '.join(_CONFIG)}")
        for name in _CONFIG:
            if name not in one and name in _CONFIG[:3]:
                raise Error(f"candidate {i} has no {name}; give {', '.join(_CONFIG[:3])}, and the other fields if they "
                            "are not those of one warp, one stage and no split")
            least = 0 if name == "group_m" else 1
            value = whole(f"candidate {i}: {name}", one.get(name, least), least, least, (1 << 31) - 1)
            setattr(config, name, value)
        unknown = [name for name in one if name not in _CONFIG and name not in _FIELDS]
        if unknown:
            raise Error(f"candidate {i} has {shown(unknown[0])}; the fields are {', '.join(_CONFIG)}, axes")
        axes = one.get("axes") or ""
        if isinstance(axes, Mapping):
            axes = ",".join(f"{name}={value}" for name, value in axes.items())
        if not isinstance(axes, str) or len(axes.encode()) >= 128:
            raise Error(f"candidate {i}: axes is {shown(axes)}; give \"name=value,name=value\" of at most 127 bytes")
        config.axes = axes.encode()
    return configs


_CONFIG = ("block_m", "block_n", "block_k", "group_m", "num_warps", "num_stages", "split_k")


def _same(c):
    """An origami_same as a Same."""
    values = dict(pair.split("=") for pair in c.values.decode(errors="replace").split(", "))
    one = (None,) * 4
    if c.one.block_m:
        one = c.one.value(), c.one_mean_price, c.one_worst_price, c.one_worst_m
    return Same(values, c.mean_price, c.worst_price, c.worst_m, *one)


def _sizes(m):
    """The first and the last size, and the list of single sizes if m is one."""
    most = (1 << 63) - 1
    if isinstance(m, list) and m:
        sizes = [whole("m", one, 1, 1, most) for one in m]
        return 0, max(sizes), sizes
    try:
        low, high = m
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"m is {shown(m)}; give the first and the last M, or a list of sizes") from None
    return whole("m", low, 1, 1, most), high, []


def _key(m, n, k, dtype="fp16", trans_a=False, trans_b=False, batch=1, out_dtype=None, lda=0, ldb=0, ldc=0, align=16,
         groups=None):
    if groups is not None:
        groups = group_rows(groups)
    return (m, n, k, dtype, trans_a, trans_b, batch, out_dtype, lda, ldb, ldc, align, groups)


def _keys(problems):
    """The problems of select_many as the arguments of _problem."""
    try:
        problems = list(problems)
    except TypeError:
        raise ArgumentTypeError(f"problems is {shown(problems)}; give a list of dicts") from None
    keys = []
    for i, problem in enumerate(problems):
        try:
            key = _key(**problem)
        except TypeError as e:  # no dict, or other keys
            why = str(e).replace("origami_gemm.lib.", "").removeprefix("_key() ")
            raise ArgumentTypeError(
                f"problem {i} is {shown(problem)}: {why}; give a dict of select's arguments") from None
        try:
            hash(key)
        except TypeError:
            raise ArgumentTypeError(f"problem {i}: {_unhashable(key)}") from None
        keys.append(key)
    return keys


def _problems(new, keys):
    """The structs of problems. An error names the place in the caller's list."""
    for key in new:
        try:
            yield _problem(*key)
        except Error as e:
            raise type(e)(f"problem {keys.index(key)}: {e}") from None


def _unhashable(key):
    """The error for arguments of select that cannot be looked up."""
    for name, value in zip(_ARGUMENTS, key):
        try:
            hash(value)
        except TypeError as e:
            return ArgumentTypeError(f"{name} is {shown(value)}: {e}; give a number, a string or a truth value")
    return ArgumentTypeError("an argument of select cannot be looked up")


_ARGUMENTS = ("m", "n", "k", "dtype", "trans_a", "trans_b", "batch", "out_dtype", "lda", "ldb", "ldc", "align",
              "groups")


def _problem(m, n, k, dtype, trans_a, trans_b, batch, out_dtype, lda, ldb, ldc, align, groups, epilogue="", adds=False):
    dtype = code("dtype", dtype)
    out_dtype = 0 if out_dtype is None else code("out_dtype", out_dtype)
    # ctypes would truncate a larger number and thus change the problem. The library refuses those that are too small.
    m, n, k, batch, lda, ldb, ldc = (
        whole(name, size, least, -1 << 63, (1 << 63) - 1)
        for name, size, least in (("m", m, 1), ("n", n, 1), ("k", k, 1), ("batch", batch, 1), ("lda", lda, 0),
                                  ("ldb", ldb, 0), ("ldc", ldc, 0)))
    scales, bias, activation, last = _epilogue(epilogue)
    return _Problem(m, n, k, batch, dtype, flag("trans_a", trans_a), flag("trans_b", trans_b), bias, activation,
                    lda, ldb, ldc, out_dtype, *alignments(align), 2 if last else flag("adds", adds), (ctypes.c_int64 * len(groups))(*groups) if groups else None,
                    len(groups or ()), scales)


# The numbers of origami.h by name, as the command line has them.
ACTIVATIONS = {"": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4, "gelu_gated": 5, "gelu_tanh_gated": 6, "silu_gated": 7}


BIASES = {"": 0, "bias": 1, "bias_fp32": 2}


def _epilogue(text):
    """Whether there are scales, the numbers of the bias and of the activation, and whether R is added last, of an epilogue
    as the command line reads it."""
    parts = parts_of(text)
    if parts.activation not in ACTIVATIONS:
        raise Error(f"{shown(text)} is no epilogue; use scales, bias, bias_fp32, {', '.join(list(ACTIVATIONS)[1:])}, residual, or "
                    "several in this order, as in scales+bias+gelu+residual")
    return parts.scales, BIASES[parts.bias], ACTIVATIONS[parts.activation], parts.residual


class Parts(typing.NamedTuple):
    """An epilogue: whether there are scales, "", "bias" or "bias_fp32", the activation, and whether R is added last."""

    scales: bool
    bias: str
    activation: str
    residual: bool


def parts_of(text):
    parts = text.split("+")
    scales = parts[0] == "scales"
    bias = next((name for name in parts[scales:scales + 1] if name in ("bias", "bias_fp32")), "")
    last = parts[-1] == "residual"
    return Parts(scales, bias, "+".join(parts[scales + bool(bias):len(parts) - last]), last)


class _Library:
    """The C library, loaded."""

    def __init__(self, path):
        self.path, self.forked = path, False
        try:
            self._c = ctypes.CDLL(str(path))
            version = self._c.origami_api_version()
        except (OSError, AttributeError, ValueError) as e:
            raise Error(f"{path}: not a liborigami that can be loaded ({e}); build it with `make lib`", "device") from e
        if version != API_VERSION:
            raise Error(f"{path}: the library has interface version {version}, this package knows {API_VERSION}; "
                        "take both from the same release", "device")
        self._c.origami_launch.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
        self._c.origami_unload.argtypes, self._c.origami_unload.restype = (ctypes.c_void_p,), None

    def usable(self):
        """Whether this process loaded the library itself and is not a fork."""
        return not self.forked

    def call(self, function, *arguments):
        if not self.usable():
            raise Error("liborigami was loaded before this process was forked and cannot answer here; start processes "
                        'by "spawn" or "forkserver", or open the model in the child only', "internal")
        error = ctypes.create_string_buffer(2048)
        status = getattr(self._c, function)(*arguments, error, ctypes.c_size_t(len(error)))
        if status:
            raise Error(error.value.decode(errors="replace"), KINDS.get(status, "internal"))

    def text(self, function, *arguments, room=1 << 16):
        length = ctypes.c_size_t()
        while True:
            buffer = ctypes.create_string_buffer(room)
            self.call(function, *arguments, buffer, ctypes.c_size_t(room), ctypes.byref(length))
            if length.value < room:
                return buffer.raw[:length.value].decode()
            room = length.value + 1


_libraries = {}
_loading = threading.Lock()


def _in_child():
    """After a fork, in the child: the libraries of the parent have no threads here."""
    global _loading
    _loading = threading.Lock()  # another thread may have held it
    for library in _libraries.values():
        library.forked = True


os.register_at_fork(after_in_child=_in_child)


def load(path=None):
    """The library at a path, or at one of the usual places. It is loaded once."""
    try:
        path = pathlib.Path(path) if path else _find()
    except TypeError:
        raise ArgumentTypeError(f"library is {shown(path)}; give the path of liborigami.so") from None
    with _loading:
        if path not in _libraries:
            _libraries[path] = _Library(path)
        return _libraries[path]


def _find():
    here = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("ORIGAMI_LIB")
    if named:
        return pathlib.Path(named)
    places = [here / "liborigami.so", here.parents[2] / "bin" / "liborigami.so"]
    for place in places:
        if place.exists():
            return place
    raise Error(f"no liborigami.so in {' or '.join(str(p.parent) for p in places)}; build it with `make lib`, "
                "or set ORIGAMI_LIB to its path", "device")
