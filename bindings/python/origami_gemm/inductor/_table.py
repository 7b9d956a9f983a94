"""Picks as a file for PyTorch alone: Inductor's lookup table, and what reads it (_pinned.py)."""

from __future__ import annotations

import pathlib

from origami_gemm import _arguments
from origami_gemm.errors import Error
from origami_gemm.inductor import _cublas, _problem, _state, _versions

# The types as torch writes them.
TORCH = {ours: f"torch.{theirs}" for theirs, ours in _problem.OUTPUTS.items()} | {"tf32": "torch.float32"}
SPARE = 8  # picks that stand in for those that the template refuses


def write(path, problems=None, *, model=None, aten="auto") -> int:
    """Writes what origami picks to a file of Python that imports PyTorch alone, and returns how many products it has. A
    program imports the file and calls its enable(): each product of the table then has one kernel, and nothing is timed.

    problems  dicts of Model.select()'s arguments m, n, k, dtype, trans_a, trans_b, batch, and "bias": True for a row that
              is added. It is as if Inductor saw dense matrices of these sizes; no GPU and no PyTorch are needed. If not
              given, the table has the products that were compiled in this process since enable(), as Inductor saw them
    model     the Model of the picks, for problems
    aten      "auto": cuBLAS where it is predicted to be faster, and no entry where its time is not known. False: the picks

    A key of the table has the GPU's name, sizes, strides and types."""
    if aten not in ("auto", False):
        raise Error(f'aten is {_arguments.shown(aten)}; give "auto" or False')
    if problems is None:
        table = dict(_state.pinned)
        missing = ("no product was compiled since enable() whose time with cuBLAS is known; compile first, and give "
                   "enable(aten=False) for the picks whatever cuBLAS takes")
    elif model is None:
        raise Error('there is no model; give one, as in model=Model("h200")')
    else:
        table = dict(filter(None, (_entry(model, problem, aten) for problem in problems)))
        missing = "cuBLAS's time is not known for these products; give aten=False"
    if not table:
        raise Error(f"the table would be empty: {missing}")
    text = (pathlib.Path(__file__).parent / "_pinned.py").read_text()
    lines = (f"    {key!r}:\n        {entries!r},\n" for key, entries in table.items())
    for before, after in (("TABLE = {}", "TABLE = {\n" + "".join(lines) + "}"), ("PARTS = ()", f"PARTS = {_versions.PARTS}")):
        text = text.replace(f"\n{before}\n", f"\n{after}\n", 1)
    pathlib.Path(path).write_text(text)
    return len(table)


def chosen(pick_seconds, cublas_seconds, aten):
    """What a product gets: "pick" or "aten", or None where that is not known."""
    if aten is False:
        return "pick"
    if cublas_seconds is None:
        return None
    return "aten" if cublas_seconds <= pick_seconds else "pick"


def _entry(model, problem, aten):
    """The key of a product and its kernel, or None."""
    problem = dict(problem)
    bias = _arguments.flag("bias", problem.pop("bias", False))
    m, n, k, dtype = (problem.get(name, "fp16" if name == "dtype" else None) for name in ("m", "n", "k", "dtype"))
    given = {"m", "n", "k", "dtype", "trans_a", "trans_b", "batch"}
    if other := set(problem) - given:
        raise Error(f"a product of the table has {_arguments.shown(min(other))}; give {', '.join(sorted(given))} or bias")
    picks = model.rank(**problem, top=1 + SPARE)
    answer = model.answer(**problem)["problem"]
    dtype, batch = answer["dtype"], answer["batch"]
    if dtype not in TORCH or dtype.startswith("fp8"):
        raise Error(f"a product of {dtype} is not dense alone: it has scales; compile the model and leave problems out")
    problem = {"trans_a": False, "trans_b": False, **problem}
    best = next(((p, c) for p in picks if (c := _problem.configuration(p, dtype))), None)
    what = best and chosen(best[0].seconds, _cublas.seconds(model, {**problem, "dtype": dtype}, best[0]), aten)
    if not what:
        return None
    op = ("baddbmm" if bias else "bmm") if batch > 1 else "addmm" if bias else "mm"
    matrices = [(m, k, problem["trans_a"]), (k, n, problem["trans_b"])]
    nodes = [([rows, columns], [1, rows] if turned else [columns, 1], rows * columns) for rows, columns, turned in matrices]
    if bias:
        nodes.insert(0, ([m, n], [0, 1], 0))
    if batch > 1:
        nodes = [([batch, *sizes], [whole, *strides]) for sizes, strides, whole in nodes]
    key = str(tuple((_Word(TORCH[dtype]), sizes, strides) for sizes, strides, *_ in nodes))
    key = "+".join([model.description["device_name"], key, *(["alpha=1&beta=1"] if bias else []), op])
    if what == "aten":
        names = ("bias_addmm", "addmm") if op == "addmm" else (op,)  # the first is there for rows until 2.11
        return key, [{"template_id": f"aten::{name}"} for name in names]
    _, blocks = best
    template = "bmm" if batch > 1 else "mm"
    return key, [{"template_id": f"triton::{template}", "EVEN_K": k % blocks["BLOCK_K"] == 0, "USE_FAST_ACCUM": False,
                  "ACC_TYPE": "tl.float32", **blocks}]


class _Word(str):
    """A name that is written without quotes in a tuple."""

    __repr__ = str.__str__


def kept(choice):
    """A choice of Inductor as an entry of the table, or None if it has values that only its graph has."""
    values = choice.params.to_kwargs()
    plain = {name: _plain(value) for name, value in values.items()}
    if any(value is NotImplemented for value in plain.values()):
        return None
    return {"template_id": choice.template.uid, **plain}


def _plain(value):
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if getattr(value, "is_Integer", False):
        return int(value)
    return bool(value) if getattr(value, "is_Boolean", False) else NotImplemented
