"""Calls of the Python client on the C library: a line of JSON each, [call, answer]. same.py runs it."""

import dataclasses
import json

import origami_gemm
from origami_gemm import Error, Model


def plain(value):
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "__slots__") and not isinstance(value, (str, int, float, bool)):
        return {name: plain(getattr(value, name)) for name in value.__slots__}
    return value


def say(call, function):
    try:
        answer = function()
    except Error as e:
        answer = {"error": str(e)}
    print(json.dumps([call, plain(answer)]))


h200, mi300x = Model("sm90", "h200"), Model("gfx942")
wgmma = h200.sibling("wgmma")
problems = [{"m": 4096, "n": 4096, "k": 4096}, {"m": 100, "n": 3000, "k": 777, "trans_b": True, "dtype": "bf16"}]
say("architectures", origami_gemm.architectures)
say("description h200", lambda: h200.description)
say("description mi300x", lambda: mi300x.description)
say("select h200", lambda: h200.select(4096, 4096, 4096))
say("select h200 advice", lambda: h200.select(500, 5000, 5001, advice=True))
say("select h200 groups", lambda: h200.select(665, 4096, 2048, groups=[120, 33, 0, 512]))
say("select mi300x", lambda: mi300x.select(8192, 1024, 4096, trans_b=True, dtype="bf16"))
say("select wgmma", lambda: wgmma.select(4096, 4096, 4096, trans_b=True))
say("select library", lambda: h200.sibling("library").select(16, 8192, 8192, dtype="bf16"))
say("select events", lambda: Model("sm90", "h200", timing="events").select(64, 4096, 4096))
say("answer h200", lambda: h200.answer(4096, 4096, 4096))
say("select_many", lambda: h200.select_many(problems))
say("rank", lambda: h200.rank(4096, 4096, 4096)[:5])
say("rank candidates", lambda: h200.rank(4096, 4096, 4096, candidates=[
    {"block_m": 64, "block_n": 64, "block_k": 64, "num_warps": 4, "num_stages": 3, "group_m": 8, "split_k": 1}]))
say("expected_regret", lambda: h200.expected_regret(4096, 4096, 4096))
say("bands", lambda: wgmma.bands((1, 2048), 4096, 4096, trans_b=True))
say("bands invariant", lambda: Model("sm90", "h200", invariant=True).bands([1, 64, 4096], 4096, 4096))
say("compare", lambda: origami_gemm.compare([h200, "mi300x"], problems))
say("unknown architecture", lambda: Model("sm98"))
say("unknown device", lambda: Model("sm90", "h300"))
say("wrong size", lambda: h200.select(0, 64, 64))
say("wrong type", lambda: h200.select(64, 64, 64, dtype="fp7"))
