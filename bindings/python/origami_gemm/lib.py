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
import json
import operator
import os
import threading
import typing
from collections.abc import Mapping, Sequence

from origami_gemm._arguments import alignments, as_json, content, flag, group_rows, named, shown, whole
from origami_gemm.errors import ArgumentTypeError, Error

if typing.TYPE_CHECKING:
    import dataclasses

    record = dataclasses.dataclass(frozen=True, slots=True)
else:
    from origami_gemm._records import record

API_VERSION = 5

# What an interval rests on: measured times of the device, of another kind of problem on it, of others of its
# architecture, or none of these.
Evidence = typing.Literal["checked", "related", "sister", "unchecked"]

KINDS = {1: "internal", 2: "input", 3: "plugin", 4: "device"}


@record
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


@record
class Pick(Mapping):
    """A kernel configuration, and what the model predicts for it. It is a mapping too: dict(pick) has its fields.

    What is null in JSON is 0. xcds and chunk are 0 if the GPU has one die. bound is what limits the kernel. cycles and
    seconds are no times if Model.description has "ranks_only": such a model puts configurations in order.
    interval is the low and the high end of seconds, with the probability Model.description["interval_level"]. evidence says
    what it rests on, and outside what of the problem no measured time covers. axes has the values on the kernel family's
    named axes, "name=value,name=value"; it is often empty."""

    block_m: int
    block_n: int
    block_k: int
    group_m: int
    num_warps: int
    num_stages: int
    split_k: int
    xcds: int
    chunk: int
    bound: str
    cycles: float
    seconds: float
    interval: tuple[float, float] | None
    axes: str

    # 2·m·n·k·batch ÷ seconds ÷ 10¹². 0 if the model only ranks
    tflops: float = 0.0
    # None for a kernel of bands()
    evidence: Evidence | None = None
    outside: tuple[str, ...] = ()
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


_FIELDS = Pick.__match_args__


@record
class Regret:
    """What a model's uncertainty means for a pick: how much slower it is expected to be than the fastest other candidate,
    as a fraction of that candidate's time, and how many leading candidates are worth measuring. 1 means that the pick can
    be taken unmeasured."""

    expected: float
    worth_measuring: int


@record
class Band:
    """The sizes M from m_low to m_high, and the kernel for them, or None where the vendor's library is taken. Of the pick,
    the configuration and the time for m_high are known; select(candidates=[pick]) predicts the rest. The regret is how
    much slower that kernel is than the pick for each M, as a fraction."""

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


@record
class Same:
    """What the kernels for all M have in common, and what that costs: how much slower kernels are than the fastest of the
    family for each M, as a fraction, predicted. one is the single kernel that costs least for all M, or None; its times
    are for the largest M."""

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

    arch and device are as on the command line ("sm90", "h200"), and so is timing, what predicted times are of. "auto" is the
    NVIDIA GPU of this machine, "auto:1" its second.
    options, overrides, space and live are dicts, as in origami.h. invariant leaves out the configurations whose order of
    sums depends on M, so that bands() has one order for all M. compiled is the compiler's report on the kernels, and
    characterization has the times of a pass over them. Both are a path (the file may be gzipped) or the text of such a
    file.

    Opening takes some milliseconds, a new problem about half of one, and a known problem a dict lookup. docs/performance.md
    has the figures.
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
        if isinstance(arch, str) and (arch == "auto" or arch.startswith("auto:")):
            request |= _gpu(arch)
        for key, value in request.items():
            if key == "invariant":
                continue
            wanted = dict if key in ("options", "overrides", "space", "live") else str
            if not isinstance(value, wanted):
                raise ArgumentTypeError(f"{key} is {shown(value)}; give a {wanted.__name__}")
        self._library = load(library)
        self._device = {key: request[key] for key in ("arch", "device", "timing", "overrides", "live") if key in request}
        self._request, self._picks, self._closed = request, {}, False
        as_json(request)  # what cannot be written is said here
        self.description = self._ask("describe")
        self._ranks_only = self.description.get("ranks_only", False)

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
        except TypeError as e:
            raise _unhashable(key, e) from None
        if pick is None:
            pick = self._remember(key, self._ask("select", _problem(*key), brief=True))
        if flag("advice", advice):
            found = self._ask("select", _problem(*key), advice=True).get("advice", ())
            pick = Pick(**{**pick, "advice": tuple(Advice(**one) for one in found)})
        return pick

    def answer(self, m: int, n: int, k: int, **problem) -> dict:
        """All that the command says with `select --advice --regret --json`: a dict with the pick, its evidence, the
        other kernel families of the device (ways), and what is predicted to be faster (advice). It takes select()'s
        arguments."""
        key = _keys([{"m": m, "n": n, "k": k, **problem}])[0]
        return {"ways": [], "advice": [], **self._ask("select", _problem(*key), advice=True, regret=True)}

    def select_many(self, problems: list[dict]) -> list[Pick]:
        """The best configuration for each of many problems, dicts of select()'s arguments, in one call. If one problem
        has no answer, the call raises an Error that names it, without answers for the others."""
        keys = _keys(problems)
        # Another thread may empty the memory at any time, so each answer is looked up once.
        answers = {key: self._picks.get(key) for key in keys}
        new = [key for key, pick in answers.items() if pick is None]
        if new:
            found = self._ask("select", brief=True, problems=list(_problems(new, keys)))
            for key, one in zip(new, found):
                if "error" in one:
                    why = _line(one["error"]).removeprefix(f"problem {new.index(key)}: ")
                    raise Error(f"problem {keys.index(key)}: {why}", one["error"]["kind"])
            answers.update((key, self._remember(key, one)) for key, one in zip(new, found))
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
        if top == 0:
            return []
        return self._ranked(problem, top, None if candidates is None else _candidates(candidates))

    def _ranked(self, problem, top, candidates=None):
        """The best configurations for a problem, of all or of candidates as JSON has them."""
        return list(map(self._pick, self._entries(problem, top, candidates)))

    def _entries(self, problem, top, candidates=None):
        """_ranked as JSON has it."""
        more = {} if candidates is None else {"candidates": candidates}
        return self._ask("rank", problem, brief=True, top=min(top, 1 << 30), **more)

    def expected_regret(self, m: int, n: int, k: int, *, dtype: str = "fp16", trans_a: bool = False,
                        trans_b: bool = False, batch: int = 1, out_dtype: str | None = None, lda: int = 0,
                        ldb: int = 0, ldc: int = 0, align: int | tuple[int, int, int] = 16,
                        groups: Sequence[int] | None = None) -> Regret | None:
        """The expected regret of the pick. None if the model has no uncertainty."""
        problem = _problem(*_key(m, n, k, dtype, trans_a, trans_b, batch, out_dtype, lda, ldb, ldc, align, groups))
        found = self._ask("select", problem, brief=True, regret=True)
        return Regret(found["expected_regret"], found["worth_measuring"]) if "expected_regret" in found else None

    def bands(self, m: tuple[int, int] | list[int], n: int, k: int, *, dtype: str = "fp16", trans_a: bool = False,
              trans_b: bool = False, batch: int = 1, out_dtype: str | None = None, lda: int = 0, ldb: int = 0,
              ldc: int = 0, align: int | tuple[int, int, int] = 16, epilogue: str = "",
              library: bool = False, same: Sequence[str] = ()) -> Bands:
        """Divides the sizes M from m[0] to m[1] into bands with one kernel each. A list of sizes has a band for each, and
        all count the same. With library, the vendor's library is taken where no kernel is predicted clearly faster. same
        names axes, as "block_k", that have one value for all M: the cheapest. The library is left out then."""
        low, high, sizes = _sizes(m)
        problem = _problem(*_key(high, n, k, dtype, trans_a, trans_b, batch, out_dtype, lda, ldb, ldc, align), epilogue)
        if isinstance(same, str) or not all(isinstance(axis, str) for axis in same):
            raise ArgumentTypeError(f"same is {shown(same)}; give a list of axes, as in [\"block_k\"]")
        if sizes:
            problem["m"] = ",".join(map(str, sizes * (1 + (len(sizes) == 1))))  # one number is no list
        else:
            problem["m"] = f"{low}:{high}"
        found = self._ask("select", problem, own=not flag("library", library), same=list(same))
        answer = Bands()
        if found.get("same"):
            answer.same = _same(found["same"], problem)
        for b in found["bands"]:
            price = b.get("price") or {}
            pick = None if b["config"] is None else _bare(b["config"], b["seconds_high"], {**problem, "m": b["m_high"]})
            answer.append(Band(b["m_low"], b["m_high"], pick, b["mean_regret"], b["worst_regret"], b["worst_m"],
                               b["seconds_low"], b["seconds_high"], price.get("same"), price.get("one")))
        return answer

    def close(self) -> None:
        """Closes the model: it answers no new questions. Previous answers remain."""
        self._closed = True

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _remember(self, key, answer):
        if len(self._picks) >= _MEMORY:
            self._picks.clear()
        pick = self._picks[key] = self._pick(answer)
        return pick

    def _pick(self, answer):
        """The Pick of an answer."""
        config, predicted, mapping = answer["config"], answer["predicted"], answer.get("mapping")
        interval = predicted.get("interval_seconds")
        xcds, chunk = (mapping["xcds"], mapping["chunk"]) if mapping else (0, 0)
        return Pick(*_numbers(config), xcds, chunk, predicted["bound"], predicted["cycles"], predicted["seconds"],
                    interval and tuple(interval), _axes(config), 0.0 if self._ranks_only else predicted["tflops"],
                    answer.get("evidence"), tuple(answer.get("outside", ())))

    def _ask(self, question, problem=None, **more):
        if self._closed and not self._library.forked:
            raise Error("the model is closed; open another one")
        return self._library.ask({"ask": question, **self._request, **(problem or {}), **more})


def _gpu(name):
    """The arguments of Model for a GPU of this machine."""
    from origami_gemm import _cuda

    _, colon, index = name.partition(":")
    if colon and not (index.isascii() and index.isdigit()):
        raise Error(f"arch is {shown(name)}; give auto, or auto:1 for the second GPU")
    try:
        return _cuda.Driver().gpu(int(index or 0))
    except (OSError, RuntimeError) as e:
        raise Error(f"{name}: no NVIDIA GPU answers here ({e}); name one, as in Model(\"h200\")", "device") from e


def _bare(config, seconds, problem):
    """The Pick of a configuration of which the time alone is known."""
    rate = 2.0 * problem["m"] * problem["n"] * problem["k"] * problem["batch"] / seconds / 1e12 if seconds else 0.0
    return Pick(*_numbers(config), 0, 0, "unknown", 0.0, seconds or 0.0, None, _axes(config), rate)


def _numbers(config):
    return [number or 0 for number in _sizes_of(config)]  # null is what nobody knows


def _axes(config):
    axes = config.get("axes")
    return ",".join(f"{name}={value}" for name, value in axes.items()) if axes else ""


def architectures(library: os.PathLike | str | None = None) -> list[dict]:
    """The architectures that can be opened, as dicts of id, vendor, models, kernels, devices and options."""
    return load(library).ask({"ask": "archs"})


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
    if not sides:
        raise Error("there are no sides; give at least two models or names of devices")
    models = [side if isinstance(side, Model) else Model(side) for side in sides]
    try:
        contests = models[0]._library.ask({"ask": "compare", "sides": [m._request for m in models],
                                           "problems": list(_problems(keys, keys))})
    finally:
        for side, model in zip(sides, models):
            if side is not model:
                model.close()
    rows = []
    for place, contest in enumerate(contests):
        fastest = (contest.get("fastest") or {}).get("entry")
        for i, entry in enumerate(contest["entries"]):
            odds = contest["odds"][i][0] if i else None
            rows.append(_row(keys[place], entry, contest["ratio_to_first"][i], odds, i == fastest))
    return rows


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


def _candidates(given):
    """A caller's configurations as JSON has them."""
    try:
        given = list(given)
    except TypeError:
        raise ArgumentTypeError(f"candidates is {shown(given)}; give a list of picks or dicts") from None
    if not given:
        raise Error("candidates is empty; give at least one configuration")
    configs = []
    for i, one in enumerate(given):
        config = {}
        if not isinstance(one, Mapping):
            raise ArgumentTypeError(f"candidate {i} is {shown(one)}; give a Pick, or a dict with {', '.join(_CONFIG)}")
        for name in _CONFIG:
            if name not in one and name in _CONFIG[:3]:
                raise Error(f"candidate {i} has no {name}; give {', '.join(_CONFIG[:3])}, and the other fields if they "
                            "are not those of one warp, one stage and no split")
            least = 0 if name == "group_m" else 1
            value = whole(f"candidate {i}: {name}", one.get(name, least), least, least, (1 << 31) - 1)
            if value:
                config[name] = value
        unknown = [name for name in one if name not in _CONFIG and name not in _FIELDS]
        if unknown:
            raise Error(f"candidate {i} has {shown(unknown[0])}; the fields are {', '.join(_CONFIG)}, axes")
        axes = one.get("axes") or {}
        if isinstance(axes, str):
            try:
                axes = dict(pair.split("=") for pair in axes.split(","))
            except ValueError:
                axes = None
        if not isinstance(axes, Mapping):
            raise Error(f"candidate {i}: axes is {shown(one['axes'])}; give \"name=value,name=value\"")
        if axes:
            config["axes"] = {str(name): str(value) for name, value in axes.items()}
        configs.append(config)
    return configs


_CONFIG = ("block_m", "block_n", "block_k", "group_m", "num_warps", "num_stages", "split_k")
_sizes_of = operator.itemgetter(*_CONFIG)


def _same(s, problem):
    """The Same of an answer."""
    one, prices = s["one"] or {}, ("mean_price", "worst_price", "worst_m")
    return Same(s["values"], *map(s.get, prices), _bare(one["config"], 0.0, problem) if one else None,
                *map(one.get, prices))


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
        except TypeError as e:
            raise ArgumentTypeError(f"problem {i}: {_unhashable(key, e)}") from None
        keys.append(key)
    return keys


def _problems(new, keys):
    """The problems as JSON has them. An error names the place in the caller's list."""
    for key in new:
        try:
            yield _problem(*key)
        except Error as e:
            raise type(e)(f"problem {keys.index(key)}: {e}") from None


def _unhashable(key, why):
    """The error for arguments of select that cannot be looked up."""
    try:
        _problem(*key)
    except Error as e:
        return e
    return ArgumentTypeError(f"an argument of select cannot be looked up: {why}; give numbers, strings and booleans")


def _problem(m, n, k, dtype, trans_a, trans_b, batch, out_dtype, lda, ldb, ldc, align, groups, epilogue="", adds=False):
    """A problem as JSON has it."""
    problem = {name: whole(name, size, least, least, (1 << 63) - 1)
               for name, size, least in (("m", m, 1), ("n", n, 1), ("k", k, 1), ("batch", batch, 1))}
    problem |= {name: size for name, size in (("lda", lda), ("ldb", ldb), ("ldc", ldc))
                if whole(name, size, 0, 0, (1 << 63) - 1)}
    problem |= {"dtype": named("dtype", dtype), "trans_a": flag("trans_a", trans_a), "trans_b": flag("trans_b", trans_b)}
    if out_dtype is not None:
        problem["out_dtype"] = named("out_dtype", out_dtype)
    bytes_of = alignments(align)
    if bytes_of != (16, 16, 16):
        problem["align"] = ",".join(map(str, bytes_of))
    if groups:
        if sum(groups) != m:
            raise Error(f"m is {shown(m)}, and the groups have {sum(groups)} rows; give their sum")
        problem["groups"] = ",".join(map(str, groups))
    if epilogue:
        problem["epilogue"] = epilogue
    if flag("adds", adds) and not parts_of(epilogue).residual:  # R is added once
        problem["beta"] = "1"
    return problem


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
        self._c.origami_ask.argtypes = (ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))
        self._c.origami_load.argtypes = (ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
        self._c.origami_free.argtypes, self._c.origami_free.restype = (ctypes.c_void_p,), None
        self._c.origami_launch.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
        self._c.origami_unload.argtypes, self._c.origami_unload.restype = (ctypes.c_void_p,), None

    def ask(self, request):
        """The answer to a question."""
        return self._answered(self._c.origami_ask, as_json(request))

    def load(self, request, device):
        """A plan, and the record of its kernel."""
        plan = ctypes.c_void_p()
        kernel = self._answered(self._c.origami_load, as_json(request), ctypes.c_int32(device), ctypes.byref(plan))
        return plan, kernel

    def _answered(self, function, *arguments):
        if self.forked:
            raise Error("liborigami was loaded before this process was forked and cannot answer here; start processes "
                        'by "spawn" or "forkserver", or open the model in the child only', "internal")
        text = ctypes.c_void_p()
        status = function(*arguments, ctypes.byref(text))
        try:
            answer = json.loads(ctypes.string_at(text.value).decode())
        finally:
            self._c.origami_free(text)
        if status:
            raise Error(_line(answer["error"]), KINDS.get(status, "internal"))
        return answer


def _line(error):
    """An error of an answer in one line."""
    line = f"{error['where']}: {error['what']}" if error.get("where") else error["what"]
    return f"{line}; {error['fix']}" if error.get("fix") else line


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
        path = os.fspath(path) if path else _find()
    except TypeError:
        raise ArgumentTypeError(f"library is {shown(path)}; give the path of liborigami.so") from None
    with _loading:
        if path not in _libraries:
            _libraries[path] = _Library(path)
        return _libraries[path]


def _find():
    here = os.path.dirname(os.path.realpath(__file__))
    named = os.environ.get("ORIGAMI_LIB")
    if named:
        return named
    places = [here, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(here))), "bin")]
    for place in places:
        path = os.path.join(place, "liborigami.so")
        if os.path.exists(path):
            return path
    raise Error(f"no liborigami.so in {' or '.join(places)}; build it with `make lib`, "
                "or set ORIGAMI_LIB to its path", "device")
